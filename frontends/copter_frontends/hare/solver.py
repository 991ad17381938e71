"""The relaxation kept solved: cold by the interior-point method, then warm from where it stood."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from copter import Status
from copter.errors import SettingsError
from copter_frontends.hare.bound import certified_bound
from copter_frontends.hare.grid import TimeGrid
from copter_frontends.hare.instance import Floats, HareInstance, Ints
from copter_frontends.hare.interior_point import CHUNKS, InteriorPoint, Iterate, cold_start
from copter_frontends.hare.job import HareJob
from copter_frontends.hare.relaxation import Relaxation
from copter_frontends.hare.response import respond

NEAR_GAP, FAR_GAP = 2e-4, 5e-3  # relative; the last iterates whose products say at least so much are kept
FEW_CHANGED = 0.02  # share of jobs up to which the nearer one is where the next solve starts
NEAR = 3.0  # a row's slack is set to what is left of its capacity where that changes it by no larger a factor
FRESH_PRODUCTS = 6.0  # where every job has changed, the products are so many times those kept
WARM_ITERATIONS = 40  # after which a warm solve that has not ended starts afresh, cold
PATIENCE = 4.0  # times the tolerance; the certified bound is taken once the method's own gap is below


@dataclass(frozen=True, slots=True, eq=False)
class RelaxationSolution:
    """An answer to the relaxation.

    Attributes
    ----------
    status : copter.Status
        OPTIMAL, ITERATION_LIMIT, TIME_LIMIT or NUMERICAL_ERROR; the bound holds in each.
    objective, bound, gap : float
        Value of the point; what its prices prove of every schedule; (objective - bound) / (1 + |objective|).
    violation : float
        Largest relative violation of a row (:meth:`.Relaxation.violation`).
    mean_busy_s, completion_s : ndarray (N,)
        M_n and C_n.
    gpu_seconds : ndarray (N, L, G)
        v.
    price : ndarray (L, G)
        Value of one more second of one GPU, in weighted seconds.
    iterations : int
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
    iterations: int
    solve_time_s: float
    warm: bool


@dataclass(slots=True)
class _Kept:
    """Where the last solve stood: its jobs, grid and data (in units); two iterates and their mean products."""

    jobs: tuple[HareJob, ...]
    grid: TimeGrid
    gpu_types: tuple[str, ...]
    data: Relaxation
    far: tuple[Iterate, float]
    near: tuple[Iterate, float]


