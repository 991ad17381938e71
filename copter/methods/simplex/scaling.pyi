import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def geometric_scaling(
    start: _Ints, index: _Ints, value: _Floats, passes: int, row: _Floats, column: _Floats, scaled: _Floats
) -> None: ...
