import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

class Groups:
    all_easy: bool
    def __init__(
        self,
        start: _Ints,
        limit: _Floats,
        cost: _Floats,
        lower: _Floats,
        upper: _Floats,
        entry_start: _Ints,
        row: _Ints,
        coefficient: _Floats,
    ) -> None: ...
