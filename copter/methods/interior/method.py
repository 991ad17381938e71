"""The interior-point solve of one linear program: scale, iterate, polish, and check against the original data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.interior.augmented_system import MOST_AUGMENTED, AugmentedSystem
from copter.methods.interior.column_equations import ColumnEquations, suits
from copter.methods.interior.dense_columns import without_dense_columns
from copter.methods.interior.iteration import PredictorCorrector, Progress, System
from copter.methods.interior.normal_equations import NormalEquations, is_dear
from copter.methods.interior.point import Misfit, Point
from copter.methods.interior.polish import polished
from copter.methods.interior.refinement import error_program, magnification
from copter.methods.interior.standard_form import StandardForm, standard_form
from copter.methods.interior.verdicts import elastic, recession
from copter.methods.interior.vertex import vertices
from copter.methods.path_following import LEAST_GOAL, LEAST_START
from copter.problem.checker import Judged, check, is_improving_ray, is_infeasibility_ray, supported_ray
from copter.problem.linear_program import LinearProgram
from copter.problem.scaling import equilibrate
from copter.problem.solution import Effort, Solution, Status
from copter.runtime.settings import Settings
from copter.runtime.watch import Stopped, Watch

Floats = NDArray[np.float64]
Callback = Callable[[int, float, float], bool | None]
Original = Callable[[Floats, Floats], tuple[Floats, Floats]]

GOAL = 1e-4  # tolerance on the scaled problem, as a share of the settings' tolerance
WORTH_POLISHING = 1e-3  # a point with a larger relative residual is not polished, because its face is unknown
WORTH_REFINING = 1e-1  # a point with a larger residual is not refined
FAR_START = 1e3  # least distance of a second run's starting point from every bound
WELL_WITHIN = 0.1  # an answer within this share of the tolerance gets no second try
MOST_FILL = 10.0  # if the factor has more than this many entries per entry of the matrix, the augmented system is tried
REFINEMENTS = 3  # most rounds of iterative refinement
ENOUGH = 1e-2  # polishing ends at this share of the tolerance
ROUNDED = 1e-12  # a residual of this size is rounding only
UNJUDGED = Judged(np.nan, np.nan, False, *(np.inf for _ in range(7)))
RAY_CLEANING = 1e-9  # entries of a ray below this share of its largest are set to zero


@dataclass(frozen=True, slots=True)
class Answer:
    """A point of the given LP, the checker's findings, and how the method ended."""

    x: Floats
    y: Floats
    judged: Judged
    iterations: int
    converged: bool
    stopped: bool


