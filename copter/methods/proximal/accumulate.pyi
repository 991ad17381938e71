import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def reduced_costs(
    cost: _Floats, entry_start: _Ints, row: _Ints, coefficient: _Floats, y: _Floats, reduced: _Floats
) -> None: ...
def activities(entry_start: _Ints, row: _Ints, coefficient: _Floats, x: _Floats, activity: _Floats) -> None: ...
def group_least(start: _Ints, value: _Floats, least: _Floats) -> None: ...
def easy_minimum(
    start: _Ints, limit: _Floats, lower: _Floats, upper: _Floats, reduced: _Floats, easy: NDArray[np.uint8]
) -> float: ...
def idle_columns(
    start: _Ints,
    reduced: _Floats,
    cost: _Floats,
    lower: _Floats,
    upper: _Floats,
    x: _Floats,
    slack: float,
    idle: NDArray[np.uint8],
) -> None: ...
def block_violation(
    start: _Ints, limit: _Floats, lower: _Floats, upper: _Floats, x: _Floats
) -> tuple[float, float]: ...
