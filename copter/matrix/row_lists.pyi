import numpy as np
from numpy.typing import ArrayLike, NDArray

from copter.matrix.contents import Contents, Private
from copter.matrix.template import Template

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Bounds = tuple[float, float, float, int]  # lower, upper, scale, serial

class RowLists:
    row_lower: _Floats
    row_upper: _Floats
    row_scale: _Floats
    row_generation: NDArray[np.int64]
    row_serial: NDArray[np.int64]
    n_rows: int
    templates: dict[Template, None]
    template_of_serial: dict[int, Template]
    row_templates: list[dict[Template, None]]
    free_rows: list[int]
    next_serial: int
    next_row: int
    def add_row(self, lower: float, upper: float) -> int: ...
    def retract_row(self, slot: int, reused: bool) -> None: ...
    def set_rows_bounds(self, rows: _Ints, lower: _Floats, upper: _Floats) -> None: ...
    def set_row_bounds(self, slot: int, lower: float, upper: float) -> None: ...
    def drop_row(self, slot: int) -> tuple[_Bounds, list[tuple[Template, Contents]]]: ...
    def restore_row(self, slot: int, before: _Bounds, touched: list[tuple[Template, Contents]]) -> None: ...
    def add_template(
        self, column_start: ArrayLike, row: ArrayLike, coefficient: ArrayLike, shared: bool = True
    ) -> Template: ...
    def enlist(self, template: Template) -> Template: ...
    def hang_template(self, template: Template) -> None: ...
    def drop_template(self, template: Template) -> None: ...
    def sort_templates(self) -> None: ...
    def update_template(
        self, template: Template, column_start: _Ints, row: _Ints, coefficient: _Floats, private: Private | None = None
    ) -> Contents: ...
    def require_rows(self, row: _Ints) -> None: ...
    def restore_rows(
        self,
        lower: _Floats,
        upper: _Floats,
        scale: _Floats,
        generation: NDArray[np.int64],
        serial: NDArray[np.int64],
        free_rows: ArrayLike,
    ) -> None: ...
    def settle_scales(self) -> None: ...
