"""Solves the relaxation from round to round: cold for all jobs, then warm for those that need it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from copter import Status
from copter.errors import SettingsError
from copter_frontends.hare.formulation import Relaxation
from copter_frontends.hare.grid import TimeGrid
from copter_frontends.hare.instance import Floats, HareInstance, Ints
from copter_frontends.hare.interior_point import CHUNKS, InteriorPoint, Iterate, cold_start, pairs
from copter_frontends.hare.job import HareJob
from copter_frontends.hare.repair import repaired
from copter_frontends.hare.response import respond
from copter_frontends.hare.standing import Standing

FREE_SHARE, FREE_CHANGED, FREE_LEAST = (
    0.06,
    6,
    96,
)  # jobs freed in a warm round: share of all, per changed job, at least
WIDER = 1.0  # times as many are added where those are not enough
ALMOST_ALL = 0.6  # share of the jobs from which on all are solved for
AIM = 0.5  # gap that a solve of all jobs aims at, in units of the tolerance; the rest is for the next rounds
ENOUGH = 0.6  # gap of all jobs at which the freed jobs' solve ends, in units of the tolerance
OWN_SHARE = 0.1  # gap of the freed jobs alone, in units of the tolerance
FRESH_GAP = 0.03  # relative gap of the complementarity products after all jobs are placed at the kept prices
FREE_ITERATIONS = 80  # limit for the freed jobs, which may have no room at all
PART_GAP = 1e-4  # gap of the products where the freed jobs start, relative to all jobs
WARM_ITERATIONS = 40  # limit of a warm solve of all jobs; then it starts again cold
PATIENCE = 4.0  # times the tolerance: gap of the method below which the bound is first certified
NEARLY = 1e-2  # largest relative residual of an iterate that is repaired
JUNK = 1e-4  # a repair empties columns below this share of what they could hold
LEAST_ROOM = 1e-9  # share of a capacity that freed jobs get where nothing is left


@dataclass(frozen=True, slots=True, eq=False)
class RelaxationSolution:
    """A solution of the relaxation: a feasible point and prices.

    Attributes
    ----------
    status : copter.Status
        OPTIMAL, ITERATION_LIMIT, TIME_LIMIT or NUMERICAL_ERROR; the bound holds in each.
    objective, bound, gap : float
        Value of the point; the bound that its prices certify; (objective - bound) / (1 + |objective|).
    violation : float
        Largest relative violation of a row (:meth:`.Relaxation.violation`); rounding, unless the grid has no room.
    mean_busy_s, completion_s : ndarray (N,)
        M_n and C_n.
    gpu_seconds : ndarray (N, L, G)
        v.
    price : ndarray (L, G)
        Value of one more second of one GPU, in weighted seconds.
    job_price : ndarray (2, N)
        Duals of HR6 and HR8 that give the bound with `price` (HR12).
    iterations : int
    free_jobs : int
        Jobs that the interior-point method solved for; the others stayed where they were.
    solve_time_s : float
    warm : bool
        Whether it began where the last solve stood.
    """

    status: Status
    objective: float
    bound: float
    gap: float
    violation: float
    mean_busy_s: Floats
    completion_s: Floats
    gpu_seconds: Floats
    price: Floats
    job_price: Floats
    iterations: int
    free_jobs: int
    solve_time_s: float
    warm: bool


@dataclass(slots=True)
class _Kept:
    """The last solve: its jobs, grid and program, and its solution in the solver's units."""

    jobs: tuple[HareJob, ...]
    grid: TimeGrid
    gpu_types: tuple[str, ...]
    data: Relaxation
    standing: Standing


