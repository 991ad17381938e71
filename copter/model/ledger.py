"""The ledger of a model: edits as reversible operations, atomic batches, and a journal.

An operation is given checked data, changes the matrix and the tables of ids, and notes how to take back each step. An
error anywhere, in the edit, in the batch around it or in the journal, takes back what was done, to the last bit.

A signal's handler may raise wherever an instruction of Python's runs. This module is compiled (`setup.py`), so that is
only inside what it calls: functions of NumPy, methods of the caller's ids. Each step therefore calls these first and
changes the model last, or notes the way back before it begins. A way back may be begun again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Literal, Protocol
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import DTypeLike, NDArray

from copter.model.checks import Bound, Costs, alike, cost_type, finite, hashable
from copter.model.columns import N_FIELDS, Columns, RequestNumbers, own_parts
from copter.model.found_slots import found_slots
from copter.model.matrix import BlockMatrix, SavedSlab, Template
from copter.model.matrix.changes import Changes
from copter.model.matrix.contents import Contents, Private
from copter.model.matrix.moves import Move, Moves
from copter.problem.slots_then import Past, SlotsThen
from copter.problem.values import distinct
from copter.runtime.collector import uncollected
from copter.runtime.errors import (
    DuplicateHandleError,
    InternalError,
    InvalidDataError,
    StaleSolutionError,
    UnknownHandleError,
)
from copter.runtime.guard import Guard

if TYPE_CHECKING:
    from copter.storage.journal import Journal

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Operation = tuple[str, tuple[Any, ...]]
PlainWorth = tuple[str, tuple[float, ...]]
HeldWorth = tuple[PlainWorth, Floats]


class Listener(Protocol):
    """Interface of an object that is told of every edit that succeeded; its methods must not raise."""

    def encoded(self, name: str, arguments: tuple[Any, ...]) -> bytes:
        """Return one operation as bytes, before its arguments may change."""

    def append(self, operations: list[bytes], seconds: float) -> None:
        """Receive the edits of one batch, or a single edit, and how many seconds they took."""


class Ledger:
    """The matrix and the ids of a model, changed by operations only; the engine's view of :class:`copter.Model`.

    Solves, shims, snapshots and mirrors read the attributes; :meth:`apply` alone changes them (:meth:`restore` makes
    them when a snapshot is read, :meth:`compact` renumbers slots).

    Attributes
    ----------
    matrix : BlockMatrix
        Rows, templates and slabs. Costs are held as minimised: with the sign of the sense.
    sign : float
        1 for a minimisation, -1 for a maximisation.
    row_of : dict
        Row of every resource, in the order added.
    slot_of : dict
        Slot of every request, in the order added.
    added_at : dict
        Version at which each request was added, ascending.
    columns_at : dict
        Version at which each request got its present columns; it distinguishes them from earlier ones of the same id.
    worths : dict
        Of the slots of requests with a concave worth: ((kind, numbers) of it, rates).
    version : int
        Number of edits so far.
    changes : Changes
        The edits since earlier solves, for programs that are kept and patched.
    moves : Moves
        Where requests' columns went when they got others, for states that are kept.
    guard : Guard
        Held while the model is edited, solved or saved.
    journal : Journal or None
        Where edits are recorded, if they are.
    tape : Listener or None
        A session's recorder, which receives every edit that succeeded.
    told_s : float
        Seconds that telling the listener has taken so far.
    """

    def __init__(self, sense: Literal["max", "min"], offset: float, cost_dtype: DTypeLike) -> None:
        if not isinstance(sense, str) or sense not in ("max", "min"):
            raise InvalidDataError(f"sense is {sense!r}, must be 'max' or 'min'")
        self.sense: Literal["max", "min"] = sense
        self.offset = finite("offset", offset)
        self.cost_dtype = cost_type(cost_dtype)
        self.version = 0
        self.sign = -1.0 if sense == "max" else 1.0
        self.matrix = BlockMatrix()
        self.row_of: dict[Hashable, int] = {}
        self.slot_of: dict[Hashable, int] = {}
        self.added_at: dict[Hashable, int] = {}
        self._past = Past()
        self.worths: dict[int, HeldWorth] = {}
        self.columns_at: dict[Hashable, int] = {}
        self.changes, self.moves = Changes(), Moves()
        self.guard = Guard("model")
        self.journal: Journal | None = None
        self.tape: Listener | None = None
        self.told_s = 0.0
        self._depth = 0
        self._undo: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._records: list[list[bytes | memoryview]] = []
        self._told: list[bytes] = []
        self._spent_s = 0.0  # seconds of the batch's edits, measured if there is a listener
        self._disordered = False
        self._interrupted: BaseException | None = None  # by what a step back was ended, if by anything
        self._found: tuple[list[Hashable], Ints] | None = None
        # cost arrays, by their bytes, that requests share
        self._vectors: WeakValueDictionary[bytes, Floats] = WeakValueDictionary()

    # Look-ups -----------------------------------------------------------------------------------------------------

    def row(self, resource: Hashable) -> int:
        """Return the row of a resource; raises UnknownHandleError if the resource is unknown."""
        try:
            return self.row_of[resource]
        except TypeError:
            hashable("resource", resource)
            raise
        except KeyError:
            named = ", ".join(repr(each) for each in islice(self.row_of, 5)) + (", ..." if len(self.row_of) > 5 else "")
            there = f"there are {named}" if named else "there is none yet: add_resource adds one"
            raise UnknownHandleError(f"unknown resource {resource!r}; {there}") from None

    def slot(self, request: Hashable) -> int:
        """Return the slot of a request; raises UnknownHandleError if the request is unknown."""
        try:
            return self.slot_of[request]
        except TypeError:
            hashable("request", request)
            raise
        except KeyError:
            near = alike(request, self.slot_of)
            raise UnknownHandleError(f"unknown request {request!r}: never added, or already removed{near}") from None

    def slots(self, requests: list[Hashable]) -> Ints:
        """Return the slots of many requests, (n,), in one pass; a wrong id is searched for only if the pass fails."""
        if self._found is not None and self._found[0] is requests:
            return self._found[1]
        try:
            return found_slots(self.slot_of, requests)
        except (KeyError, TypeError):
            return np.array([self.slot(request) for request in requests], dtype=np.int32)

    def slots_then(self) -> SlotsThen:
        """Return the present :attr:`slot_of`, to be kept by a solution or plan."""
        return self._past.at(self.slot_of, self.added_at)

    def slots_of_edit(self, requests: list[Hashable]) -> Ints:
        """Return :meth:`slots` of a list and keep it for the next operation, which then skips the look-up."""
        self._found = None
        slots = self.slots(requests)
        self._found = (requests, slots)
        return slots

    def require_unchanged(self, request: Hashable, version: int) -> None:
        """Raise StaleSolutionError if a request has been removed, or its columns replaced, since a version."""
        if self.columns_at.get(request, version + 1) > version:
            what = "been removed" if self.added_at.get(request, version + 1) > version else "got other columns"
            raise StaleSolutionError(f"request {request!r} has {what} since this solution was found")

    # Batches ------------------------------------------------------------------------------------------------------

    def batch(self) -> Batch:
        """Apply all edits of a ``with`` block or none; see :meth:`copter.Model.batch`."""
        return Batch(self)

    def begin(self) -> tuple[int, int, int, int]:
        """Begin a batch; returns how many steps back, records and told edits there are, and the version."""
        if self._depth == 0:
            self.guard.enter("in a batch of edits")
        else:
            self.guard.require_owner()
        self._depth += 1
        return len(self._undo), len(self._records), len(self._told), self.version

    def end(self, begun: tuple[int, int, int, int], failed: bool) -> None:
        """End a batch that :meth:`begin` began: the outermost one writes the journal; a failed one is taken back."""
        mark, recorded, told, version = begun
        outermost = self._depth == 1
        try:
            if outermost and not failed and self.journal is not None and self._records:
                self.journal.append(self._records, batch=True)
            if outermost and not failed and self.tape is not None and self._told:
                self.tape.append(self._told, self._spent_s)
        except BaseException:
            failed = True
            raise
        finally:
            try:
                if failed:
                    del self._records[recorded:], self._told[told:]
                    self._roll_back(mark, version)
            finally:
                self._depth -= 1
                if outermost:
                    self._undo.clear()
                    self._records.clear()
                    self._told.clear()
                    self._spent_s = 0.0
                    self.guard.leave()

    def apply(self, name: str, *arguments: Any) -> Any:
        """Run one operation and record it in the journal; if either fails, neither takes effect."""
        alone = self._depth == 0
        if alone:
            self.guard.enter("being edited")
        else:
            self.guard.require_owner()
        mark, version = len(self._undo), self.version
        try:
            started = 0.0 if self.tape is None else time.perf_counter()
            self.version = version + 1
            if name not in OF_REQUESTS:
                self.changes.anything()
            result = OPERATIONS[name](self, *arguments)
            if self.journal is not None or self.tape is not None:
                self._tell(name, arguments, alone, started)
            return result
        except BaseException:
            self._roll_back(mark, version)
            raise
        finally:
            self._found = None
            if alone:
                self._undo.clear()
                self.guard.leave()

    def _tell(self, name: str, arguments: tuple[Any, ...], alone: bool, started: float) -> None:
        """Give an operation that succeeded to the journal and to the listener, or keep it for the end of the batch."""
        begun = time.perf_counter()
        record, told = None, None
        if self.journal is not None:
            plain = [each.serial if isinstance(each, Template) else each for each in arguments]
            record = self.journal.encode(name, plain)  # a template is written as its serial number
        if self.tape is not None:
            told = self.tape.encoded(name, arguments)
        encoded = time.perf_counter()
        if record is not None and self.journal is not None:
            if alone:
                self.journal.append([record])  # the last that may fail
            else:
                self._records.append(record)
        if told is not None and self.tape is not None:
            if alone:
                self.tape.append([told], begun - started)
            else:
                self._told.append(told)
                self._spent_s += begun - started
            self.told_s += encoded - begun

    def compact(self) -> NDArray[np.int64]:
        """Move slabs into free slots; returns the new slot of every old one, -1 for free slots. Ids do not change."""
        moved = self.matrix.compaction()
        slot_of = {request: int(moved[slot]) for request, slot in self.slot_of.items()}
        worths = {int(moved[slot]): held for slot, held in self.worths.items()}
        self._past.copy()
        self.changes.anything()
        self.moves.clear()
        self.matrix.compact(moved)  # from here on no instruction of Python's is run
        self.slot_of, self.worths = slot_of, worths
        return moved

    def _roll_back(self, mark: int, version: int) -> None:
        """Undo the steps since a mark, in reverse order; a signal meanwhile is raised at the end."""
        self.changes.anything()
        self._interrupted = None
        while len(self._undo) > mark:
            inverse, arguments = self._undo[-1]
            self._surely(inverse, *arguments)
            self._undo.pop()
        self.version = version
        if self._disordered:
            self._surely(self._sort)
        if self._interrupted is not None:
            raise self._interrupted

    def _surely(self, step: Callable[..., Any], *arguments: Any) -> None:
        """Run a step that may be begun again, until no signal ends it."""
        for _ in range(ATTEMPTS):
            try:
                step(*arguments)
                return
            except BaseException as error:
                self._interrupted = error
        raise InternalError(f"an edit could not be taken back: {self._interrupted!r}") from self._interrupted

    def _sort(self) -> None:
        """Restore the order in which ids were added, after some were put back."""
        self._past.copy()
        order = sorted(self.added_at, key=self.added_at.__getitem__)
        slots, added = self.slot_of, self.added_at
        slot_of = {request: slots[request] for request in order}
        added_at = {request: added[request] for request in order}
        rows, serial = self.row_of, self.matrix.row_serial
        row_of = {r: rows[r] for r in sorted(rows, key=lambda each: int(serial[rows[each]]))}
        self.matrix.sort_templates()
        self.slot_of, self.added_at, self.row_of = slot_of, added_at, row_of
        self._disordered = False

    def _note(self, inverse: Callable[..., Any], *arguments: Any) -> None:
        self._undo.append((inverse, arguments))

    # Operations: resources ------------------------------------------------------------------------------------------

    def _op_count(self, resource: Hashable, count: float) -> None:
        """Set the number of units of a resource; a new resource gets a row."""
        row = self.row_of.get(resource)
        self._set_row(resource, -np.inf if row is None else float(self.matrix.row_lower[row]), count)

    def _op_rows(self, resources: list[Hashable], lower: Floats, upper: Floats) -> None:
        """Set bounds on the usage of these resources; new resources get rows."""
        matrix, known = self.matrix, [self.row_of.get(resource, -1) for resource in resources]
        if -1 not in known:
            rows = np.array(known, dtype=np.int32)
            self._note(matrix.set_rows_bounds, rows, matrix.row_lower[rows], matrix.row_upper[rows])
            matrix.set_rows_bounds(rows, lower, upper)
            return
        for resource, low, high in zip(resources, lower.tolist(), upper.tolist(), strict=True):
            self._set_row(resource, low, high)

    def _set_row(self, resource: Hashable, lower: float, upper: float) -> None:
        matrix = self.matrix
        if resource in self.row_of:
            row = self.row_of[resource]
            self._note(matrix.set_row_bounds, row, float(matrix.row_lower[row]), float(matrix.row_upper[row]))
            matrix.set_row_bounds(row, lower, upper)
        else:
            self.changes.anything()
            reused = bool(matrix.free_rows)
            row = matrix.add_row(lower, upper)
            self._note(matrix.retract_row, row, reused)
            self._note(self._forget_row, resource)
            self.row_of[resource] = row

    def _forget_row(self, resource: Hashable) -> None:
        self.row_of.pop(resource, None)

    def _op_drop_row(self, resource: Hashable) -> None:
        row = self.row_of[resource]
        self._note(self._put_row_back, resource, row, *self.matrix.drop_row(row))
        self.row_of.pop(resource)

    def _put_row_back(self, resource: Hashable, row: int, before: Any, touched: Any) -> None:
        self.row_of[resource] = row
        self._disordered = True
        self.matrix.restore_row(row, before, touched)

    # Operations: templates ------------------------------------------------------------------------------------------

    def _op_add_template(self, start: Ints, row: Ints, coefficient: Floats, private: Private | None = None) -> Template:
        return self._hung((start, row, coefficient, private), shared=True)

    def _hung(self, contents: Contents, shared: bool) -> Template:
        """Add a template to the matrix; contents of three entries have no private rows."""
        matrix = self.matrix
        start, row, coefficient, private = (*contents, None)[:4]
        template = Template(start, row, coefficient, shared, private)
        self._keep_scales(template.rows)
        matrix.enlist(template)
        self._note(self._retract_template, template, template.serial)
        return template

    def _retract_template(self, template: Template, serial: int) -> None:
        self.matrix.drop_template(template)
        self.matrix.next_serial = serial

    def _keep_scales(self, rows: Ints) -> None:
        """Note the scales of the rows that a template is about to raise."""
        self._note(self._restore_scales, rows, self.matrix.row_scale[rows])

    def _restore_scales(self, rows: Ints, scales: Floats) -> None:
        self.matrix.row_scale[rows] = scales

    def _op_update_template(
        self, which: Template | int, start: Ints, row: Ints, coefficient: Floats, private: Private | None = None
    ) -> None:
        template = self._template(which)
        self._keep_scales(distinct(np.concatenate((template.row, row))))
        before = self.matrix.update_template(template, start, row, coefficient, private)
        self._note(self.matrix.update_template, template, *before)

    def _op_drop_template(self, which: Template | int) -> None:
        template = self._template(which)
        self._keep_scales(template.rows)
        self.matrix.drop_template(template)
        self._note(self._rehang, template)

    def _rehang(self, template: Template) -> None:
        self.matrix.hang_template(template)
        self._disordered = True

    def _template(self, which: Template | int) -> Template:
        """Return a template, given as an object or by its serial number in the journal."""
        return self.matrix.template_of_serial[which] if isinstance(which, int) else which

    # Operations: requests -------------------------------------------------------------------------------------------

    def _op_add(self, request: Hashable, source: Template | int | Contents, cost: Costs, *numbers: Any) -> None:
        """Add a request; `numbers` are the fields of :class:`RequestNumbers`."""
        given = RequestNumbers(*numbers)
        bounds = None if given.bounds is None else given.bounds.copy()
        template = self._hung(source, shared=False) if isinstance(source, tuple) else self._template(source)
        self._hang(request, self.version, template, cost, *given[:-1], bounds, 0)

    @uncollected()
    def _op_add_many(
        self,
        requests: list[Hashable],
        which: Template | int,
        costs: list[Costs],
        lower: Bound,
        upper: Bound,
        each: tuple[list[float], list[float], list[float], list[bool], list[float]],
        leasts: list[float] | None = None,
        bounds: Floats | None = None,
    ) -> None:
        """Add requests of one template; `each` holds limits, scales, offsets, integrality and rounding errors.

        `bounds` (k, 2 * rows): of each request's private rows, lower ones, then upper ones.
        """
        template, first, matrix = self._template(which), self.version, self.matrix
        least = [-np.inf] * len(requests) if leasts is None else leasts
        table = None if bounds is None else bounds.copy()
        self._require_new(requests)
        matrix.make_room(len(requests))
        slots = list[int]()
        self._note(self._unhang_many, requests, slots, len(matrix.free_slots))
        for at, (cost, limit, scale, offset, integer, rounding) in enumerate(zip(costs, *each, strict=True)):
            slots.append(
                matrix.add_slab(
                    template, cost, limit, lower, upper, scale, offset, integer, rounding, least[at], table, at
                )
            )
        self._past.change(requests)
        self.slot_of.update(zip(requests, slots, strict=True))
        for added in (self.added_at, self.columns_at):
            added.update(zip(requests, range(first, first + len(requests)), strict=True))
        self._contents_change(slots)
        self.version = first + max(len(requests) - 1, 0)

    def _unhang_many(self, requests: list[Hashable], slots: list[int], free: int) -> None:
        """Undo :meth:`_op_add_many`, as far as it came; the first `free` slots were free before."""
        self._past.change(requests)
        for request in requests:
            for table in (self.slot_of, self.added_at, self.columns_at):
                table.pop(request, None)
        while slots:
            self.matrix.retract_slab(slots[-1], len(slots) <= free)
            slots.pop()

    @uncollected()
    def _op_add_own(self, requests: list[Hashable], *columns: Any) -> None:
        """Add requests with a pattern of their own each; `columns` are the fields of :class:`Columns`."""
        own, matrix, version = Columns(*columns), self.matrix, self.version
        whole = own.whole
        self._keep_scales(np.arange(matrix.n_rows, dtype=np.int32))
        self._require_new(requests)
        templates, slots = list[Template](), list[int]()
        self._note(self._unhang_own, requests, templates, slots, len(matrix.free_slots))
        for integers, (_, template, costs, numbers) in zip(whole, own_parts(requests, own), strict=True):
            templates.append(matrix.enlist(template))
            limit, low, high, rounded, least, bounds = numbers
            slots.append(
                matrix.add_slab(template, costs, limit, low, high, self.sign, 0.0, integers, rounded, least, bounds, 0)
            )
        self._past.change(requests)
        self.slot_of.update(zip(requests, slots, strict=True))
        for table in (self.added_at, self.columns_at):
            table.update(zip(requests, range(version, version + len(requests)), strict=True))
        self._contents_change(slots)
        self.version = version + max(len(requests) - 1, 0)

    def _require_new(self, requests: list[Hashable]) -> None:
        """Raise DuplicateHandleError if an id is in the model already, or is given twice."""
        if len(set(requests)) == len(requests) and self.slot_of.keys().isdisjoint(requests):
            return
        known = set(self.slot_of)
        for request in requests:
            if request in known:
                raise DuplicateHandleError(f"request {request!r} is in the model already; remove it first")
            known.add(request)

    def _unhang_own(self, requests: list[Hashable], templates: list[Template], slots: list[int], free: int) -> None:
        """Undo :meth:`_op_add_own`, as far as it came; the first `free` slots were free before."""
        self._past.change(requests)
        for request in requests:
            for table in (self.slot_of, self.added_at, self.columns_at):
                table.pop(request, None)
        for at in range(len(templates) - 1, -1, -1):
            if at < len(slots):
                self.matrix.retract_slab(slots[at], at < free)
            self._retract_template(templates[at], templates[at].serial)

    @uncollected()
    def _op_columns(self, requests: list[Hashable], *columns: Any) -> None:
        """Give requests other columns and private rows.

        `columns` are the fields of :class:`Columns`, then for each new column, and for each new private row, the
        number of the request's old one that it continues.
        """
        own, matrix, rows = Columns(*columns[:N_FIELDS]), self.matrix, 0
        carried, carried_rows = columns[N_FIELDS:] or (None, None)
        first, whole = own.first.tolist(), own.whole
        self._keep_scales(np.arange(matrix.n_rows, dtype=np.int32))
        for at, (request, template, costs, numbers) in enumerate(own_parts(requests, own)):
            slot = self.slot_of[request]
            if slot in self.worths:
                raise InvalidDataError(f"request {request!r} has a worth, so its columns stay; drop_worth comes first")
            slab, age, (limit, low, high, rounded, least, bounds) = matrix.slabs[slot], matrix.generation[slot], numbers
            self._undo.append((matrix.restore_slab, (matrix.save_slab(slot),)))
            matrix.remove_slab(slot)
            if not slab.template.shared:
                matrix.drop_template(slab.template)
                self._undo.append((self._rehang, (slab.template,)))
            matrix.enlist(template)
            self._undo.append((self._retract_template, (template, template.serial)))
            matrix.add_slab(  # into the slot that has just been emptied
                template, costs, limit, low, high, self.sign, 0.0, whole[at], rounded, least, bounds, 0
            )
            self._undo.append((matrix.retract_slab, (slot, True)))
            self._undo.append((self.columns_at.__setitem__, (request, self.columns_at[request])))
            self.columns_at[request] = self.version
            if carried is not None and carried_rows is not None:
                these = carried[first[at] : first[at + 1]], carried_rows[rows : rows + template.n_private]
                if these[0].max() >= 0:
                    move = Move(int(age), int(matrix.generation[slot]), *these, slab.template.n_private)
                    self.moves.note(slot, move)
                    self._undo.append((self.moves.take_back, (slot,)))
            rows += template.n_private

    def _hang(self, request: Hashable, version: int, template: Template, cost: Costs, *rest: Any) -> None:
        """Add a slab for an id; `rest` holds the arguments of :meth:`BlockMatrix.add_slab` from the limit on."""
        if request in self.slot_of:
            self._require_new([request])
        matrix = self.matrix
        reused = bool(matrix.free_slots)
        slot = matrix.add_slab(template, cost, *rest)
        self._undo.append((self._unhang, (request, slot, reused)))
        self._past.change([request])
        self.slot_of[request] = slot
        self.added_at[request] = self.columns_at[request] = version

    def _unhang(self, request: Hashable, slot: int, reused: bool) -> None:
        self._past.change([request])
        self.slot_of.pop(request, None)
        self.added_at.pop(request, None)
        self.columns_at.pop(request, None)
        self.matrix.retract_slab(slot, reused)

    def _op_remove(self, requests: list[Hashable]) -> None:
        if len(requests) > FEW:
            with uncollected():
                self._remove(requests)
        else:
            self._remove(requests)

    def _remove(self, requests: list[Hashable]) -> None:
        matrix, own = self.matrix, list[Template]()
        slots = [self.slot_of[request] for request in requests]
        self._contents_change(slots)
        if self.worths:
            self._hang_worths(slots, [None] * len(slots))
        added_at, columns_at = (list(map(table.__getitem__, requests)) for table in (self.added_at, self.columns_at))
        saved = list[SavedSlab]()
        self._note(self._put_back, requests, saved, added_at, columns_at)
        for slot in slots:
            template, slab = matrix.slabs[slot].template, matrix.save_slab(slot)
            matrix.remove_slab(slot)
            saved.append(slab)
            if not template.shared:
                own.append(template)
        self._past.change(requests)
        for request in requests:
            del self.slot_of[request], self.added_at[request], self.columns_at[request]
        if 8 * len(own) > matrix.n_rows:
            self._keep_scales(np.arange(matrix.n_rows, dtype=np.int32))
        elif own:
            alone = len(own) == 1
            self._keep_scales(own[0].rows if alone else distinct(np.concatenate([each.rows for each in own])))
        for template in own:
            matrix.drop_template(template)
            self._undo.append((self._rehang, (template,)))

    def _put_back(
        self, requests: list[Hashable], saved: list[SavedSlab], added_at: list[int], columns_at: list[int]
    ) -> None:
        """Undo :meth:`_remove`, as far as it came."""
        for slab in reversed(saved):
            self.matrix.restore_slab(slab)
        self._past.change(requests)
        tables = (self.slot_of, self.added_at, self.columns_at)
        for table, values in zip(tables, ([slab.slot for slab in saved], added_at, columns_at), strict=True):
            table.update(zip(requests, values, strict=False))
        self._disordered = True

    def _saved_slot(self, request: Hashable) -> int:
        """Return the slot of a request that is about to be edited, and note how to restore its slab."""
        slot = self.slot_of[request]
        self._undo.append((self.matrix.restore_slab, (self.matrix.save_slab(slot),)))
        return slot

    def _op_usage(self, request: Hashable, source: Template | int | Contents) -> None:
        """Replace a request's usage by a pattern of its own or by a template."""
        template = self.matrix.slabs[self.slot_of[request]].template
        if isinstance(source, tuple) and not template.shared:
            self._op_update_template(template, *source)
            return
        other = self._hung(source, shared=False) if isinstance(source, tuple) else self._template(source)
        self.matrix.set_template(self._saved_slot(request), other)
        if not template.shared:
            self._op_drop_template(template)

    def _bounds_change(self, slots: Ints) -> None:
        """Record that bounds of the requests in these slots are about to change."""
        self.changes.bounds(slots, len(self.slot_of))

    def _contents_change(self, slots: Ints | list[int]) -> None:
        """Record that requests come to these slots or leave them, or that their costs change."""
        self.changes.contents(np.asarray(slots, dtype=np.int32), len(self.slot_of))

    def _op_limits(self, request: Hashable, limit: float, lower: Bound, upper: Bound, least: float = -np.inf) -> None:
        slot = self._saved_slot(request)
        self._bounds_change(np.array([slot], dtype=np.int32))
        self.matrix.set_limits(slot, limit, lower, upper, least)

    def _op_sums(self, requests: list[Hashable], limit: Floats, least: Floats) -> None:
        """Set the limits and least sums of many requests."""
        slots = self.slots(requests)
        self._bounds_change(slots)
        self._note(self.matrix.set_sums, slots, *self.matrix.sums_of(slots))
        self.matrix.set_sums(slots, limit, least)

    def _op_private_bounds(self, requests: list[Hashable], lower: Floats, upper: Floats) -> None:
        """Set the bounds of all private rows of these requests, request by request."""
        slots = self.slots(requests)
        self._bounds_change(slots)
        self._note(self.matrix.set_private_bounds, slots, *self.matrix.private_bounds_of(slots))
        self.matrix.set_private_bounds(slots, lower, upper)

    def _op_integer(self, request: Hashable, integer: bool | NDArray[np.bool_]) -> None:
        self.matrix.set_integer(self._saved_slot(request), integer)

    def _op_fix(self, request: Hashable, column: int) -> None:
        slot = self._saved_slot(request)
        self._bounds_change(np.array([slot], dtype=np.int32))
        self.matrix.set_fixed(slot, column)

    # Operations: worths ---------------------------------------------------------------------------------------------

    def _op_worth(self, requests: list[Hashable], worths: list[PlainWorth] | None, rates: list[Floats] | None) -> None:
        """Set the concave worths of many requests, and the rates of their columns; None takes them away."""
        slots = self.slots(requests)
        self._contents_change(slots)
        held: list[HeldWorth | None] = [None] * len(requests)
        if worths is not None and rates is not None:
            held = [((kind, tuple(numbers)), rate) for (kind, numbers), rate in zip(worths, rates, strict=True)]
        self._hang_worths(slots.tolist(), held)

    def _hang_worths(self, slots: list[int], held: list[HeldWorth | None]) -> None:
        """Set what is held for these slots, and note what was."""
        self._note(self._put_worths, slots, list(map(self.worths.get, slots)))
        self._put_worths(slots, held)

    def _put_worths(self, slots: list[int], held: list[HeldWorth | None]) -> None:
        for slot, each in zip(slots, held, strict=True):
            if each is None:
                self.worths.pop(slot, None)
            else:
                self.worths[slot] = each

    def not_plain(self, slot: int) -> str | None:
        """Return why the columns of a slot have more than bounds on their sum; None if they have not.

        A plain request has lower bounds of zero, a finite limit that bounds each column, no private rows, and no least
        sum other than the limit itself.
        """
        matrix = self.matrix
        slab, limit, least = matrix.slabs[slot], matrix.limit_of(slot), matrix.least_of(slot)
        if slab.template.n_private:
            return "it has private rows"
        if not limit < np.inf:
            return "its limit is infinite; give one that its columns cannot exceed"
        if least > -np.inf and least != limit:
            return "its least sum is below its limit; make both equal, or leave at_least out"
        if slab.lower_each is not None:
            return "it has lower bounds"
        upper = matrix.upper_of(slot) if slab.upper_each is None else float(slab.upper_each.min())
        return None if upper >= limit or matrix.fixed_of(slot) >= 0 else "its columns have upper bounds below its limit"

    # Operations: costs ----------------------------------------------------------------------------------------------

    def _op_cost(self, request: Hashable, cost: Costs, scale: float, offset: float, rounding: float) -> None:
        self.matrix.set_cost(self._saved_slot(request), cost, scale, offset, rounding)

    def _op_costs(self, requests: list[Hashable], costs: Floats, scale: float, offset: float) -> None:
        """Set the costs of many requests, given one after the other or as the rows of a matrix."""
        slots = self.slots(requests)
        self._contents_change(slots)
        self._note(self.matrix.restore_costs, slots, self.matrix.save_costs(slots))
        self.matrix.set_costs(slots, costs, scale, offset)

    def _op_shared_costs(
        self, requests: list[Hashable], costs: Floats, start: Ints, which: Ints, scale: float, offset: float
    ) -> None:
        """Set the costs of many requests: request k gets costs[start[w]:start[w + 1]] with w = which[k]."""
        slots, ends = self.slots(requests), start.tolist()
        vectors = [self._known(costs[a:b]) for a, b in pairwise(ends)]
        self._contents_change(slots)
        self._note(self.matrix.restore_costs, slots, self.matrix.save_costs(slots))
        self.matrix.share_costs(slots, vectors, which, scale, offset)

    def _known(self, costs: Floats) -> Floats:
        """Return the array of equal costs that other requests already hold, or else a new one: equal costs are stored
        once.
        """
        content = costs.tobytes()
        found = self._vectors.get(content)
        if found is None:
            found = self._vectors[content] = costs.copy()
        return found

    def _op_scale(
        self, request: Hashable, scale: float, offset: float, columns: Ints | None, costs: Floats | None
    ) -> None:
        slot = self._saved_slot(request)
        self.matrix.set_scale(slot, scale, offset)
        self.matrix.set_exceptions(slot, columns, costs)

    def _op_exceptions(self, request: Hashable, columns: Ints, costs: Floats) -> None:
        self.matrix.set_exceptions(self._saved_slot(request), columns, costs)

    def _op_rescale(
        self,
        requests: list[Hashable],
        scale: Floats,
        offset: Floats,
        column: Ints,
        cost: Floats,
        most: Floats | None = None,
    ) -> None:
        slots = self.slots(requests)
        self._contents_change(slots)
        self._note(self.matrix.take_back_scales, slots, *self.matrix.rescale(slots, scale, offset, column, cost, most))


class Batch:
    """A batch of edits, as a ``with`` block; one that is dropped before its end is taken back."""

    __slots__ = ("_begun", "_ledger")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._begun: tuple[int, int, int, int] | None = None

    def __enter__(self) -> None:
        if self._begun is not None:
            raise InvalidDataError("this batch has begun already; model.batch() makes another one")
        self._begun = self._ledger.begin()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            self._ledger.end(begun, kind is not None)

    def __del__(self) -> None:
        self.__exit__(GeneratorExit, None, None)


ATTEMPTS = 1000  # of a step back, each ended by a signal, before the model is given up
FEW = 50  # from this many removed requests on, it pays to pause garbage collection
# Operations on bounds, and on contents of many requests: they record which requests. A new row, like all other
# operations, invalidates kept programs.
OF_BOUNDS = frozenset(("count", "rows", "limits", "sums", "private_bounds", "fix", "integer"))
OF_REQUESTS = OF_BOUNDS | {"costs", "shared_costs", "rescale", "add_many", "add_own", "remove", "worth"}

# Operations by their names in the journal.
OPERATIONS: dict[str, Callable[..., Any]] = {
    name.removeprefix("_op_"): operation for name, operation in vars(Ledger).items() if name.startswith("_op_")
}
