"""The rounding shim: whole columns, then fractional ones by weight, then fill; never worse than the previous plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.errors import EditNotAllowedError
from copter.matrix import BlockMatrix
from copter.model.model import Model
from copter.problem.residuals import relative_gap
from copter.problem.solution import Solution
from copter.shims.plan import IDLE, IntegerPlan

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

SLACK = 1e-9  # of a row's capacity, allowed to rounding


@dataclass(frozen=True, slots=True)
class RoundingShim:
    """For requests that take one column or none (limit 1, columns from 0 to 1) of resources that are used up.

    Parameters
    ----------
    whole : float
        A column at least this large is taken as it is.
    support : float
        A column below this does not count as chosen.
    """

    whole: float = 1.0 - 1e-6
    support: float = 1e-9

    def __call__(self, model: Model, solution: Solution, previous: IntegerPlan | None = None) -> IntegerPlan:
        """Round a solution of the model as it stands.

        Raises
        ------
        EditNotAllowedError
            If a request's limit is not 1, or resources have lower bounds: another shim is needed there.
        """
        draft = Draft(model)
        fractional = draft.round(*solution.working_columns_by_slot(), self.whole, self.support)
        draft.fill()
        kept = draft.previous(previous) if previous is not None else None
        if kept is not None and kept.value() < draft.value():
            kept.fill()
            draft = kept
        objective = model.ledger.sign * draft.value() + model.offset
        bound = solution.bound
        return IntegerPlan(
            objective=objective,
            bound=bound,
            gap=relative_gap(objective, bound),
            fractional_requests=fractional,
            kept_previous=draft is kept,
            column_of_slot=draft.column,
            generation=draft.matrix.generation[: draft.matrix.n_slots].copy(),
            slot_of=dict(model.ledger.slot_of),
        )


class Draft:
    """A plan in the making: a column for every slot, and what is left of every row (costs as minimised)."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.matrix: BlockMatrix = model.ledger.matrix
        rows = self.matrix.n_rows
        self.left: Floats = self.matrix.row_upper[:rows].copy()
        self.room: Floats = SLACK * (1.0 + np.abs(np.where(np.isfinite(self.left), self.left, 0.0)))
        limit, self.fixed = self.matrix.limits()
        self.alive = self.matrix.sizes_of(np.arange(self.matrix.n_slots, dtype=np.int32)) > 0
        if bool(np.any(limit[self.alive] != 1.0)) or bool(np.isfinite(self.matrix.row_lower[:rows]).any()):
            raise EditNotAllowedError("this shim needs requests with limit 1 and resources without lower bounds")
        self.column: Ints = np.full(self.matrix.n_slots, IDLE, dtype=np.int32)

    # Building blocks ----------------------------------------------------------------------------------------------

    def usage(self, slots: Ints, columns: Ints) -> tuple[Ints, Ints, Floats]:
        """(entry_start, row, coefficient) of one column of each slot."""
        n = len(slots)
        start = np.arange(n + 1, dtype=np.int32)
        entries = self.matrix.gather_sizes(slots, start, columns)
        entry_start, row = np.zeros(n + 1, dtype=np.int32), np.empty(entries, dtype=np.int32)
        coefficient = np.empty(entries)
        limit, cost, lower, upper = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
        self.matrix.gather(slots, start, columns, limit, cost, lower, upper, entry_start, row, coefficient)
        return entry_start, row, coefficient

    def take_all(self, slots: Ints, columns: Ints) -> None:
        """Give many slots their columns, unchecked."""
        _, row, coefficient = self.usage(slots, columns)
        self.left -= np.bincount(row, weights=coefficient, minlength=len(self.left))
        self.column[slots] = columns

    def take(self, slot: int, column: int, row: Ints, coefficient: Floats) -> bool:
        """Give a slot a column if what it uses is left."""
        if bool(np.any(coefficient > self.left[row] + self.room[row])):
            return False
        np.subtract.at(self.left, row, coefficient)
        self.column[slot] = column
        return True

    def value(self) -> float:
        """Cost of the plan (as minimised)."""
        slots = np.flatnonzero(self.column != IDLE).astype(np.int32)
        return float(self.matrix.costs_at(slots, self.column[slots]).sum())

    def holds(self) -> bool:
        """Whether no row is used beyond what it has."""
        return bool(np.all(self.left >= -self.room))

    # The stages ---------------------------------------------------------------------------------------------------

    def round(self, slots: Ints, columns: Ints, x: Floats, whole: float, support: float) -> int:
        """Take whole columns, then the others by weight where they fit; return how many slots were split."""
        taken = x >= whole
        self.take_all(slots[taken], columns[taken])
        partial = ~taken & (x > support)
        split = np.unique(slots[partial])
        cost = self.matrix.costs_at(slots[partial], columns[partial])
        self.take_in_order(slots[partial], columns[partial], np.lexsort((cost, -x[partial])))
        return len(split)

    def take_in_order(self, slots: Ints, columns: Ints, order: NDArray[np.intp]) -> None:
        """Offer columns one by one; an idle slot takes the first of its own that fits."""
        entry_start, row, coefficient = self.usage(slots, columns)
        for at in order:
            if self.column[slots[at]] == IDLE:
                entries = slice(entry_start[at], entry_start[at + 1])
                self.take(int(slots[at]), int(columns[at]), row[entries], coefficient[entries])

    def fill(self) -> None:
        """Give idle slots the columns that what is left allows, most value per unit of resource first."""
        idle = np.flatnonzero(self.alive & (self.column == IDLE) & ~self.fixed)
        by_template: dict[object, list[int]] = {}
        for slot in idle:
            by_template.setdefault(self.matrix.slabs[slot].template, []).append(int(slot))
        for template, members in by_template.items():
            columns = self.fitting(template)
            if len(columns):
                self.fill_template(np.array(members, dtype=np.int32), columns)

    def fitting(self, template: object) -> Ints:
        """Columns of a template that what is left has room for."""
        start, row = template.column_start, template.row  # type: ignore[attr-defined]
        over = template.coefficient > (self.left + self.room)[row]  # type: ignore[attr-defined]
        count = np.add.reduceat(np.append(over, False).astype(np.int64), start[:-1])
        count[np.diff(start) == 0] = 0
        return np.flatnonzero(count == 0).astype(np.int32)

    def fill_template(self, members: Ints, columns: Ints) -> None:
        """Offer the fitting columns of one template to its idle slots, the best per unit of resource first."""
        slots, offered = np.repeat(members, len(columns)), np.tile(columns, len(members))
        cost = self.matrix.costs_at(slots, offered)
        useful = cost < 0
        slots, offered, cost = slots[useful], offered[useful], cost[useful]
        entry_start, row, coefficient = self.usage(slots, offered)
        if len(slots) == 0:
            return
        first = entry_start[:-1]
        share = np.append(coefficient / self.matrix.row_scale[row], 0.0)
        size = np.where(np.diff(entry_start) > 0, np.add.reduceat(share, first), 0.0)
        rank = np.empty(len(slots))
        rank[np.argsort(cost / np.maximum(size, 1e-12), kind="stable")] = np.arange(len(slots))
        while True:
            fits = np.logical_and.reduceat(np.append(coefficient <= (self.left + self.room)[row], True), first)
            fits |= np.diff(entry_start) == 0
            fits &= self.column[slots] == IDLE
            if not fits.any():
                return
            at = int(np.argmin(np.where(fits, rank, np.inf)))
            entries = slice(entry_start[at], entry_start[at + 1])
            self.take(int(slots[at]), int(offered[at]), row[entries], coefficient[entries])

    def previous(self, plan: IntegerPlan) -> Draft:
        """The previous plan as far as it still fits; fixed slots first."""
        draft = Draft(self.model)
        known = min(len(plan.column_of_slot), self.matrix.n_slots)
        same = plan.generation[:known] == self.matrix.generation[:known]
        column = np.full(self.matrix.n_slots, IDLE, dtype=np.int32)
        column[:known][same] = plan.column_of_slot[:known][same]
        for slot in np.flatnonzero(self.fixed & self.alive):
            column[slot] = self.matrix.fixed_of(int(slot))
        slots = np.flatnonzero((column != IDLE) & self.alive).astype(np.int32)
        draft.take_all(slots, column[slots])
        if draft.holds():
            return draft
        again = Draft(self.model)
        cost = self.matrix.costs_at(slots, column[slots])
        again.take_in_order(slots, column[slots], np.lexsort((cost, ~self.fixed[slots])))
        return again