class RelaxationSolver:
    """Solves relaxations one after the other; each starts from the last one's prices and columns.

    Where the grid and the GPUs are as they were, only jobs that are new or have changed and those that are furthest
    from their best at the kept prices are solved for, in the room that the others leave (HR28); more of them, until
    the certified gap of the whole is within the tolerance. Where the grid has moved, every job is put where the last
    prices would have it (HR17).

    Parameters
    ----------
    tolerance : float
        Bound on (objective - bound) / objective of a feasible point.
    threads : int
        Zero for all processors; threads change no bits.
    max_iterations : int
    """

    def __init__(self, tolerance: float = 1e-4, threads: int = 0, max_iterations: int = 300) -> None:
        if not 0 < tolerance < 1:
            raise SettingsError(f"tolerance is {tolerance}, must be between 0 and 1")
        if threads < 0 or max_iterations < 1:
            raise SettingsError(f"threads is {threads}, must be >= 0; max_iterations is {max_iterations}, must be >= 1")
        self.tolerance, self.threads, self.max_iterations = tolerance, threads, max_iterations
        self._kept: _Kept | None = None
        self._unit_s, self._unit_weight = 1.0, 1.0

    def reset(self) -> None:
        """Forget the last solve."""
        self._kept = None

    def solve(self, instance: HareInstance, grid: TimeGrid, deadline_s: float = float("inf")) -> RelaxationSolution:
        """Solve the relaxation of an instance over a grid.

        Parameters
        ----------
        instance : HareInstance
        grid : TimeGrid
            Must reach beyond :func:`.sufficient_horizon_s`, or there may be no solution.
        deadline_s : float
            Wall-clock seconds after which the best point so far is returned with TIME_LIMIT.
        """
        started = time.perf_counter()
        relaxation = Relaxation.of(instance, grid)
        if instance.n_jobs == 0:
            self._kept = None
            return _empty(relaxation, time.perf_counter() - started)
        until = started + deadline_s
        with ThreadPoolExecutor(self.threads or None) as pool:
            warm = self._kept is not None and self._kept.gpu_types == instance.gpu_types
            if not warm:
                self._unit_s = float(np.max(relaxation.floor))
                self._unit_weight = float(np.mean(relaxation.weight))
            data = relaxation.in_units(self._unit_s, self._unit_weight)
            result = self._from_kept(instance, grid, data, pool, until) if warm else None
            if result is None:
                warm, result = False, self._all(data, cold_start(data), pool, until, self.max_iterations)
        self._kept = _Kept(instance.jobs, grid, instance.gpu_types, data, result)
        return self._solution(relaxation, result, time.perf_counter() - started, warm)

    # All jobs -----------------------------------------------------------------------------------------------------

    def _all(self, data: Relaxation, start: Iterate, pool: ThreadPoolExecutor, until: float, limit: int) -> Standing:
        """Iterate on all jobs to `AIM` of the tolerance; the best point so far where time runs out."""
        method, look = InteriorPoint(data, start, self.threads), PATIENCE * self.tolerance
        best: Standing | None = None
        for _ in range(limit):
            if not method.iterate(pool):
                break
            late = time.perf_counter() >= until
            own = method.gap() / data.constant
            if late or (own <= look and method.shortfall() <= NEARLY):
                result = self._standing(data, method, own, pool)
                best = result if best is None else best.better(result)
                if late or best.gap <= AIM * self.tolerance:
                    break
                look = own * min(max(AIM * self.tolerance / best.gap, 0.3), 0.9)
        if best is None:
            best = self._standing(data, method, 1.0, pool)
        status = Status.ITERATION_LIMIT if method.iterations >= limit else Status.NUMERICAL_ERROR
        return best.ended(self._status(best.gap, until, status), method.iterations, len(data.weight))

    def _status(self, gap: float, until: float, unsolved: Status) -> Status:
        if gap <= self.tolerance:
            return Status.OPTIMAL
        return Status.TIME_LIMIT if time.perf_counter() >= until else unsolved

    def _standing(self, data: Relaxation, method: InteriorPoint, own: float, pool: ThreadPoolExecutor) -> Standing:
        """A feasible point near the iterate, and the bound at its prices."""
        at = method.at
        v = repaired(data, at.v, at.excess[3], min(JUNK, own))
        return Standing.at_prices(data, at.room[1], at.lam, at.excess[3], pool).with_point(
            data, at.v if v is None else v, feasible=v is not None
        )

    # From round to round ------------------------------------------------------------------------------------------

    def _from_kept(
        self, instance: HareInstance, grid: TimeGrid, data: Relaxation, pool: ThreadPoolExecutor, until: float
    ) -> Standing | None:
        """Start from the last solve's point; None where there is none, or it did not converge."""
        kept = self._kept
        assert kept is not None
        if grid.edges[0] > kept.grid.edges[-1]:
            return None
        if np.array_equal(grid.edges, kept.grid.edges) and np.array_equal(data.capacity, kept.data.capacity):
            result = self._some(data, kept.standing.carried(_unchanged(kept, instance, data)), pool, until)
            if result is not None:
                return result
        price = _price_on(kept.grid, grid, kept.standing.price)
        lam = np.full(instance.n_jobs, kept.standing.lam.mean())
        start = self._respond(data, price, lam, 0.5 * data.weight, FRESH_GAP * data.constant, pool)
        result = self._all(data, start, pool, until, min(WARM_ITERATIONS, self.max_iterations))
        return result if result.status in (Status.OPTIMAL, Status.TIME_LIMIT) else None

    def _some(self, data: Relaxation, standing: Standing, pool: ThreadPoolExecutor, until: float) -> Standing | None:
        """Solve for the changed jobs and those furthest from their best, then for more; None where that is nearly all.

        Those that would gain most at the freed jobs' prices are added; where none would gain, these prices prove that
        the point is optimal.
        """
        n, iterations = len(data.weight), 0
        best = standing = standing.priced(data, pool)
        count = max(FREE_LEAST, int(FREE_SHARE * n), FREE_CHANGED * int(standing.changed.sum()))
        free = np.sort(np.argsort(-standing.regret(data), kind="stable")[:count])
        while len(free) < ALMOST_ALL * n:
            result, steps = self._free(data, standing, free, pool, until)
            iterations += steps
            if result is None:
                return None
            best = best.better(result)
            status = self._status(best.gap, until, Status.ITERATION_LIMIT)
            if status is not Status.ITERATION_LIMIT:
                return best.ended(status, iterations, len(free))
            gain = result.regret(data)
            gain[free] = -np.inf
            free = np.union1d(free, np.argsort(-gain, kind="stable")[: int(WIDER * len(free))])
            standing = best
        return None

    def _free(
        self, data: Relaxation, standing: Standing, free: Ints, pool: ThreadPoolExecutor, until: float
    ) -> tuple[Standing | None, int]:
        """Solve for some jobs in the room that the others leave (HR28).

        Returns the whole at their point and prices, None where they have no room, and the iterations.
        """
        others = np.ones(len(data.weight), dtype=np.bool_)
        others[free] = False
        room = np.maximum(data.capacity - (standing.v.sum(axis=0) - standing.v[free].sum(axis=0)), 0.0)
        part = data.of_jobs(free).with_capacity(room)
        told = part.with_capacity(np.maximum(room, LEAST_ROOM * data.capacity))
        whole = abs(standing.bound)
        start = self._respond(told, standing.price, standing.lam[free], standing.nu[free], PART_GAP * whole, pool)
        method = InteriorPoint(told, start, self.threads)
        own, look, v = np.inf, self.tolerance, None
        others_value = float(data.weight[others] @ data.completion_s(standing.v)[others])
        for _ in range(min(FREE_ITERATIONS, self.max_iterations)):
            if not method.iterate(pool) or time.perf_counter() >= until:
                break
            own = method.gap() / whole
            if own <= look and method.shortfall() <= NEARLY:
                v = repaired(part, method.at.v, method.at.excess[3], min(JUNK, own))
                if v is None or (own <= OWN_SHARE * self.tolerance and method.shortfall() <= self.tolerance):
                    break
                value = others_value + float(part.weight @ part.completion_s(v))
                if value - standing.bound <= ENOUGH * self.tolerance * whole:
                    break
                look = 0.7 * own
        at = method.at
        if v is None:
            v = repaired(part, at.v, at.excess[3], min(JUNK, own))
        if v is None:
            return None, method.iterations
        lam, nu = standing.lam.copy(), standing.nu.copy()
        lam[free], nu[free] = at.lam, at.excess[3]
        result = Standing.at_prices(data, at.room[1], lam, nu, pool)
        return result.with_jobs(data, standing.v, free, v), method.iterations

    # All jobs placed again --------------------------------------------------------------------------------------------

    def _respond(
        self, data: Relaxation, price: Floats, lam: Floats, nu: Floats, gap: float, pool: ThreadPoolExecutor
    ) -> Iterate:
        """Every job's point on the central path at the prices (HR17), from its own guesses, for a gap of `gap`."""
        n, intervals, kinds = data.shape
        target = gap / pairs(data)
        room = np.stack((data.capacity, np.maximum(price, target / np.maximum(data.capacity, 1e-300))))
        at = Iterate(
            np.zeros((n, intervals, kinds)), np.ones((n, intervals, kinds)), np.ones((2, n, intervals)),
            np.stack((nu, nu, nu, nu)), lam.copy(), room,
        )  # fmt: skip
        jobs, point = data.rows, at.of_jobs
        parts = np.array_split(np.arange(n), CHUNKS)
        list(pool.map(lambda part: respond(part, jobs, at.room[1], target, point, at.lam), parts))
        at.room[0] = np.maximum(data.capacity - at.v.sum(axis=0), np.minimum(target / at.room[1], data.capacity))
        return at

    def _solution(self, relaxation: Relaxation, result: Standing, seconds: float, warm: bool) -> RelaxationSolution:
        unit = self._unit_s * self._unit_weight
        v = result.v * self._unit_s
        completion = relaxation.completion_s(v)
        objective = float(relaxation.weight @ completion)
        return RelaxationSolution(
            status=result.status,
            objective=objective,
            bound=result.bound * unit,
            gap=(objective - result.bound * unit) / (1.0 + abs(objective)),
            violation=relaxation.violation(v),
            mean_busy_s=relaxation.mean_busy_s(v),
            completion_s=completion,
            gpu_seconds=v,
            price=result.price * self._unit_weight,
            job_price=np.stack((result.lam * unit, result.nu * self._unit_weight)),
            iterations=result.iterations,
            free_jobs=result.free_jobs,
            solve_time_s=seconds,
            warm=warm,
        )


