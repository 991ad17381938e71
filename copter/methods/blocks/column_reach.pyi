import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def column_reach(
    column_start: _Ints,
    start: _Ints,
    row: _Ints,
    value: _Floats,
    cost: _Floats,
    lower: _Floats,
    upper: _Floats,
    sums: _Floats,
    x: _Floats,
    y: _Floats,
    weight: _Floats,
    tie: float,
) -> tuple[_Floats, _Floats, _Floats, _Floats]: ...
def largest_of_rows(n_rows: int, row: _Ints, value: _Floats) -> _Floats: ...
