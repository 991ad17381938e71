from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from copter.matrix.template import Template

_Floats = NDArray[np.float64]
_Costs = NDArray[np.float64] | NDArray[np.float32]
_Ints = NDArray[np.int32]
_Bounds = tuple[float, float, float, int]  # lower, upper, scale, serial
_Contents = tuple[_Ints, _Ints, _Floats]

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

class ListOfLists:
    n_slots: int
    slabs: list[Any]  # of Slab; None in an empty slot, which no live handle leads to
    generation: NDArray[np.int64]
    row_lower: _Floats
    row_upper: _Floats
    row_scale: _Floats
    row_generation: NDArray[np.int64]
    row_serial: NDArray[np.int64]
    n_rows: int
    n_columns: int
    templates: dict[Template, None]
    template_of_serial: dict[int, Template]
    row_templates: list[dict[Template, None]]
    free_slots: list[int]
    free_rows: list[int]
    fixed_slots: dict[int, None]
    next_serial: int
    next_row: int
    def __init__(self) -> None: ...
    def add_row(self, lower: float, upper: float) -> int: ...
    def retract_row(self, slot: int, reused: bool) -> None: ...
    def set_row_bounds(self, slot: int, lower: float, upper: float) -> None: ...
    def drop_row(self, slot: int) -> tuple[_Bounds, list[tuple[Template, _Contents]]]: ...
    def restore_row(self, slot: int, before: _Bounds, touched: list[tuple[Template, _Contents]]) -> None: ...
    def add_template(
        self, column_start: ArrayLike, row: ArrayLike, coefficient: ArrayLike, shared: bool = True
    ) -> Template: ...
    def hang_template(self, template: Template) -> None: ...
    def drop_template(self, template: Template) -> None: ...
    def sort_templates(self) -> None: ...
    def update_template(
        self, template: Template, column_start: _Ints, row: _Ints, coefficient: _Floats
    ) -> _Contents: ...
    def require_rows(self, row: _Ints) -> None: ...
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
    def restore_rows(
        self,
        lower: _Floats,
        upper: _Floats,
        scale: _Floats,
        generation: NDArray[np.int64],
        serial: NDArray[np.int64],
        free_rows: ArrayLike,
    ) -> None: ...
