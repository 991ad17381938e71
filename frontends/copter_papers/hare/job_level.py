"""Schedules in which a job keeps its GPUs to the end, as with the paper's opponents."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from copter_frontends.policies.hare.completions import Completions
from copter_frontends.policies.hare.instance import Floats, HareInstance, Ints
from copter_frontends.policies.hare.schedule import gpu_type_of
from copter_frontends.vocabulary import InvalidJobError

Choice = tuple[int, Ints]  # number of a job, and numbers of its GPUs
Choose = Callable[[list[int], Floats], Choice | None]
"""(waiting jobs in order of arrival, seconds until each GPU is idle) -> the job to start on idle GPUs now, or None."""


@dataclass(frozen=True, slots=True, eq=False)
class JobLevelSchedule(Completions):
    """Start, completion and GPUs of every job.

    Attributes
    ----------
    instance : HareInstance
    gpus : tuple of ndarray of int
        GPU numbers of each job, held from its start to its completion.
    start_s, completion_s : ndarray (N,)
    """

    instance: HareInstance
    gpus: tuple[Ints, ...]
    start_s: Floats
    completion_s: Floats


def gang_seconds(instance: HareInstance, job: int, kinds: Ints) -> float:
    """Return a job's seconds on GPUs of these types, with a task per GPU; fewer GPUs share the tasks evenly (HR31)."""
    share = -(-int(instance.tasks[job]) // len(kinds))
    worst = float(np.max(share * instance.train_s[job, kinds] + instance.sync_s[job, kinds]))
    return int(instance.rounds[job]) * worst


def run_jobs(instance: HareInstance, choose: Choose) -> JobLevelSchedule:
    """Let `choose` start waiting jobs on idle GPUs whenever a job arrives or ends.

    Parameters
    ----------
    choose : callable
        A :data:`Choose`; it is called until it starts no further job.

    Raises
    ------
    InvalidJobError
        If jobs wait and none is started.
    """
    kind = gpu_type_of(instance)
    n = instance.n_jobs
    start, completion = np.zeros(n), np.zeros(n)
    held: list[Ints] = [np.zeros(0, dtype=np.int64)] * n
    arrivals = np.argsort(instance.arrival_s, kind="stable").tolist()
    ends: list[tuple[float, int]] = []
    busy_until = np.zeros(len(kind))
    waiting: list[int] = []
    while arrivals or ends or waiting:
        times = ([instance.arrival_s[arrivals[0]]] if arrivals else []) + ([ends[0][0]] if ends else [])
        if not times:
            job = instance.jobs[waiting[0]]
            raise InvalidJobError(f"job {job.id!r}: it waits for more GPUs that can run it than there are")
        now = float(min(times))
        while arrivals and instance.arrival_s[arrivals[0]] <= now:
            waiting.append(arrivals.pop(0))
        while ends and ends[0][0] <= now:
            heapq.heappop(ends)
        while waiting and (result := choose(waiting, np.maximum(busy_until - now, 0.0))) is not None:
            job_index, gpus = result
            waiting.remove(job_index)
            held[job_index], start[job_index] = gpus, now
            busy_until[gpus] = completion[job_index] = now + gang_seconds(instance, job_index, kind[gpus])
            heapq.heappush(ends, (float(completion[job_index]), job_index))
    return JobLevelSchedule(instance, tuple(held), start, completion)


def overlaps(schedule: JobLevelSchedule) -> bool:
    """Return whether a GPU has two jobs at once, or a job starts before its arrival."""
    instance = schedule.instance
    spans: dict[int, list[tuple[float, float]]] = {}
    for n, gpus in enumerate(schedule.gpus):
        for gpu in gpus.tolist():
            spans.setdefault(gpu, []).append((schedule.start_s[n], schedule.completion_s[n]))
    for held in spans.values():
        held.sort()
        if any(b[0] < a[1] - 1e-9 * (1 + a[1]) for a, b in pairwise(held)):
            return True
    return bool(np.any(schedule.start_s < instance.arrival_s - 1e-9))
