import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Bytes = NDArray[np.uint8]

class Propagator:
    def __init__(
        self,
        row_start: _Ints,
        row_column: _Ints,
        row_value: _Floats,
        row_lower: _Floats,
        row_upper: _Floats,
        column_start: _Ints,
        column_row: _Ints,
        integer: _Bytes,
    ) -> None: ...
    def propagate(self, lower: _Floats, upper: _Floats, budget: int) -> bool: ...
    def restrict(self, lower: _Floats, upper: _Floats, column: int, low: float, high: float, budget: int) -> bool: ...
    def fix_all(
        self, lower: _Floats, upper: _Floats, order: NDArray[np.int64], target: _Floats, budget: int
    ) -> int: ...
