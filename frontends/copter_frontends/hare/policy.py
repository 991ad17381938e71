"""Hare as a policy for rigid jobs: in the relaxation's order, each on the type with the earliest finish."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

from copter_frontends.goodput import GoodputModel
from copter_frontends.hare.formulation import sufficient_horizon_s
from copter_frontends.hare.gang import Gang, gang_schedule
from copter_frontends.hare.gang_policy import ROUND_S, GangPolicy
from copter_frontends.hare.grid import TimeGrid
from copter_frontends.hare.instance import HareInstance
from copter_frontends.hare.job import HareJob
from copter_frontends.hare.solver import RelaxationSolver
from copter_frontends.policy_kit import Choice, requested_gpus
from copter_frontends.vocabulary import Cluster

RESTART_S = 30.0  # seconds that moving a running job is assumed to cost


class HarePolicy(GangPolicy):
    """Hare on the simulator's round clock (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    A job is one chunk of as many tasks as its user asked for GPUs, all on one type in a round. The relaxation over the
    work that is left gives the order; in that order each job goes where it would finish first, and those that start now
    run. GPUs that no job waits for are given, in the same order, to jobs that can use them now.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    goodput : GoodputModel, optional
        Its applications are used.
    round_s : float
        Seconds between plans.
    growth, threads
        See :class:`.HareScheduler`.
    weights : mapping of job id to float, optional
        w_n; 1 for jobs that are absent.

    Raises
    ------
    InvalidClusterError
        If the cluster has no GPUs.
    InvalidDataError
        If a weight is not finite and above zero.
    """

    def __init__(
        self,
        cluster: Cluster,
        goodput: GoodputModel | None = None,
        *,
        round_s: float = ROUND_S,
        growth: float = 1.5,
        threads: int = 0,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(cluster, goodput, round_s, weights)
        self.growth, self.solver = growth, RelaxationSolver(threads=threads)
        self._last_order: tuple[str, ...] = ()

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """List scheduling in the relaxation's order, or in the last round's where that is no worse."""
        begun = perf_counter()
        gangs, free = self._gangs(), self.room()
        order, bound = self._relaxed_order(gangs, deadline_s)
        solved = perf_counter()
        result = gang_schedule(gangs, order, free)
        if self._last_order:
            known = set(order)
            before = [job_id for job_id in self._last_order if job_id in known]
            kept = gang_schedule(gangs, before + [j for j in order if j not in set(before)], free)
            if kept.cost <= result.cost:
                result = kept
        self._last_order = result.order
        timings = {"solve": solved - begun, "shim": perf_counter() - solved}
        return Choice(result.now, objective=-result.cost, bound=max(-bound, -result.cost), timings=timings)

    def _gangs(self) -> dict[str, Gang]:
        """Remaining work of every job that is not pinned."""
        result = {}
        for job_id, job in self.jobs.items():
            if job_id in self.pins:
                continue
            here = self.held.get(job_id)
            seconds = {
                kind: left + (RESTART_S if here is not None and here.gpu_type != kind else 0.0)
                for kind, left in self.seconds_left(job_id).items()
            }
            result[job_id] = Gang(requested_gpus(job), self.weight(job_id), seconds)
        return result

    def _relaxed_order(self, gangs: Mapping[str, Gang], deadline_s: float) -> tuple[list[str], float]:
        """Order jobs by the relaxation's middle completion (HR18); also returns its bound on sum w C from now on."""
        capacity = self.capacity()
        jobs, fits = [], []
        for job_id, gang in gangs.items():
            train = {k: s for k, s in gang.seconds.items() if capacity[k] >= gang.gpus}
            if train:
                fits.append(job_id)
                jobs.append(HareJob(job_id, 1, gang.gpus, train, weight=gang.weight))
        instance = HareInstance.of(jobs, capacity) if jobs else None
        if instance is None:
            return [], 0.0
        grid = TimeGrid.geometric(0.0, _power_of_two(sufficient_horizon_s(instance)), self.growth)
        solution = self.solver.solve(instance, grid, 0.8 * deadline_s)
        middle = dict(zip(fits, solution.mean_busy_s.tolist(), strict=True))
        return sorted(fits, key=lambda job_id: (middle[job_id], job_id)), solution.bound


def _power_of_two(seconds: float) -> float:
    """Return the next power of two, so that the grid is the same from round to round."""
    size = 1.0
    while size < seconds:
        size *= 2.0
    return size
