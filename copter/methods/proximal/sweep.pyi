import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def refresh_prices(
    row_lower: _Floats, row_upper: _Floats, y: _Floats, penalty: _Floats, activity: _Floats, price: _Floats
) -> None: ...
def sweep(
    start: _Ints,
    limit: _Floats,
    cost: _Floats,
    lower: _Floats,
    upper: _Floats,
    entry_start: _Ints,
    row: _Ints,
    coefficient: _Floats,
    row_lower: _Floats,
    row_upper: _Floats,
    y: _Floats,
    penalty: _Floats,
    center: _Floats,
    sigma: float,
    x: _Floats,
    activity: _Floats,
    price: _Floats,
) -> float: ...
