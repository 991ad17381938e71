"""The paper's scheduler as a round-based policy: tasks on mixed GPU types, planned again on arrival and completion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from copter_frontends.goodput import GoodputModel
from copter_frontends.hare.chunks import Chunks
from copter_frontends.hare.facts import checked_weights
from copter_frontends.hare.formulation import sufficient_horizon_s
from copter_frontends.hare.gang_policy import ROUND_S
from copter_frontends.hare.grid import TimeGrid
from copter_frontends.hare.instance import Floats, HareInstance, Ints
from copter_frontends.hare.job import HareJob
from copter_frontends.hare.schedule import HareSchedule
from copter_frontends.hare.shim import middle_order, schedule_in_order
from copter_frontends.hare.slots import fill_idle, slot_owners
from copter_frontends.hare.solver import RelaxationSolver
from copter_frontends.hare.switching import model_of
from copter_frontends.policy_kit import Choice, EditLog, Edits, RoundPolicy, requested_gpus
from copter_frontends.vocabulary import Allocation, Cluster, Job

CHUNKS_PER_SLOT = 2  # of a job, at least: so that a slot is not decided by whose chunk happens to be longer
MOST_TASKS = 200_000
SPARE = 2.0  # times the sufficient horizon that a new grid reaches to


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """What the last solve said: the jobs and GPUs that it was of, and each job's middle (HR19).

    Attributes
    ----------
    jobs : frozenset of str
    gpus : tuple of int
    middle : dict of job id to (mean busy time, rounds that were left then)
    bound : float
        On the sum of w C, in seconds from the start of the simulation.
    """

    jobs: frozenset[str]
    gpus: tuple[int, ...]
    middle: Mapping[str, tuple[float, int]]
    bound: float


class HareTaskPolicy(RoundPolicy):
    """Hare on the simulator's clock, by tasks (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    A job is rounds of as many tasks as its user asked for GPUs. In the order of the relaxation its tasks go where they
    finish first, on any mixture of types, and several of a round in turns on one GPU. Until the next plan every GPU
    works for the job whose tasks it has most of. The relaxation is solved again when a job has come or ended, or
    GPUs have come or gone; in between the order stays, and the tasks are placed again from how far the jobs are.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    goodput : GoodputModel, optional
        Not needed: Hare's models say how long tasks take.
    round_s : float
        Seconds between plans.
    growth, threads
        As for :class:`.HareScheduler`.
    weights : mapping of job id to float, optional
        w_n; 1 for jobs that are absent.

    Attributes
    ----------
    replans : int
        Times that the relaxation was solved.
    last_edits : Edits or None
        Of the last solve.
    edit_log : EditLog
        Of all of them.
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
        super().__init__(cluster, round_s, RunsTasks())
        self.weights = checked_weights(weights)
        self.growth, self.solver = growth, RelaxationSolver(threads=threads)
        self.grid: TimeGrid | None = None
        self.replans = 0
        self.last_edits: Edits | None = None
        self.edit_log = EditLog()
        self._order_kept: _Order | None = None
        self._chosen: dict[str, Allocation] = {}

    def sizes(self, job: Job) -> Iterable[int]:
        """Any number up to one for each task: the tasks of a round run in turns on fewer."""
        return range(1, requested_gpus(job) + 1)

    # The round ----------------------------------------------------------------------------------------------------

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Place the tasks of all jobs that are not pinned, and read off who has which GPUs until the next plan."""
        begun = perf_counter()
        gpus = self.room()
        jobs = self._left(now_s, gpus)
        self._chosen = {}
        if not jobs:
            return Choice({})
        instance = HareInstance.of(jobs, gpus)
        order = self._order_of(instance, now_s, deadline_s)
        solved = perf_counter()
        schedule, by_middle = self._placed(instance, order, now_s)
        owner = fill_idle(schedule, slot_owners(schedule, now_s, now_s + self.round_s), by_middle)
        self._chosen = self._allocations(instance, owner)
        value = schedule.objective
        return Choice(
            {job: (given.gpu_type, given.gpus) for job, given in self._chosen.items()},
            objective=-value,
            bound=max(-order.bound, -value),
            timings={"solve": solved - begun, "shim": perf_counter() - solved},
        )

    def settle(self, wanted: Mapping[str, tuple[str, int]]) -> None:
        """The very nodes that were chosen."""
        self.settle_as(self._chosen)

    def room(self) -> dict[str, int]:
        """GPUs of each type that no pinned job has."""
        left = {kind: self.nodes.capacity(kind) for kind in self.nodes.types}
        for pin in self.pins.values():
            for kind, gpus in pin.by_type.items():
                left[kind] -= gpus
        return left

    # Inside -------------------------------------------------------------------------------------------------------

    def _left(self, now_s: float, gpus: Mapping[str, int]) -> list[HareJob]:
        """What is left of every job that is not pinned, and that some GPU can run; begun rounds count whole."""
        result = []
        for job_id, job in self.jobs.items():
            known = model_of(job.application)
            if job_id in self.pins or not any(count and kind in known.speed for kind, count in gpus.items()):
                continue
            whole = total_rounds(job)
            rounds = max(int(np.ceil(whole * (1.0 - self.service[job_id].progress) - 1e-9)), 1)
            train = {kind: known.train_s(kind) for kind in gpus if kind in known.speed}
            result.append(
                HareJob(
                    job_id, rounds, requested_gpus(job), train, dict.fromkeys(train, known.sync_s()),
                    self.weights.get(job_id, 1.0), max(now_s, 0.0), known.name,
                )
            )  # fmt: skip
        return result

    def _order_of(self, instance: HareInstance, now_s: float, deadline_s: float) -> _Order:
        """The kept order where jobs and GPUs are what they were, else that of a new solve."""
        jobs, gpus = frozenset(job.id for job in instance.jobs), tuple(instance.gpus.tolist())
        kept = self._order_kept
        if kept is not None and kept.jobs == jobs and kept.gpus == gpus:
            return kept
        horizon = sufficient_horizon_s(instance, now_s)
        grid = self.grid
        if grid is None or now_s >= grid.edges[-1] or now_s < grid.edges[0]:
            grid = TimeGrid.geometric(now_s, now_s + SPARE * (horizon - now_s), self.growth)
        elif now_s > grid.edges[0]:
            grid = grid.rolled(now_s)
        self.grid = grid.until(horizon)
        found = self.solver.solve(instance, self.grid, 0.8 * deadline_s)
        self.replans, self.last_edits = self.replans + 1, found.edits
        self.edit_log.note(found.edits)
        mean = zip(instance.jobs, found.mean_busy_s.tolist(), strict=True)
        middle = {job.id: (at, job.rounds) for job, at in mean}
        self._order_kept = _Order(jobs, gpus, middle, found.bound)
        return self._order_kept

    def _placed(self, instance: HareInstance, order: _Order, now_s: float) -> tuple[HareSchedule, Ints]:
        """The list schedule of what is left, and the jobs by their middle."""
        ell = instance.least_round_s()
        known = [order.middle[job.id] for job in instance.jobs]
        done = np.array([rounds for _, rounds in known]) - instance.rounds
        mean: Floats = np.array([at for at, _ in known]) + 0.5 * done * ell  # of the rounds that are left
        size = np.maximum(np.floor(self.round_s / (CHUNKS_PER_SLOT * ell)), 1).astype(np.int64)
        chunks = Chunks.cut(instance, np.minimum(size, instance.rounds))
        if int((np.diff(chunks.first) * instance.tasks).sum()) > MOST_TASKS:
            chunks = Chunks.of(instance, max(MOST_TASKS, int(instance.tasks.sum())))
        free = np.full(int(instance.gpus.sum()), now_s)
        schedule = schedule_in_order(instance, chunks, middle_order(instance, chunks, mean), free_s=free)
        return schedule, np.argsort(mean, kind="stable")

    def _allocations(self, instance: HareInstance, owner: Ints) -> dict[str, Allocation]:
        """GPUs on nodes for each job: on those that it has where it keeps as many, then on the fullest with room."""
        kind_of = np.repeat(np.arange(len(instance.gpus)), instance.gpus)
        free = {kind: dict(self.nodes.free_by_node(kind)) for kind in instance.gpu_types}
        for held in (held for job, held in self.held.items() if job not in self.pins):
            for node, gpus in held.nodes:
                kind = next(kind for kind in free if node in free[kind])
                free[kind][node] += gpus
        wants: list[tuple[str, str, int, dict[str, int]]] = []
        for n, job in enumerate(instance.jobs):
            had = dict(self.held[job.id].nodes) if job.id in self.held else {}
            for g, kind in enumerate(instance.gpu_types):
                count = int(((owner == n) & (kind_of == g)).sum())
                if count:
                    wants.append((job.id, kind, count, had))
        shares: dict[str, dict[str, int]] = {}
        short: list[tuple[str, str, int]] = []
        for job_id, kind, count, had in wants:
            for node in had:
                take = min(free[kind].get(node, 0), count, had[node])
                if take:
                    shares.setdefault(job_id, {})[node] = take
                    free[kind][node] -= take
                    count -= take
            if count:
                short.append((job_id, kind, count))
        for job_id, kind, count in sorted(short, key=lambda each: -each[2]):
            for node in sorted(free[kind], key=lambda node: (-free[kind][node], node)):
                take = min(free[kind][node], count)
                if take:
                    own = shares.setdefault(job_id, {})
                    own[node] = own.get(node, 0) + take
                    free[kind][node] -= take
                    count -= take
        return {job.id: self._allocation(job, shares[job.id]) for job in instance.jobs if job.id in shares}

    def _allocation(self, job: HareJob, shares: Mapping[str, int]) -> Allocation:
        by_type: dict[str, int] = {}
        for node, gpus in shares.items():
            kind = next(kind for kind in self.nodes.types if self.nodes.has(kind, node))
            by_type[kind] = by_type.get(kind, 0) + gpus
        slowest = max(by_type, key=lambda kind: job.train_s[kind])
        mixture = tuple(sorted(by_type.items())) if len(by_type) > 1 else ()
        return Allocation(slowest, sum(by_type.values()), tuple(sorted(shares.items())), mixture)


def total_rounds(job: Job) -> int:
    """Rounds of a whole job: its samples are tasks."""
    return max(round((job.work_samples or 0.0) / requested_gpus(job)), 1)


@dataclass(frozen=True, slots=True)
class RunsTasks:
    """Whether a job's model runs on a GPU type. A class, so that policies can be saved."""

    def __call__(self, job: Job, gpu_type: str, gpus: int) -> bool:
        """Whatever the number of GPUs; InvalidJobError for a model that is none of Hare's."""
        return gpu_type in model_of(job.application).speed
