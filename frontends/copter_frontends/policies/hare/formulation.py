"""The interval-indexed LP, a lower bound on every schedule (papers/hare.md, HR3 to HR9), as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter import LinearProgram
from copter_frontends.policies.hare.array_groups import JobRows
from copter_frontends.policies.hare.grid import TimeGrid
from copter_frontends.policies.hare.instance import Floats, HareInstance, Ints
from copter_frontends.vocabulary import InvalidJobError


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """min sum w_n (floor_n + e_n) over v >= 0, e >= 0, with v_nlg GPU seconds of job n on type g in interval l (HR3).

    Attributes
    ----------
    capacity : ndarray (L, G)
        M_g (tau_l - tau_{l-1}), the upper bound on sum_n v_nlg (HR4).
    parallel : ndarray (N, L)
        K_n (tau_l - max(tau_{l-1}, a_n))^+, the upper bound on sum_g v_nlg (HR5). Zero before arrival.
    alpha : ndarray (N, G)
        1 / (p_ng W_n), the share of the job done in a GPU second; zero if the type cannot run it. Sum alpha v = 1
        (HR6).
    start : ndarray (N, L)
        max(tau_{l-1}, a_n), the earliest time of work in interval l; sum alpha v start is the mean busy time (HR7).
    first : ndarray (N,) of int
        First interval that ends after the job's arrival.
    floor, excess : ndarray (N,)
        Least completion time of the job by itself (HR9), and h_n of e_n >= h_n + sum alpha v start (HR8).
    weight : ndarray (N,)
    """

    capacity: Floats
    parallel: Floats
    alpha: Floats
    start: Floats
    first: Ints
    floor: Floats
    excess: Floats
    weight: Floats

    @classmethod
    def of(cls, instance: HareInstance, grid: TimeGrid) -> Relaxation:
        """Return the program of an instance on a grid.

        Raises
        ------
        InvalidJobError
            If a job arrives after the grid's end.
        """
        arrival = np.maximum(instance.arrival_s, grid.edges[0])
        late = np.flatnonzero(arrival >= grid.edges[-1])
        if len(late):
            job = instance.jobs[int(late[0])]
            raise InvalidJobError(
                f"job {job.id!r}: it arrives at {job.arrival_s:g} s, after the horizon of {grid.edges[-1]:g} s; "
                "plan further ahead"
            )
        start = np.maximum(grid.left[None, :], arrival[:, None])
        usable = np.isfinite(instance.train_s)
        work = instance.work[:, None] * np.where(usable, instance.train_s, 1.0)
        floor, shift = completion_floors(instance, arrival)
        return cls(
            capacity=grid.length[:, None] * instance.gpus[None, :].astype(np.float64),
            parallel=instance.tasks[:, None] * np.maximum(grid.right[None, :] - start, 0.0),
            alpha=np.where(usable, 1.0 / work, 0.0),
            start=start,
            first=np.searchsorted(grid.right, arrival, side="right").astype(np.int64),
            floor=floor,
            excess=shift - floor,
            weight=instance.weight,
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """(N, L, G)."""
        return len(self.weight), *self.capacity.shape

    @property
    def rows(self) -> JobRows:
        """Data of the jobs' own rows for the kernels, as views."""
        return JobRows(self.first, self.start, self.parallel, self.alpha, self.weight, self.excess)

    @property
    def constant(self) -> float:
        """Sum of w_n floor_n, the objective without excess."""
        return float(self.weight @ self.floor)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether a column exists, (N, L, G): the type runs the job, and the interval ends after its arrival."""
        live = np.arange(self.capacity.shape[0])[None, :] >= self.first[:, None]
        return np.asarray(live[:, :, None] & (self.alpha > 0)[:, None, :])

    @property
    def variables(self) -> int:
        """Number of columns: GPU seconds, and an excess per job."""
        return int(self.usable.sum()) + len(self.weight)

    def in_units(self, unit_s: float, unit_weight: float) -> Relaxation:
        """Return the program with time in units of `unit_s` and weights in units of `unit_weight`."""
        return Relaxation(
            capacity=self.capacity / unit_s,
            parallel=self.parallel / unit_s,
            alpha=self.alpha * unit_s,
            start=self.start / unit_s,
            first=self.first,
            floor=self.floor / unit_s,
            excess=self.excess / unit_s,
            weight=self.weight / unit_weight,
        )

    def of_jobs(self, jobs: Ints) -> Relaxation:
        """Return the program of some of the jobs, with full capacities."""
        own = ("parallel", "alpha", "start", "first", "floor", "excess", "weight")
        return replace(self, **{name: getattr(self, name)[jobs] for name in own})

    def with_capacity(self, capacity: Floats) -> Relaxation:
        """Return the program with other capacities, (L, G)."""
        return replace(self, capacity=capacity)

    def program(self) -> LinearProgram:
        """Return the program as a general LP, for other solvers.

        Columns: the usable v in order, then e. Rows: the capacities (L G), then for each job its parallelism (HR5, by
        interval), its work (HR6) and its excess (HR8).
        """
        n_jobs, intervals, types = self.shape
        job, interval, kind = np.nonzero(self.usable)
        first_row = intervals * types
        live = intervals - self.first
        base = first_row + np.concatenate(([0], np.cumsum(live + 2)[:-1]))
        n = len(job)
        share = self.alpha[job, kind]
        column = np.arange(n)
        rows = [
            interval * types + kind,
            base[job] + interval - self.first[job],
            base[job] + live[job],
            base[job] + live[job] + 1,
            base + live + 1,
        ]
        values = [np.ones(n), np.ones(n), share, -share * self.start[job, interval], np.ones(n_jobs)]
        columns = [column, column, column, column, n + np.arange(n_jobs)]
        n_rows = int(first_row + (live + 2).sum())
        matrix = sp.csc_array(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(n_rows, n + n_jobs)
        )
        lower, upper = np.full(n_rows, -np.inf), np.full(n_rows, np.inf)
        upper[:first_row] = self.capacity.ravel()
        where = np.arange(intervals)[None, :] >= self.first[:, None]
        at_job, at_interval = np.nonzero(where)
        upper[base[at_job] + at_interval - self.first[at_job]] = self.parallel[where]
        lower[base + live] = upper[base + live] = 1.0
        lower[base + live + 1] = self.excess
        cost = np.concatenate((np.zeros(n), self.weight))
        return LinearProgram(cost, matrix, lower, upper, offset=self.constant)

    def mean_busy_s(self, gpu_seconds: Floats) -> Floats:
        """Return M_n of HR7, (N,), at a point v (N, L, G)."""
        return np.asarray(np.einsum("nlg,ng,nl->n", gpu_seconds, self.alpha, self.start))

    def completion_s(self, gpu_seconds: Floats) -> Floats:
        """Return the least C_n, (N,), that HR8 and HR9 allow at a point v."""
        return self.floor + np.maximum(self.excess + self.mean_busy_s(gpu_seconds), 0.0)

    def violation(self, gpu_seconds: Floats) -> float:
        """Return the largest violation of HR4, HR5, HR6 and v >= 0, each relative to its right-hand side."""
        over = (gpu_seconds.sum(axis=0) - self.capacity) / np.maximum(self.capacity, 1e-300)
        rate = (gpu_seconds.sum(axis=2) - self.parallel)[self.parallel > 0] / self.parallel[self.parallel > 0]
        work = np.abs(np.einsum("nlg,ng->n", gpu_seconds, self.alpha) - 1.0)
        used = self.capacity > 0
        worst = [a.max(initial=0.0) for a in (over[used], rate, work, -gpu_seconds)]
        return float(max(worst))


def completion_floors(instance: HareInstance, arrival_s: Floats) -> tuple[Floats, Floats]:
    """Return the least completion time of each job by itself (HR9) and the least C_n - M_n (HR8), both (N,)."""
    ell = instance.least_round_s()
    half = np.min(instance.sync_s + 0.5 * instance.train_s, axis=1)
    shift = 0.5 * (instance.rounds - 1) * ell + half
    mean = arrival_s + 0.5 * (instance.rounds - 1) * ell + 0.5 * np.min(instance.train_s, axis=1)
    return np.maximum(arrival_s + instance.rounds * ell, mean + shift), shift


def sufficient_horizon_s(instance: HareInstance, start_s: float = 0.0) -> float:
    """Return a time in seconds by which all jobs can be done, so that the program is feasible (HR10)."""
    if instance.n_jobs == 0:
        return start_s + 1.0
    best = np.argmin(instance.train_s, axis=1)
    at = np.arange(instance.n_jobs)
    load = np.bincount(best, weights=instance.work * instance.train_s[at, best], minlength=len(instance.gpus))
    busy = float(np.max(load / np.maximum(instance.gpus, 1)))
    longest = float(np.max(instance.rounds * instance.train_s[at, best]))
    return max(start_s, float(instance.arrival_s.max())) + busy + longest
