"""Scheduling with online arrivals: started tasks stay, all others are planned again (papers/hare.md, HR23)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.formulation import sufficient_horizon_s
from copter_frontends.policies.hare.grid import TimeGrid
from copter_frontends.policies.hare.instance import Floats, HareInstance, Ints
from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.schedule import HareSchedule, timed
from copter_frontends.policies.hare.shim import Rule, middle_order, schedule_in_order
from copter_frontends.policies.hare.solver import RelaxationSolver
from copter_frontends.policy_kit import Edits


@dataclass(frozen=True, slots=True)
class Event:
    """One replanning: time, number of jobs, statistics of the solve, and edits."""

    now_s: float
    jobs: int
    intervals: int
    iterations: int
    solve_time_s: float
    warm: bool
    edits: Edits


@dataclass(slots=True, eq=False)
class _Progress:
    """The jobs' progress and started tasks.

    Attributes
    ----------
    done, begun : ndarray (N,) of int
        Number of chunks of which all tasks have started, and number of started tasks of the next chunk.
    ready, synced : ndarray (N,)
        Time from which that next chunk may start, and time at which its started tasks will have synchronised.
    free : ndarray (GPUs,)
    chunk, gpu, start_s : lists of ndarray
        Chunk, GPU and start of the tasks that have started.
    """

    done: Ints
    begun: Ints
    ready: Floats
    synced: Floats
    free: Floats
    chunk: list[Ints]
    gpu: list[Ints]
    start_s: list[Floats]


class OnlineHare:
    """Plans the jobs that have arrived, without knowledge of later ones.

    The grid keeps its absolute edges (:meth:`.TimeGrid.rolled`): only the interval of the current time is cut, so that
    the relaxation starts from the last prices. Tasks that have started are carried out as planned; all others are
    planned again, including the other tasks of rounds that have begun.

    Parameters
    ----------
    gpus : mapping of GPU type to int
    growth, rule, tolerance, threads
        See :class:`.HareScheduler`.
    max_tasks : int
        Largest number of tasks of all jobs; it determines the chunk sizes when :meth:`run` begins.
    event_s : float
        Arrivals within this many seconds are planned together.
    on_completion : bool
        Whether to plan again also when a job ends.
    known : bool
        Whether every plan knows the jobs that have not arrived yet.
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
        on_completion: bool = False,
        known: bool = False,
    ) -> None:
        self.gpus, self.growth, self.rule = dict(gpus), growth, rule
        self.max_tasks, self.event_s, self.on_completion, self.known = max_tasks, event_s, on_completion, known
        self.solver = RelaxationSolver(tolerance, threads)
        self.events: list[Event] = []

    def run(self, jobs: Sequence[HareJob]) -> HareSchedule:
        """Schedule all jobs as they arrive; returns the executed schedule."""
        whole = HareInstance.of(jobs, self.gpus)
        chunks, n = Chunks.of(whole, self.max_tasks), whole.n_jobs
        count, none = np.diff(chunks.first), np.zeros(n, dtype=np.int64)
        at = _Progress(
            none, none.copy(), whole.arrival_s.copy(), np.zeros(n), np.zeros(int(whole.gpus.sum())), [], [], []
        )
        times, grid, self.events = self._event_times(whole.arrival_s), None, []
        now = times.pop(0) if times else np.inf
        while np.isfinite(now):
            here = np.flatnonzero((self.known | (whole.arrival_s <= now)) & (at.done < count))
            until = times[0] if times else np.inf
            if len(here):
                part, plan, grid = self._plan(whole, chunks, here, at, now, grid)
                if self.on_completion:
                    ends = plan.completion_s[plan.completion_s > now * (1 + 1e-12)]
                    until = min(until, float(ends.min(initial=np.inf)))
                self._commit(part, plan, chunks, here, at, until)
            if times and until >= times[0]:
                times.pop(0)
            now = until if until > now else np.inf
        chunk, gpu, start = np.concatenate(at.chunk), np.concatenate(at.gpu), np.concatenate(at.start_s)
        order = np.argsort(chunk, kind="stable")
        return timed(whole, chunks, chunk[order], gpu[order], start[order], at.ready)

    def _event_times(self, arrival_s: Floats) -> list[float]:
        times: list[float] = []
        for at in np.unique(arrival_s)[::-1].tolist():
            if not times or at < times[-1] - self.event_s:
                times.append(at)
        return times[::-1]

    def _plan(
        self, whole: HareInstance, chunks: Chunks, here: Ints, at: _Progress, now: float, grid: TimeGrid | None
    ) -> tuple[HareInstance, HareSchedule, TimeGrid]:
        """Plan the arrived jobs' tasks that have not started; returns instance, schedule and grid.

        The relaxation counts a round that has begun as whole, but only its tasks that have not started are placed.
        """
        size = chunks.rounds[chunks.first[here]]
        left = whole.rounds[here] - at.done[here] * size
        ready = np.maximum(at.ready[here], now)
        jobs = [
            replace(whole.jobs[n], rounds=int(rounds), arrival_s=float(at_s))
            for n, rounds, at_s in zip(here.tolist(), left.tolist(), ready.tolist(), strict=True)
        ]
        part = HareInstance.of(jobs, self.gpus)
        horizon = sufficient_horizon_s(part, float(max(now, at.free.max())))
        if grid is None or now >= grid.edges[-1]:
            grid = TimeGrid.geometric(now, now + 2.0 * (horizon - now), self.growth)
        grid = grid.rolled(now).until(horizon) if now > grid.edges[0] else grid.until(horizon)
        result = self.solver.solve(part, grid)
        self.events.append(
            Event(now, part.n_jobs, grid.intervals, result.iterations, result.solve_time_s, result.warm, result.edits)
        )
        cut = Chunks.cut(part, size)
        plan = schedule_in_order(
            part,
            cut,
            middle_order(part, cut, result.mean_busy_s),
            self.rule,
            free_s=np.maximum(at.free, now),
            first_tasks=part.tasks - at.begun[here],
            synced_s=at.synced[here],
        )
        return part, plan, grid

    def _commit(
        self, part: HareInstance, plan: HareSchedule, chunks: Chunks, here: Ints, at: _Progress, until: float
    ) -> None:
        """Record every planned task that starts before `until` as started."""
        taken = np.flatnonzero(plan.start_s < until)
        job, local = plan.task_job[taken], plan.chunk[taken] - plan.chunks.first[plan.task_job[taken]]
        at.chunk.append(chunks.first[here[job]] + at.done[here[job]] + local)
        at.gpu.append(plan.gpu[taken])
        at.start_s.append(plan.start_s[taken])
        np.maximum.at(at.free, plan.gpu[taken], plan.end_s[taken])
        started = np.bincount(plan.chunk[taken], minlength=len(plan.chunks))
        started[plan.chunks.first[:-1]] += at.begun[here]
        whole = started == part.tasks[plan.chunks.job]
        ended = np.zeros(len(plan.chunks))  # time at which the chunk's started tasks have synchronised
        np.maximum.at(ended, plan.chunk[taken], plan.synced_s[taken])
        ended[plan.chunks.first[:-1]] = np.maximum(ended[plan.chunks.first[:-1]], at.synced[here])
        steps = np.bincount(plan.chunks.job[whole], minlength=part.n_jobs)
        for k, n in enumerate(here.tolist()):
            first, step = int(plan.chunks.first[k]), int(steps[k])
            if step:
                at.ready[n] = ended[first + step - 1]
            at.done[n] += step
            more = first + step < plan.chunks.first[k + 1]
            at.begun[n] = started[first + step] if more else 0
            at.synced[n] = ended[first + step] if more else 0.0
