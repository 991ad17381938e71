import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.groups import Groups

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
def least_columns(
    slots: _Ints, start: _Ints, key: NDArray[np.int64], value: _Floats, least: _Floats, column: _Ints
) -> None: ...
def thresholds(least: _Floats, rounding: float, threshold: _Floats) -> None: ...
def raise_new(columns: Groups, new: NDArray[np.int64], reduced: _Floats, x: _Floats) -> None: ...
def point_sums(columns: Groups, x: _Floats, activity: _Floats) -> tuple[float, float, float, float]: ...
