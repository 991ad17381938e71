"""Closing the gap of a small plan: an enumeration of all choices that could be better (M15)."""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from copter.problem.solution import Solution
from copter.problem.values import ranges, sums_before
from copter.shims.choices import Choices
from copter.shims.draft import Draft
from copter.shims.greedy import takeable
from copter.shims.plan import IDLE

MOST_COLUMNS = 5_000  # models with more columns are not searched: visiting all columns would take too long for a round
MOST_USES = 50_000  # models with more columns times rows are not searched
MOST_OPEN = 64  # limit on the requests that have more than one option for a better plan
MOST_ROWS = 256  # models with more rows are not searched
MARGIN = 1e-9  # allowance for units, as a share of their sizes
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Places = NDArray[np.intp]


def closed(draft: Draft, solution: Solution, most_work: int) -> float | None:
    """Improve a feasible draft as far as possible; returns a lower bound on every plan's cost if the search was
    complete.

    With prices p >= 0 a plan costs L(p) plus the losses of its options plus the price of its unused units (M15). So a
    better plan consists of options whose losses sum to less than the gap. Returns None for models that are too large or
    have continuous requests.
    """
    ledger = draft.model.ledger
    free = np.flatnonzero(draft.alive & ~draft.forced).astype(np.int32)
    sizes = draft.sizes[free]
    columns, rows = int(sizes.sum()), len(draft.left)
    if draft.shares is not None or not 0 < columns <= MOST_COLUMNS or rows > MOST_ROWS or columns * rows > MOST_USES:
        return None
    if not solution.bound_is_certified or not isfinite(solution.bound):
        return None
    prices = np.zeros(len(draft.left))  # a removed resource keeps its row for a while
    prices[list(ledger.row_of.values())] = np.maximum(-ledger.sign * solution.prices(list(ledger.row_of)), 0.0)
    left = draft.left + usage_by(draft, free)  # units left by the forced columns only
    prices[~np.isfinite(left)] = 0.0
    left = np.where(np.isfinite(left), left, np.finfo(float).max)
    options = Options(draft, free, sizes, prices)
    value, fixed = draft.value(), float(draft.terms().sum() - options.costs_now(draft).sum())
    paid = float(prices @ left)
    least = fixed + options.best.sum() - paid
    sizes_of_terms = 1.0 + abs(value) + abs(fixed) + float(np.abs(options.best).sum()) + paid
    margin = 8.0 * (columns + rows + 16) * float(np.finfo(float).eps) * sizes_of_terms  # what sums of so many are off
    budget = value - least + margin
    affordable = options.within(budget)
    if affordable is None:
        return None
    choices, order = affordable.choices(prices, left, draft.room)
    whole = choices.search(budget - 2.0 * margin, most_work // (2 + len(prices)))
    if choices.found and not took(draft, affordable, choices.choice(), order):
        return None
    return float(draft.value() - 2.0 * margin) if whole else None


def usage_by(draft: Draft, slots: Ints) -> Floats:
    """Return the units of each row that the draft's columns in these slots use."""
    taken = slots[draft.column[slots] != IDLE]
    _, row, coefficient = draft.usage(taken, draft.column[taken])
    return np.bincount(row, weights=coefficient, minlength=len(draft.left)).astype(np.float64)


class Options:
    """Options of each request, including "no column": losses at the prices.

    Attributes
    ----------
    slots : ndarray (n,) int32
    owner, column, reduced : ndarray (options,)
        Request of each column that a plan may take, ascending, the column, and its cost plus the price of its usage.
    best : ndarray (n,)
        Least of a request's, at most zero: that of "no column".
    """

    def __init__(self, draft: Draft, slots: Ints, sizes: Ints, prices: Floats) -> None:
        start = sums_before(sizes.astype(np.int64))
        owner = np.repeat(np.arange(len(slots)), sizes)
        column = (np.arange(start[-1]) - start[owner]).astype(np.int32)
        reduced = draft.matrix.flat_reduced_costs(slots, int(start[-1]), -prices)
        usable = takeable(draft.matrix, slots[owner], column)
        self.draft, self.slots = draft, slots
        self.owner, self.column, self.reduced = owner[usable], column[usable], reduced[usable]
        reduced[~usable] = 0.0
        self.best: Floats = np.minimum(np.minimum.reduceat(reduced, start[:-1]), 0.0)

    def costs_now(self, draft: Draft) -> Floats:
        """Return the costs of the draft's columns in these slots."""
        taken = self.slots[draft.column[self.slots] != IDLE]
        return draft.matrix.costs_at(taken, draft.column[taken])

    def within(self, budget: float) -> Affordable | None:
        """Return the options that lose less than the budget; None if too many requests have several."""
        loss = self.reduced - self.best[self.owner]
        fine = np.flatnonzero(loss < budget)
        idle = np.flatnonzero(-self.best < budget)
        count = np.bincount(self.owner[fine], minlength=len(self.slots))
        count[idle] += 1
        if (count > 1).sum() > MOST_OPEN:
            return None
        return Affordable(self, fine, idle, loss[fine], -self.best[idle])


class Affordable:
    """The options that a better plan may use; "no column" is column -1.

    Attributes
    ----------
    slots : ndarray (n,) int32
    owner, column, loss, counts : ndarray (options,)
        Request, column, loss and number of entries of each option.
    first, row, coefficient : ndarray
        Entries of option k are those from first[k] to first[k + 1].
    """

    def __init__(self, options: Options, fine: Places, idle: Places, loss: Floats, idle_loss: Floats) -> None:
        self.slots = options.slots
        self.owner = np.concatenate((options.owner[fine], idle))
        self.column = np.concatenate((options.column[fine], np.full(len(idle), IDLE)))
        self.loss = np.concatenate((loss, idle_loss))
        start, self.row, self.coefficient = options.draft.usage(self.slots[options.owner[fine]], options.column[fine])
        self.first = np.concatenate((start.astype(np.int64), np.full(len(idle), start[-1])))
        self.counts: NDArray[np.int64] = np.diff(self.first)

    def choices(self, prices: Floats, left: Floats, room: Floats) -> tuple[Choices, Places]:
        """Return the search over these options, in descending order of the requests' first losses, and the order of its
        options.
        """
        n = len(self.slots)
        second = np.full(n, np.inf)
        positive = self.loss > 0.0
        np.minimum.at(second, self.owner[positive], self.loss[positive])
        rank: Places = np.empty(n, dtype=np.intp)
        rank[np.argsort(-second, kind="stable")] = np.arange(n)
        order = np.lexsort((self.loss, rank[self.owner]))
        counts = self.counts[order]
        entry = ranges(self.first[order], self.first[order + 1])
        first = sums_before(np.bincount(rank[self.owner], minlength=n))  # every request's best option is among them
        entries = sums_before(counts).astype(np.int32), self.row[entry], self.coefficient[entry]
        search = Choices(first.astype(np.int32), self.loss[order], entries, (prices, left, room), MARGIN)
        return search, order


def took(draft: Draft, affordable: Affordable, choice: Ints, order: Places) -> bool:
    """Give the draft the columns of a choice; if it is then infeasible, restore the draft and return False."""
    before, left = draft.column, draft.left
    picked = order[choice]
    slots, column = affordable.slots[affordable.owner[picked]], affordable.column[picked].astype(np.int32)
    draft.left = draft.left + usage_by(draft, affordable.slots)
    draft.column = draft.column.copy()
    draft.column[affordable.slots] = IDLE
    taken = column != IDLE
    draft.take_all(slots[taken], column[taken])
    if draft.holds():
        return True
    draft.column, draft.left = before, left
    return False
