"""Hare as a round-based policy: rigid jobs, in the order of the relaxation, each where it would finish first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from copter_frontends.goodput import Application, GoodputModel
from copter_frontends.hare.facts import check_progress, checked_weights
from copter_frontends.hare.gang import Gang, gang_schedule
from copter_frontends.hare.grid import TimeGrid
from copter_frontends.hare.instance import HareInstance
from copter_frontends.hare.job import HareJob
from copter_frontends.hare.nodes import place_gangs
from copter_frontends.hare.relaxation import sufficient_horizon_s
from copter_frontends.hare.solver import RelaxationSolver
from copter_frontends.hare.speeds import Speeds
from copter_frontends.vocabulary import (
    Allocation,
    CapacityInUseError,
    Cluster,
    DuplicateJobError,
    InvalidClusterError,
    InvalidJobError,
    Job,
    Plan,
    PlanStatus,
    UnknownJobError,
)

ROUND_S = 300.0
RESTART_S = 30.0  # assumed cost of moving a running job, in the order's estimates
LEAST_LEFT = 1e-4  # of a job, below which its remaining work is not taken
_FACTS = frozenset({"progress", "restarts", "max_profiled_gpus"})


@dataclass(slots=True)
class _State:
    job: Job
    seconds: dict[str, float]
    progress: float = 0.0


class HarePolicy:
    """Hare on the simulator's round clock (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    A job is one chunk of as many tasks as its user asked for GPUs, all on one type in a round. The relaxation over the
    work that is left gives the order; in that order each job goes where it would finish first, and those that start now
    run. What no job waits for is given, in the same order, to jobs that can use it now.

    Parameters
    ----------
    cluster : Cluster
        Copied.
    goodput : GoodputModel, optional
        Its applications are used.
    round_s : float
        Seconds between plans.
    growth, threads
        As for :class:`.HareScheduler`.
    weights : mapping of job id to float, optional
        w_n; one where it is silent.

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
        if cluster.gpus == 0:
            raise InvalidClusterError("the cluster has no GPUs: give at least one type a node")
        self.cluster, self.round_s, self.growth = cluster.copy(), round_s, growth
        applications: Mapping[str, Application] | None = goodput.applications if goodput else None
        self.speeds, self.solver = Speeds(self.cluster, applications), RelaxationSolver(threads=threads)
        self.weights = checked_weights(weights)
        self.pinned: dict[str, Allocation] = {}
        self.previous: dict[str, Allocation] = {}
        self._jobs: dict[str, _State] = {}
        self._order: list[str] = []
        self._edit_s = 0.0

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Start to consider a job. DuplicateJobError if its id is known, InvalidJobError if it fits nowhere."""
        begun = perf_counter()
        if job.id in self._jobs:
            raise DuplicateJobError(f"job {job.id!r} is known already; remove it first")
        seconds, gpus = self.speeds.seconds(job), self.speeds.gpus(job)
        if not any(self.cluster.capacity(kind) >= gpus for kind in seconds):
            sizes = ", ".join(f"{kind}: {self.cluster.capacity(kind)}" for kind in self.cluster.types)
            raise InvalidJobError(f"job {job.id!r}: its {gpus} GPUs fit on no GPU type that can run it ({sizes})")
        self._jobs[job.id] = _State(job, seconds)
        self._edit_s += perf_counter() - begun

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Take in ``progress`` (fraction of training done); ``restarts`` and ``max_profiled_gpus`` change nothing."""
        state = self._job(job_id)
        unknown = sorted(set(what_changed) - _FACTS)
        if unknown:
            raise TypeError(
                f"unknown fact {', '.join(unknown)} of job {job_id!r}; there are {', '.join(sorted(_FACTS))}"
            )
        check_progress(job_id, what_changed)
        state.progress = float(what_changed.get("progress", state.progress))

    def remove_job(self, job_id: str) -> None:
        """Forget a job; UnknownJobError."""
        self._job(job_id)
        del self._jobs[job_id]
        self.previous.pop(job_id, None)
        self.pinned.pop(job_id, None)

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Keep a job on exactly this allocation until unpinned with None."""
        self._job(job_id)
        if allocation is None:
            self.pinned.pop(job_id, None)
            return
        self.cluster.type_of(allocation.gpu_type)
        held: dict[str, int] = {}
        for other, pin in self.pinned.items():
            for node, gpus in pin.nodes if other != job_id else ():
                held[node] = held.get(node, 0) + gpus
        for node, gpus in allocation.nodes:
            here = self.cluster.nodes.get(node)
            if here is None or here.gpu_type != allocation.gpu_type:
                raise InvalidClusterError(
                    f"cannot pin job {job_id!r}: no {allocation.gpu_type!r} node is named {node!r}"
                )
            if held.get(node, 0) + gpus > here.gpus:
                raise CapacityInUseError(f"cannot pin job {job_id!r}: pinned jobs use the GPUs of node {node!r}")
        self.pinned[job_id] = allocation

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes, named or not."""
        self.cluster.add_whole_nodes(gpu_type, count, nodes)

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Take `count` GPUs of a type away as whole nodes; CapacityInUseError if a pinned job is on one."""
        doomed = self.cluster.choose_whole_nodes(gpu_type, count, nodes)
        for job_id, pin in self.pinned.items():
            hit = [node for node, _ in pin.nodes if node in doomed]
            if hit:
                raise CapacityInUseError(
                    f"cannot remove node {hit[0]!r}: job {job_id!r} is pinned to it; unpin it first"
                )
        self.cluster.remove_nodes(doomed)
        self.previous = {j: a for j, a in self.previous.items() if not any(node in doomed for node, _ in a.nodes)}

    # The round ----------------------------------------------------------------------------------------------------

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Decide the round that starts at `now_s`."""
        begun = perf_counter()
        gangs = self._gangs()
        free = {kind: self.cluster.capacity(kind) for kind in self.cluster.types}
        for pin in self.pinned.values():
            free[pin.gpu_type] -= pin.gpus
        order, bound = self._relaxed_order(gangs, deadline_s)
        solved = perf_counter()
        found = gang_schedule(gangs, order, free)
        if self._order:
            known = set(order)
            before = [job_id for job_id in self._order if job_id in known]
            kept = gang_schedule(gangs, before + [j for j in order if j not in set(before)], free)
            if kept.cost <= found.cost:
                found = kept
        self._order = list(found.order)
        shimmed = perf_counter()
        allocations = place_gangs(self.cluster, found.now, self.previous, self.pinned)
        before_plan, self.previous = self.previous, allocations
        timings = {
            "edit": self._edit_s,
            "solve": solved - begun,
            "shim": shimmed - solved,
            "place": perf_counter() - shimmed,
        }
        self._edit_s = 0.0
        return self._plan(allocations, before_plan, -found.cost, -bound, timings)

    def _plan(
        self,
        now: dict[str, Allocation],
        before: dict[str, Allocation],
        objective: float,
        bound: float,
        timings: dict[str, float],
    ) -> Plan:
        bound = max(bound, objective)
        return Plan(
            allocations=now,
            start=tuple(job_id for job_id in now if job_id not in before),
            stop=tuple(job_id for job_id in before if job_id not in now),
            move=tuple(job_id for job_id, a in now.items() if job_id in before and before[job_id] != a),
            objective=objective,
            bound=bound,
            gap=(bound - objective) / (1.0 + abs(bound)),
            status=PlanStatus.FEASIBLE,
            timings=timings,
        )

    # Inside -------------------------------------------------------------------------------------------------------

    def _gangs(self) -> dict[str, Gang]:
        """What is left of every job that is not pinned."""
        found = {}
        for job_id, state in self._jobs.items():
            if job_id in self.pinned:
                continue
            left = max(1.0 - state.progress, LEAST_LEFT)
            here = self.previous.get(job_id)
            found[job_id] = Gang(
                gpus=self.speeds.gpus(state.job),
                weight=self.weights.get(job_id, 1.0),
                seconds={
                    kind: left * seconds + (RESTART_S if here is not None and here.gpu_type != kind else 0.0)
                    for kind, seconds in state.seconds.items()
                },
            )
        return found

    def _relaxed_order(self, gangs: Mapping[str, Gang], deadline_s: float) -> tuple[list[str], float]:
        """Jobs by the relaxation's middle completion (HR19), and its bound on sum w C from now on."""
        capacity = {kind: self.cluster.capacity(kind) for kind in self.cluster.types}
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

    def _job(self, job_id: str) -> _State:
        try:
            return self._jobs[job_id]
        except KeyError:
            raise UnknownJobError(f"job {job_id!r} is not known: never added, or removed already") from None


def _power_of_two(seconds: float) -> float:
    """The next power of two, so that the grid stays the same from round to round."""
    size = 1.0
    while size < seconds:
        size *= 2.0
    return size
