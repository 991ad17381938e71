"""The paper's scheduler as a round-based policy: tasks on mixed GPU types, replanned on arrival and completion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from copter import Model
from copter.runtime.collector import uncollected
from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.columns import FEW
from copter_frontends.policies.hare.compiling import compile_passes
from copter_frontends.policies.hare.facts import checked_weights
from copter_frontends.policies.hare.formulation import completion_floors, sufficient_horizon_s
from copter_frontends.policies.hare.gang_policy import ROUND_S
from copter_frontends.policies.hare.grid import TimeGrid, intervals_of
from copter_frontends.policies.hare.instance import Floats, HareInstance, Ints
from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.schedule import HareSchedule
from copter_frontends.policies.hare.seen_task_times import SeenTaskTimes
from copter_frontends.policies.hare.shim import middle_order, schedule_in_order
from copter_frontends.policies.hare.slots import counts_of, fill_idle, slot_owners, steady_counts, with_profiles
from copter_frontends.policies.hare.solver import RelaxationSolver
from copter_frontends.policies.hare.task_book import TaskBook
from copter_frontends.policies.hare.task_rates import TaskGoodput
from copter_frontends.policies.hare.task_times import GoodputTaskTimes, ModelTaskTimes, TaskTimes
from copter_frontends.policies.hare.task_training import TasksGoodput
from copter_frontends.policy_kit import Choice, EditLog, Edits, LpPolicy, RoundPolicy, SeenTimes, requested_gpus
from copter_frontends.vocabulary import Allocation, Cluster, Job

CHUNKS_PER_SLOT = 2  # least number of chunks of a job in a slot, so that chunk lengths do not decide who gets a GPU
NEAR_SLOTS = 2  # number of slots planned in such chunks; later chunks are longer
FAR_CHUNKS = 2  # number of chunks of a job that cannot start within the planned slots
NEAR_WORK = 2.0  # jobs within this multiple of the GPU time of the planned slots, in order, are cut into short chunks
MOST_TASKS = 200_000  # largest number of tasks in a plan; chunks are made long enough for it
SPARE = 2.0  # horizon of a new grid, relative to the horizon that suffices now
MOST_SPARE = 16.0  # the grid is made again if its horizon is longer than so many times the one that suffices
WORTH = 0.1  # least share of a plan's gap that a relaxation must be able to close, otherwise it is not solved
LOOSE = 0.1  # largest relative gap with which a relaxation may end


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """Result of the last solve: its jobs and GPUs, and each job's middle (HR18).

    Attributes
    ----------
    jobs : tuple of HareJob
    gpus : tuple of int
    middle_s : float64 array (jobs,)
        Mean busy time of each job; empty if none was solved for.
    rounds : int64 array (jobs,)
        Rounds that were left then.
    bound : float
        Lower bound on the sum of w C, in seconds from the start of the simulation.
    priced : bool
        Whether some price of the relaxation is positive, which means that GPUs are scarce.
    """

    jobs: tuple[HareJob, ...]
    gpus: tuple[int, ...]
    middle_s: Floats
    rounds: Ints
    bound: float
    priced: bool


class HareTaskPolicy(LpPolicy, RoundPolicy):
    """Hare by tasks, in rounds (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    A job consists of rounds, each with a task per requested GPU. In the relaxation's order, tasks are placed where they
    finish first, on any mixture of types; a GPU may run several tasks of a round in turn. Until the next plan, each GPU
    works for the job with most time on it. When a job arrives or ends, or the GPUs change, the relaxation is solved
    again if it can say much that is not known without it; otherwise its order, or that by work and weight, is kept.

    Parameters
    ----------
    cluster : Cluster
        It is read, not changed.
    goodput : GoodputModel, optional
        Source of the applications' task times (:class:`.GoodputTaskTimes`). Without it, jobs must be of the paper's
        eight models.
    round_s : float
        Seconds between plans.
    growth, threads
        See :class:`.HareScheduler`.
    weights : mapping of job id to float, optional
        w_n; 1 for jobs that are not listed.
    seen : SeenTimes, optional
        History of measured times, which also grows while jobs run (HR30). Jobs without a measurement run first, on
        GPUs of one type. Without a history, times are the declared ones, and unknown models are refused.
    relaxation : {"worthwhile", "always"}
        When the relaxation is solved after a change of jobs or GPUs: where it has at most 4,000 columns and may close a
        tenth of the plan's gap, or always.

    Attributes
    ----------
    lp_each_round : bool
        False, because the relaxation is solved only when jobs or GPUs change.
    replans : int
        Number of solves of the relaxation.
    last_edits : Edits or None
        Edits of the model for the last solve.
    edit_log : EditLog
        Edits for each solve.
    alpha : float or None
        Largest ratio of a job's task times on two types in the last plan.
    """

    edit_log: EditLog

    def __init__(
        self,
        cluster: Cluster,
        goodput: GoodputModel | None = None,
        *,
        round_s: float = ROUND_S,
        growth: float = 1.5,
        threads: int = 0,
        weights: Mapping[str, float] | None = None,
        seen: SeenTimes | None = None,
        relaxation: Literal["worthwhile", "always"] = "worthwhile",
    ) -> None:
        plain = goodput.plain if isinstance(goodput, TasksGoodput) else goodput
        self.times: TaskTimes = ModelTaskTimes()
        if plain is not None and not isinstance(plain, TaskGoodput):
            self.times = GoodputTaskTimes(cluster, plain)
        self.history = None if seen is None else SeenTaskTimes(self.times, seen, cluster)
        self.times = self.history or self.times
        LpPolicy.__init__(self)
        RoundPolicy.__init__(self, cluster, round_s, RunsTasks(self.times))
        self.book = TaskBook(self.nodes.types)
        self.weights = checked_weights(weights)
        if relaxation not in ("worthwhile", "always"):
            raise SettingsError(f"relaxation is {relaxation!r}, must be 'worthwhile' or 'always'")
        self.relaxation = relaxation
        self.growth, self.solver = growth, RelaxationSolver(threads=threads)
        self.grid: TimeGrid | None = None
        self._moving = False  # whether the grid's time zero is the time of the last solve
        self.replans = 0
        self.last_edits: Edits | None = None
        self.edit_log = EditLog()
        self._order_kept: _Order | None = None
        self._ranked: tuple[tuple[HareJob, ...], Ints] = (), np.zeros(0, dtype=np.int64)
        self._chosen: dict[str, Allocation] = {}
        self.alpha: float | None = None
        self._now_s = 0.0
        compile_passes()

    lp_each_round = False
    follows = True  # the order of the jobs depends on their remaining work

    @property
    def model(self) -> Model:
        """Model of the last solve: the jobs that were solved again, with the columns generated so far."""
        return self.solver.engine.model

    @property
    def seldom(self) -> str:
        """Reason why some rounds solve no program, for reports."""
        return (
            "the relaxation is solved where jobs or GPUs have come or gone, if it has at most 4,000 columns and may "
            "close a tenth of the plan's gap"
        )

    @property
    def figures(self) -> dict[str, float]:
        """Return the last instance's alpha, the approximation factor of the paper's Theorem 4, and the times measured.

        docs/papers/hare.md refutes that theorem.
        """
        found = {} if self.history is None else {"times_measured": float(len(self.history.seen))}
        if self.alpha is not None:
            found |= {"alpha": self.alpha, "alpha_factor": self.alpha * (2.0 + self.alpha)}
        return found

    def explained(self, job_id: str) -> dict[str, Any]:
        """Return a job's position in the relaxation's order, its task times, and its GPUs."""
        job, order, held = self.job(job_id), self._order_kept, self.held.get(job_id)
        times = self.times.of(job)
        done = times.rounds_done(self.service[job_id].progress)
        middle = {}
        if order is not None:
            middle = {each.id: at for each, at in zip(order.jobs, order.middle_s.tolist(), strict=False)}
        names, by_rank = self._ranked
        ranked = [names[n].id for n in by_rank.tolist()]
        return {
            "job": job_id,
            "place": f"{ranked.index(job_id) + 1} of {len(ranked)}" if job_id in ranked else "not planned yet",
            "middle_s": middle.get(job_id),
            "rounds_left": max(times.rounds - done, 0.0),
            "tasks_of_a_round": requested_gpus(job),
            "task_s": {kind: seconds + times.sync_s[kind] for kind, seconds in times.train_s.items()},
            "gpus": {} if held is None else held.by_type,
            "bound_s": None if order is None else order.bound,
            **self.figures,
        }

    def sizes(self, job: Job) -> Iterable[int]:
        """Return all numbers of GPUs up to one per task; tasks of a round take turns on fewer GPUs."""
        return range(1, requested_gpus(job) + 1)

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Queue a job and its task times; raises InvalidJobError for an unknown application, and then adds nothing."""
        self.add_jobs((job,))

    @uncollected()
    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Do :meth:`add_job` for each job in one pass; on an error none is added."""
        times = [self.times.of(job) for job in jobs]
        parts = [
            HareJob(
                job.id,
                own.rounds,
                requested_gpus(job),
                own.train_s,
                own.sync_s,
                self.weights.get(job.id, 1.0),
                0.0,
                job.application,
            )
            for job, own in zip(jobs, times, strict=True)
        ]
        self.enqueue(jobs)
        try:
            self.book.add_all(parts, times)
        except BaseException:  # Ctrl-C too
            for job in jobs:
                super().remove_job(job.id)
                if job.id in self.book:
                    self.book.remove(job.id)
            raise

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Update a job's ``progress``, and so the rounds that are left."""
        super().update_job(job_id, **what_changed)
        self.book.progress(job_id, self.service[job_id].progress)

    @uncollected()
    def update_jobs(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Do :meth:`update_job` for each job; on an error no job is changed."""
        self.book.progress_of(self.note_progress(told))

    @uncollected()
    def update_progress(self, progress: Mapping[str, float]) -> None:
        """Set the progress of many jobs; on an error none is taken in."""
        super().update_progress(progress)
        self.book.progress_of(progress)

    def fits_somewhere(self, job: Job) -> bool:
        """Whether a job's tasks run on a type of which there are GPUs: one suffices, tasks take turns."""
        return any(kind in self.book.kinds and self.nodes.capacity(kind) for kind in self.times.kinds(job))

    def remove_job(self, job_id: str) -> None:
        """Forget a job, its tasks and its measurement under way, and free its GPUs."""
        super().remove_job(job_id)
        self.book.remove(job_id)
        if self.history is not None:
            self.history.forget(job_id)

    def hold(self, job_id: str, allocation: Allocation) -> None:
        """Give a job these free GPUs, and note them with its tasks."""
        super().hold(job_id, allocation)
        self.book.hold(job_id, allocation)

    def release(self, job_id: str) -> None:
        """Release a job's GPUs, if it has any."""
        super().release(job_id)
        if job_id in self.book:
            self.book.hold(job_id, None)

    def hold_all(self, given: Mapping[str, Allocation]) -> None:
        """Give many jobs free GPUs, and note them with their tasks."""
        super().hold_all(given)
        self.book.hold_all(given)

    def release_all(self, job_ids: Sequence[str]) -> None:
        """Release the GPUs of many jobs."""
        super().release_all(job_ids)
        self.book.release_all(job_ids)

    # The round ----------------------------------------------------------------------------------------------------

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Place the tasks of all unpinned jobs, and derive each job's GPUs until the next plan."""
        begun, self._now_s = perf_counter(), now_s
        self._learn(now_s)
        gpus = self.room()
        rows, instance = self._left(now_s, gpus)
        self._chosen = {}
        if not len(rows):
            return Choice({})
        ell = instance.least_round_s()
        mean = smith_means(instance, ell, now_s)
        chunks, far = self._chunks(instance, ell, mean)
        plain = self._placed(instance, chunks, mean, ell, now_s)
        placed = perf_counter()
        order = self._order_of(instance, now_s, deadline_s, plain[0].objective)
        solved = perf_counter()
        schedule, by_middle = self._better(instance, chunks, order, ell, plain, now_s)
        self._ranked = instance.jobs, by_middle
        owner = slot_owners(schedule, now_s, now_s + self.round_s)
        owner[(owner >= 0) & far[owner]] = -1  # a GPU is idle sooner than for a job that comes so late in the order
        owner = fill_idle(schedule, owner, by_middle)
        held = self.book.held[rows]
        counts = self._counts(instance, owner, by_middle, held, self.book.restart_s[rows])
        if self.history is not None:
            new = [n for n, job in enumerate(instance.jobs) if not self.history.measured(self.jobs[job.id])]
            counts = with_profiles(instance, counts, new, held, by_middle)
        self._chosen = self._allocations(instance, counts, held)
        self.alpha = alpha_of(instance)
        value = schedule.objective
        return Choice(
            {job: (given.gpu_type, given.gpus) for job, given in self._chosen.items()},
            objective=-value,
            bound=max(-order.bound, -value),
            timings={"solve": solved - placed, "shim": perf_counter() - solved + placed - begun},
        )

    def settle(self, wanted: Mapping[str, tuple[str, int]]) -> None:
        """Assign exactly the chosen nodes."""
        self.settle_as(self._chosen)
        if self.history is not None:
            for job_id, held in self.held.items():
                progress, times = self.service[job_id].progress, self.book.times[job_id]
                self.history.begin(self.jobs[job_id], times, held, self._now_s, progress)

    def room(self) -> dict[str, int]:
        """Return the GPUs of each type that no pinned job holds."""
        left = {kind: self.nodes.capacity(kind) for kind in self.nodes.types}
        for pin in self.pins.values():
            for kind, gpus in pin.by_type.items():
                left[kind] -= gpus
        return left

    # Internal -----------------------------------------------------------------------------------------------------

    def _learn(self, now_s: float) -> None:
        """Measure the running jobs; where a time has changed by much, jobs like that one are planned anew."""
        if self.history is None:
            return
        for job_id, job in self.jobs.items():
            known, progress = self.book.times[job_id], self.service[job_id].progress
            if self.history.measure(job, known, self.held.get(job_id), now_s, progress, self.round_s):
                self._order_kept = None
                for other in self.jobs.values():
                    if other.application == job.application:
                        self.book.retime(other.id, self.history.of(other))

    def _left(self, now_s: float, gpus: Mapping[str, int]) -> tuple[NDArray[np.intp], HareInstance]:
        """Return the remaining work of each unpinned job that some GPU can run, and the jobs' rows.

        A round that has begun counts as a whole round.
        """
        book, count = self.book, np.array([gpus[kind] for kind in self.book.kinds], dtype=np.int64)
        rows = book.rows(self.pins.keys())
        rows = rows[(np.isfinite(book.train_s[rows]) & (count > 0)).any(axis=1)]
        train = np.where(count > 0, book.train_s[rows], np.inf)
        left = np.ceil(book.rounds[rows] - book.done[rows] - 1e-9).astype(np.int64)
        return rows, HareInstance(
            jobs=tuple(book.jobs_at(rows)),
            gpu_types=book.kinds,
            gpus=count,
            train_s=train,
            sync_s=np.where(np.isfinite(train), book.sync_s[rows], 0.0),
            rounds=np.maximum(left, 1),
            tasks=book.tasks[rows],
            weight=book.weight[rows],
            arrival_s=np.full(len(rows), max(now_s, 0.0)),
        )

    def _order_of(self, instance: HareInstance, now_s: float, deadline_s: float, value: float) -> _Order:
        """Return the kept order if jobs and GPUs are unchanged, otherwise the order of a new solve.

        A relaxation of more than :data:`FEW` columns is solved only if asked to ("always"): there its order changes no
        plan and its bound is within one per cent of the one without prices (docs/papers/hare.md).

        The relaxation's value is between two numbers that are known without a solve: its bound without prices, and the
        value of a point that fills the GPUs (:meth:`.RelaxationSolver.range_of`). If these differ by less than the
        share :data:`WORTH` of the gap of the plan at hand, of this `value`, the solve could close no more of the gap
        than that, and is left out. Otherwise it ends as soon as what it leaves open is no more than that.
        """
        jobs, gpus = instance.jobs, tuple(instance.gpus.tolist())
        kept = self._order_kept
        if kept is not None and kept.jobs == jobs and kept.gpus == gpus:
            return kept
        if self.relaxation == "worthwhile" and self._columns(instance) > FEW:
            floor, _ = completion_floors(instance, instance.arrival_s)
            self._order_kept = _Order(jobs, gpus, np.zeros(0), instance.rounds, float(instance.weight @ floor), False)
            return self._order_kept
        zero_s, self.grid = self._grid_of(instance, now_s)
        part, shift = replace(instance, arrival_s=instance.arrival_s - zero_s), zero_s * float(instance.weight.sum())
        tolerance = 0.0
        if self.relaxation == "worthwhile":
            low, high = self.solver.range_of(part, self.grid)
            enough = WORTH * (value - shift - low)
            tolerance = min(max(enough, 0.0) / max(high, 1e-300), LOOSE)
            if high - low <= enough:
                self.programs_needless += 1
                self._order_kept = _Order(jobs, gpus, np.zeros(0), instance.rounds, low + shift, False)
                return self._order_kept
        found = self.solver.solve(part, self.grid, 0.8 * deadline_s, zero_s, tolerance)
        self.replans, self.last_edits = self.replans + 1, found.edits
        self.edit_log.note(found.edits)
        if found.passes:
            self.show(self.solver.engine.solution, self.solver.engine.solution_s)
        else:
            self.programs_needless += 1  # the kept solution is within the solver's tolerance
        middle_s, priced = zero_s + found.latest_mean_s, bool(found.price.any())
        self._order_kept = _Order(jobs, gpus, middle_s, instance.rounds, found.bound + shift, priced)
        return self._order_kept

    def _columns(self, instance: HareInstance) -> int:
        """Return the number of columns of a relaxation on a new grid."""
        return instance.n_jobs * len(instance.gpus) * intervals_of(self.growth)

    def _grid_of(self, instance: HareInstance, now_s: float) -> tuple[float, TimeGrid]:
        """Return the time zero of the grid for a solve, and the grid.

        A program that is solved with all of its columns has its times from now on, on a grid that stays, so that
        progress is an edit of bounds and costs. A larger one has absolute times, so that its prices and columns of late
        intervals stay.
        """
        had, self._moving = self._moving, self._columns(instance) <= FEW
        grid, horizon = self.grid if had == self._moving else None, sufficient_horizon_s(instance, now_s)
        if self._moving:
            ahead_s = horizon - now_s
            if grid is None or not ahead_s <= grid.edges[-1] <= MOST_SPARE * ahead_s:
                grid = TimeGrid.geometric(0.0, SPARE * ahead_s, self.growth)
            return now_s, grid
        if grid is None or not grid.edges[0] <= now_s < grid.edges[-1]:
            grid = TimeGrid.geometric(now_s, now_s + SPARE * (horizon - now_s), self.growth)
        elif now_s > grid.edges[0]:
            grid = grid.rolled(now_s)
        return 0.0, grid.until(horizon)

    def _chunks(self, instance: HareInstance, ell: Floats, mean: Floats) -> tuple[Chunks, NDArray[np.bool_]]:
        """Return the rounds of all jobs in chunks: short ones for the jobs that come first by `mean`, few for others.

        A job that comes after more work than the GPUs can do in the planned slots is planned again before it can start;
        the second result says which jobs these are.
        """
        size = np.maximum(np.floor(self.round_s / (CHUNKS_PER_SLOT * ell)), 1).astype(np.int64)
        order, near_s = np.argsort(mean, kind="stable"), NEAR_WORK * NEAR_SLOTS * self.round_s
        busy = instance.tasks * np.minimum(instance.rounds * ell, near_s)
        before = np.cumsum(busy[order]) - busy[order]
        far = np.zeros(instance.n_jobs, dtype=np.bool_)
        far[order[before > near_s * float(instance.gpus.sum())]] = True
        size[far] = np.maximum(size[far], -(-instance.rounds[far] // FAR_CHUNKS))
        chunks = Chunks.growing(instance, np.minimum(size, instance.rounds), NEAR_SLOTS * CHUNKS_PER_SLOT)
        if int((np.diff(chunks.first) * instance.tasks).sum()) > MOST_TASKS:
            chunks = Chunks.of(instance, max(MOST_TASKS, int(instance.tasks.sum())))
        return chunks, far

    def _placed(
        self, instance: HareInstance, chunks: Chunks, mean: Floats, ell: Floats, now_s: float
    ) -> tuple[HareSchedule, Ints]:
        """Return the list schedule of the remaining work by these mean busy times, and the jobs in that order."""
        free = np.full(int(instance.gpus.sum()), now_s)
        schedule = schedule_in_order(instance, chunks, middle_order(instance, chunks, mean, ell), free_s=free)
        return schedule, np.argsort(mean, kind="stable")

    def _better(
        self,
        instance: HareInstance,
        chunks: Chunks,
        order: _Order,
        ell: Floats,
        plain: tuple[HareSchedule, Ints],
        now_s: float,
    ) -> tuple[HareSchedule, Ints]:
        """Return the plan in the relaxation's order (HR25) if there are prices and it is better than `plain`."""
        if not order.priced:
            return plain
        mean = order.middle_s + 0.5 * (order.rounds - instance.rounds) * ell  # mean busy time of the remaining rounds
        other = self._placed(instance, chunks, mean, ell, now_s)
        return other if other[0].objective < plain[0].objective else plain

    def _counts(self, instance: HareInstance, owner: Ints, by_middle: Ints, held: Ints, restart_s: Floats) -> Ints:
        """Return GPUs of each type per job: those of the tasks, or the current ones if a restart does not pay off."""
        wanted = counts_of(instance, owner)
        if not restart_s.any():
            return wanted
        return steady_counts(instance, wanted, held, by_middle, restart_s, self.round_s)

    def _allocations(self, instance: HareInstance, counts: Ints, held: Ints) -> dict[str, Allocation]:
        """Return GPUs on nodes per job: current nodes if the number is unchanged, then the fullest with room.

        A job with the same number of each type as before keeps its allocation unchanged.
        """
        same = (counts == held).all(axis=1)
        ids, jobs, kinds = [job.id for job in instance.jobs], instance.jobs, instance.gpu_types
        free = dict[str, int]()
        kind_of = dict[str, str]()
        for kind in kinds:
            nodes = self.nodes.free_by_node(kind)
            free |= nodes
            kind_of |= dict.fromkeys(nodes, kind)
        other = np.flatnonzero(~same)
        had = {n: self.held[ids[n]].nodes for n in other[held[other].any(axis=1)].tolist()}
        for nodes_had in had.values():
            for node, gpus in nodes_had:
                free[node] += gpus
        shares: dict[int, dict[str, int]] = {}
        short: list[tuple[int, int, str, int]] = []
        k, g = np.nonzero(counts[other])
        for n, number, count in zip(other[k].tolist(), g.tolist(), counts[other[k], g].tolist(), strict=True):
            kind, wanted = kinds[number], count
            for node, had_here in had.get(n, ()):
                take = min(free[node], wanted, had_here) if kind_of[node] == kind else 0
                if take:
                    shares.setdefault(n, {})[node] = take
                    free[node] -= take
                    wanted -= take
            if wanted:
                short.append((-wanted, len(short), kind, n))
        room: dict[str, list[tuple[int, str]]] = {kind: [] for kind in kinds}
        for node, gpus in free.items():
            if gpus:
                room[kind_of[node]].append((-gpus, node))
        for heap in room.values():
            heapify(heap)
        for lack, _, kind, n in sorted(short):
            own, heap, wanted = shares.setdefault(n, {}), room[kind], -lack
            while wanted:
                rest, node = heap[0]
                take = min(-rest, wanted)
                own[node] = own.get(node, 0) + take
                wanted -= take
                if rest + take:
                    heapreplace(heap, (rest + take, node))
                else:
                    heappop(heap)
        kept = [ids[n] for n in np.flatnonzero(same & counts.any(axis=1)).tolist()]
        chosen = dict(zip(kept, map(self.held.__getitem__, kept), strict=True))
        chosen |= {ids[n]: _allocation(jobs[n], own, kind_of) for n, own in shares.items()}
        return chosen


def _allocation(job: HareJob, shares: Mapping[str, int], kind_of: Mapping[str, str]) -> Allocation:
    """Return the allocation of these GPUs by node; its type is the slowest one."""
    if len(shares) == 1:
        (share,) = shares.items()
        return Allocation(kind_of[share[0]], share[1], (share,))
    by_type: dict[str, int] = {}
    for node, gpus in shares.items():
        by_type[kind_of[node]] = by_type.get(kind_of[node], 0) + gpus
    slowest = max(by_type, key=lambda kind: job.train_s[kind])
    mixture = tuple(sorted(by_type.items())) if len(by_type) > 1 else ()
    return Allocation(slowest, sum(by_type.values()), tuple(sorted(shares.items())), mixture)


def smith_means(instance: HareInstance, ell: Floats, now_s: float | Floats) -> Floats:
    """Return mean busy times that order jobs by work over weight, in GPU seconds (HR26), (N,).

    `now_s` is the time from which each job may run.
    """
    return np.asarray(now_s + instance.rounds * ell * instance.tasks * (instance.weight.mean() / instance.weight))


def alpha_of(instance: HareInstance) -> float:
    """Return the largest ratio of a job's task times on two usable GPU types."""
    usable = np.isfinite(instance.train_s)
    seconds = np.where(usable, instance.train_s + instance.sync_s, 0.0)
    return float((seconds.max(axis=1) / np.where(usable, seconds, np.inf).min(axis=1)).max())


@dataclass(slots=True)
class RunsTasks:
    """Predicate that a job's tasks run on a GPU type; it is a class so that policies can be saved.

    The types of the last job are kept, since all types are asked of one job after the other.
    """

    times: TaskTimes
    _last: tuple[Job, frozenset[str]] | None = None

    def __call__(self, job: Job, gpu_type: str, gpus: int) -> bool:
        """Return whether a job runs on a GPU type; raises InvalidJobError for an unknown application."""
        if self._last is None or self._last[0] is not job:
            self._last = job, frozenset(self.times.kinds(job))
        return gpu_type in self._last[1]
