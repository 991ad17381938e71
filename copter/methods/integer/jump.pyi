import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Longs = NDArray[np.int64]
_Bytes = NDArray[np.uint8]

def jump(
    row_start: _Ints,
    row_column: _Ints,
    row_value: _Floats,
    row_lower: _Floats,
    row_upper: _Floats,
    tolerance: _Floats,
    column_start: _Ints,
    column_row: _Ints,
    column_value: _Floats,
    lower: _Floats,
    upper: _Floats,
    integer: _Bytes,
    x: _Floats,
    activity: _Floats,
    weight: _Floats,
    held_until: _Longs,
    violated: _Ints,
    place: _Ints,
    seed: int,
    first: int,
    steps: int,
) -> tuple[int, int]: ...
