"""Plans by branch and bound on the whole program, in a child process that lives on from round to round (M17)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from copter.highs.tree import GREEDY, NAME, Program, Report, Tree, given_back, taken
from copter.methods.integer.solution import IntegerStatus
from copter.model.column_map import slots_in_order
from copter.model.model import Model
from copter.problem.linear_program import LinearProgram
from copter.problem.residuals import Residuals, plan_gap
from copter.problem.solution import Solution, Status
from copter.runtime.settings import available_threads
from copter.shims.asked import Ask
from copter.shims.exact_points import ExactPoints
from copter.shims.finished import PROVEN, continuous_requests, without_plan
from copter.shims.greedy import integer_slots
from copter.shims.plan import IntegerPlan
from copter.shims.searched import inward, plan_at, point_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

LAST, BY_LP = "last plan", "the LP"
WHOLE = 1e-6  # the LP's point is tried as a plan if its integer columns are this close to whole numbers
LEAST_S = 1e-3  # seconds that the LP gets at least
FIRST_SHARE = 0.6  # share of the time in which the child has a sole processor for itself, until its first point
LP_SHARE = 0.15  # share of the time left for the LP on a sole processor
FIRST_OVER = 20.0  # until it is known, an LP goes on after its time for this many times what the arrays take
MOST_END_SHARE = 0.2  # most of the time that is kept for the plan of a point
FADE = 0.7  # factor on such times in each round that does not need them
CHECK_SHARE = 0.1  # share of the time for checks of points in exact arithmetic, but for the first and the last
CHECK_ROOM = 1.5  # the last check begins this many times the shortest check's time before the deadline
SLICE_S = 0.02  # seconds between two looks at the callback, the clock and Ctrl-C
SMALLEST_BOUND_GAIN = 1e-9  # a bound counts as better from this relative gain on


@dataclass(frozen=True, slots=True)
class Sent:
    """What identifies the columns and rows of the last program that was sent."""

    slots: Ints
    generation: NDArray[np.int64]
    first: NDArray[np.int64]
    own_first: NDArray[np.int64]
    row_of: dict[object, int]
    lp: LinearProgram


class TreeRoad:
    """The road of models that rounding does not fit: a tree in a child process, kept from round to round."""

    def __init__(self) -> None:
        self.tree: Tree | None = None
        self._sent: Sent | None = None
        self._over_s: float | None = None  # seconds that an LP goes on after its time
        self._end_s: float | None = None  # seconds that the plan of a point takes, from when it should begin
        self._is_rough = True  # whether the last plan is missing, or was found without LP and start

    def __del__(self) -> None:
        """Leave the process to the next session."""
        if getattr(self, "tree", None) is not None and not sys.is_finalizing():
            given_back(self.tree)  # type: ignore[arg-type]

    def close(self) -> None:
        """End the process."""
        if self.tree is not None:
            self.tree.close()
        self.tree = self._sent = None

    def ready(self) -> bool:
        """Return whether the process answers; starts it, and waits for it, if it does not run."""
        if self.tree is None or not self.tree.is_alive:
            self.close()
            try:
                self.tree = taken()
            except OSError:
                return False
            return self.tree.wait_until_ready()
        return True

    def plan(
        self,
        model: Model,
        solve: Callable[[float], Solution],
        previous: IntegerPlan | None,
        ask: Ask,
    ) -> IntegerPlan:
        """Return the best plan by the time asked, with the better of the LP's bound and the tree's.

        Parameters
        ----------
        model : Model
        solve : callable
            Solves the LP within some seconds, while the child is searching already.
        previous : IntegerPlan or None
            The last plan: start of the search, repaired if it no longer holds.
        ask : Ask
        """
        began = time.perf_counter()
        lp = model.to_linear_program()
        if self._over_s is None or self._end_s is None:
            self._end_s = time.perf_counter() - began  # the plan is about as much work as the program
            self._over_s = FIRST_OVER * self._end_s
        ask = replace(ask, until=ask.until - min(self._end_s, MOST_END_SHARE * (ask.until - began)))
        start = None if previous is None else point_of(model, previous)
        hunt = Hunt(model, lp, ask)
        hunt.starts_rough = self._is_rough
        if start is not None:
            hunt.take(start, LAST)
        running = self._begin(model, lp, start, ask)
        try:
            limit = ask.until - time.perf_counter()
            if running is not None and available_threads() == 1:
                # what the LP takes is lost to the search here
                hunt.follow(running, time.perf_counter() + FIRST_SHARE * limit, first=True)
                limit = LP_SHARE * (ask.until - time.perf_counter())
            solution = self._solved(solve, min(limit, ask.until - time.perf_counter() - self._over_s), lp)
            hunt.know(solution)
            if running is not None and solution.status is Status.DUAL_INFEASIBLE:
                # without a bound branch and bound may never end: any plan will do
                running.stop()
                running = self._begin(model, lp, start, ask, replace(lp, c=np.zeros(lp.shape[1])))
                hunt.bound_counts = False
            if running is not None and solution.status is not Status.PRIMAL_INFEASIBLE:
                if solution.status is Status.OPTIMAL and np.isfinite(solution.x).all():
                    running.tell(
                        solution.x, hunt.sign * solution.reduced_costs, hunt.sign * (solution.bound - lp.offset)
                    )
                hunt.follow(running)
        finally:
            if running is not None:
                running.stop()
        if hunt.x is None and hunt.bound_counts and hunt.points.refused and ask.until - time.perf_counter() > SLICE_S:
            again = self._begin(model, lp, None, ask, inward(lp))
            if again is not None:
                hunt.bound_counts = False  # that of a smaller program
                hunt.follow(again)
                again.stop()
        self._is_rough = hunt.is_rough
        began = min(time.perf_counter(), ask.until)  # on a busy machine the process may be woken late
        plan = hunt.plan(solution, running is not None)
        self._end_s = max(time.perf_counter() - began, FADE * self._end_s)
        return plan

    def _solved(self, solve: Callable[[float], Solution], seconds: float, lp: LinearProgram) -> Solution:
        """Solve the LP, and learn how long it goes on after its time: its point is checked then."""
        if seconds < max(LEAST_S, self._over_s or 0.0) and available_threads() == 1:
            # it would go on for longer than it may take, while the search needs the processor
            self._over_s = FADE * (self._over_s or 0.0)
            return unsolved(lp)
        began, seconds = time.perf_counter(), max(seconds, LEAST_S)
        solution = solve(seconds)
        over = max(time.perf_counter() - began - seconds, 0.0)
        if solution.status is Status.TIME_LIMIT:
            self._over_s = max(over, FADE * (self._over_s or 0.0))
        return solution

    def _begin(
        self, model: Model, lp: LinearProgram, start: Floats | None, ask: Ask, other: LinearProgram | None = None
    ) -> Tree | None:
        """Start the child on the program; None if there is no process."""
        if self.tree is not None and (not self.tree.is_alive or not (self.tree.is_idle or self.tree.settle())):
            self.close()
        if self.tree is None:
            try:
                self.tree = taken()
            except OSError:
                return None
        matrix, slots = model.ledger.matrix, slots_in_order(model.ledger)
        first = matrix.starts_of(slots)
        own_first = matrix.own_rows(slots, int(first[-1]))[0].astype(np.int64) + len(model.ledger.row_of)
        rows = {name: at for at, name in enumerate(model.ledger.row_of)}
        now = Sent(slots.copy(), matrix.generation[slots].copy(), first.copy(), own_first, rows, lp)
        last, program = self._sent, other or lp
        came_from = rows_from = None
        same = False
        if last is not None and not self.tree.is_new:
            came_from, rows_from = kept_numbers(last, now)
            same = other is None and same_matrix(last.lp, lp) and is_identity(came_from) and is_identity(rows_from)
        sign = 1.0 if lp.sense == "min" else -1.0
        self.tree.start(
            Program(
                sign * program.c, None if same else program.A, program.row_lower, program.row_upper,
                program.col_lower, program.col_upper, program.integrality,
                np.repeat(np.arange(len(slots), dtype=np.int32), np.diff(first)),
            ),
            came_from, rows_from, start, max(ask.until - time.perf_counter(), 1e-3), ask.gap, ask.tree_only,
        )  # fmt: skip
        self._sent = now if other is None else None
        return self.tree


def unsolved(lp: LinearProgram) -> Solution:
    """Return the solution of an LP of which nothing is known."""
    none, endless = float("nan"), float("inf")
    bound = -endless if lp.sense == "min" else endless
    x, y = np.full(lp.shape[1], none), np.full(lp.shape[0], none)
    return Solution(
        Status.TIME_LIMIT, none, bound, False, Residuals(*[endless] * 6), lambda: (x, y, x), why="no time for the LP"
    )


def kept_numbers(last: Sent, now: Sent) -> tuple[Ints, Ints]:
    """Return the numbers that the columns and the rows of a program had in the last one; -1 for new ones."""
    place = np.full(int(max(last.slots.max(initial=-1), now.slots.max(initial=-1))) + 1, -1, dtype=np.int64)
    place[last.slots] = np.arange(len(last.slots))
    was = place[now.slots]
    was[was >= 0] = np.where(last.generation[was[was >= 0]] == now.generation[was >= 0], was[was >= 0], -1)
    found = []
    for old, new in ((last.first, now.first), (last.own_first, now.own_first)):
        size = np.diff(new)
        same = was >= 0
        same[same] = np.diff(old)[was[same]] == size[same]
        begin = np.where(same, old[np.where(same, was, 0)], 0)
        number = np.repeat(begin, size) + (np.arange(int(size.sum())) - np.repeat(new[:-1] - new[0], size))
        found.append(np.where(np.repeat(same, size), number, -1).astype(np.int32))
    rows = np.array([last.row_of.get(name, -1) for name in now.row_of], dtype=np.int32)
    return found[0], np.concatenate((rows, found[1]))


def same_matrix(one: LinearProgram, other: LinearProgram) -> bool:
    """Return whether two programs have the same matrix and the same integer columns."""
    return (
        one.A.shape == other.A.shape
        and np.array_equal(one.A.indptr, other.A.indptr)
        and np.array_equal(one.A.indices, other.A.indices)
        and np.array_equal(one.A.data, other.A.data)
        and np.array_equal(one.integrality, other.integrality)
    )


def is_identity(numbers: Ints) -> bool:
    """Return whether each number is its own place."""
    return bool((numbers == np.arange(len(numbers))).all())


class Hunt:
    """The best exact point of one search, and the best bound.

    Attributes
    ----------
    x : ndarray or None
        The best point, which holds in exact arithmetic.
    bound_counts : bool
        Whether the child's bound is one of the model.
    """

    def __init__(self, model: Model, lp: LinearProgram, ask: Ask) -> None:
        self.model, self.lp, self.ask = model, lp, ask
        self.points = ExactPoints(lp)
        self.sign = 1.0 if lp.sense == "min" else -1.0
        self.x: Floats | None = None
        self.value = np.inf  # of the minimisation, without the constant
        self.by = ""
        self.waiting: list[tuple[Floats, str]] = []  # points that were not checked yet
        self.check_s = self.check_at = 0.0  # shortest time of one check; when the next one may be
        self.tree_bound = self.lp_bound = -np.inf
        self.bound_counts = True
        self.starts_rough = False  # whether the last plan was found without LP and start
        self.infeasible = self.solved = self.is_ended = False
        self.why_ended = "out of time"

    def take(self, x: Floats, by: str) -> None:
        """Keep a point if it is better and holds in exact arithmetic."""
        if len(x) != self.lp.shape[1] or not self.sign * float(self.lp.c @ x) < self.value:
            return
        exact = self.points(np.where(self.lp.integrality, np.rint(x), x))
        if exact is not None and self.sign * float(self.lp.c @ exact) < self.value:
            self.x, self.value, self.by = exact, self.sign * float(self.lp.c @ exact), by

    def know(self, solution: Solution) -> None:
        """Take in the bound of the LP, and its point if that is a plan (without columns the child may find none)."""
        if isfinite(solution.bound) and solution.status is not Status.DUAL_INFEASIBLE:
            self.lp_bound = self.sign * (solution.bound - self.lp.offset)
        if solution.status is Status.OPTIMAL and np.isfinite(solution.x).all():
            whole = solution.x[self.lp.integrality]
            if (np.abs(whole - np.rint(whole)) <= WHOLE).all():
                self.take(solution.x, BY_LP)

    @property
    def is_rough(self) -> bool:
        """Whether there is no point, or one that was found without LP and start."""
        return self.x is None or self.by == GREEDY or (self.by.startswith(LAST) and self.starts_rough)

    @property
    def bound(self) -> float:
        """The better of the two bounds, of the minimisation."""
        return max(self.lp_bound, self.tree_bound)

    def follow(self, tree: Tree, until: float = np.inf, first: bool = False) -> None:
        """Take in the child's reports until it ends, the gap is closed, or time is over; with `first`, only until the
        first point of the LP or the start.
        """
        finished, until = False, min(until, self.ask.until)
        while not finished and not self._is_over() and not (first and not self.is_rough):
            left = until - time.perf_counter() - (CHECK_ROOM * self.check_s if self.waiting else 0.0)
            if left <= 0.0:
                break
            finished = self._heard(tree.reports(max(min(left, SLICE_S), 1e-4))) or tree.is_idle
            if self.ask.interrupted() or self._tell():
                self.why_ended = "interrupted" if self.ask.interrupted() else "ended by the callback"
                self.is_ended = True
                return
        if not first:
            tree.stop()  # the last check needs the processor
        self._heard(tree.reports())  # what came at the last moment
        self._check()
        if finished:
            self.why_ended = "no plan exists" if self.infeasible else "solved" if self.solved else "the search ended"

    def _heard(self, news: list[Report]) -> bool:
        """Take in reports; returns whether the last one was among them."""
        self.waiting += [(report.x, report.by) for report in news if report.x is not None]
        if self.x is None or time.perf_counter() >= self.check_at:
            self._check()
        for report in news:
            if self.bound_counts:
                self.tree_bound = max(self.tree_bound, report.bound)
                self.infeasible = self.infeasible or (report.infeasible and self.x is None)
                self.solved = self.solved or report.solved
        return any(report.finished for report in news)

    def _check(self) -> None:
        """Keep the best of the waiting points that holds in exact arithmetic; the checks take a share of the time."""
        points = sorted(self.waiting, key=lambda each: self.sign * float(self.lp.c @ each[0]))
        self.waiting = []
        for x, by in points:
            began = time.perf_counter()
            late = self.x is not None and began + self.check_s > self.ask.until
            if late or not self.sign * float(self.lp.c @ x) < self.value:
                break  # the rest is worse
            self.take(x, by)
            spent = time.perf_counter() - began
            self.check_s = min(self.check_s or spent, spent)  # a busy machine makes any of them long
            self.check_at = time.perf_counter() + spent * (1.0 / CHECK_SHARE - 1.0)

    def _is_over(self) -> bool:
        if self.is_ended or time.perf_counter() >= self.ask.until:
            return True
        if self.x is not None and self._gap() <= self.ask.gap:
            self.why_ended = "at the gap asked"
            return True
        return False

    def _gap(self) -> float:
        return plan_gap(self.value, min(self.bound, self.value))

    def _tell(self) -> bool:
        """Call the callback; returns whether it ends the search."""
        if self.ask.callback is None:
            return False
        objective = self.sign * self.value + self.lp.offset if self.x is not None else float("nan")
        return bool(self.ask.callback(objective, self.sign * self.bound + self.lp.offset))

    def plan(self, solution: Solution, searched: bool) -> IntegerPlan:
        """Return the plan of the best point, or what is known without one."""
        road = "tree road" if searched else "tree road without a process"
        if searched and find_spec("highspy") is None:
            road += ", by SciPy's HiGHS (highspy is not installed)"
        if self.x is None:
            return self._nothing(solution, road)
        plan = plan_at(self.model, self.lp, solution, self.x, self.by == LAST)
        bound, certified, by = plan.bound, plan.bound_is_certified, "prices" if plan.bound_is_certified else "LP"
        if self.tree_bound - self.lp_bound > SMALLEST_BOUND_GAIN * (1.0 + abs(self.tree_bound)):
            # a bound above the plan's value is one of HiGHS's tolerances
            bound = self.sign * min(self.tree_bound, self.value) + self.lp.offset
            bound = plan.objective if self.tree_bound >= self.value else bound
            certified, by = False, NAME
        gap = plan_gap(plan.objective, bound) if isfinite(bound) else float("inf")
        return replace(
            plan,
            bound=bound,
            gap=gap,
            bound_is_certified=certified,
            bound_by=by,
            status=IntegerStatus.OPTIMAL if gap <= PROVEN else IntegerStatus.FEASIBLE,
            why=f"{road}: {self.why_ended}, plan by {self.by or 'the search'}",
        )

    def _nothing(self, solution: Solution, road: str) -> IntegerPlan:
        model = self.model
        continuous = continuous_requests(model, integer_slots(model.ledger.matrix))
        bound = self.sign * self.bound + self.lp.offset if isfinite(self.bound) else float("nan")
        certified, by = solution.bound_is_certified and self.bound == self.lp_bound, "prices"
        resources: tuple[Hashable, ...] = ()
        requests: tuple[Hashable, ...] = ()
        status, why = IntegerStatus.NONE_FOUND, f"{road}: {self.why_ended} before a plan was found"
        if solution.status is Status.PRIMAL_INFEASIBLE:
            status, why = IntegerStatus.PRIMAL_INFEASIBLE, "proven: even shares of columns do not fit"
            resources, requests = solution.conflict
            bound, certified, by = float("nan"), False, ""
        elif solution.status is Status.DUAL_INFEASIBLE:
            status, why, bound, certified, by = (
                IntegerStatus.DUAL_INFEASIBLE,
                "the LP is unbounded",
                float("nan"),
                False,
                "",
            )
        elif self.infeasible:
            status, why = IntegerStatus.PRIMAL_INFEASIBLE, f"no whole columns fit, by {NAME}'s branch and bound"
            bound, certified, by = float("nan"), False, NAME
        elif self.tree_bound > self.lp_bound:
            by = NAME
        found = without_plan(model, status, requests, resources, continuous)
        return replace(
            found, bound=bound, bound_is_certified=certified, bound_by=by if isfinite(bound) else "", why=why
        )
