import numpy as np
from numpy.typing import ArrayLike, NDArray

from copter.model.matrix.contents import Contents, Private

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def checked_private(private: Private, n: int) -> Private: ...
def own_templates(
    first: _Ints, column_start: _Ints, row: _Ints, coefficient: _Floats, private: list[Private | None] | None = None
) -> list[Template]: ...

class Template:
    column_start: _Ints
    row: _Ints
    coefficient: _Floats
    segment_start: _Ints
    rows: _Ints
    serial: int
    shared: bool
    private: Private | None
    def __init__(
        self,
        column_start: ArrayLike,
        row: ArrayLike,
        coefficient: ArrayLike,
        shared: bool = True,
        private: Private | None = None,
    ) -> None: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def n_private(self) -> int: ...
    @property
    def users(self) -> int: ...
    def replace(
        self, column_start: ArrayLike, row: ArrayLike, coefficient: ArrayLike, private: Private | None = None
    ) -> None: ...
    def contents(self) -> Contents: ...
    def without_row(self, slot: int) -> Template: ...
