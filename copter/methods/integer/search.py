"""The search for an integer point: cheap heuristics first, then those that solve relaxations, then improvement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from copter.highs.branch_and_bound import Report
from copter.methods.integer.bound import proven_bound, whole_bound
from copter.methods.integer.clock import Clock
from copter.methods.integer.dive import dive
from copter.methods.integer.first_fail import FirstFail
from copter.methods.integer.fixing import by_certainty, by_value, fix_in_order, randomly_rounded
from copter.methods.integer.hand_over import HIGHS, NO_LIMITS, HandOver, Limits, hand_over, solved_soon
from copter.methods.integer.local_search import one_opt
from copter.methods.integer.problem import Domain, Exactly, IntegerProblem
from copter.methods.integer.pump import pump
from copter.methods.integer.relaxation import Relaxation
from copter.methods.integer.repair import Repair
from copter.methods.integer.semicontinuous import NO_SWITCHES, Switches
from copter.methods.integer.solution import IntegerSolution, IntegerStatus
from copter.methods.solve import solve_relaxation
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.runtime.settings import Settings

Floats = NDArray[np.float64]

PROVEN = 1e-6  # relative gap at which a point counts as optimal
ROOT_SHARE = 0.6  # share of the time for the root relaxation
BLIND_SHARE = 0.05  # share of the time for heuristics that need no relaxation
ROUND_SHARE = 0.05  # share of the time left for one round of improvement
REPAIR_SHARE = 0.2  # share of the time left for one repair
REPAIR_STEPS = 400_000  # most moves of one repair
FIRST_FAIL_S = 60.0  # seconds assumed for branch and bound if it has no limit: first-fail descents get a share of them
FIRST_FAIL_SHARE = 0.6  # share of the time left, or of branch and bound's time if less, for first-fail descents
CORE = 3  # columns at rest kept in the core program, per row
PERTURBATIONS = 100  # most random perturbations of a point in one call
ROUNDINGS = 30  # random roundings in one round of improvement
IDLE_ROUNDS = 3  # the search ends after this many rounds without improvement
FAILED_ROUNDS = 6  # the search gives up after this many rounds without any point
PART_S, PART_SHARE = 10.0, 0.2  # most seconds of branch and bound on a neighbourhood, and share of the time left
# most integer columns and nonzeros of a program that starts with branch and bound
SMALL_INTEGERS, SMALL_ENTRIES = 500, 20_000
DIRECT_S, DIRECT_SHARE = 1.0, 0.25  # time of that first branch and bound: most seconds, and share of the time left
TOLD_S = 0.02  # seconds between two calls of the callback while nothing changes
PATIENCE_S = 1.0  # branch and bound starts beside a root relaxation that takes longer than this many seconds


def is_small(integers: int, entries: int) -> bool:
    """Whether a program is small enough to go directly to branch and bound (M13)."""
    return 0 < integers <= SMALL_INTEGERS and entries <= SMALL_ENTRIES


class IntegerSearch:
    """One search; reproducible for a given seed unless a deadline ends it.

    `exactly`, if given, decides which points are kept (:class:`IntegerProblem`); `root` is the relaxation's solution,
    if already known.
    """

    def __init__(
        self,
        lp: LinearProgram,
        settings: Settings,
        clock: Clock,
        seed: int = 0,
        limits: Limits = NO_LIMITS,
        switches: Switches = NO_SWITCHES,
        exactly: Exactly | None = None,
        root: Solution | None = None,
    ) -> None:
        self.lp, self.settings, self.clock = lp, settings, clock
        self.limits = limits
        self.told_s = -np.inf  # time of the last call of the callback
        self.unbounded = False
        self.rng = np.random.default_rng(seed)
        self.problem, self.known = IntegerProblem(lp, clock, switches, exactly), root
        self.relaxation = Relaxation(self.problem, settings)
        self.repair = Repair(self.problem, self.relaxation)
        self.root: Solution | None = None
        self.bound, self.certified = -np.inf, True  # bound of the minimisation, without the constant
        self.bound_by = ""
        self.fixed_share = 0.7  # share of the best point that random neighbourhoods keep
        self.searching = False  # whether a search follows the rounding
        self.child_search: HandOver | None = None
        self.relaxation.over = self._is_over

    def round_only(self) -> IntegerSolution:
        """Solve the relaxation, round with propagation, and improve by 1-opt."""
        if self._begin():
            self._round(self._guide())
            one_opt(self.problem, self.relaxation)
        return self.solution()

    def run(self) -> IntegerSolution:
        """Run the whole search, with branch and bound in another process."""
        problem, self.searching = self.problem, True
        try:
            if self._directly():
                if self.root is None and problem.feasible and not self.clock.expired:
                    self._solve_root()  # for a bound from prices, which can be certified
            elif self._begin():
                x = self._guide()
                self._round(x)
                self._hand_over()
                self._search(x)
            return self._when_over()
        finally:
            if self.child_search is not None:
                self.child_search.close()

    def exact(self) -> IntegerSolution:
        """Run branch and bound alone; a program without integer columns only needs the relaxation."""
        if not len(self.problem.integers):
            return self.round_only()
        try:
            if self._directly() or self._runs_away():
                return self.solution()
            self.child_search = hand_over(self.problem, self.relaxation, self.clock.left_s, limits=self.limits)
            if self.child_search is None:  # too little time for a process, or no way to start one
                left = self.clock.left_s
                self._take(solved_soon(self.problem, self.relaxation, left, self.limits, self._is_over))
            return self._when_over()
        finally:
            if self.child_search is not None:
                self.child_search.close()

    def _when_over(self) -> IntegerSolution:
        """Wait for the other process, if there is one; returns the answer."""
        while self.child_search is not None and not self.child_search.finished and not self.finished():
            self.child_search.wait()
        self._poll()
        return self.solution()

    def _directly(self) -> bool:
        """Whether the program is solved already, or a short branch and bound solves it because it is small (M13)."""
        problem = self.problem
        if not problem.feasible:
            self.bound_by = "rows"
            return True
        if (
            not is_small(len(problem.integers), self.lp.A.nnz)
            or self.settings.internals.hand_over_s <= 0.0
            or self._tell()
        ):
            return self.clock.expired
        if self._runs_away():
            return True
        seconds = min(DIRECT_S, DIRECT_SHARE * self.clock.left_s)
        report = solved_soon(problem, self.relaxation, seconds, self.limits, self._is_over)
        self._take(report)
        return (report.solved and (problem.x is not None or not problem.feasible)) or self.finished()

    def _take(self, report: Report) -> None:
        """Take in the results of a short branch and bound."""
        if report.infeasible and self.problem.x is None:
            self.problem.feasible, self.bound_by = False, HIGHS
        bound = whole_bound(self.problem, report.bound)
        if bound - self.bound > PROVEN * (1.0 + abs(bound)):
            self.bound, self.certified, self.bound_by = bound, False, HIGHS

    def _runs_away(self) -> bool:
        """Whether the relaxation is unbounded; then look only for a feasible point (M14).

        Branch and bound may never end on such a program. If the program has any integer point, it is unbounded too:
        numbers in floating point are rational, so a multiple of the relaxation's ray is integer.
        """
        root, cost = self.problem.root, self.problem.cost
        if not (((cost > 0) & np.isneginf(root.lower)) | ((cost < 0) & np.isposinf(root.upper))).any():
            return False
        if self.root is None:
            self._solve_root()
        if self.root is None or self.root.status is not Status.DUAL_INFEASIBLE:
            return False
        self.unbounded = True
        lp = self.lp
        anywhere = LinearProgram(
            np.zeros(lp.shape[1]), lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper,
            integrality=lp.integrality,
        )  # fmt: skip
        found = IntegerSearch(
            anywhere, self.settings, self.clock, switches=self.problem.switches, exactly=self.problem.exactly
        ).run()
        if found.x is not None:
            self.problem.offer(found.x, found.found_by)
        elif found.status is IntegerStatus.PRIMAL_INFEASIBLE:
            self.problem.feasible, self.bound_by = False, found.bound_by
        return True

    def _tell(self) -> bool:
        """Report value and bound to the callback at intervals; returns True if it ends the search."""
        if self.limits.callback is None or self.clock.elapsed_s - self.told_s < TOLD_S:
            return False
        self.told_s = self.clock.elapsed_s
        sign, offset, problem = self.problem.sign, self.lp.offset, self.problem
        value = sign * problem.value + offset if problem.x is not None else float("nan")
        if self.limits.callback(value, sign * self.bound + offset):
            self.clock.stop()
            return True
        return False

    def _search(self, x: Floats) -> None:
        """Dive, then repeat rounds of improvement until several in a row fail."""
        self._first_fail(x, FIRST_FAIL_SHARE)
        core = self._core(x)
        if core is not None and not dive(self.problem, self.relaxation, core, x, "dive in the core"):
            core = None
        if core is None:
            dive(self.problem, self.relaxation, self.problem.root, x, "dive")
        idle = 0
        while not self.finished():
            idle = 0 if self._improve(x) else idle + 1
            if idle >= (FAILED_ROUNDS if self.problem.x is None else IDLE_ROUNDS):
                break

    def _hand_over(self) -> None:
        """Start branch and bound in another process if the settings allow time for it."""
        limit = self.settings.internals.hand_over_s
        if limit > 0.0 and self.child_search is None and not self.finished():
            left = self.clock.left_s
            seconds = left if np.isfinite(left) else limit
            self.child_search = hand_over(self.problem, self.relaxation, seconds, limits=self.limits)

    def _poll(self) -> None:
        """Take in branch and bound's reports since the last call."""
        child_search, problem = self.child_search, self.problem
        if child_search is None:
            return
        child_search.poll()
        if child_search.infeasible and problem.x is None:
            problem.feasible, self.bound_by = False, HIGHS
        bound = whole_bound(problem, child_search.bound)
        if bound - self.bound > PROVEN * (1.0 + abs(bound)):
            self.bound, self.certified, self.bound_by = bound, False, HIGHS

    def _is_over(self) -> bool:
        """Whether branch and bound has finished with an answer, or the callback ends the search."""
        self._poll()
        if self._tell():
            return True
        return self.child_search is not None and self.child_search.decided

    def finished(self) -> bool:
        """Whether the best point is proven, infeasibility is proven, or time is up."""
        problem = self.problem
        if self.clock.expired or self._is_over() or not problem.feasible:
            return True
        return problem.x is not None and problem.value - self.bound <= self.limits.gap * (1.0 + abs(problem.value))

    def _core(self, x: Floats) -> Domain | None:
        """Return a smaller domain for the first dive: columns of large reduced cost are fixed at their lower bounds.

        None if that would keep nearly all columns or leave no point. Its relaxations take less time.
        """
        problem, root = self.problem, self.problem.root
        if self.root is None or self.root.status is not Status.OPTIMAL:
            return None
        at_rest = problem.is_integer & (x <= root.lower + PROVEN) & (root.lower < root.upper)
        count = int(at_rest.sum()) - CORE * problem.m
        if count < problem.n // 4:
            return None
        reduced = np.where(at_rest, problem.sign * self.root.reduced_costs, -np.inf)
        dearest = np.argsort(reduced, kind="stable")[-count:]
        core = root.copy()
        core.upper[dearest] = core.lower[dearest]
        return core if core.propagate_all() else None

    # Parts of the search
    # --------------------------------------------------------------------------------------------------------

    def _begin(self) -> bool:
        """Look for a point without a relaxation, then solve the relaxation; returns False if the search is finished."""
        problem = self.problem
        if not problem.feasible:
            self.bound_by = "rows"
            return False
        if not len(problem.continuous):
            self._blind(self._cheapest())
        self._solve_root()
        if self.root is not None and self.root.status is Status.PRIMAL_INFEASIBLE:
            problem.feasible, self.bound_by = False, "ray"
        if self.root is not None and self.root.status is Status.DUAL_INFEASIBLE and self._runs_away():
            return False
        return problem.feasible and not self.finished()

    def _cheapest(self) -> Floats:
        """Return every column at the bound with the least cost, if that bound is finite."""
        problem, root = self.problem, self.problem.root
        at = np.where(
            problem.cost > 0, root.lower, np.where(problem.cost < 0, root.upper, np.clip(0.0, root.lower, root.upper))
        )
        return np.where(np.isfinite(at), at, np.clip(0.0, root.lower, root.upper))

    def _blind(self, x: Floats) -> None:
        """Fix columns at their cheapest bounds as far as rows allow; run local search otherwise."""
        root = self.problem.root
        fixed = fix_in_order(self.problem, root, x, by_certainty(root, x), restarts=2)
        if fixed is not None:
            self.relaxation.complete(fixed, "propagation")
        if self.problem.x is None:
            self.repair.run(x, self.rng, BLIND_SHARE, REPAIR_STEPS // 4)

    def _solve_root(self) -> None:
        left = self.clock.left_s
        if left <= 0.0:
            return
        limit = min(self.settings.time_limit_s, max(ROOT_SHARE * left, 1e-3))
        self.root = self.known or solve_relaxation(
            self.lp, replace(self.settings, time_limit_s=limit), self._during_the_root
        )
        if self.known is None and self.root.status is Status.INTERRUPTED and not self.relaxation.over():
            self.clock.stop()
        sign = self.problem.sign
        if self.root.status in (Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE):
            return
        proven = proven_bound(self.problem, sign * self.root.y)
        if proven >= self.bound - PROVEN * (1.0 + abs(self.bound)) or not np.isfinite(self.bound):
            self.bound, self.certified, self.bound_by = proven, True, "prices"
        own = whole_bound(self.problem, sign * (self.root.bound - self.lp.offset))
        trusted = self.root.bound_is_certified or self.root.status is Status.OPTIMAL
        if trusted and own - self.bound > PROVEN * (1.0 + abs(own)):
            self.bound, self.certified, self.bound_by = own, self.root.bound_is_certified, "relaxation"

    def _during_the_root(self, iterations: int, gap: float, primal: float) -> bool:
        """Start branch and bound if the first relaxation takes long; returns whether that has solved the program."""
        if self.searching and self.child_search is None and self.clock.elapsed_s > PATIENCE_S:
            self._hand_over()
        return self.relaxation.over()

    def _guide(self) -> Floats:
        """Return the relaxation's point within the propagated bounds, or the point nearest to zero."""
        root = self.problem.root
        x = np.zeros(self.problem.n)
        if self.root is not None and self.root.status is not Status.DUAL_INFEASIBLE and np.isfinite(self.root.x).all():
            x = self.root.x
        return np.clip(x, root.lower, root.upper)

    def _round(self, x: Floats) -> None:
        """Round with propagation, in two orders."""
        root, clock = self.problem.root, self.clock
        until = clock.elapsed_s + ROUND_SHARE * clock.left_s
        for order in (by_certainty, by_value):
            if clock.elapsed_s > until:
                break
            fixed = fix_in_order(self.problem, root, x, order(root, x), until=until)
            if fixed is not None:
                self.relaxation.complete(fixed, "rounding")

    def _improve(self, x: Floats) -> bool:
        """Run one round of improvement heuristics; returns whether one found a better point."""
        problem, before = self.problem, self.problem.value
        parts: tuple[Callable[[], object], ...] = (
            lambda: self._repair(x),
            lambda: self._first_fail(x, FIRST_FAIL_SHARE),
            lambda: problem.x is None and pump(problem, self.relaxation, x, self.rng),
            lambda: one_opt(problem, self.relaxation),
            lambda: self._randomly(x),
            lambda: self._perturb(x),
            lambda: self._between(x),
            lambda: self._lean(x),
            lambda: self._mutate(),
            lambda: one_opt(problem, self.relaxation),
        )
        for part in parts:
            if self.finished():
                break
            part()
        return problem.value < before

    def _repair(self, x: Floats) -> None:
        """Run local search from the best point, which the cut-off excludes, or from a random rounding."""
        start = randomly_rounded(self.problem.root, x, self.rng) if self.problem.x is None else self.problem.x
        self.repair.run(start, self.rng, REPAIR_SHARE, REPAIR_STEPS)

    def _first_fail(self, x: Floats, share: float) -> None:
        """Run depth-first search for a first point; without a deadline it gets as much time as branch and bound."""
        if self.problem.x is not None:
            return
        until = share * min(self.clock.left_s, self.settings.internals.hand_over_s or FIRST_FAIL_S)
        FirstFail(self.problem, self.relaxation).run(x, self.rng, self.clock.elapsed_s + until)

    def _randomly(self, x: Floats) -> None:
        """Try random roundings with propagation below the cut-off."""
        root = self.problem.root
        for _ in range(ROUNDINGS):
            if self.finished():
                return
            target = randomly_rounded(root, x, self.rng)
            order = self.rng.permutation(by_certainty(root, x)) if self.rng.random() < 0.3 else by_certainty(root, x)
            fixed = fix_in_order(self.problem, root, target, order, restarts=2)
            if fixed is not None:
                self.relaxation.complete(fixed, "random rounding")

    def _perturb(self, x: Floats) -> None:
        """Unfix a random part of the best point and round it again below the cut-off."""
        problem = self.problem
        for _ in range(PERTURBATIONS):
            best = problem.x
            if best is None or self.finished():
                return
            freed = self.rng.random(problem.n) < self.rng.uniform(0.02, 0.4)
            domain = problem.root.copy()
            held = np.flatnonzero(~freed & problem.is_integer)
            domain.lower[held] = domain.upper[held] = best[held]
            if not domain.propagate_all():
                continue
            towards = randomly_rounded(domain, x, self.rng) if self.rng.random() < 0.5 else self._cheapest()
            fixed = fix_in_order(problem, domain, towards, self.rng.permutation(domain.open()), restarts=1)
            if fixed is not None:
                self.relaxation.complete(fixed, "perturbation")

    def _lean(self, x: Floats) -> None:
        """Dive towards the best point, or towards random roundings if there is none."""
        best = self.problem.x
        towards = randomly_rounded(self.problem.root, x, self.rng) if best is None else best
        dive(self.problem, self.relaxation, self.problem.root.copy(), x, "guided dive", lean=towards)

    def _between(self, x: Floats) -> None:
        """Fix columns on which the best point and the relaxation agree, and dive on the rest (RINS)."""
        if self.problem.x is None:
            return
        agreed = np.abs(self.problem.x - x) < 0.1
        self._neighbourhood(self.problem.x, agreed, "neighbourhood of the relaxation")

    def _mutate(self) -> None:
        """Fix a random share of the best point, between half and nine tenths, and dive on the rest."""
        if self.problem.x is None:
            return
        fixed = self.rng.random(self.problem.n) < min(max(self.fixed_share + self.rng.uniform(-0.1, 0.1), 0.1), 0.98)
        self._neighbourhood(self.problem.x, fixed, "neighbourhood of the best point")

    def _neighbourhood(self, best: Floats, fixed: NDArray[np.bool_], name: str) -> None:
        """Dive with part of the best point fixed; if branch and bound is running, give it the open part too."""
        problem = self.problem
        domain = problem.root.copy()
        chosen = np.flatnonzero(fixed & problem.is_integer)
        domain.lower[chosen] = domain.upper[chosen] = best[chosen]
        if not domain.propagate_all() or not len(domain.open()):
            return
        relaxed = self.relaxation.solve(domain, share=0.5, guide=True)
        if relaxed.x is None or not float(problem.cost @ relaxed.x) < problem.row_upper[-1]:
            return
        if not dive(problem, self.relaxation, domain, relaxed.x, name) and self.child_search is not None:
            self._hand_over_part(domain)

    def _hand_over_part(self, domain: Domain) -> None:
        """Run branch and bound on a neighbourhood for part of the time; an easy one makes the next larger."""
        problem = self.problem
        part = hand_over(problem, self.relaxation, min(PART_S, PART_SHARE * self.clock.left_s), domain)
        if part is None:
            return
        try:
            before = problem.value
            while not (part.finished or self.finished()):
                part.wait()
            if problem.value == before:
                self.fixed_share = (
                    max(self.fixed_share - 0.1, 0.2) if part.solved else min(self.fixed_share + 0.05, 0.95)
                )
        finally:
            part.close()

    # The answer ---------------------------------------------------------------------------------------------------

    def solution(self) -> IntegerSolution:
        """Return the best point and bound so far."""
        problem, lp = self.problem, self.lp
        result = problem.x is not None
        if not problem.feasible and not result:
            status, bound = IntegerStatus.PRIMAL_INFEASIBLE, np.inf
        elif self.unbounded:
            status = IntegerStatus.DUAL_INFEASIBLE if result else IntegerStatus.NONE_FOUND
            bound = -np.inf
        else:
            bound = min(self.bound, problem.value)
            proven = result and problem.value - bound <= PROVEN * (1.0 + abs(problem.value))
            status = IntegerStatus.OPTIMAL if proven else IntegerStatus.FEASIBLE if result else IntegerStatus.NONE_FOUND
        return IntegerSolution(
            status=status,
            x=problem.x,
            objective=problem.sign * problem.value + lp.offset if result else float("nan"),
            bound=problem.sign * bound + lp.offset,
            bound_is_certified=self.certified,
            bound_by=self.bound_by if np.isfinite(bound) or status is IntegerStatus.PRIMAL_INFEASIBLE else "",
            found_by=problem.found_by,
            relaxation=self.root,
            relaxations=self.relaxation.solved,
            solve_time_s=self.clock.elapsed_s,
        )
