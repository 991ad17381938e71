import numpy as np
from numpy.typing import ArrayLike, NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def segments_of(column_start: _Ints, row: _Ints) -> _Ints: ...
def distinct(row: _Ints) -> _Ints: ...

class Template:
    column_start: _Ints
    row: _Ints
    coefficient: _Floats
    segment_start: _Ints
    rows: _Ints
    serial: int
    shared: bool
    def __init__(
        self, column_start: ArrayLike, row: ArrayLike, coefficient: ArrayLike, shared: bool = True
    ) -> None: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def users(self) -> int: ...
    def replace(self, column_start: ArrayLike, row: ArrayLike, coefficient: ArrayLike) -> None: ...
    def contents(self) -> tuple[_Ints, _Ints, _Floats]: ...
    def drop_row(self, slot: int) -> None: ...
