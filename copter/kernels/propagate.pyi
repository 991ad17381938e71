import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Bytes = NDArray[np.uint8]

def propagate(
    row_start: _Ints,
    row_column: _Ints,
    row_value: _Floats,
    row_lower: _Floats,
    row_upper: _Floats,
    column_start: _Ints,
    column_row: _Ints,
    integer: _Bytes,
    lower: _Floats,
    upper: _Floats,
    queue: _Ints,
    queued: _Bytes,
    waiting: int,
    budget: int,
) -> bool: ...
