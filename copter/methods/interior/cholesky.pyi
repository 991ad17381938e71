from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Longs = NDArray[np.int64]

def elimination_tree(start: _Ints, index: _Ints, parent: _Ints) -> None: ...
def postorder(parent: _Ints, order: _Ints) -> None: ...
def column_counts(start: _Ints, index: _Ints, parent: _Ints, count: _Ints) -> None: ...
def supernodes(parent: _Ints, count: _Ints, first: _Ints) -> int: ...
def front_rows(start: _Ints, index: _Ints, first: _Ints, groups: int) -> tuple[_Longs, _Ints, _Ints]: ...

class NormalMatrix:
    def __init__(
        self,
        rows: tuple[_Ints, _Ints, _Floats],
        columns: tuple[_Ints, _Ints, _Floats],
        start: _Ints,
        index: _Ints,
    ) -> None: ...
    def write(self, theta: _Floats, value: _Floats, work: _Floats, begin: int, end: int) -> None: ...

class Factor:
    groups: int
    size: int
    skipped: int
    nonzeros: int
    flops: float
    def __init__(
        self, start: _Ints, index: _Ints, first: _Ints, row_start: _Longs, row: _Ints, parent: _Ints
    ) -> None: ...
    def factorise(self, value: _Floats, least_pivot: _Floats, must_stop: Callable[[], bool] | None = None) -> bool: ...
    def solve(self, b: _Floats) -> None: ...
