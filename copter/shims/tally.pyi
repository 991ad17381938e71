import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def tally(
    row: _Ints, coefficient: _Floats, value: _Floats, rows: int
) -> tuple[_Floats, _Floats, NDArray[np.int64], NDArray[np.bool_]]: ...
