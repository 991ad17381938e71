import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def working_columns(
    column_start: _Ints,
    start: _Ints,
    row: _Ints,
    value: _Floats,
    cost: _Floats,
    lower: _Floats,
    upper: _Floats,
    limit: _Floats,
    slots: _Ints,
    x: _Floats,
    y: _Floats,
    slack: float,
) -> tuple[NDArray[np.int64], _Floats, _Ints]: ...
