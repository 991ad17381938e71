from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

def best_costs(program: Any, prices: Floats) -> tuple[Floats, Floats]: ...
def tied_blocks(program: Any, reduced: Floats, margin: float) -> int: ...
def settled_blocks(
    program: Any, reduced: Floats, margin: float, free: NDArray[np.uint8], point: Floats | None = None
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]: ...
