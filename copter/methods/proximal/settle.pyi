import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def settled_radius(
    start: _Ints,
    limit: _Floats,
    lower: _Floats,
    upper: _Floats,
    x: _Floats,
    reduced: _Floats,
    entry_start: _Ints,
    row: _Ints,
    coefficient: _Floats,
    weight: _Floats,
    radius: _Floats,
) -> None: ...
