import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def geometric_scaling(
    start: _Ints, index: _Ints, value: _Floats, passes: int, row: _Floats, column: _Floats, scaled: _Floats
) -> None: ...
def scaled_costs(c: _Floats, column: _Floats, cost: _Floats, minimised: bool) -> float: ...
def scaled_bounds(
    col_lower: _Floats,
    col_upper: _Floats,
    row_lower: _Floats,
    row_upper: _Floats,
    row: _Floats,
    column: _Floats,
    lower: _Floats,
    upper: _Floats,
) -> None: ...
