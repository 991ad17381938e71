import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

class Pricer:
    def __init__(
        self,
        first: _Ints,
        row_first: _Ints,
        matrix_first: NDArray[np.int64],
        matrix: _Floats,
        row_lower: _Floats,
        row_upper: _Floats,
        lower: _Floats,
        upper: _Floats,
    ) -> None: ...
    def price(self, reduced: _Floats, x: _Floats, bound: _Floats, nodes: int, until: float = ...) -> int: ...
    def several(self, reduced: _Floats, x: _Floats, count: _Ints, most: int, nodes: int, until: float) -> None: ...