def _unchanged(kept: _Kept, instance: HareInstance, data: Relaxation) -> Ints:
    """Place in the last solve of each job whose rows and columns are as they were, else -1, (N,)."""
    where = {job.id: k for k, job in enumerate(kept.jobs)}
    result = np.array([where.get(job.id, -1) for job in instance.jobs], dtype=np.int64)
    here = np.flatnonzero(result >= 0)
    before, same = result[here], np.ones(len(here), dtype=np.bool_)
    for name in ("alpha", "parallel", "start", "excess", "weight"):
        now, then = getattr(data, name)[here], getattr(kept.data, name)[before]
        same &= (now == then).reshape(len(here), -1).all(axis=1)
    result[here[~same]] = -1
    return result


def _price_on(before: TimeGrid, grid: TimeGrid, price: Floats) -> Floats:
    """Prices as they were at each new interval's middle, the last ones beyond the end."""
    middle = 0.5 * (grid.left + grid.right)
    return np.asarray(price[np.clip(np.searchsorted(before.right, middle), 0, before.intervals - 1)])


def _empty(relaxation: Relaxation, seconds: float) -> RelaxationSolution:
    none, prices = np.zeros(0), np.zeros_like(relaxation.capacity)
    point, own = np.zeros((0, *prices.shape)), np.zeros((2, 0))
    return RelaxationSolution(Status.OPTIMAL, 0.0, 0.0, 0.0, 0.0, none, none, point, prices, own, 0, 0, seconds, False)
