"""A plan under construction: its columns and the remaining units of every row."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.program import sums_before
from copter.methods.solve import solve
from copter.model.matrix import BlockMatrix
from copter.model.model import Model
from copter.problem.exact_sums import exact_parts
from copter.runtime.settings import Settings
from copter.shims.feasibility import exceeded, exceeded_by, two_products
from copter.shims.greedy import carried, fill, offer, survey, takeable
from copter.shims.plan import IDLE, IntegerPlan
from copter.shims.shares import Shares
from copter.shims.tally import tally_columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Keys = NDArray[np.int64]

ZERO = np.zeros(1, dtype=np.int32)
SLACK = 1e-9  # share of a row's capacity that a draft may exceed; returned plans pass the exact check
# most units by which a draft may exceed a capacity: less than one, so that sums of whole numbers stay exact
MOST_SLACK = 0.5
SHARED = 4  # with at least this many slots per template, one check of the template serves all of them
ASKED_EVERY = 64  # idle requests visited between two looks at the clock
# Shares of the way from a plan's shares to their lower bounds, tried in turn until the exact check passes.
STEPS_BACK = (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0)


class Fillers(NamedTuple):
    """Requests whose one column costs nothing and fills one row without limit: they meet the row's lower side.

    A row with such a request allows the same plans as the row without its lower side.

    Attributes
    ----------
    row, slot : ndarray int32
        One of each for a row with a lower side.
    unit : ndarray
        Units of the row that one unit of the slot's column fills.
    """

    row: Ints
    slot: Ints
    unit: Floats


class Survey(NamedTuple):
    """What a draft reads of all slots; see :func:`copter.shims.greedy.survey`."""

    sizes: Ints
    whole: NDArray[np.bool_]
    bound: Ints
    fillers: Fillers | None


@dataclass(frozen=True, slots=True)
class Check:
    """Rows that a draft exceeds, and the columns and shares for which this was found (never changed in place)."""

    column: Ints
    shares: Shares | None
    share: Floats
    exceeded: NDArray[np.intp]


class Draft:
    """A plan under construction: a column for every slot, and the remaining units of every row (costs as minimised).

    It begins with all that a plan must contain: fixed columns, columns with a lower bound above zero, and continuous
    requests' lower bounds. It adds as much of continuous requests' LP values as there is room for.

    Attributes
    ----------
    whole, forced : ndarray (n_slots,) bool
        Slots with integer columns; slots whose column is already determined.
    conflict : list of int
        Slots without a feasible choice: two columns must be taken, or a required column cannot be 1.
    left, room : ndarray (n_rows,)
    column : ndarray (n_slots,) int32
    shares, share
        Columns of continuous requests, and their values; changed values are stored in a new array.
    """

    def __init__(
        self,
        model: Model,
        slots: Ints | None = None,
        columns: Ints | None = None,
        x: Floats | None = None,
        seen: Survey | None = None,
    ):
        self.model = model
        self.matrix: BlockMatrix = model.ledger.matrix
        matrix, rows = self.matrix, self.matrix.n_rows
        self.left: Floats = matrix.row_upper[:rows].copy()
        finite = np.where(np.isfinite(self.left), np.abs(self.left), 0.0)
        self.room: Floats = np.minimum(SLACK * (1.0 + finite), MOST_SLACK)
        self.sizes, self.whole, self.bound, self.fillers = seen or surveyed(model) or Survey(*survey(matrix)[:3], None)
        self.alive = self.sizes > 0
        if self.fillers is not None:
            self.alive[self.fillers.slot] = False
        self.column: Ints = np.full(matrix.n_slots, IDLE, dtype=np.int32)
        self.conflict: list[int] = []
        self.shares: Shares | None = None
        self.share: Floats = np.zeros(0)
        self.last_check: Check | None = None
        self.force()
        if bool((self.alive & ~self.whole).any()):
            self.share_out(slots, columns, x)

    # Forced columns -----------------------------------------------------------------------------------------------

    def force(self) -> None:
        """Take the columns to which integer requests are fixed, and columns with a lower bound above zero."""
        slabs, bound = self.matrix.slabs, self.bound
        for slot in bound[self.whole[bound]].tolist():
            fixed, must, below = self.matrix.fixed_of(slot), [], False
            if slabs[slot].lower_each is not None:
                lower, upper = self.matrix.free_bounds_of(slot)
                must, below = np.flatnonzero(lower > 0.0).tolist(), bool((upper < 0.0).any())
            must = sorted({*must, fixed} if fixed >= 0 else must)
            if len(must) > 1 or below:
                self.conflict.append(slot)
            elif must:
                self.column[slot] = must[0]
        self.forced = self.column != IDLE
        slots = np.flatnonzero(self.forced).astype(np.int32)
        if not len(slots):
            return
        possible = takeable(self.matrix, slots, self.column[slots])
        self.conflict += slots[~possible].tolist()
        self.take_all(slots, self.column[slots])

    def share_out(self, slots: Ints | None, columns: Ints | None, x: Floats | None) -> None:
        """Give continuous requests their values in the LP, as far as there is room."""
        none = np.zeros(0, dtype=np.int32)
        slots, columns, x = (none, none, np.zeros(0)) if slots is None or columns is None or x is None else (
            slots, columns, x
        )  # fmt: skip
        own = ~self.whole[slots]
        key: Keys = slots[own].astype(np.int64) << 32 | columns[own]
        self.shares = Shares(self.matrix, self.alive & ~self.whole, key)
        self.share = self.shares.base
        self.left -= self.shares.use(self.share, len(self.left))
        self.give(self.shares.within(self.shares.spread(key, x[own])))

    def give(self, share: Floats) -> None:
        """Move continuous requests' shares towards these values as far as all rows allow.

        The values must respect the requests' own bounds.
        """
        shares, rows = self.shares, len(self.left)
        if shares is None:
            return
        base = shares.base
        # left if all shares are at their lower bounds
        free = self.left + shares.use(self.share, rows) - shares.use(base, rows)
        wanted = shares.use(share - base, rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = float(np.min(np.where(wanted > free, free / wanted, 1.0), initial=1.0))
        part = min(max(part, 0.0), 1.0) if np.isfinite(part) else 0.0
        before, kept = self.share, self.left.copy()
        for back in STEPS_BACK:
            step = part * (1.0 - back)
            self.share = share if step == 1.0 else shares.within(base + step * (share - base))
            if back == 1.0 or not len(self.exceeded()):
                break
        self.left = kept + shares.use(before, rows) - shares.use(self.share, rows)

    def can_be_relieved(self) -> bool:
        """Return whether negative usage of some columns could provide the units that the forced columns lack."""
        if self.conflict:
            return False
        short = self.exceeded()
        users = {slab.template for slab in self.matrix.slabs if slab is not None}
        return all(any(bool(((t.row == row) & (t.coefficient < 0.0)).any()) for t in users) for row in short)

    # Building blocks ----------------------------------------------------------------------------------------------

    def usage(self, slots: Ints, columns: Ints) -> tuple[Ints, Ints, Floats]:
        """Return (entry_start, row, coefficient) of one column per slot."""
        return self.usage_of(slots, np.arange(len(slots) + 1, dtype=np.int32), columns)

    def usage_of(self, slots: Ints, start: Ints, columns: Ints) -> tuple[Ints, Ints, Floats]:
        """Return (entry_start, row, coefficient) of columns; slot i owns columns start[i] to start[i + 1] - 1."""
        flat = self.matrix.gather(slots, start, columns)
        return flat.entry_start, flat.row, flat.coefficient

    def take_all(self, slots: Ints, columns: Ints) -> None:
        """Give many slots their columns without checking."""
        _, row, coefficient = self.usage(slots, columns)
        self.left -= np.bincount(row, weights=coefficient, minlength=len(self.left))
        self.column[slots] = columns

    def take(self, slot: int, column: int, row: Ints, coefficient: Floats) -> bool:
        """Give a slot a column if each row has enough units left; return whether it did."""
        if bool(np.any(coefficient > self.left[row] + self.room[row])):
            return False
        np.subtract.at(self.left, row, coefficient)
        self.column[slot] = column
        return True

    def value(self) -> float:
        """Return the cost of the plan (as minimised), rounded once."""
        return fsum(exact_parts(self.terms()))

    def is_worth_more(self, other: Draft) -> bool:
        """Return whether the exact cost of the plan is below another's; only requests that differ are compared."""
        parts = []
        for one, against in ((self, other), (other, self)):
            slots = np.flatnonzero((one.column != against.column) & (one.column != IDLE)).astype(np.int32)
            cost = self.matrix.costs_at(slots, one.column[slots])
            cost = cost if one.shares is None else np.concatenate((cost, one.shares.cost * one.share))
            parts.append(cost)
        return fsum(exact_parts(np.concatenate((parts[0], -parts[1])))) < 0.0

    def terms(self) -> Floats:
        """Return the cost of each column of the plan."""
        slots = np.flatnonzero(self.column != IDLE).astype(np.int32)
        found: Floats = self.matrix.costs_at(slots, self.column[slots])
        return found if self.shares is None else np.concatenate((found, self.shares.cost * self.share))

    def exceeded(self) -> NDArray[np.intp]:
        """Return the rows whose usage exceeds their units, in exact arithmetic.

        The result is cached together with a copy of its columns and shares.
        """
        last = self.last_check
        if last is None or not (
            np.array_equal(last.column, self.column) and last.shares is self.shares and last.share is self.share
        ):
            last = Check(self.column.copy(), self.shares, self.share, self.check())
            self.last_check = last
        return last.exceeded

    def check(self) -> NDArray[np.intp]:
        """Compute :meth:`exceeded` without the cache."""
        upper = self.matrix.row_upper[: self.matrix.n_rows]
        if self.shares is None:
            return exceeded_by(upper, tally_columns(self.matrix, self.column), self.all_terms)
        return exceeded(upper, *self.all_terms())

    def all_terms(self) -> tuple[Ints, Floats, Floats]:
        """Return (row, coefficient, value) of everything that the plan uses."""
        slots = np.flatnonzero(self.column != IDLE).astype(np.int32)
        _, row, coefficient = self.usage(slots, self.column[slots])
        value = np.ones(len(row))
        if self.shares is None:
            return row, coefficient, value
        return (
            np.concatenate((row, self.shares.row)),
            np.concatenate((coefficient, self.shares.coefficient)),
            np.concatenate((value, np.repeat(self.share, np.diff(self.shares.entry_start)))),
        )

    def holds(self) -> bool:
        """Return whether no request is contradictory and no row is exceeded, in exact arithmetic."""
        return not self.conflict and not len(self.exceeded())

    # The stages ---------------------------------------------------------------------------------------------------

    def round(self, slots: Ints, columns: Ints, x: Floats, whole: float, support: float) -> int:
        """Take integral columns, then others by weight if they fit; return how many slots were split.

        If the LP was not solved to optimality, the columns at 1 may together exceed a resource: then the most valuable
        columns are taken first.
        """
        if self.forced.any():
            free = ~self.forced[slots]
            slots, columns, x = slots[free], columns[free], x[free]
        taken = x >= whole
        self.offer_dearest(slots[taken], columns[taken])
        partial = np.flatnonzero(~taken & (x > support))
        slots, columns, x = slots[partial], columns[partial], x[partial]
        self.offer(slots, columns, np.lexsort((self.matrix.costs_at(slots, columns), -x)))
        return len(np.unique(slots))

    def offer_dearest(self, slots: Ints, columns: Ints) -> None:
        """Offer columns of different slots, dearest first; if all fit, the order does not matter."""
        left, column = self.left.copy(), self.column.copy()
        self.offer(slots, columns, np.arange(len(slots)))
        if not np.array_equal(self.column[slots], columns):
            self.left, self.column = left, column
            order = np.argsort(self.matrix.costs_at(slots, columns), kind="stable")
            self.offer(slots, columns, order)

    def offer(self, slots: Ints, columns: Ints, order: NDArray[np.intp]) -> None:
        """Offer columns one by one; an idle slot takes its first column that fits."""
        offer(self.matrix, slots, columns, order, self.left, self.room, self.column)

    def fill(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Give idle slots columns that fit, most value per unit of resource first."""
        idle = np.flatnonzero(self.whole & (self.column == IDLE)).astype(np.int32)
        if len(idle) > ASKED_EVERY and stop():
            return
        slots, columns = self.candidates(idle, stop)
        scale = self.matrix.row_scale[: len(self.left)]
        fill(self.matrix, slots, columns, self.left, self.room, scale, self.column, stop)

    def candidates(self, idle: Ints, stop: Callable[[], bool]) -> tuple[Ints, list[Ints]]:
        """Return idle slots and, for each, columns that include all that fit.

        Slots that share a template are checked together.
        """
        slabs = self.matrix.slabs
        templates = [slabs[slot].template for slot in idle.tolist()]
        first: dict[object, int] = {}  # a slot of every template
        for slot, template in zip(idle.tolist(), templates, strict=True):
            first.setdefault(template, slot)
        if len(idle) < SHARED * len(first):
            sizes = self.matrix.sizes_of(idle).tolist()
            every = {size: np.arange(size, dtype=np.int32) for size in set(sizes)}
            return idle, [every[size] for size in sizes]
        fitting: dict[object, Ints] = {}
        kinds, slot_of_kind = list(first), np.array(list(first.values()), dtype=np.int32)
        for at in range(0, len(kinds), ASKED_EVERY):
            if at and stop():
                break
            found = self.fitting(slot_of_kind[at : at + ASKED_EVERY])
            fitting.update(zip(kinds[at : at + ASKED_EVERY], found, strict=True))
        kept = [at for at, template in enumerate(templates) if len(fitting.get(template, ()))]
        return idle[kept], [fitting[templates[at]] for at in kept]

    def fitting(self, slots: Ints) -> list[Ints]:
        """Return, for each slot, the columns that fit into the remaining resources."""
        start = sums_before(self.matrix.sizes_of(slots))
        column = (np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start))).astype(np.int32)
        entry_start, row, coefficient = self.usage_of(slots, start, column)
        over = np.concatenate(([0], np.cumsum(coefficient > (self.left + self.room)[row])))
        fits = over[entry_start[1:]] == over[entry_start[:-1]]
        ends = np.concatenate(([0], np.cumsum(fits)))[start[1:]]
        return np.split(column[fits], ends[:-1])

    def repair(self) -> None:
        """Drop columns, least valuable first, until every row holds in exact arithmetic."""
        for _ in range(len(self.column) + 1):
            short = self.exceeded()
            if not len(short):
                return
            slots = np.flatnonzero((self.column != IDLE) & ~self.forced).astype(np.int32)
            if not len(slots):
                return
            entry_start, row, coefficient = self.usage(slots, self.column[slots])
            owner = np.repeat(np.arange(len(slots)), np.diff(entry_start))
            guilty = np.unique(owner[np.isin(row, short) & (coefficient > 0.0)])
            if not len(guilty):
                return
            cost = self.matrix.costs_at(slots[guilty], self.column[slots[guilty]])
            worst = int(guilty[np.argmax(cost)])
            entries = slice(entry_start[worst], entry_start[worst + 1])
            np.add.at(self.left, row[entries], coefficient[entries])
            self.column[slots[worst]] = IDLE

    def improve_shares(self, left_s: Callable[[], float]) -> None:
        """Give continuous requests their best shares of the remaining units, by a linear program."""
        shares = self.shares
        if shares is None or not shares.size or not self.holds() or left_s() <= 0.0:
            return
        free = self.left + shares.use(self.share, len(self.left))
        settings = Settings(time_limit_s=left_s()) if np.isfinite(left_s()) and left_s() > 0.0 else Settings()
        before, left, value = self.share, self.left, self.value()
        self.give(shares.within(solve(shares.program(free), settings).x))
        if not self.value() <= value or len(self.exceeded()):
            self.share, self.left = before, left

    def filled(self) -> tuple[Keys, Floats]:
        """Return (key, value) of the fillers' columns, so that all rows' lower sides hold; by key (M18)."""
        if self.fillers is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        row, coefficient, value = self.used()
        lower = self.matrix.row_lower
        keys, values = [], []
        for at, slot, unit in zip(*(each.tolist() for each in self.fillers), strict=True):
            mine = row == at
            product, rest = two_products(coefficient[mine], value[mine])
            missing = fsum([float(lower[at]), *(-product).tolist(), *(-rest).tolist()])
            if missing > 0.0:
                keys.append(slot << 32)
                values.append(missing / unit)
        order = np.argsort(np.array(keys, dtype=np.int64))
        return np.array(keys, dtype=np.int64)[order], np.array(values)[order]

    def used(self) -> tuple[Ints, Floats, Floats]:
        """Return (row, coefficient, value) of all entries of the plan's columns."""
        slots = np.flatnonzero(self.column != IDLE).astype(np.int32)
        _, row, coefficient = self.usage(slots, self.column[slots])
        value = np.ones(len(row))
        if self.shares is None:
            return row, coefficient, value
        shared = np.repeat(self.share, np.diff(self.shares.entry_start))
        return (
            np.concatenate((row, self.shares.row)),
            np.concatenate((coefficient, self.shares.coefficient)),
            np.concatenate((value, shared)),
        )

    def previous(self, plan: IntegerPlan) -> Draft:
        """Return a draft with this draft's required columns, plus the previous plan's columns as far as they fit.

        Rows may still be exceeded by rounding: :meth:`repair` is the caller's.
        """
        draft = copy(self) if self.shares is None else Draft(self.model)
        draft.left, draft.column = draft.left.copy(), draft.column.copy()
        matrix, free = self.matrix, (self.whole & ~self.forced).view(np.uint8)
        draft.offer_dearest(*carried(self.sizes, free, matrix.generation, plan.column_of_slot, plan.generation))
        if draft.shares is not None:
            known = min(len(plan.column_of_slot), matrix.n_slots)
            key, share = plan.shares_of_slots(plan.generation[:known] == matrix.generation[:known])
            union = draft.shares.key if self.shares is None else np.union1d(self.shares.key, key)
            whole = self.whole[np.minimum(union >> 32, matrix.n_slots - 1)]
            draft.left = draft.left + draft.shares.use(draft.share, len(draft.left))
            draft.shares = Shares(matrix, self.alive & ~self.whole, union[~whole])
            draft.share = draft.shares.base
            draft.left = draft.left - draft.shares.use(draft.share, len(draft.left))
            draft.give(draft.shares.within(draft.shares.spread(key, share)))
        return draft


def drafts_know(model: Model) -> bool:
    """Return whether drafts can handle a model."""
    return surveyed(model) is not None


def surveyed(model: Model) -> Survey | None:
    """Return what a draft reads of all slots; None for a model that drafts cannot handle.

    Drafts handle requests with limits (of 1 if the request is integer, whose columns are 0 or 1), and resources whose
    lower bounds, if any, are met by a filler.
    """
    matrix = model.ledger.matrix
    if matrix.n_with_rows:
        return None
    sizes, whole, bound, units = survey(matrix)
    if not units:
        return None
    rows = np.flatnonzero(np.isfinite(matrix.row_lower[: matrix.n_rows])).astype(np.int32)
    fillers = fillers_of(matrix, rows, np.flatnonzero((sizes == 1) & ~whole)) if len(rows) else None
    return None if len(rows) and fillers is None else Survey(sizes, whole, bound, fillers)


def fillers_of(matrix: BlockMatrix, rows: Ints, slots: NDArray[np.intp]) -> Fillers | None:
    """Return a filler for each of the rows, out of slots with a single continuous column; None if a row has none."""
    found: dict[int, tuple[int, float]] = {}
    wanted = set(rows.tolist())
    for slot in slots.tolist():
        slab = matrix.slabs[slot]
        row, unit = slab.template.row, slab.template.coefficient
        if len(row) != 1 or not unit[0] > 0.0 or int(row[0]) not in wanted or int(row[0]) in found:
            continue
        is_open = slab.lower_each is None and slab.upper_each is None and matrix.fixed_of(slot) < 0
        endless = np.isinf(matrix.upper_of(slot)) and np.isinf(matrix.limit_of(slot))
        if is_open and endless and not matrix.costs_at(np.array([slot], dtype=np.int32), ZERO)[0]:
            found[int(row[0])] = slot, float(unit[0])
            if len(found) == len(wanted):
                each = [found[at] for at in rows.tolist()]
                return Fillers(rows, np.array([s for s, _ in each], np.int32), np.array([u for _, u in each]))
    return None
