"""The rounding shim: integral columns, then fractional ones by weight, then filling; never worse than the previous
plan.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import import_module

from copter.model.model import Model
from copter.problem.solution import Solution
from copter.runtime.errors import StaleSolutionError
from copter.shims.closing import closed
from copter.shims.draft import Draft, Survey, surveyed
from copter.shims.finished import no_plan, planned
from copter.shims.plan import IntegerPlan


@dataclass(frozen=True, slots=True)
class RoundingShim:
    """Rounds an LP solution: one column or none for integer requests (limit 1), shares for continuous requests.

    Models with other rows (least sums, private rows, resources with lower bounds, other limits of integer requests) are
    rounded with propagation; if that finds no plan, a search follows (:mod:`copter.shims.searched`).

    Parameters
    ----------
    whole : float
        A column of at least this value is taken at 1.
    support : float
        A column below this does not count as chosen.
    time_limit_s : float
        Wall-clock seconds after which filling and the improvement of shares stop; the plan so far, which is feasible,
        is returned.
    most_work : int
        Limit of the search that closes the gap of a small plan (M15), in nodes times rows; 0 for no search.
    searches : bool
        Whether a search follows if rounding finds no plan. A session has the tree road for that.
    """

    whole: float = 1.0 - 1e-6
    support: float = 1e-9
    time_limit_s: float = float("inf")
    most_work: int = 0
    searches: bool = True

    def __call__(self, model: Model, solution: Solution, previous: IntegerPlan | None = None) -> IntegerPlan:
        """Round a solution of the current model.

        Raises
        ------
        StaleSolutionError
            If the model has been edited since the solution was found.
        """
        require_fresh(model, solution)
        started = time.perf_counter()
        seen = surveyed(model)
        if seen is None:
            return searched(model, solution, previous, "rounding", self.time_limit_s)
        best, fractional, repeats = rounded(self, model, solution, previous, seen)
        if not best.holds():
            left = self.time_limit_s - (time.perf_counter() - started)
            return no_draft(model, best, solution, previous, "rounding", left if self.searches else 0.0)
        least = closed(best, solution, self.most_work) if self.most_work > 0 else None
        return planned(model, best, solution, fractional, repeats, least)


def searched(
    model: Model, solution: Solution, previous: IntegerPlan | None, search: str, time_limit_s: float
) -> IntegerPlan:
    """Call :func:`copter.shims.searched.searched`, imported on first use because it loads the integer search."""
    found: IntegerPlan = import_module("copter.shims.searched").searched(
        model, solution, previous, search, time_limit_s
    )
    return found


def require_fresh(model: Model, solution: Solution) -> None:
    """Raise StaleSolutionError if the model has been edited since the solution was found."""
    if solution.model_version != model.version:
        raise StaleSolutionError("the model has been edited since this solution was found: solve it again")


def no_draft(
    model: Model, best: Draft, solution: Solution, previous: IntegerPlan | None, search: str, left_s: float
) -> IntegerPlan:
    """Return the result if no draft is feasible: a search's plan if requests can give resources back, else the
    conflict.
    """
    if best.can_be_relieved() and left_s > 0.0:
        found = searched(model, solution, previous, search, left_s)
        if found.is_feasible:
            return found
    return no_plan(model, best, solution)


def rounded(
    shim: RoundingShim, model: Model, solution: Solution, previous: IntegerPlan | None, seen: Survey | None = None
) -> tuple[Draft, int, bool]:
    """Return (best draft, number of requests that the LP split, whether the draft is based on the previous plan)."""
    started = time.perf_counter()

    def stop() -> bool:
        return time.perf_counter() - started >= shim.time_limit_s

    def left_s() -> float:
        return shim.time_limit_s - (time.perf_counter() - started)

    slots, columns, x = solution.working_columns_by_slot()
    draft = Draft(model, slots, columns, x, seen)
    if not draft.holds() and not draft.can_be_relieved():
        return draft, 0, False
    last = draft.previous(previous) if previous is not None else None
    if draft.shares is not None or draft.fillers is not None:
        chosen = draft.whole[slots]
        slots, columns, x = slots[chosen], columns[chosen], x[chosen]
    fractional = draft.round(slots, columns, x, shim.whole, shim.support)
    draft.fill(stop)
    draft.repair()
    if last is not None and (not draft.holds() or last.is_worth_more(draft)):
        last.repair()
        if last.holds() and (not draft.holds() or last.is_worth_more(draft)):
            last.fill(stop)
            last.repair()
            draft = last
    draft.improve_shares(left_s)
    return draft, fractional, draft is last
