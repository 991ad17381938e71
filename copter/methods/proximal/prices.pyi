import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

class PriceModel:
    def __init__(self, first: _Ints, place: _Ints, entry: _Floats, diagonal: _Floats) -> None: ...
    def ascend(self, order: NDArray[np.int64], start: _Floats, move: _Floats, share: float, most: int) -> int: ...
