import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Entries = tuple[_Ints, _Ints, _Floats]

class Jumps:
    def __init__(
        self,
        rows: _Entries,
        columns: _Entries,
        row_lower: _Floats,
        row_upper: _Floats,
        tolerance: _Floats,
        lower: _Floats,
        upper: _Floats,
        integer: NDArray[np.uint8],
    ) -> None: ...
    def search(self, x: _Floats, activity: _Floats, seed: int, steps: int) -> tuple[int, int]: ...
