"""Plans of models whose rows drafts do not handle, by an integer search on the whole program with exact corrections."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.integer.clock import Clock
from copter.methods.integer.problem import row_tolerance
from copter.methods.integer.search import IntegerSearch
from copter.methods.integer.solution import IntegerStatus
from copter.model.column_map import slots_in_order
from copter.model.model import Model
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.runtime.settings import Settings
from copter.shims.exact_points import ExactPoints
from copter.shims.finished import continuous_requests, without_plan, worth_of
from copter.shims.greedy import integer_slots
from copter.shims.plan import IDLE, IntegerPlan

Floats = NDArray[np.float64]

PREVIOUS = "the previous plan"
CORE = "the core"
LARGE = 500  # models with more integer columns are first searched in a core; other requests keep their LP columns
SPLIT = 1e-6  # a column this close to a whole number counts as whole
MORE = 40  # a core has at least this many requests
CORE_SHARE, CORE_S = 0.5, 10.0  # time for the core's search: share of the time left; seconds without a deadline
INWARD = 2.0  # rows are tightened by this many times the search's tolerance, so that the points it accepts are feasible


def searched(
    model: Model,
    solution: Solution,
    previous: IntegerPlan | None,
    search: str,
    time_limit_s: float,
    seed: int = 0,
) -> IntegerPlan:
    """Return the plan of a search over all columns, no worse than the previous plan if that is still feasible.

    Parameters
    ----------
    model : Model
    solution : Solution
        The LP's solution: start of the search, and bound.
    previous : IntegerPlan or None
    search : {"rounding", "dive", "exact"}
        "rounding" searches only if rounding finds no plan.
    time_limit_s : float
    seed : int
    """
    lp = model.to_linear_program()
    if solution.status is Status.PRIMAL_INFEASIBLE:
        return nothing(model, solution, IntegerStatus.PRIMAL_INFEASIBLE)
    points, clock = ExactPoints(lp), Clock(time_limit_s)
    first = IntegerSearch(lp, Settings(), clock, seed, exactly=points, root=solution)
    before = None if previous is None else point_of(model, previous)
    if before is not None:
        first.problem.offer(before, PREVIOUS)
    if len(first.problem.integers) > LARGE and search != "exact" and not clock.expired:
        core = Core(model, lp, solution)
        near = core.search(points, clock, seed)
        if near is not None:
            first.problem.offer(near, CORE)
    done = search == "rounding" and first.problem.x is not None and first.problem.found_by == CORE
    x, found_by = (first.problem.x, CORE) if done else point_by(first, search)
    if x is None and search == "rounding" and not clock.expired:
        x, found_by = point_by(first, "dive")
    if x is None and points.refused and not clock.expired:
        inner = IntegerSearch(inward(lp), Settings(), clock, seed, exactly=points)
        x, found_by = point_by(inner, "dive")
    return nothing(model, solution, IntegerStatus.NONE_FOUND) if x is None else plan_at(
        model, lp, solution, x, found_by == PREVIOUS
    )  # fmt: skip


class Core:
    """The requests that the LP splits, and those that would lose little with another column; the rest keep their LP
    columns.

    Parameters
    ----------
    model : Model
    lp : LinearProgram
        The whole model.
    solution : Solution
        The LP's solution.
    """

    def __init__(self, model: Model, lp: LinearProgram, solution: Solution) -> None:
        first = model.ledger.matrix.starts_of(slots_in_order(model.ledger))
        owner = np.repeat(np.arange(len(first) - 1), np.diff(first))
        x = np.where(np.isfinite(solution.x), solution.x, 0.0)
        self.x = np.where(lp.integrality, np.clip(np.rint(x), np.ceil(lp.col_lower), np.floor(lp.col_upper)), x)
        off = lp.integrality & (np.abs(x - self.x) > SPLIT)
        loss = np.where(lp.integrality & (self.x == lp.col_lower), np.abs(solution.reduced_costs), np.inf)
        nearest = np.full(len(first) - 1, np.inf)
        np.minimum.at(nearest, owner, np.where(np.isnan(loss), np.inf, loss))
        nearest[owner[off]] = -1.0
        open_ = np.zeros(len(nearest), dtype=np.bool_)
        open_[np.argsort(nearest, kind="stable")[: max(int((nearest < 0.0).sum()), MORE)]] = True
        self.lp, self.free = lp, np.flatnonzero(open_[owner] | ~lp.integrality)

    def program(self) -> LinearProgram:
        """Return the program over the core's columns, with the usage of all other columns subtracted."""
        lp, free = self.lp, self.free
        kept = self.x.copy()
        kept[free] = 0.0
        used = lp.A @ kept
        return LinearProgram(
            lp.c[free], lp.A[:, free], lp.row_lower - used, lp.row_upper - used, lp.col_lower[free], lp.col_upper[free],
            lp.integrality[free], lp.sense,
        )  # fmt: skip

    def search(self, points: ExactPoints, clock: Clock, seed: int) -> Floats | None:
        """Return the best point of the whole program that a search in the core finds within part of the time."""

        def exactly(part: Floats) -> Floats | None:
            x = self.x.copy()
            x[self.free] = part
            exact = points(x)
            return None if exact is None else exact[self.free]

        own = Clock(CORE_SHARE * clock.left_s if np.isfinite(clock.left_s) else CORE_S)
        found, _ = point_by(IntegerSearch(self.program(), Settings(), own, seed, exactly=exactly), "dive")
        if found is None:
            return None
        x = self.x.copy()
        x[self.free] = found
        return x


