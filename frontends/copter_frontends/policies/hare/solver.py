"""Solver of the relaxation from round to round: near-optimal jobs are fixed, and the others are solved again."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from copter import Status
from copter.runtime.errors import SettingsError
from copter_frontends.policies.hare.columns import Bools, JobColumns, first_columns, priced_columns, whole
from copter_frontends.policies.hare.engine_model import EngineModel, Row
from copter_frontends.policies.hare.formulation import Relaxation
from copter_frontends.policies.hare.grid import TimeGrid
from copter_frontends.policies.hare.instance import Floats, HareInstance, Ints
from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.repair import repaired
from copter_frontends.policies.hare.standing import Standing
from copter_frontends.policy_kit import Edits

STAY_SHARE = 0.5  # the fixed jobs may together cause a gap of this share of the tolerance
FREE_LEAST, FREE_SHARE = 24, 0.12  # at least so many jobs, and at least this share of all jobs, are solved again
ALMOST_ALL = 0.6  # if at least this share of the jobs would be freed, all jobs are freed
CLOSER = 0.5  # if a pass leaves more than this share of the gap, the number of freed jobs doubles
FAR = 5e-3  # above this relative gap a warm round frees twice as many jobs, to make room for new ones
AIM = 0.1  # error allowed to the first pass, as a share of the gap
ENGINE_AIM = 1e-3  # assumed relative error of the engine's solution, as a multiple of its tolerance
ENGINE_TOLERANCES = (1e-8, 0.1)  # smallest and largest relative tolerance set in the engine
JUNK = 1e-7  # a repair sets columns below this share of their upper limit to zero
SAMPLE, SAMPLED = 4, 400
"""One job in so many, on as few GPUs, gives the first prices where there are more jobs than this."""


@dataclass(frozen=True, slots=True, eq=False)
class RelaxationSolution:
    """A solution of the relaxation: a feasible point and prices.

    Attributes
    ----------
    status : copter.Status
        OPTIMAL, ITERATION_LIMIT or TIME_LIMIT; the bound is valid in all cases.
    objective, bound, gap : float
        Value of the point, bound certified by the prices, and (objective - bound) / (1 + |objective|).
    violation : float
        Largest relative violation of a row (:meth:`.Relaxation.violation`); of the order of rounding errors, unless the
        grid has no room.
    mean_busy_s, completion_s : ndarray (N,)
        M_n and C_n of the point.
    latest_mean_s : ndarray (N,)
        Latest mean busy times with which the jobs still complete at C_n (HR25).
    gpu_seconds : ndarray (N, L, G)
        v of the point.
    price : ndarray (L, G)
        Value of one more GPU second, in weighted seconds.
    job_price : ndarray (2, N)
        Duals of HR6 and HR8 that certify the bound together with `price` (HR12).
    iterations : int
        Iterations of the engine in all solves.
    passes : int
        Number of solves of the engine; columns and jobs are added between them.
    free_jobs : int
        Number of jobs that were solved again; the others were fixed.
    edits : Edits
        Edits of the engine's model.
    solve_time_s : float
    warm : bool
        Whether it started from the last solution.
    """

    status: Status
    objective: float
    bound: float
    gap: float
    violation: float
    mean_busy_s: Floats
    latest_mean_s: Floats
    completion_s: Floats
    gpu_seconds: Floats
    price: Floats
    job_price: Floats
    iterations: int
    passes: int
    free_jobs: int
    edits: Edits
    solve_time_s: float
    warm: bool


@dataclass(slots=True)
class _Kept:
    """The last solve: jobs, grid, its origin, and state in the solver's units."""

    jobs: tuple[HareJob, ...]
    grid: TimeGrid
    origin_s: float
    standing: Standing


