import numpy as np
from numpy.typing import NDArray

_Ints = NDArray[np.int32]

def arrows(
    column_start: _Ints, private_start: _Ints, own_start: _Ints, own_row: _Ints
) -> tuple[_Ints, _Ints, _Ints, _Ints, _Ints]: ...
