import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

class WorkingInverse:
    n_rows: int
    entries: _Floats
    norms: _Floats
    def __init__(self, n_rows: int) -> None: ...
    def reset(self) -> None: ...
