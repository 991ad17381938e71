import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

def oscillate(
    usage: _Floats,
    cost: _Floats,
    order: _Ints,
    first: _Ints,
    low: _Floats,
    high: _Floats,
    tolerance: _Floats,
    weight: _Floats,
    now: _Ints,
    raised: float,
    lowered: float,
    enough: float,
    patience: int,
    until: float,
) -> bool: ...