class InteriorSolve:
    """A solve of one LP; the watch is asked between and during factorisations."""

    def __init__(
        self, lp: LinearProgram, settings: Settings, watch: Watch, callback: Callback | None = None, iterations: int = 0
    ) -> None:
        self.lp, self.settings, self.watch, self.callback = lp, settings, watch, callback
        # whether the program is presolved, so that a stopped solve's point is judged after postsolve
        self.presolved = False
        self.vertex = False  # whether the answer must be a vertex of the optimal face
        self.iterations = iterations
        self.second_run = False  # whether this is the second run: only rows scaled, from a start farther inside
        self.dear = False  # whether the augmented system would take too long
        self.halfway: Point | None = None  # the last run's point of that name, see iteration.py
        self.exhausted = False  # whether a run reached the limit of its iterations

    def run(self) -> Solution:
        """Solve; without an optimum, return a ray that the checker has verified."""
        answer = self.refined(self.answer(self.lp))
        status, ray = self.verdict(answer)
        if status is Status.NUMERICAL_ERROR:
            self.second_run = True
            again = self.refined(self.answer(self.lp))
            answer = again if demerit(again.judged) < demerit(answer.judged) else answer
            status, ray = self.verdict(answer)
        return self.solution(answer, status, ray)

    def verdict(self, answer: Answer) -> tuple[Status, Floats | None]:
        """Return the status, with its ray if it needs one."""
        if self.optimal(answer):
            return Status.OPTIMAL, None
        if answer.stopped or self.watch():
            return self.stopped(), None
        if self.exhausted:
            return Status.ITERATION_LIMIT, None
        within = self.rows_hold(answer)
        ray = None if within else self.infeasibility_ray(answer)
        if ray is not None:
            return Status.PRIMAL_INFEASIBLE, ray
        ray = self.improving_ray(answer)
        if ray is not None:
            return Status.DUAL_INFEASIBLE, ray
        # If the rows hold only within tolerance, the program may be infeasible in exact arithmetic.
        ray = self.infeasibility_ray(answer) if within else None
        if ray is not None:
            return Status.PRIMAL_INFEASIBLE, ray
        if self.watch():
            return self.stopped(), None
        return Status.NUMERICAL_ERROR, None

    def stopped(self) -> Status:
        """Return the status of a solve ended by the caller or the clock."""
        return Status.INTERRUPTED if self.watch.interrupted else Status.TIME_LIMIT

    def rows_hold(self, answer: Answer) -> bool:
        """Whether the answer is feasible within tolerance."""
        judged, settings = answer.judged, self.settings
        return judged.primal_absolute <= settings.absolute_tolerance and judged.primal <= settings.tolerance

    def within(self, answer: Answer) -> bool:
        """Whether an answer, of this or the presolved program, is accurate enough to survive postsolve."""
        return demerit(answer.judged) <= WELL_WITHIN * min(self.settings.tolerance, self.settings.absolute_tolerance)

    def optimal(self, answer: Answer) -> bool:
        """Whether the checker finds the answer within tolerance."""
        return answer.judged.within(self.settings.tolerance, self.settings.absolute_tolerance)

    # Points -------------------------------------------------------------------------------------------------------

    def answer(self, lp: LinearProgram) -> Answer:
        """Run the method on a program and return its best point in the program's own units."""
        try:
            return self.scaled_answer(lp)
        except Stopped:
            return self.no_answer(lp)

    def no_answer(self, lp: LinearProgram) -> Answer:
        """Return a trivial point for a solve stopped before it had any."""
        x, y = np.clip(0.0, lp.col_lower, lp.col_upper), np.zeros(lp.shape[0])
        return self.cut_short(lp, x, y)

    def cut_short(self, lp: LinearProgram, x: Floats, y: Floats) -> Answer:
        """Return the point at which a solve was stopped; the presolved program's point is not checked, as the
        original's will be.
        """
        return Answer(x, y, UNJUDGED if self.presolved else check(lp, x, y), self.iterations, False, True)

    def scaled_answer(self, lp: LinearProgram) -> Answer:
        """Scale, run the method and polish."""
        self.go_on()
        scaling, matrix = equilibrate(lp, not self.second_run)
        self.go_on()
        scaled = LinearProgram(
            c=lp.c * scaling.column / scaling.cost,
            A=matrix,
            row_lower=lp.row_lower * scaling.row,
            row_upper=lp.row_upper * scaling.row,
            col_lower=lp.col_lower / scaling.column,
            col_upper=lp.col_upper / scaling.column,
            sense=lp.sense,
            offset=lp.offset / scaling.cost,
        )
        form = standard_form(scaled, 1.0 / scaling.cost)
        self.go_on()
        few = suits(form) and not self.second_run
        form = form if few else without_dense_columns(form, self.watch)
        sign = 1.0 if lp.sense == "min" else -1.0

        def original(t: Floats, y: Floats) -> tuple[Floats, Floats]:
            x = np.clip(form.values(scaled, t) * scaling.column, lp.col_lower, lp.col_upper)
            return x, sign * form.prices(scaled, y) * scaling.row * scaling.cost

        if not len(form.row) or not len(form.column):
            return self.by_columns(lp)
        answer = self.attempt(lp, form, original, (lambda: ColumnEquations(form, self.watch)) if few else None)
        done = answer.converged or answer.stopped or self.exhausted or self.optimal(answer)
        if done or form.matrix.nnz > MOST_AUGMENTED or self.dear:
            return answer
        if demerit(answer.judged) > WORTH_REFINING:
            return answer
        halfway = self.halfway  # the first iterations would be the same with either system
        for start in (halfway, None) if halfway is not None else (None,):
            again = self.attempt(lp, form, original, lambda: AugmentedSystem(form.matrix, self.watch), start)
            if demerit(again.judged) < demerit(answer.judged) or again.stopped or self.exhausted:
                return again if demerit(again.judged) < demerit(answer.judged) else answer
        return answer

    def attempt(
        self,
        lp: LinearProgram,
        form: StandardForm,
        original: Original,
        system: Callable[[], System] | None,
        point: Point | None = None,
    ) -> Answer:
        """Run the method once, with the normal equations or another linear system, and polish the result.

        It starts from `point`, such as one from half way of another run, or else from the least-squares start.
        """
        try:
            limit = self.settings.internals.max_interior_iterations
            start = FAR_START if self.second_run else LEAST_START
            method = PredictorCorrector(form, self.goal(), limit, self.stop, self.watch, system and system(), start)
            self.dear = is_dear(method.system)
            progress = method.run(point)
            self.halfway = method.halfway
        except Stopped:
            return self.cut_short(lp, *original(np.zeros(len(form.cost)), np.zeros(len(form.row))))
        self.iterations += progress.iterations
        self.exhausted |= progress.iterations >= limit and not progress.converged
        return self.best_of(lp, form, method.system, progress, original)

    def refined(self, answer: Answer) -> Answer:
        """Improve the answer by iterative refinement while each round at least halves the worst residual."""
        lp = self.lp
        for _ in range(REFINEMENTS):
            judged = answer.judged
            if self.optimal(answer) or self.exhausted or self.watch() or not demerit(judged) <= WORTH_REFINING:
                break
            primal = magnification(judged.primal_absolute)
            dual = magnification(max(judged.dual_absolute, judged.gap))
            error = self.answer(error_program(lp, answer.x, answer.y, primal, dual))
            x = np.clip(answer.x + error.x[: lp.shape[1]] / primal, lp.col_lower, lp.col_upper)
            y = answer.y + error.y / dual
            better = replace(answer, x=x, y=y, judged=check(lp, x, y))
            if not demerit(better.judged) < 0.5 * demerit(judged):
                break
            answer = better
        return answer

    def best_of(
        self,
        lp: LinearProgram,
        form: StandardForm,
        system: System,
        progress: Progress,
        original: Original,
    ) -> Answer:
        """Return the method's point or a polished one, whichever the checker finds better."""
        x, y = original(progress.point.t, progress.point.y)
        best = Answer(x, y, check(lp, x, y), progress.iterations, progress.converged, progress.stopped)
        if progress.stopped or progress.misfit.worst > WORTH_POLISHING:
            return best
        enough = ENOUGH * min(self.settings.tolerance, self.settings.absolute_tolerance)
        dear = is_dear(system)
        primal, dual = [x], [y]
        if not self.within(best):
            for earlier in progress.earlier:
                dual.append(original(progress.point.t, earlier)[1])
                best = self.better(lp, best, x, dual[-1])
        try:
            for number, point in enumerate(polished(form, system, progress.point, self.watch)):
                x, y = original(*point)
                primal.append(x)
                dual.append(y)
                # The best x and the best y may come from different faces, so all pairs are tried.
                for pair in [*((x, other) for other in dual), *((other, y) for other in primal[:-1])]:
                    best = self.better(lp, best, *pair)
                if demerit(best.judged) <= enough or self.watch():
                    break
                # The next points are more accurate, but need several times the factor's memory.
                if number == 0 and fills(system, form) and (dear or self.within(best)):
                    break
            if self.vertex and lp is self.lp:
                best = self.at_vertex(lp, form, best, progress, original)
        except Stopped:
            pass
        return best

    def at_vertex(
        self, lp: LinearProgram, form: StandardForm, best: Answer, progress: Progress, original: Original
    ) -> Answer:
        """Return the answer with x moved to a vertex, if it stays within tolerance."""
        limit = self.settings.internals.max_interior_iterations
        for t in reversed(vertices(form, progress.point, self.goal(), limit, self.stop, self.watch)):
            x, _ = original(t, progress.point.y)
            at = replace(best, x=x, judged=check(lp, x, best.y))
            if self.optimal(at):
                return at
        return best

    @staticmethod
    def better(lp: LinearProgram, best: Answer, x: Floats, y: Floats) -> Answer:
        """Return the better of the answer and the pair (x, y), by the checker."""
        judged = check(lp, x, y)
        return replace(best, x=x, y=y, judged=judged) if demerit(judged) < demerit(best.judged) else best

    def by_columns(self, lp: LinearProgram) -> Answer:
        """Put every column at its best bound; for programs without rows or without movable columns."""
        cost = lp.c if lp.sense == "min" else -lp.c
        best = np.where(
            cost > 0, lp.col_lower, np.where(cost < 0, lp.col_upper, np.clip(0.0, lp.col_lower, lp.col_upper))
        )
        x = np.where(np.isfinite(best), best, np.clip(0.0, lp.col_lower, lp.col_upper))
        y = np.zeros(lp.shape[0])
        return Answer(x, y, check(lp, x, y), 0, True, False)

    def goal(self) -> float:
        """Accuracy required of the scaled problem."""
        return max(GOAL * min(self.settings.tolerance, self.settings.absolute_tolerance), LEAST_GOAL)

    def go_on(self) -> None:
        """Raise Stopped if the solve must stop."""
        if self.watch():
            raise Stopped

    def stop(self, iteration: int, misfit: Misfit) -> bool:
        """Whether the caller or the clock ends the method; reports progress to the callback."""
        total = self.iterations + iteration
        if self.callback is not None and self.callback(total, misfit.relative_gap, misfit.relative_primal):
            self.watch.interrupted = True
        return self.watch()

    # Rays ---------------------------------------------------------------------------------------------------------

    def infeasibility_ray(self, answer: Answer) -> Floats | None:
        """Return verified row multipliers that prove infeasibility, or None."""
        for y in self.farkas_candidates(answer):
            ray = cleaned(y)
            for sign in (1.0, -1.0):
                if ray is not None and is_infeasibility_ray(self.lp, sign * ray):
                    return supported_ray(self.lp, sign * ray)
        return None

    def farkas_candidates(self, answer: Answer) -> Iterator[Floats]:
        """Yield candidate Farkas rays: the answer's prices, then the prices of the program of least violation."""
        yield answer.y
        yield self.answer(elastic(self.lp)).y

    def improving_ray(self, answer: Answer) -> Floats | None:
        """Return a verified direction of unbounded improvement, or None."""
        ray = cleaned(self.answer(recession(self.lp)).x)
        return ray if ray is not None and is_improving_ray(self.lp, ray) else None

    def signed(self, answer: Answer) -> Answer:
        """Return the answer with prices of infinite bounds set to zero (F6), unless that is worse.

        Otherwise a price of only -1e-46 on a row without an upper bound would leave the bound uncertified.
        """
        lp, price = self.lp, answer.y if self.lp.sense == "min" else -answer.y
        wrong = ((price > 0) & np.isneginf(lp.row_lower)) | ((price < 0) & np.isposinf(lp.row_upper))
        if not wrong.any():
            return answer
        y = np.where(wrong, 0.0, answer.y)
        judged = check(lp, answer.x, y)
        return (
            replace(answer, y=y, judged=judged) if demerit(judged) <= max(demerit(answer.judged), ROUNDED) else answer
        )

    def solution(self, answer: Answer, status: Status, ray: Floats | None, method: str = "interior") -> Solution:
        """Return the answer as a Solution."""
        answer = self.signed(answer)
        effort = Effort(self.watch.elapsed_s, self.iterations, working_columns=self.lp.shape[1], method=method)
        return Solution.of_program(self.lp, status, answer.x, answer.y, answer.judged, ray, effort=effort)


def fills(system: System, form: StandardForm) -> bool:
    """Whether the factor is so much larger than the matrix that factorising the augmented system as well takes too
    long.
    """
    return isinstance(system, NormalEquations) and system.factor.nonzeros > MOST_FILL * form.matrix.nnz


def cleaned(ray: Floats) -> Floats | None:
    """Return the ray scaled to a largest entry of 1 and without noise; None for a zero direction."""
    size = float(np.abs(ray).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return None
    return np.where(np.abs(ray) <= RAY_CLEANING * size, 0.0, ray / size)


def demerit(judged: Judged) -> float:
    """Return the worst of all residuals."""
    relative = max(judged.primal, judged.dual, judged.gap, judged.complementarity)
    worst = max(relative, judged.primal_absolute, judged.dual_absolute)
    return worst if np.isfinite(worst) else np.inf
