from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.groups import Groups
from copter.methods.proximal.project import Dual

_Floats = NDArray[np.float64]
_Bytes = NDArray[np.uint8]

class Ascent:
    def __init__(self, dual: Dual, tolerance: _Floats, base: _Floats, weight: _Floats, radius: float) -> None: ...
    def run(
        self,
        y: _Floats,
        stop: Callable[[], bool],
        most: int,
        direction_at: Callable[[_Floats, _Floats], _Floats] | None = None,
    ) -> tuple[int, _Floats, _Floats, _Floats]: ...

def newton_matrix(columns: Groups, free: _Bytes, multiplier: _Floats, sigma: float, matrix: _Floats) -> None: ...
def jacobian_product(
    columns: Groups, free: _Bytes, multiplier: _Floats, sigma: float, direction: _Floats, product: _Floats
) -> None: ...
