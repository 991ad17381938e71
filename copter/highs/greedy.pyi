import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

class Greedy:
    def __init__(
        self,
        matrix: sp.csc_array,
        row_lower: _Floats,
        row_upper: _Floats,
        lower: _Floats,
        upper: _Floats,
        is_integer: NDArray[np.bool_],
        cost: _Floats,
    ) -> None: ...
    def free_point(self) -> _Floats: ...
    def near(self, x: _Floats) -> _Floats: ...
    def point(self, x: _Floats, reduced: _Floats | None, until: float) -> _Floats | None: ...
