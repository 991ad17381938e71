import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def reach_of_rows(
    n_rows: int,
    column_start: _Ints,
    private_start: _Ints,
    start: _Ints,
    row: _Ints,
    value: _Floats,
    own_start: _Ints,
    own_row: _Ints,
    own_value: _Floats,
    lower: _Floats,
    upper: _Floats,
) -> tuple[_Floats, _Floats]: ...
def kept_entries(place: _Ints, start: _Ints, row: _Ints, value: _Floats) -> tuple[_Ints, _Ints, _Floats]: ...
def row_terms(n_rows: int, start: _Ints, row: _Ints, value: _Floats, x: _Floats) -> tuple[_Floats, _Floats]: ...