class RelaxationSolver:
    """Solves relaxations one after the other; each starts from the last one's prices and columns.

    Jobs that have not changed keep their columns. Those that are new or have changed, and all of them where the grid
    has moved, are put where the last prices would have them (HR17).

    Parameters
    ----------
    tolerance : float
        Bound on the relative gap against the certified bound, on the norm of HR4's violations over the capacities'
        norm (as F6), and on what any job's work lacks.
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
        """Forget where the last solve stood."""
        self._kept = None

    def solve(self, instance: HareInstance, grid: TimeGrid, deadline_s: float = float("inf")) -> RelaxationSolution:
        """Solve the relaxation of an instance over a grid.

        Parameters
        ----------
        instance : HareInstance
        grid : TimeGrid
            Must reach beyond :func:`.sufficient_horizon_s`, or there may be no solution.
        deadline_s : float
            Wall-clock seconds after which the point at hand is returned with TIME_LIMIT.
        """
        started = time.perf_counter()
        relaxation = Relaxation.of(instance, grid)
        if instance.n_jobs == 0:
            self._kept = None
            return _empty(relaxation, time.perf_counter() - started)
        start = None if self._kept is None else self._warm_start(instance, grid, relaxation)
        if start is None:
            self._unit_s = float(np.max(relaxation.floor))
            self._unit_weight = float(np.mean(relaxation.weight))
            data = _in_units(relaxation, self._unit_s, self._unit_weight)
            method = self._method(data, cold_start(data))
        else:
            method = self._method(_in_units(relaxation, self._unit_s, self._unit_weight), start)
        limit = self.max_iterations if start is None else min(WARM_ITERATIONS, self.max_iterations)
        status, bound = self._run(method, instance, grid, started + deadline_s, limit)
        if start is not None and status in (Status.ITERATION_LIMIT, Status.NUMERICAL_ERROR):
            start, method = None, self._method(method.data, cold_start(method.data))
            status, bound = self._run(method, instance, grid, started + deadline_s, self.max_iterations)
        return self._solution(relaxation, method, status, bound, time.perf_counter() - started, start is not None)

    def _method(self, data: Relaxation, start: Iterate) -> InteriorPoint:
        return InteriorPoint(data, start, self.threads)

    def _run(
        self, method: InteriorPoint, instance: HareInstance, grid: TimeGrid, until: float, limit: int
    ) -> tuple[Status, float]:
        """Iterate to the tolerance, keep where the next solve starts; status and certified bound (method's units)."""
        data, best, status = method.data, -np.inf, Status.ITERATION_LIMIT
        self._keep(method, instance, grid)
        with ThreadPoolExecutor(method.threads) as pool:
            for _ in range(limit):
                if not method.iterate(pool):
                    status = Status.NUMERICAL_ERROR
                    break
                primal, dual = method.objectives()
                gap = (primal - dual) / abs(data.constant + primal)
                met = method.shortfall() <= self.tolerance
                self._keep_up(method, primal)
                if time.perf_counter() >= until:
                    status = Status.TIME_LIMIT
                    break
                if met and gap <= PATIENCE * self.tolerance:
                    at = method.at
                    best = max(best, certified_bound(data, at.room[1], at.lam, at.excess[3], pool))
                    value = float(data.weight @ data.completion_s(at.v))
                    if value - best <= self.tolerance * abs(value):
                        status = Status.OPTIMAL
                        break
            if best == -np.inf:
                at = method.at
                best = certified_bound(data, at.room[1], at.lam, at.excess[3], pool)
        return status, best

    def _keep(self, method: InteriorPoint, instance: HareInstance, grid: TimeGrid) -> None:
        here = method.at.copy(), method.product
        self._kept = _Kept(instance.jobs, grid, instance.gpu_types, method.data, here, here)

    def _keep_up(self, method: InteriorPoint, primal: float) -> None:
        """Keep the iterate at hand while its products say a gap that is not too small."""
        assert self._kept is not None
        gap = method.product * method.pairs / abs(method.data.constant + primal)
        if gap >= NEAR_GAP:
            self._kept.near = method.at.copy(), method.product
        if gap >= FAR_GAP:
            self._kept.far = self._kept.near

    def _solution(
        self, relaxation: Relaxation, method: InteriorPoint, status: Status, bound: float, seconds: float, warm: bool
    ) -> RelaxationSolution:
        unit = self._unit_s * self._unit_weight
        v = method.at.v * self._unit_s
        completion = relaxation.completion_s(v)
        objective = float(relaxation.weight @ completion)
        return RelaxationSolution(
            status=status,
            objective=objective,
            bound=bound * unit,
            gap=(objective - bound * unit) / (1.0 + abs(objective)),
            violation=relaxation.violation(v),
            mean_busy_s=relaxation.mean_busy_s(v),
            completion_s=completion,
            gpu_seconds=v,
            price=method.at.room[1] * self._unit_weight,
            iterations=method.iterations,
            solve_time_s=seconds,
            warm=warm,
        )

    # Warm starts --------------------------------------------------------------------------------------------------

    def _warm_start(self, instance: HareInstance, grid: TimeGrid, relaxation: Relaxation) -> Iterate | None:
        """The last iterate with its changed jobs put anew; None where there is nothing to go on from."""
        kept = self._kept
        assert kept is not None
        if kept.gpu_types != instance.gpu_types or grid.edges[0] > kept.grid.edges[-1]:
            return None
        data = _in_units(relaxation, self._unit_s, self._unit_weight)
        n = instance.n_jobs
        same_grid = len(grid.edges) == len(kept.grid.edges) and bool(np.all(grid.edges == kept.grid.edges))
        found = _unchanged(kept, instance, data) if same_grid else np.full(n, -1, dtype=np.int64)
        stay, anew = np.flatnonzero(found >= 0), np.flatnonzero(found < 0)
        old, target = kept.near if len(anew) <= FEW_CHANGED * n else kept.far
        room = old.room.copy() if same_grid else _room_on(kept.grid, grid, old.room, data, target)
        _, intervals, kinds = data.shape
        at = Iterate(
            np.zeros((n, intervals, kinds)), np.ones((n, intervals, kinds)), np.ones((2, n, intervals)),
            np.ones((4, n)), np.zeros(n), room,
        )  # fmt: skip
        if len(stay):
            at.v[stay], at.z[stay], at.lam[stay] = old.v[found[stay]], old.z[found[stay]], old.lam[found[stay]]
            at.slack[:, stay], at.excess[:, stay] = old.slack[:, found[stay]], old.excess[:, found[stay]]
        else:
            target *= FRESH_PRODUCTS
        self._respond(data, anew, at, target)
        left = data.capacity - at.v.sum(axis=0)
        if len(stay):
            near = (left > at.room[0] / NEAR) & (left < at.room[0] * NEAR)
            at.room[0][near] = left[near]
        else:
            at.room[1] = np.maximum(at.room[1], target / data.capacity)
            at.room[0] = np.maximum(left, np.minimum(target / at.room[1], data.capacity))
        return at

    def _respond(self, data: Relaxation, jobs: Ints, at: Iterate, target: float) -> None:
        rest = (data.first, data.start, data.alpha, data.parallel, data.weight, data.excess, at.room[1], target)
        out = (at.v, at.z, at.slack, at.excess, at.lam)
        with ThreadPoolExecutor(self.threads or None) as pool:
            list(pool.map(lambda part: respond(part, *rest, *out), np.array_split(jobs, CHUNKS)))


def _unchanged(kept: _Kept, instance: HareInstance, data: Relaxation) -> Ints:
    """Place in the last solve of each job whose rows and columns are as they were, else -1, (N,)."""
    where = {job.id: k for k, job in enumerate(kept.jobs)}
    found = np.array([where.get(job.id, -1) for job in instance.jobs], dtype=np.int64)
    here = np.flatnonzero(found >= 0)
    before, same = found[here], np.ones(len(here), dtype=np.bool_)
    for name in ("alpha", "parallel", "start", "excess", "weight"):
        now, then = getattr(data, name)[here], getattr(kept.data, name)[before]
        same &= (now == then).reshape(len(here), -1).all(axis=1)
    found[here[~same]] = -1
    return found


def _in_units(data: Relaxation, unit_s: float, weight: float) -> Relaxation:
    """The relaxation with time in units of `unit_s` and weights in units of `weight`."""
    return replace(
        data,
        capacity=data.capacity / unit_s,
        parallel=data.parallel / unit_s,
        alpha=data.alpha * unit_s,
        start=data.start / unit_s,
        floor=data.floor / unit_s,
        excess=data.excess / unit_s,
        weight=data.weight / weight,
    )


def _room_on(before: TimeGrid, grid: TimeGrid, room: Floats, data: Relaxation, target: float) -> Floats:
    """Prices as they were at each new interval's middle (the last ones beyond the end), and slacks to match."""
    middle = 0.5 * (grid.left + grid.right)
    at = np.clip(np.searchsorted(before.right, middle), 0, before.intervals - 1)
    price = np.maximum(room[1][at], target / np.maximum(data.capacity, 1e-300))
    return np.stack((target / price, price))


def _empty(relaxation: Relaxation, seconds: float) -> RelaxationSolution:
    none, prices = np.zeros(0), np.zeros_like(relaxation.capacity)
    return RelaxationSolution(
        Status.OPTIMAL, 0.0, 0.0, 0.0, 0.0, none, none, np.zeros((0, *prices.shape)), prices, 0, seconds, False
    )
