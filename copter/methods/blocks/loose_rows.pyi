from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def reach_of_rows(program: Any) -> tuple[_Floats, _Floats]: ...
def kept_entries(place: _Ints, start: _Ints, row: _Ints, value: _Floats) -> tuple[_Ints, _Ints, _Floats]: ...
def row_terms(n_rows: int, start: _Ints, row: _Ints, value: _Floats, x: _Floats) -> tuple[_Floats, _Floats]: ...