class RelaxationSolver:
    """Solves a series of relaxations on one :class:`.EngineModel`.

    The model contains the columns that are attractive at the last prices. More are added until the certified gap of the
    whole program is within the tolerance (HR14). From the second round on, only the jobs that are furthest from their
    best at the kept prices are solved again, in the capacity that the others leave (HR16), and more jobs if necessary.
    Between rounds the grid may move and jobs may progress; a round starts from the last plan for the remaining time.

    Parameters
    ----------
    tolerance : float
        Largest (objective - bound) / objective of an optimal solution.
    threads : int
        Number of threads; zero for all processors.
    max_passes : int
        Largest number of engine solves in a round.
    """

    def __init__(self, tolerance: float = 1e-4, threads: int = 0, max_passes: int = 60) -> None:
        if not 0 < tolerance < 1:
            raise SettingsError(f"tolerance is {tolerance}, must be between 0 and 1")
        if threads < 0 or max_passes < 1:
            raise SettingsError(f"threads is {threads}, must be >= 0; max_passes is {max_passes}, must be >= 1")
        self.tolerance, self.threads, self.max_passes = tolerance, threads, max_passes
        self.reset()

    def reset(self) -> None:
        """Forget the last solve."""
        self.engine = EngineModel(self.threads)
        self._kept: _Kept | None = None
        self._gpu_types: tuple[str, ...] = ()
        self._unit_s, self._unit_weight = 1.0, 1.0
        self.last_price: Floats | None = None  # prices of the engine's last solve, even if their bound is not the best

    def range_of(self, instance: HareInstance, grid: TimeGrid) -> tuple[float, float]:
        """Return two numbers between which the relaxation's value is, without solving it.

        The lower one is the bound without prices, sum w F (HR11 at y = 0); the upper one is the value of a point that
        fills the GPUs by weight per GPU second of work. It is infinite if the grid has no room.
        """
        if instance.n_jobs == 0:
            return 0.0, 0.0
        data = Relaxation.of(instance, grid)
        point = repaired(data, np.zeros(data.shape), data.weight * data.alpha.max(axis=1))
        return data.constant, np.inf if point is None else float(data.weight @ data.completion_s(point))

    def solve(
        self,
        instance: HareInstance,
        grid: TimeGrid,
        deadline_s: float = float("inf"),
        origin_s: float = 0.0,
        tolerance: float = 0.0,
    ) -> RelaxationSolution:
        """Solve the relaxation of an instance over a grid.

        Parameters
        ----------
        instance : HareInstance
        grid : TimeGrid
            Grid; it must reach beyond :func:`.sufficient_horizon_s`, otherwise there may be no solution.
        deadline_s : float
            Wall-clock time limit in seconds, after which the best point so far is returned with TIME_LIMIT.
        origin_s : float
            Time zero of the grid and of the arrivals. If it moves with the time and the grid stays, columns and
            coefficients of standing jobs stay too, and progress is an edit of bounds and costs.
        tolerance : float
            A larger tolerance for this solve, where less will do.
        """
        started = time.perf_counter()
        relaxation = Relaxation.of(instance, grid)
        if self._gpu_types != instance.gpu_types or (
            self._kept is not None and origin_s + grid.edges[0] >= self._kept.origin_s + self._kept.grid.edges[-1]
        ):
            self.reset()
            self._gpu_types = instance.gpu_types
        self.engine.begin()
        if instance.n_jobs == 0:
            self._kept = None
            return _empty(relaxation, self.engine.edits, time.perf_counter() - started)
        warm = self._kept is not None
        if not warm:
            self._unit_s = float(np.max(relaxation.floor))
            self._unit_weight = float(np.mean(relaxation.weight))
        data = relaxation.in_units(self._unit_s, self._unit_weight)
        with ThreadPoolExecutor(self.threads or None) as pool:
            enough = max(tolerance, self.tolerance)
            solve = _Round(self, instance, grid, data, pool, started + deadline_s, origin_s, enough)
            standing = solve.filled()
            if standing.gap > enough:
                kept = self._kept
                moved = None if kept is None else solve.from_kept(kept)
                # without prices the kept point may be near enough, but there is nothing to start a solve from
                warm = moved is not None and (bool(moved.price.any()) or moved.gap <= enough)
                standing = standing.better(moved if moved is not None and warm else solve.prices_of_sample())
            result = solve.run(standing, warm)
        self._kept, self.last_price = _Kept(instance.jobs, grid, origin_s, result), solve.price
        return self._solution(relaxation, result, solve, time.perf_counter() - started, warm)

    def _solution(
        self, relaxation: Relaxation, result: Standing, solve: _Round, seconds: float, warm: bool
    ) -> RelaxationSolution:
        unit = self._unit_s * self._unit_weight
        v = result.v * self._unit_s
        mean = relaxation.mean_busy_s(v)
        latest = np.maximum(mean, -relaxation.excess)
        completion = relaxation.floor + relaxation.excess + latest
        objective = float(relaxation.weight @ completion)
        return RelaxationSolution(
            status=result.status,
            objective=objective,
            bound=result.bound * unit,
            gap=(objective - result.bound * unit) / (1.0 + abs(objective)),
            violation=relaxation.violation(v),
            mean_busy_s=mean,
            latest_mean_s=latest,
            completion_s=completion,
            gpu_seconds=v,
            price=result.price * self._unit_weight,
            job_price=np.stack((result.lam * unit, result.nu * self._unit_weight)),
            iterations=result.iterations,
            passes=solve.passes,
            free_jobs=result.free_jobs,
            edits=self.engine.edits,
            solve_time_s=seconds,
            warm=warm,
        )


