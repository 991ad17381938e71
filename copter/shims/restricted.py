"""Shims that solve the restricted program: the columns that the LP and the rounded plan use, as a small MILP (M9)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.errors import InvalidDataError
from copter.integer.solve import solve_integer
from copter.model.model import Model
from copter.problem.linear_program import LinearProgram
from copter.problem.residuals import relative_gap
from copter.problem.solution import Solution
from copter.settings import Settings
from copter.shims.plan import IDLE, IntegerPlan, Shim
from copter.shims.rounding import Draft, RoundingShim

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

NAMES = ("rounding", "dive", "exact")


@dataclass(frozen=True, slots=True)
class RestrictedShim:
    """Rounding first, then a search among the working columns; never worse than either it or the previous plan.

    Parameters
    ----------
    search : {"dive", "exact"}
        As for :func:`copter.solve_integer`; "exact" needs the extra `highs`.
    time_limit_s : float
        For all of the shim.
    seed : int
    """

    search: str = "dive"
    time_limit_s: float = float("inf")
    seed: int = 0

    def __call__(self, model: Model, solution: Solution, previous: IntegerPlan | None = None) -> IntegerPlan:
        """Make the plan.

        Raises
        ------
        EditNotAllowedError
            As for :class:`copter.shims.RoundingShim`.
        CopterError
            If the search is "exact" and highspy is not installed.
        """
        started = time.perf_counter()
        rounded = RoundingShim()(model, solution, previous)
        slots, columns = candidates(model, solution, rounded)
        if len(slots) == 0:
            return rounded
        lp = restricted_program(Draft(model), slots, columns)
        left = self.time_limit_s - (time.perf_counter() - started)
        if left <= 0.0:
            return rounded
        alone = Settings(hand_over_s=0.0)  # a round's plan is wanted sooner than another process can help
        result = solve_integer(lp, self.search, None if np.isinf(left) else left, alone, seed=self.seed)
        kept = np.flatnonzero(rounded.column_of_slot != IDLE).astype(np.int32)
        drafts = [drafted(model, kept, rounded.column_of_slot[kept])]
        if result.x is not None:
            chosen = result.x > 0.5
            drafts.append(drafted(model, slots[chosen], columns[chosen]))
        for draft in drafts:
            one_opt(draft, slots, columns)
            draft.fill()
        best = min((draft for draft in drafts if draft.holds()), key=Draft.value, default=None)
        if best is None:
            return rounded
        objective = model.ledger.sign * best.value() + model.offset
        if model.ledger.sign * objective >= model.ledger.sign * rounded.objective:
            return rounded
        gap = relative_gap(objective, rounded.bound)
        return replace(rounded, objective=objective, gap=gap, column_of_slot=best.column, kept_previous=False)


def drafted(model: Model, slots: Ints, columns: Ints) -> Draft:
    """A draft with these columns taken."""
    draft = Draft(model)
    draft.take_all(slots, columns)
    return draft


def candidates(model: Model, solution: Solution, rounded: IntegerPlan) -> tuple[Ints, Ints]:
    """(slot, column) of the LP's working columns and of the rounded plan's; of fixed slots only the one they are at."""
    slots, columns, _ = solution.working_columns_by_slot()
    taken = np.flatnonzero(rounded.column_of_slot != IDLE).astype(np.int32)
    key = np.unique(
        np.concatenate(
            (slots.astype(np.int64) << 32 | columns, taken.astype(np.int64) << 32 | rounded.column_of_slot[taken])
        )
    )
    slots, columns = (key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32)
    _, fixed = model.ledger.matrix.limits()
    kept = ~fixed[slots] | (rounded.column_of_slot[slots] == columns)
    return slots[kept], columns[kept]


def restricted_program(draft: Draft, slots: Ints, columns: Ints) -> LinearProgram:
    """The candidates as 0/1 columns: resources above, then one row a slot; costs as minimised."""
    entry_start, row, coefficient = draft.usage(slots, columns)
    n, m = len(slots), len(draft.left)
    usage = sp.csc_array((coefficient, row, entry_start), shape=(m, n))
    members, group = np.unique(slots, return_inverse=True)
    limits = sp.csc_array((np.ones(n), group, np.arange(n + 1)), shape=(len(members), n))
    return LinearProgram(
        draft.matrix.costs_at(slots, columns),
        sp.vstack([usage, limits]),
        row_lower=np.concatenate((np.full(m, -np.inf), np.where(draft.fixed[members], 1.0, -np.inf))),
        row_upper=np.concatenate((draft.left, np.ones(len(members)))),
        col_upper=1.0,
        integrality=1,
    )


def one_opt(draft: Draft, slots: Ints, columns: Ints) -> None:
    """Move slots to better columns among the candidates, the greatest gain first, while what is left allows."""
    entry_start, row, coefficient = draft.usage(slots, columns)
    cost = draft.matrix.costs_at(slots, columns)
    place = {(int(slot), int(column)): at for at, (slot, column) in enumerate(zip(slots, columns, strict=True))}
    for _ in range(len(slots)):
        now = np.array([place.get((int(s), int(draft.column[s])), -1) for s in slots])
        gain = np.where(now >= 0, cost[now], 0.0) - cost
        gain[draft.fixed[slots] | ((now < 0) & (draft.column[slots] != IDLE))] = 0.0
        moved = False
        for at in np.argsort(-gain, kind="stable"):
            if gain[at] <= 1e-12:
                break
            slot, current = int(slots[at]), int(now[at])
            if draft.column[slot] != (columns[current] if current >= 0 else IDLE):
                continue  # this slot has moved already
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
    """A shim by its name; InvalidDataError for an unknown one."""
    if name == "rounding":
        return RoundingShim()
    if name in NAMES:
        return RestrictedShim(name, time_left_s)
    raise InvalidDataError(f"shim is {name!r}, must be one of {', '.join(NAMES)}, or a callable")
