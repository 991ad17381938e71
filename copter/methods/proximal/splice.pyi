from typing import Any

import numpy as np
from numpy.typing import NDArray

def merged_keys(
    key: NDArray[np.int64], x: NDArray[np.float64], alive: NDArray[np.bool_] | None, wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]: ...
def places_with(n: int, at: NDArray[np.int64]) -> NDArray[np.int32]: ...
def spliced(first: Any, second: Any, place: NDArray[np.int32], target: Any) -> None: ...
