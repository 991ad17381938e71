import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

class Centre:
    def __init__(self, *layout: int | _Ints | _Floats, cost: _Floats, lower: _Floats, upper: _Floats) -> None: ...
    def put(
        self, mu: float, y: _Floats, reduced: _Floats, x: _Floats, z: _Floats, v: _Floats, n_threads: int
    ) -> None: ...
