from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.methods.simplex.tableau import Tableau

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def whole_columns(
    n_rows: int,
    column_start: _Ints,
    private_start: _Ints,
    start: _Ints,
    row: _Ints,
    value: _Floats,
    own_start: _Ints,
    own_row: _Ints,
    own_value: _Floats,
) -> tuple[_Ints, _Ints, _Floats]: ...
def carry(
    before: Tableau | None, now: Tableau, old: tuple[Any, ...], new: tuple[Any, ...], prices: _Floats
) -> None: ...
