import numpy as np
from numpy.typing import ArrayLike, NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

class BasisFactor:
    rows: int
    updates: int
    most_updates: int
    work: float
    most_work: float
    least_pivot: float
    def __init__(self, rows: int) -> None: ...
    def factorise_columns(self, start: _Ints, index: _Ints, value: _Floats, head: _Ints) -> int: ...
    def solve(self, right: ArrayLike, transposed: bool = False) -> _Floats: ...
    def exchange(self, column: ArrayLike, row: int) -> None: ...
