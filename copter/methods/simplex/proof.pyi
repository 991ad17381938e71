import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def prove_point(
    start: _Ints,
    index: _Ints,
    value: _Floats,
    cost: _Floats,
    lower: _Floats,
    upper: _Floats,
    x: _Floats,
    y: _Floats,
) -> tuple[float, float, float, float, float, float, float, float, float]: ...
