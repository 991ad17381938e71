import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.groups import Groups

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Bytes = NDArray[np.uint8]

class Projection:
    def __init__(self, x: _Floats, free: _Bytes, multiplier: _Floats, activity: _Floats, value: _Floats) -> None: ...

def project(
    columns: Groups, center: _Floats, sigma: float, y: _Floats, out: Projection, n_threads: int = 0
) -> None: ...
def slack_part(
    center: _Floats, sigma: _Floats, lower: _Floats, upper: _Floats, y: _Floats, out: Projection
) -> tuple[float, _Floats, _Floats]: ...
def newton_matrix(columns: Groups, free: _Bytes, multiplier: _Floats, sigma: float, matrix: _Floats) -> None: ...
def jacobian_product(
    columns: Groups, free: _Bytes, multiplier: _Floats, sigma: float, direction: _Floats, product: _Floats
) -> None: ...
def block_minimum(
    start: _Ints,
    limit: _Floats,
    reduced: _Floats,
    lower: _Floats,
    upper: _Floats,
    order: NDArray[np.int64],
    least: _Floats,
) -> None: ...
