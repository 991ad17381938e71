"""Shims that solve a restricted program: a small MILP over the columns of the LP's solution and the rounded plan
(M9).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.integer.search import is_small
from copter.methods.integer.solve import solve_integer
from copter.model.model import Model
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution
from copter.problem.values import distinct
from copter.runtime.errors import InvalidDataError
from copter.runtime.settings import Internals, Settings
from copter.shims.draft import Draft, drafts_know
from copter.shims.finished import planned
from copter.shims.greedy import takeable
from copter.shims.plan import IDLE, IntegerPlan, Shim
from copter.shims.rounding import RoundingShim, no_draft, require_fresh, rounded
from copter.shims.searched import searched

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

NAMES = ("rounding", "dive", "exact")


@dataclass(frozen=True, slots=True)
class RestrictedShim:
    """Rounding, then a search among the working columns; never worse than rounding or the previous plan.

    Parameters
    ----------
    search : {"dive", "exact"}
        Kind of search, see :func:`copter.solve_integer`; "exact" needs the extra `highs`.
    time_limit_s : float
        Time limit of the whole shim.
    seed : int
    """

    search: str = "dive"
    time_limit_s: float = float("inf")
    seed: int = 0

    def __call__(self, model: Model, solution: Solution, previous: IntegerPlan | None = None) -> IntegerPlan:
        """Return the plan.

        Raises
        ------
        StaleSolutionError
            If the model has been edited since the solution was found.
        CopterError
            If the search is "exact" and highspy is not installed.
        """
        started = time.perf_counter()
        require_fresh(model, solution)
        if not drafts_know(model):
            return searched(model, solution, previous, self.search, self.time_limit_s, self.seed)
        first = RoundingShim(time_limit_s=self.time_limit_s)
        best, fractional, repeats = rounded(first, model, solution, previous)
        if not best.holds():
            left = self.time_limit_s - (time.perf_counter() - started)
            return no_draft(model, best, solution, previous, self.search, left)
        slots, columns = candidates(best, solution)
        left = self.time_limit_s - (time.perf_counter() - started)
        if len(slots) == 0 or left <= 0.0:
            return planned(model, best, solution, fractional, repeats)
        lp = restricted_program(best, slots, columns)
        # HiGHS in another process helps in rounds of medium size only: large ones end too soon, small ones need no
        # help.
        settings = None if is_small(len(slots), lp.A.nnz) else Settings(internals=Internals(hand_over_s=0.0))
        result = solve_integer(lp, self.search, None if np.isinf(left) else left, settings, seed=self.seed)
        points = [(best.column.copy(), best.share)]
        if result.x is not None:
            column = np.where(best.forced, best.column, IDLE).astype(np.int32)
            chosen = result.x[: len(slots)] > 0.5
            column[slots[chosen]] = columns[chosen]
            points.append((column, result.x[len(slots) :]))

        def left_s() -> float:
            return self.time_limit_s - (time.perf_counter() - started)

        for column, share in points:
            draft = drafted(best, column, share)
            one_opt(draft, slots, columns)
            draft.fill(lambda: left_s() <= 0.0)
            draft.repair()
            draft.improve_shares(left_s)
            if draft.holds() and draft.value() < best.value():
                best, repeats = draft, False
        return planned(model, best, solution, fractional, repeats)


def drafted(like: Draft, column: Ints, share: Floats) -> Draft:
    """Return a draft with these columns, and with these shares as far as there is room."""
    draft = Draft(like.model)
    if like.shares is not None and draft.shares is not None:
        draft.left = draft.left + draft.shares.use(draft.share, len(draft.left))
        draft.shares = like.shares
        draft.share = like.shares.base
        draft.left = draft.left - draft.shares.use(draft.share, len(draft.left))
    slots = np.flatnonzero((column != IDLE) & ~draft.forced).astype(np.int32)
    order = np.argsort(draft.matrix.costs_at(slots, column[slots]), kind="stable")
    draft.offer(slots, column[slots], order)
    if draft.shares is not None:
        draft.give(draft.shares.within(share))
    return draft


def candidates(best: Draft, solution: Solution) -> tuple[Ints, Ints]:
    """Return (slot, column) of the columns that integer requests may choose: the LP's working columns and the rounded
    plan's.
    """
    slots, columns, _ = solution.working_columns_by_slot()
    taken = np.flatnonzero(best.column != IDLE).astype(np.int32)
    key = distinct(
        np.concatenate((slots.astype(np.int64) << 32 | columns, taken.astype(np.int64) << 32 | best.column[taken]))
    )
    slots, columns = (key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32)
    free = best.whole[slots] & ~best.forced[slots] & takeable(best.matrix, slots, columns)
    return slots[free], columns[free]


def restricted_program(draft: Draft, slots: Ints, columns: Ints) -> LinearProgram:
    """Return the program over the candidates (0/1 columns) and shares: rows of resources, then one row per slot;
    minimised.

    The usage of forced columns is subtracted from the resources.
    """
    entry_start, row, coefficient = draft.usage(slots, columns)
    forced = np.flatnonzero(draft.forced).astype(np.int32)
    _, used, units = draft.usage(forced, draft.column[forced])
    n, m = len(slots), len(draft.left)
    left = draft.matrix.row_upper[:m] - np.bincount(used, weights=units, minlength=m)
    usage = sp.csc_array((coefficient, row, entry_start), shape=(m, n))
    members, group = np.unique(slots, return_inverse=True)
    limits = sp.csc_array((np.ones(n), group, np.arange(n + 1)), shape=(len(members), n))
    whole = LinearProgram(
        draft.matrix.costs_at(slots, columns),
        sp.vstack([usage, limits]),
        row_upper=np.concatenate((left, np.ones(len(members)))),
        col_upper=1.0,
        integrality=1,
    )
    return whole if draft.shares is None else side_by_side(whole, draft.shares.program(left), m)


def side_by_side(whole: LinearProgram, shares: LinearProgram, m: int) -> LinearProgram:
    """Join two programs that share their first m rows."""
    n, k = whole.shape[1], shares.shape[1]
    own = sp.block_diag((whole.A[m:], shares.A[m:]))
    return LinearProgram(
        np.concatenate((whole.c, shares.c)),
        sp.vstack([sp.hstack([whole.A[:m], shares.A[:m]]), own]),
        row_upper=np.concatenate((whole.row_upper, shares.row_upper[m:])),
        col_lower=np.concatenate((whole.col_lower, shares.col_lower)),
        col_upper=np.concatenate((whole.col_upper, shares.col_upper)),
        integrality=np.concatenate((np.ones(n), np.zeros(k))),
    )


def one_opt(draft: Draft, slots: Ints, columns: Ints) -> None:
    """Move slots to better candidate columns, greatest gain first, while the resources allow it."""
    entry_start, row, coefficient = draft.usage(slots, columns)
    cost = draft.matrix.costs_at(slots, columns)
    place = {(int(slot), int(column)): at for at, (slot, column) in enumerate(zip(slots, columns, strict=True))}
    for _ in range(len(slots)):
        now = np.array([place.get((int(s), int(draft.column[s])), -1) for s in slots])
        gain = np.where(now >= 0, cost[now], 0.0) - cost
        gain[draft.forced[slots] | ((now < 0) & (draft.column[slots] != IDLE))] = 0.0
        moved = False
        for at in np.argsort(-gain, kind="stable"):
            if gain[at] <= 1e-12:
                break
            slot, current = int(slots[at]), int(now[at])
            if draft.column[slot] != (columns[current] if current >= 0 else IDLE):
                continue  # this slot has already moved
            if current >= 0:
                old = slice(entry_start[current], entry_start[current + 1])
                np.add.at(draft.left, row[old], coefficient[old])
            new = slice(entry_start[at], entry_start[at + 1])
            if draft.take(slot, int(columns[at]), row[new], coefficient[new]):
                moved = True
            elif current >= 0:
                np.subtract.at(draft.left, row[old], coefficient[old])
        if not moved:
            return


def shim_by_name(name: str, time_left_s: float) -> Shim:
    """Return a shim by its name; raises InvalidDataError for an unknown name."""
    if name == "rounding":
        return RoundingShim(time_limit_s=time_left_s)
    if name in NAMES:
        return RestrictedShim(name, time_left_s)
    raise InvalidDataError(f"shim is {name!r}, must be one of {', '.join(NAMES)}, or a callable")
