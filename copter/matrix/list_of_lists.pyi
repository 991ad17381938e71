from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from copter.matrix.row_lists import RowLists
from copter.matrix.template import Template

_Floats = NDArray[np.float64]
_Costs = NDArray[np.float64] | NDArray[np.float32]
_Ints = NDArray[np.int32]

class Slab:
    template: Template
    slot: int
    cost: _Costs
    lower_each: _Floats | None
    upper_each: _Floats | None
    exception_column: _Ints | None
    exception_cost: _Floats | None
    rounding: float
    integer: bool
    def __init__(self, template: Template, slot: int) -> None: ...

class SavedSlab:
    slot: int

class ListOfLists(RowLists):
    n_slots: int
    slabs: list[Any]  # of Slab; None in an empty slot, which no live handle leads to
    generation: NDArray[np.int64]
    n_columns: int
    free_slots: list[int]
    fixed_slots: dict[int, None]
    def __init__(self) -> None: ...
    def add_slab(
        self,
        template: Template,
        cost: _Costs,
        limit: float,
        lower: _Floats | float,
        upper: _Floats | float,
        scale: float = 1.0,
        offset: float = 0.0,
        integer: bool = False,
        rounding: float = 0.0,
    ) -> int: ...
    def retract_slab(self, slot: int, reused: bool) -> None: ...
    def place_slab(
        self,
        slot: int,
        template: Template,
        cost: _Costs,
        limit: float,
        lower: _Floats | float,
        upper: _Floats | float,
        scale: float,
        offset: float,
        integer: bool,
        rounding: float,
    ) -> None: ...
    def new_slab(
        self,
        template: Template,
        cost: _Costs,
        lower: _Floats | float,
        upper: _Floats | float,
        integer: bool,
        rounding: float,
    ) -> Slab: ...
    def remove_slab(self, slot: int) -> None: ...
    def save_slab(self, slot: int) -> SavedSlab: ...
    def restore_slab(self, saved: SavedSlab) -> None: ...
    def save_blocks(self, slots: _Ints) -> NDArray[np.uint8]: ...
    def restore_blocks(self, slots: _Ints, blocks: NDArray[np.uint8]) -> None: ...
    def set_cost(self, slot: int, cost: _Costs, scale: float, offset: float, rounding: float = 0.0) -> None: ...
    def set_costs(self, slots: _Ints, costs: _Floats, scale: float, offset: float) -> None: ...
    def set_scale(self, slot: int, scale: float, offset: float) -> None: ...
    def set_exceptions(self, slot: int, columns: Any, costs: Any) -> None: ...
    def rescale(self, slots: _Ints, scale: _Floats, offset: _Floats, column: _Ints, cost: _Floats) -> None: ...
    def set_fixed(self, slot: int, column: int) -> None: ...
    def set_template(self, slot: int, template: Template) -> None: ...
    def set_limits(self, slot: int, limit: float, lower: _Floats | float, upper: _Floats | float) -> None: ...
    def set_integer(self, slot: int, integer: bool) -> None: ...
    def scale_of(self, slot: int) -> tuple[float, float]: ...
    def limit_of(self, slot: int) -> float: ...
    def upper_of(self, slot: int) -> float: ...
    def fixed_of(self, slot: int) -> int: ...
    def is_resident(self, slot: int) -> bool: ...
    def compact(self) -> NDArray[np.int64]: ...
    def restore_slots(self, n_slots: int, free_slots: ArrayLike, generation: NDArray[np.int64]) -> None: ...
