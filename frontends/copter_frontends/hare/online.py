"""Jobs that arrive one by one: what has started stays, the rest is planned again at every arrival (HR22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from copter_frontends.hare.chunks import Chunks
from copter_frontends.hare.formulation import sufficient_horizon_s
from copter_frontends.hare.grid import TimeGrid
from copter_frontends.hare.instance import Floats, HareInstance, Ints
from copter_frontends.hare.job import HareJob
from copter_frontends.hare.schedule import HareSchedule, timed
from copter_frontends.hare.shim import Rule, middle_order, schedule_in_order
from copter_frontends.hare.solver import RelaxationSolver


@dataclass(frozen=True, slots=True)
class Event:
    """One replanning: its time, its jobs, and how the relaxation was solved."""

    now_s: float
    jobs: int
    intervals: int
    iterations: int
    solve_time_s: float
    warm: bool


@dataclass(slots=True)
class _Tasks:
    """Tasks that have started, or are of a chunk that has: lists by chunk of (chunk, GPUs, starts)."""

    chunk: list[Ints]
    gpu: list[Ints]
    start_s: list[Floats]


class OnlineHare:
    """Plans with the jobs that have arrived, knowing nothing of later ones.

    The grid is absolute and rolls (:meth:`.TimeGrid.rolled`): at an event only the interval that now lies in is cut, so
    that the relaxation is solved from the last prices. A chunk of which a task has started is carried out as it was
    planned; all others are planned again.

    Parameters
    ----------
    gpus : mapping of GPU type to int
    growth, rule, tolerance, threads
        As for :class:`.HareScheduler`.
    max_tasks : int
        Of all jobs together; chunk sizes are fixed when :meth:`run` begins.
    event_s : float
        Arrivals within so many seconds are planned together.
    """

    def __init__(
        self,
        gpus: Mapping[str, int],
        growth: float = 1.5,
        rule: Rule = "earliest_finish",
        tolerance: float = 1e-4,
        max_tasks: int = 200_000,
        event_s: float = 0.0,
        threads: int = 0,
    ) -> None:
        self.gpus, self.growth, self.rule = dict(gpus), growth, rule
        self.max_tasks, self.event_s = max_tasks, event_s
        self.solver = RelaxationSolver(tolerance, threads)
        self.events: list[Event] = []

    def run(self, jobs: Sequence[HareJob]) -> HareSchedule:
        """Schedule all jobs as they arrive; the schedule as it was carried out."""
        whole = HareInstance.of(jobs, self.gpus)
        chunks = Chunks.of(whole, self.max_tasks)
        count = np.diff(chunks.first)
        done, ready = np.zeros(whole.n_jobs, dtype=np.int64), whole.arrival_s.copy()
        free, tasks = np.zeros(int(whole.gpus.sum())), _Tasks([], [], [])
        times, grid = self._event_times(whole.arrival_s), None
        self.events = []
        for k, now in enumerate(times):
            here = np.flatnonzero((whole.arrival_s <= now) & (done < count))
            if not len(here):
                continue
            until = times[k + 1] if k + 1 < len(times) else np.inf
            part, plan, grid = self._plan(whole, chunks, here, done, ready, free, now, grid)
            self._commit(part, plan, chunks, here, done, ready, free, until, tasks)
        chunk, gpu, start = np.concatenate(tasks.chunk), np.concatenate(tasks.gpu), np.concatenate(tasks.start_s)
        order = np.argsort(chunk, kind="stable")
        return timed(whole, chunks, chunk[order], gpu[order], start[order], ready)

    def _event_times(self, arrival_s: Floats) -> list[float]:
        times: list[float] = []
        for at in np.unique(arrival_s)[::-1].tolist():
            if not times or at < times[-1] - self.event_s:
                times.append(at)
        return times[::-1]

    def _plan(
        self, whole: HareInstance, chunks: Chunks, here: Ints, done: Ints, ready: Floats, free: Floats, now: float,
        grid: TimeGrid | None,
    ) -> tuple[HareInstance, HareSchedule, TimeGrid]:  # fmt: skip
        """Instance, schedule and grid of the chunks, of jobs that have arrived, that have not started."""
        size = chunks.rounds[chunks.first[here]]
        left = whole.rounds[here] - done[here] * size
        jobs = [
            replace(whole.jobs[n], rounds=int(r), arrival_s=max(float(ready[n]), now))
            for n, r in zip(here.tolist(), left.tolist(), strict=True)
        ]
        part = HareInstance.of(jobs, self.gpus)
        horizon = sufficient_horizon_s(part, float(max(now, free.max())))
        if grid is None or now >= grid.edges[-1]:
            grid = TimeGrid.geometric(now, now + 2.0 * (horizon - now), self.growth)
        grid = grid.rolled(now).until(horizon) if now > grid.edges[0] else grid.until(horizon)
        result = self.solver.solve(part, grid)
        self.events.append(Event(now, part.n_jobs, grid.intervals, result.iterations, result.solve_time_s, result.warm))
        cut = Chunks.cut(part, size)
        order = middle_order(part, cut, result.mean_busy_s)
        return part, schedule_in_order(part, cut, order, self.rule, free_s=np.maximum(free, now)), grid

    def _commit(
        self, part: HareInstance, plan: HareSchedule, chunks: Chunks, here: Ints, done: Ints, ready: Floats,
        free: Floats, until: float, tasks: _Tasks,
    ) -> None:  # fmt: skip
        """Take over every chunk of which a task starts before `until`."""
        earliest = np.full(len(plan.chunks), np.inf)
        np.minimum.at(earliest, plan.chunk, plan.start_s)
        taken = (earliest < until)[plan.chunk]
        job = here[plan.task_job[taken]]
        local = plan.chunk[taken] - plan.chunks.first[plan.task_job[taken]]
        tasks.chunk.append(chunks.first[job] + done[job] + local)
        tasks.gpu.append(plan.gpu[taken])
        tasks.start_s.append(plan.start_s[taken])
        np.maximum.at(free, plan.gpu[taken], plan.end_s[taken])
        np.maximum.at(ready, job, plan.synced_s[taken])
        started = np.bincount(plan.chunks.job[earliest < until], minlength=part.n_jobs)
        done[here] += started