def point_by(search: IntegerSearch, name: str) -> tuple[Floats | None, str]:
    """Return (point, name of the method that found it); Ctrl-C ends the search with the best point so far."""
    run = {"rounding": search.round_only, "dive": search.run, "exact": search.exact}[name]
    try:
        found = run()
    except KeyboardInterrupt:
        found = search.solution()
    return found.x, found.found_by


def inward(lp: LinearProgram) -> LinearProgram:
    """Return the program with its rows tightened a little, except equations, narrow ranges and rows of whole
    numbers.
    """
    whole = np.ones(lp.shape[0], dtype=np.bool_)
    broken = (lp.A.data != np.rint(lp.A.data)) | np.repeat(~lp.integrality, np.diff(lp.A.indptr))
    whole[lp.A.indices[broken]] = False
    lower = lp.row_lower + INWARD * row_tolerance(lp.row_lower)
    upper = lp.row_upper - INWARD * row_tolerance(lp.row_upper)
    stay = whole | ~(lower < upper)
    return LinearProgram(
        lp.c, sp.csc_array(lp.A), np.where(stay, lp.row_lower, lower), np.where(stay, lp.row_upper, upper),
        lp.col_lower, lp.col_upper, lp.integrality, lp.sense, lp.offset,
    )  # fmt: skip


def point_of(model: Model, plan: IntegerPlan) -> Floats:
    """Return a plan's point in the columns of the current model; columns unknown to the plan are at zero, within
    bounds.
    """
    matrix, lp = model.ledger.matrix, model.to_linear_program()
    slots = slots_in_order(model.ledger)
    first = matrix.starts_of(slots)
    x = np.clip(np.zeros(lp.shape[1]), lp.col_lower, lp.col_upper)
    known = min(len(plan.generation), matrix.n_slots)
    same = np.zeros(matrix.n_slots, dtype=np.bool_)
    same[:known] = plan.generation[:known] == matrix.generation[:known]
    place, size = np.zeros(matrix.n_slots, dtype=np.int64), np.zeros(matrix.n_slots, dtype=np.int64)
    place[slots], size[slots] = first[:-1], np.diff(first)
    key, share = plan.shares_of_slots(same)
    chosen = np.flatnonzero(same[:known] & (plan.column_of_slot[:known] != IDLE))
    for slot, column, value in (
        (chosen, plan.column_of_slot[chosen], np.ones(len(chosen))),
        (key >> 32, key & 0xFFFFFFFF, share),
    ):
        inside = column < size[slot]
        x[place[slot[inside]] + column[inside]] = value[inside]
    return x


def plan_at(model: Model, lp: LinearProgram, solution: Solution, x: Floats, kept: bool) -> IntegerPlan:
    """Return the plan of a feasible point: one column for requests that have exactly one at 1, shares for all
    others.
    """
    matrix, slots = model.ledger.matrix, slots_in_order(model.ledger)
    first = matrix.starts_of(slots)
    used = np.flatnonzero(x)
    owner = np.searchsorted(first, used, side="right") - 1
    slot, column = slots[owner], (used - first[owner]).astype(np.int32)
    whole = integer_slots(matrix)
    alone = (np.bincount(owner, minlength=len(slots)) == 1)[owner] & whole[slot] & (x[used] == 1.0)
    column_of_slot = np.full(matrix.n_slots, IDLE, dtype=np.int32)
    column_of_slot[slot[alone]] = column[alone]
    key = slot[~alone].astype(np.int64) << 32 | column[~alone]
    order = np.argsort(key)
    worth = worth_of(model, model.ledger.sign * lp.c[used] * x[used], solution)
    values = solution.x
    split = lp.integrality & (values != np.rint(values)) & np.isfinite(values)
    return IntegerPlan(
        objective=worth.objective,
        bound=worth.bound,
        gap=worth.gap,
        fractional_requests=len(np.unique(np.searchsorted(first, np.flatnonzero(split), side="right"))),
        kept_previous=kept,
        column_of_slot=column_of_slot,
        generation=matrix.generation[: matrix.n_slots].copy(),
        slot_of=model.ledger.slots_then(),
        status=worth.status,
        bound_is_certified=worth.certified,
        share_key=key[order],
        share=x[used][~alone][order],
        continuous=continuous_requests(model, whole),
    )


def nothing(model: Model, solution: Solution, status: IntegerStatus) -> IntegerPlan:
    """Return a result without a plan; the LP's proof names the requests in conflict."""
    resources, requests = solution.conflict if status is IntegerStatus.PRIMAL_INFEASIBLE else ((), ())
    continuous = continuous_requests(model, integer_slots(model.ledger.matrix))
    if status is IntegerStatus.PRIMAL_INFEASIBLE:
        why = "proven: even shares of columns do not fit"
        return without_plan(model, status, requests, resources, continuous, why)
    return without_plan(model, status, requests, resources, continuous, "the search found no plan", solution)