class _Round:
    """One solve, with `data` in the solver's units."""

    def __init__(
        self,
        solver: RelaxationSolver,
        instance: HareInstance,
        grid: TimeGrid,
        data: Relaxation,
        pool: ThreadPoolExecutor,
        until: float,
        origin_s: float,
        tolerance: float,
    ) -> None:
        self.solver, self.data, self.pool, self.until = solver, data, pool, until
        self.tolerance = tolerance
        self.instance, self.grid, self.origin_s = instance, grid, origin_s
        self.names = [job.id for job in instance.jobs]
        self.passes = self.iterations = 0
        self.slow = 0  # number of passes that left more than the share CLOSER of the gap
        self.price: Floats | None = None  # prices of the engine's last solve

    # Start --------------------------------------------------------------------------------------------------------

    def filled(self) -> Standing:
        """Return a point without prices, filled by decreasing weight per second of floor; optimal if no job has excess.

        If GPUs are plentiful, this point has almost no excess, and no program needs to be solved.
        """
        data, n = self.data, len(self.names)
        v = repaired(data, np.zeros(data.shape), urgency_of(data))
        zero, none = np.zeros(n), np.zeros_like(data.capacity)
        standing = Standing(np.zeros(data.shape), np.inf, none, zero, zero, zero, data.constant)
        return standing if v is None else standing.with_point(data, v)

    def prices_of_sample(self) -> Standing:
        """Return a state without a point, with prices from a sample of the jobs on a proportional share of the GPUs."""
        data, n = self.data, len(self.names)
        price = np.zeros_like(data.capacity)
        if n > SAMPLED and time.perf_counter() < self.until:
            price = self._sampled()
        return Standing.at_prices(data, price, data.weight * data.floor, 0.5 * data.weight, self.pool)

    def _sampled(self) -> Floats:
        """Return the prices of every k-th job on a 1/k share of the GPUs."""
        jobs = self.instance.jobs[::SAMPLE]
        tolerance = max(10.0 * self.solver.tolerance, self.tolerance)
        part = RelaxationSolver(tolerance, self.solver.threads, self.solver.max_passes)
        gpus = dict(zip(self.instance.gpu_types, self.instance.gpus.tolist(), strict=True))
        instance = HareInstance.of(jobs, gpus)
        small = replace(instance, gpus=np.maximum(instance.gpus / SAMPLE, 0.0))
        found = part.solve(small, self.grid, self.until - time.perf_counter())
        self.iterations += found.iterations
        price = found.price / part._unit_weight if part.last_price is None else part.last_price
        return np.asarray(price * (part._unit_weight / self.solver._unit_weight))

    def from_kept(self, kept: _Kept) -> Standing | None:
        """Return the last state on this grid, with the point repaired to satisfy the rows; None if there is no room."""
        data, before = self.data, kept.standing
        where = {job.id: k for k, job in enumerate(kept.jobs)}
        place = np.array([where.get(job, -1) for job in self.names], dtype=np.int64)
        had = place >= 0
        v = np.zeros(data.shape)
        passed_s = self.origin_s - kept.origin_s
        if passed_s == 0.0 and np.array_equal(kept.grid.edges, self.grid.edges):
            v[had], price = before.v[place[had]], before.price
        else:
            grid = TimeGrid(kept.grid.edges - passed_s, kept.grid.growth)
            v[had] = np.einsum("nlg,lk->nkg", before.v[place[had]], grid.overlap(self.grid))
            price = _price_on(grid, self.grid, before.price)
        v *= data.usable
        done = np.einsum("nlg,ng->n", v, data.alpha)
        v *= np.where(done > 1.0, 1.0 / np.maximum(done, 1e-300), 1.0)[:, None, None]
        nu = np.where(had, np.minimum(before.nu[place], data.weight), 0.5 * data.weight)
        lam = before.lam - passed_s / self.solver._unit_s * before.nu  # the same worth at each time
        lam = np.where(had, lam[place], data.weight * data.floor)
        moved = repaired(data, v, np.where(had, nu, data.weight))
        if moved is None:
            return None
        return Standing.at_prices(data, price, lam, nu, self.pool).with_point(data, moved)

    # Passes -------------------------------------------------------------------------------------------------------

    def run(self, standing: Standing, warm: bool) -> Standing:
        """Solve, add columns and jobs by price, and solve again, until the certified gap is small enough."""
        best, n = standing, len(self.names)
        tolerance = self.tolerance
        free = np.arange(n)
        if warm and not self._ended(standing):
            free = self._furthest(standing)
            if standing.gap > FAR:
                free = self._more(free, standing)
        at, first = standing, not warm and not standing.price.any()
        # columns used so far; they stay in the program for this round
        taken = np.zeros(self.data.shape, dtype=np.bool_)
        while not self._ended(best):
            if whole(self.data, free):
                used = self.data.usable[free]
            elif first:
                used = first_columns(self.data, best.v)
            else:
                used = priced_columns(self.data, free, at, best.v) | taken[free]
            first, taken[free] = False, used
            found = self._solved(best, free, used)
            if found is None:
                if len(free) == n:
                    break
                free = np.arange(n)
                continue
            before, at, best = best.gap, found, best.better(found)
            self.price = at.price
            closer = best.gap < CLOSER * before
            self.slow += not closer
            if best.gap > tolerance and len(free) < n:
                free = self._furthest(best) if closer else self._more(free, replace(at, v=best.v))
                free = np.arange(n) if len(free) > ALMOST_ALL * n else free
            elif best.gap > tolerance and n > SAMPLED and self.passes == 1:
                free = self._furthest(best)  # all jobs have been solved once: continue as in a warm round
        status = Status.OPTIMAL if best.gap <= tolerance else Status.ITERATION_LIMIT
        if status is not Status.OPTIMAL and time.perf_counter() >= self.until:
            status = Status.TIME_LIMIT
        return best.ended(status, self.iterations, len(free))

    def _ended(self, best: Standing) -> bool:
        enough = best.gap <= self.tolerance
        return enough or self.passes >= self.solver.max_passes or time.perf_counter() >= self.until

    def _furthest(self, at: Standing) -> Ints:
        """Return the fewest jobs to solve again such that the others together cause at most a share of the
        tolerance.
        """
        regret = np.maximum(at.regret(self.data), 0.0)
        order = np.argsort(-regret, kind="stable")
        rest = regret.sum() - np.cumsum(regret[order])
        allowed = STAY_SHARE * self.tolerance * abs(at.value if at.feasible else at.bound)
        count = int(np.searchsorted(-rest, -allowed)) + 1
        return np.sort(order[: max(count, self._least())])

    def _least(self) -> int:
        """Return the least number of jobs to solve again."""
        return max(FREE_LEAST, int(FREE_SHARE * len(self.names)))

    def _more(self, free: Ints, at: Standing) -> Ints:
        """Double the set of free jobs, adding those with the largest regret at the prices."""
        gain = at.regret(self.data)
        gain[free] = -np.inf
        return np.union1d(free, np.argsort(-gain, kind="stable")[: len(free)])

    def _solved(self, best: Standing, free: Ints, used: Bools) -> Standing | None:
        """Return the state after the engine has solved for the free jobs; None if it found no solution."""
        data, engine = self.data, self.solver.engine
        stay = np.ones(len(self.names), dtype=np.bool_)
        stay[free] = False
        room = np.maximum(data.capacity - best.v[stay].sum(axis=0), 0.0)
        rows = self._rows(room)
        names, edges = [self.names[n] for n in free.tolist()], self.grid.right
        jobs = dict[str, JobColumns | None].fromkeys(self.names)
        jobs |= zip(names, JobColumns.of_jobs(data.of_jobs(free), used, edges), strict=True)
        engine.edit(rows, jobs, self._undone_at())
        solution = engine.solve(self._engine_tolerance(best, free), max(self.until - time.perf_counter(), 1e-3))
        self.passes += 1
        self.iterations += solution.iterations
        if solution.status is not Status.OPTIMAL:
            return None
        near = np.zeros((len(free), *data.capacity.shape))
        for k, seconds in enumerate(engine.gpu_seconds(solution, names)):
            near[k][np.nonzero(used[k])] = seconds
        price = engine.prices(solution, list(rows)).reshape(data.capacity.shape)
        result = Standing.at_prices(data, price, best.lam, best.nu, self.pool)
        part = data.of_jobs(free).with_capacity(room)
        v = repaired(part, near, result.nu[free], JUNK)
        return result if v is None else result.with_jobs(data, best.v, free, v)

    def _rows(self, room: Floats) -> dict[Row, float]:
        """Return the capacity of every resource."""
        kinds, edges = range(room.shape[1]), self.grid.right.tolist()
        return {(g, edge): float(room[i, g]) for i, edge in enumerate(edges) for g in kinds}

    def _undone_at(self) -> float:
        """Return the time at which undone work counts as done: a power of four, which rarely changes between rounds."""
        at = 4.0
        while at < 2.0 * float(self.data.start.max()):
            at *= 4.0
        return at

    def _engine_tolerance(self, best: Standing, free: Ints) -> float:
        """Return the engine's tolerance: a small fraction of the gap, reduced after every slow pass."""
        data = self.data
        late = np.maximum(data.excess + data.mean_busy_s(best.v), 0.0)[free]
        asked = max(self.tolerance, 0.1 * min(best.gap, 1.0)) * abs(best.value if best.feasible else best.bound)
        share = AIM * 0.1 ** min(self.slow, 8) * asked / ENGINE_AIM / (1.0 + float(data.weight[free] @ late))
        return float(10.0 ** np.floor(np.log10(np.clip(share, *ENGINE_TOLERANCES))))


def urgency_of(data: Relaxation) -> Floats:
    """Return the jobs' weights per second of floor, by which they are filled in first, (N,)."""
    return np.asarray(data.weight / np.maximum(data.floor - data.start[:, 0], 1e-300))


def _price_on(before: TimeGrid, grid: TimeGrid, price: Floats) -> Floats:
    """Return the old prices at the middle of each new interval; after the old grid's end, its last prices."""
    middle = 0.5 * (grid.left + grid.right)
    return np.asarray(price[np.clip(np.searchsorted(before.right, middle), 0, before.intervals - 1)])


def _empty(relaxation: Relaxation, edits: Edits, seconds: float) -> RelaxationSolution:
    none, prices = np.zeros(0), np.zeros_like(relaxation.capacity)
    point, own = np.zeros((0, *prices.shape)), np.zeros((2, 0))
    return RelaxationSolution(
        Status.OPTIMAL, 0.0, 0.0, 0.0, 0.0, none, none, none, point, prices, own, 0, 0, 0, edits, seconds, False
    )
