from typing import Literal

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Pattern = tuple[_Ints, _Ints, _Floats]

def from_vectors(vectors: list[_Floats], rows: _Ints) -> _Pattern: ...
def from_entries(
    major: _Ints, minor: _Ints, data: _Floats, rows: _Ints, n: int, layout: Literal["csc", "csr", "coo"]
) -> _Pattern: ...
def merged(start: _Ints, row: _Ints, coefficient: _Floats) -> _Pattern: ...
def all_finite(values: _Floats) -> bool: ...
