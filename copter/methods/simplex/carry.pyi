from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.methods.simplex.tableau import Tableau

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def whole_columns(program: Any) -> tuple[_Ints, _Ints, _Floats]: ...
def carried_prices(
    known: NDArray[np.int64], before: _Floats, rows: NDArray[np.int64], scale: _Floats, unit: float
) -> tuple[_Floats, _Floats]: ...
def carry(
    before: Tableau | None,
    now: Tableau,
    old: tuple[Any, ...],
    new: tuple[Any, ...],
    prices: _Floats,
    moved: tuple[Any, ...] | None = None,
) -> None: ...
