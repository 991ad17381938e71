"""Hare as a policy for rigid jobs: list scheduling in the relaxation's order, by earliest finish."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hare.formulation import sufficient_horizon_s
from copter_frontends.policies.hare.gang import Gang, gang_schedule
from copter_frontends.policies.hare.gang_policy import ROUND_S, GangPolicy
from copter_frontends.policies.hare.grid import TimeGrid
from copter_frontends.policies.hare.instance import HareInstance
from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.solver import RelaxationSolver
from copter_frontends.policy_kit import Choice, requested_gpus
from copter_frontends.vocabulary import Cluster

RESTART_S = 30.0  # assumed cost of moving a running job, in seconds


class HarePolicy(GangPolicy):
    """Hare for rigid jobs, in rounds (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    A job is one chunk with a task per requested GPU, all on one type in a round. The relaxation of the remaining work
    gives an order. In this order each job is planned where it would finish first, and the jobs that would start now
    run. GPUs that are then idle are given, in the same order, to jobs that can use them now.

    Parameters
    ----------
    cluster : Cluster
        It is read, not changed.
    goodput : GoodputModel, optional
        Model whose applications are used.
    round_s : float
        Seconds between plans.
    growth, threads
        See :class:`.HareScheduler`.
    weights : mapping of job id to float, optional
        w_n; 1 for jobs that are not listed.

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
        """Do list scheduling in the relaxation's order, or in the last round's order if that is no worse."""
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
        """Return the remaining work of every job that is not pinned."""
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
        """Return the jobs in the order of the relaxation's middles (HR18), and its bound on sum w C from now on."""
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
    """Return the next power of two, as a horizon that rarely changes between rounds."""
    size = 1.0
    while size < seconds:
        size *= 2.0
    return size
