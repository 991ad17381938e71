"""The ledger behind a model: every edit as one operation with its inverse, batches that are atomic, a journal.

An operation is given checked data, changes the matrix and the tables of ids, and notes how to take back each step. An
error anywhere, in the edit, in the batch around it or in the journal, takes back what was done, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from copter.errors import DuplicateHandleError, InvalidDataError
from copter.matrix import BlockMatrix, SavedSlab, Template
from copter.model.checks import Bound, Costs, cost_type, finite
from copter.model.usage import Pattern
from copter.runtime.guard import Guard

if TYPE_CHECKING:
    from copter.storage.journal import Journal

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class Ledger:
    """Matrix and ids of a model, changed by operations only.

    Costs are held as minimised: with the sign of the sense.
    """

    def __init__(self, sense: Literal["max", "min"], offset: float, cost_dtype: DTypeLike) -> None:
        if sense not in ("max", "min"):
            raise InvalidDataError(f"sense is {sense!r}, must be 'max' or 'min'")
        self.sense: Literal["max", "min"] = sense
        self.offset = finite("offset", offset)
        self.cost_dtype = cost_type(cost_dtype)
        self.version = 0
        self._sign = -1.0 if sense == "max" else 1.0
        self._matrix = BlockMatrix()
        self._row_of: dict[Hashable, int] = {}
        self._slot_of: dict[Hashable, int] = {}
        self._added_at: dict[Hashable, int] = {}  # version at which a request came in; ascending, as _slot_of is
        self._guard = Guard("model")
        self._journal: Journal | None = None
        self._depth = 0
        self._undo: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._records: list[list[bytes | memoryview]] = []
        self._disordered = False

    # Batches ------------------------------------------------------------------------------------------------------

    @contextmanager
    def batch(self) -> Iterator[None]:
        """All the edits of a ``with`` block or, if it is left by an exception, none.

        A batch inside a batch takes back its own edits only; the outer one may go on. With a journal, the outermost
        batch is one record. Taking back costs time in proportion to the edits (and one pass over the ids, if requests,
        templates or resources had been removed). No solve runs inside a batch.
        """
        outermost = self._depth == 0
        if outermost:
            self._guard.enter("in a batch of edits")
        else:
            self._guard.require_owner()
        mark, recorded, version = len(self._undo), len(self._records), self.version
        self._depth += 1
        try:
            yield
            if outermost and self._journal is not None and self._records:
                self._journal.append(self._records, batch=True)
        except BaseException:
            del self._records[recorded:]
            self._roll_back(mark, version)
            raise
        finally:
            self._depth -= 1
            if outermost:
                self._undo.clear()
                self._records.clear()
                self._guard.leave()

    def _apply(self, name: str, *arguments: Any) -> Any:
        """Do one operation: all of it, with its record in the journal, or none."""
        alone = self._depth == 0
        if alone:
            self._guard.enter("being edited")
        else:
            self._guard.require_owner()
        mark, version = len(self._undo), self.version
        try:
            self.version = version + 1
            result = OPERATIONS[name](self, *arguments)
            if self._journal is not None:
                record = self._journal.encode(name, arguments)
                if alone:
                    self._journal.append([record])
                else:
                    self._records.append(record)
            return result
        except BaseException:
            self._roll_back(mark, version)
            raise
        finally:
            if alone:
                self._undo.clear()
                self._guard.leave()

    def _roll_back(self, mark: int, version: int) -> None:
        """Take back the steps since a mark, last one first."""
        while len(self._undo) > mark:
            inverse, arguments = self._undo.pop()
            inverse(*arguments)
        self.version = version
        if self._disordered:
            order = sorted(self._added_at, key=self._added_at.__getitem__)
            slots, added = self._slot_of, self._added_at
            self._slot_of = {request: slots[request] for request in order}
            self._added_at = {request: added[request] for request in order}
            rows, serial = self._row_of, self._matrix.row_serial
            self._row_of = {r: rows[r] for r in sorted(rows, key=lambda each: int(serial[rows[each]]))}
            self._matrix.sort_templates()
            self._disordered = False

    def _note(self, inverse: Callable[..., Any], *arguments: Any) -> None:
        self._undo.append((inverse, arguments))

    # Operations: resources ------------------------------------------------------------------------------------------

    def _op_count(self, resource: Hashable, count: float) -> None:
        """A resource has so many units; its row is made when it is new."""
        row = self._row_of.get(resource)
        self._set_row(resource, -np.inf if row is None else float(self._matrix.row_lower[row]), count)

    def _op_rows(self, resources: list[Hashable], lower: Floats, upper: Floats) -> None:
        """The sums of usage of these resources lie between bounds; rows are made for those that are new."""
        for resource, low, high in zip(resources, lower.tolist(), upper.tolist(), strict=True):
            self._set_row(resource, low, high)

    def _set_row(self, resource: Hashable, lower: float, upper: float) -> None:
        matrix = self._matrix
        if resource in self._row_of:
            row = self._row_of[resource]
            self._note(matrix.set_row_bounds, row, float(matrix.row_lower[row]), float(matrix.row_upper[row]))
            matrix.set_row_bounds(row, lower, upper)
        else:
            reused = bool(matrix.free_rows)
            row = matrix.add_row(lower, upper)
            self._note(matrix.retract_row, row, reused)
            self._row_of[resource] = row
            self._note(self._row_of.__delitem__, resource)

    def _op_drop_row(self, resource: Hashable) -> None:
        row = self._row_of[resource]
        before, touched = self._matrix.drop_row(row)
        self._note(self._put_row_back, resource, row, before, touched)
        del self._row_of[resource]

    def _put_row_back(self, resource: Hashable, row: int, before: Any, touched: Any) -> None:
        self._matrix.restore_row(row, before, touched)
        self._row_of[resource] = row
        self._disordered = True

    # Operations: templates ------------------------------------------------------------------------------------------

    def _op_add_template(self, start: Ints, row: Ints, coefficient: Floats) -> Template:
        return self._hung((start, row, coefficient), shared=True)

    def _hung(self, pattern: Pattern, shared: bool) -> Template:
        """A new template in the matrix."""
        matrix = self._matrix
        serial = matrix.next_serial
        template = Template(*pattern, shared=shared)
        self._keep_scales(template.rows)
        matrix.enlist(template)
        self._note(self._retract_template, template, serial)
        return template

    def _retract_template(self, template: Template, serial: int) -> None:
        self._matrix.drop_template(template)
        self._matrix.next_serial = serial

    def _keep_scales(self, rows: Ints) -> None:
        """Note the scales of rows that a template is about to raise."""
        self._note(self._restore_scales, rows, self._matrix.row_scale[rows])

    def _restore_scales(self, rows: Ints, scales: Floats) -> None:
        self._matrix.row_scale[rows] = scales

    def _op_update_template(self, which: Template | int, start: Ints, row: Ints, coefficient: Floats) -> None:
        template = self._template(which)
        self._keep_scales(np.unique(np.concatenate((template.row, row))))
        before = self._matrix.update_template(template, start, row, coefficient)
        self._note(self._matrix.update_template, template, *before)

    def _op_drop_template(self, which: Template | int) -> None:
        template = self._template(which)
        self._keep_scales(template.rows)
        self._matrix.drop_template(template)
        self._note(self._rehang, template)

    def _rehang(self, template: Template) -> None:
        self._matrix.hang_template(template)
        self._disordered = True

    def _template(self, which: Template | int) -> Template:
        """A template, by itself or by its serial number as the journal has it."""
        return self._matrix.template_of_serial[which] if isinstance(which, int) else which

    # Operations: requests -------------------------------------------------------------------------------------------

    def _op_add(
        self,
        request: Hashable,
        source: Template | int | Pattern,
        cost: Costs,
        limit: float,
        lower: Bound,
        upper: Bound,
        scale: float,
        offset: float,
        integer: bool,
        rounding: float,
    ) -> None:
        template = self._hung(source, shared=False) if isinstance(source, tuple) else self._template(source)
        self._hang(request, self.version, template, cost, limit, lower, upper, scale, offset, integer, rounding)

    def _op_add_many(
        self,
        requests: list[Hashable],
        which: Template | int,
        costs: list[Costs],
        lower: Bound,
        upper: Bound,
        each: tuple[list[float], list[float], list[float], list[bool], list[float]],
    ) -> None:
        """Add requests of one template; `each` gives limits, scales, offsets, whether integer, rounding."""
        template, first = self._template(which), self.version
        for at, (request, cost, limit, scale, offset, integer, rounding) in enumerate(
            zip(requests, costs, *each, strict=True)
        ):
            self._hang(request, first + at, template, cost, limit, lower, upper, scale, offset, integer, rounding)
        self.version = first + max(len(requests) - 1, 0)

    def _hang(self, request: Hashable, version: int, template: Template, cost: Costs, *rest: Any) -> None:
        """A new slab under an id; `rest` is what :meth:`BlockMatrix.add_slab` takes from the limit on."""
        if request in self._slot_of:
            raise DuplicateHandleError(f"request {request!r} is in the model already; remove it first")
        matrix = self._matrix
        limit, lower, upper, scale, offset, integer, rounding = rest
        reused = bool(matrix.free_slots)
        slot = matrix.add_slab(template, cost, limit, lower, upper, scale, offset, integer, rounding)
        self._undo.append((self._unhang, (request, slot, reused)))
        self._slot_of[request] = slot
        self._added_at[request] = version

    def _unhang(self, request: Hashable, slot: int, reused: bool) -> None:
        self._slot_of.pop(request, None)
        self._added_at.pop(request, None)
        self._matrix.retract_slab(slot, reused)

    def _op_remove(self, requests: list[Hashable]) -> None:
        matrix = self._matrix
        for request in requests:
            slot = self._slot_of[request]
            template, saved = matrix.slabs[slot].template, matrix.save_slab(slot)
            self._undo.append((self._put_back, (request, saved, self._added_at[request])))
            matrix.remove_slab(slot)
            del self._slot_of[request], self._added_at[request]
            if not template.shared:
                self._op_drop_template(template)

    def _put_back(self, request: Hashable, saved: SavedSlab, added_at: int) -> None:
        self._matrix.restore_slab(saved)
        self._slot_of[request], self._added_at[request] = saved.slot, added_at
        self._disordered = True

    def _kept(self, request: Hashable) -> int:
        """Slot of a request that is about to be edited; the inverse of whatever is done to its slab is noted."""
        slot = self._slot_of[request]
        self._undo.append((self._matrix.restore_slab, (self._matrix.save_slab(slot),)))
        return slot

    def _op_usage(self, request: Hashable, source: Template | int | Pattern) -> None:
        """Another usage: a pattern of the request's own, or a template."""
        template = self._matrix.slabs[self._slot_of[request]].template
        if isinstance(source, tuple) and not template.shared:
            self._op_update_template(template, *source)
            return
        other = self._hung(source, shared=False) if isinstance(source, tuple) else self._template(source)
        self._matrix.set_template(self._kept(request), other)
        if not template.shared:
            self._op_drop_template(template)

    def _op_limits(self, request: Hashable, limit: float, lower: Bound, upper: Bound) -> None:
        self._matrix.set_limits(self._kept(request), limit, lower, upper)

    def _op_integer(self, request: Hashable, integer: bool) -> None:
        self._matrix.set_integer(self._kept(request), integer)

    def _op_fix(self, request: Hashable, column: int) -> None:
        self._matrix.set_fixed(self._kept(request), column)

    # Operations: costs ----------------------------------------------------------------------------------------------

    def _op_cost(self, request: Hashable, cost: Costs, scale: float, offset: float, rounding: float) -> None:
        self._matrix.set_cost(self._kept(request), cost, scale, offset, rounding)

    def _op_costs(self, requests: list[Hashable], costs: Floats, scale: float, offset: float) -> None:
        """The rows of a matrix as the costs of requests with as many columns."""
        matrix = self._matrix
        slots = [self._slot_of[request] for request in requests]
        self._note(self._restore_slabs, [matrix.save_slab(slot) for slot in slots])
        matrix.set_costs(np.array(slots, dtype=np.int32), costs, scale, offset)

    def _restore_slabs(self, saved: list[SavedSlab]) -> None:
        for each in reversed(saved):
            self._matrix.restore_slab(each)

    def _op_scale(
        self, request: Hashable, scale: float, offset: float, columns: Ints | None, costs: Floats | None
    ) -> None:
        slot = self._kept(request)
        self._matrix.set_scale(slot, scale, offset)
        self._matrix.set_exceptions(slot, columns, costs)

    def _op_exceptions(self, request: Hashable, columns: Ints, costs: Floats) -> None:
        self._matrix.set_exceptions(self._kept(request), columns, costs)

    def _op_rescale(self, requests: list[Hashable], scale: Floats, offset: Floats, column: Ints, cost: Floats) -> None:
        slots = np.fromiter(map(self._slot_of.__getitem__, requests), dtype=np.int32, count=len(requests))
        self._note(self._matrix.restore_blocks, slots, self._matrix.save_blocks(slots))
        self._matrix.rescale(slots, scale, offset, column, cost)


# Operations by the name that the journal has them under.
OPERATIONS: dict[str, Callable[..., Any]] = {
    name.removeprefix("_op_"): operation for name, operation in vars(Ledger).items() if name.startswith("_op_")
}
