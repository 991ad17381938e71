import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def prove(
    column_start: _Ints,
    start: _Ints,
    row: _Ints,
    value: _Floats,
    cost: _Floats,
    bounds: _Floats,
    sums: _Floats,
    rows: _Floats,
    x: _Floats,
    y: _Floats,
) -> tuple[float, float, float, float, float, float, float, float, float]: ...
