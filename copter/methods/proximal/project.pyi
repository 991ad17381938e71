import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.groups import Groups

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Bytes = NDArray[np.uint8]

class Projection:
    def __init__(self, x: _Floats, free: _Bytes, multiplier: _Floats, activity: _Floats, value: _Floats) -> None: ...

class Slacks:
    def __init__(self, center: _Floats, sigma: _Floats, lower: _Floats, upper: _Floats, scale: _Floats) -> None: ...

class Dual:
    def __init__(
        self, columns: Groups, slacks: Slacks, center: _Floats, sigma: float, out: Projection, threads: int
    ) -> None: ...
    def begin(self, slacks: Slacks, center: _Floats, sigma: float) -> None: ...
    def evaluate(self, y: _Floats, slack: _Floats, residual: _Floats) -> float: ...
    def search(
        self, start: _Floats, value: float, direction: _Floats, slope: float, found: _Floats
    ) -> tuple[float, bool]: ...

def project(
    columns: Groups, center: _Floats, sigma: float, y: _Floats, out: Projection, n_threads: int = 0
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
