"""Simulated executors: every GPU runs its task sequence, with switching times and memory (the paper's sections 4,
6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from copter_frontends.policies.hare.array_groups import ExecutionCounts, Switching, Tasks
from copter_frontends.policies.hare.instance import Floats, Ints
from copter_frontends.policies.hare.schedule import HareSchedule, timed
from copter_frontends.policies.hare.switching import GPU_MEMORY_MB, Scheme, memory_mb, switch_cost
from copter_frontends.vocabulary.compilation import compiled

SLOTS = 16  # a GPU keeps at most so many models in memory


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """Result of a schedule's execution.

    Attributes
    ----------
    schedule : HareSchedule
        The executed schedule: the same sequences, delayed by the switches.
    switches, hits : ndarray (N,) of int
        Number of switches to tasks of each job, and of those that found its model in memory.
    switch_s : ndarray (N,)
        Seconds spent on these switches.
    """

    schedule: HareSchedule
    switches: Ints
    hits: Ints
    switch_s: Floats


def execute(schedule: HareSchedule, scheme: Scheme = "hare", memory_of: Mapping[str, float] | None = None) -> Execution:
    """Run a schedule's sequences.

    Between tasks of different jobs a GPU switches, as soon as it is free. A task starts when its GPU has switched and
    its round may start. Hare keeps the models of the tasks that ended last, as many as fit beside the running task
    (HR35).

    Parameters
    ----------
    schedule : HareSchedule
        Schedule of jobs of the eight models.
    scheme : {"default", "pipeswitch", "hare"}
    memory_of : mapping of GPU type to float, optional
        Memory of a GPU of each type in MB; 16,000 for types that are not known.

    Raises
    ------
    InvalidJobError
        If a job's model or the scheme is unknown.
    """
    instance = schedule.instance
    costs = [switch_cost(job.model, scheme) for job in instance.jobs]
    sizes = np.array([memory_mb(job.model) for job in instance.jobs]).reshape(-1, 2)
    memory = {**GPU_MEMORY_MB, **(memory_of or {})}
    capacity = np.repeat([memory.get(kind, 16_000.0) for kind in instance.gpu_types], instance.gpus)
    start = np.zeros(len(schedule.chunk))
    completion, n = instance.arrival_s.copy(), instance.n_jobs
    switches, hits, spent = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n)
    order = np.argsort(schedule.start_s, kind="stable")
    hold_s, whole_s = schedule.end_s - schedule.start_s, schedule.synced_s - schedule.start_s
    hit_s, miss_s = np.array([c.hit_s for c in costs]), np.array([c.miss_s for c in costs])
    _replay(
        Tasks(order, schedule.chunk, schedule.task_job, schedule.gpu, hold_s, whole_s),
        Switching(hit_s, miss_s, sizes, capacity),
        instance.arrival_s,
        start,
        ExecutionCounts(completion, switches, hits, spent),
    )
    carried = timed(instance, schedule.chunks, schedule.chunk, schedule.gpu, start, completion)
    return Execution(carried, switches, hits, spent)


@compiled
def _keep(job: int, own_mb: float, running_mb: float, capacity_mb: float, kept: Ints, mb: Floats) -> bool:
    """Return whether the job's model is in memory; removes the oldest models that no longer fit.

    `kept` and `mb` are the jobs and sizes of the kept models, newest first, -1 for none.
    """
    result, count = False, 0
    room = capacity_mb - running_mb
    for k in range(kept.shape[0]):
        if kept[k] == job:
            result = True
        elif kept[k] >= 0 and mb[k] <= room and count < kept.shape[0] - 1:
            room -= mb[k]
            kept[count], mb[count] = kept[k], mb[k]
            count += 1
    for k in range(count, 0, -1):
        kept[k], mb[k] = kept[k - 1], mb[k - 1]
    kept[0], mb[0] = job, own_mb
    for k in range(count + 1, kept.shape[0]):
        kept[k] = -1
    return result


@compiled
def _replay(tasks: Tasks, cost_of: Switching, arrival_s: Floats, start: Floats, counts: ExecutionCounts) -> None:
    """Execute the tasks in the order of their planned starts, which preserves rounds and sequences."""
    chunk, job, gpu, hold_s, whole_s = tasks.chunk, tasks.job, tasks.gpu, tasks.hold_s, tasks.whole_s
    sizes, capacity = cost_of.sizes, cost_of.capacity
    gpus, jobs = capacity.shape[0], arrival_s.shape[0]
    free, last = np.zeros(gpus), np.full(gpus, -1)
    kept, mb = np.full((gpus, SLOTS), -1), np.zeros((gpus, SLOTS))
    at, ready, synced = np.full(jobs, -1), arrival_s.copy(), arrival_s.copy()
    for i in tasks.order:
        n, m = job[i], gpu[i]
        if chunk[i] != at[n]:
            at[n], ready[n] = chunk[i], synced[n]
        begin = free[m]
        if last[m] != n:
            hit = _keep(n, sizes[n, 1], sizes[n, 0], capacity[m], kept[m], mb[m])
            cost = cost_of.hit_s[n] if hit else cost_of.miss_s[n]
            if last[m] >= 0:  # half of a hit's time is for cleaning up after the previous model (HR34)
                cost += 0.5 * (cost_of.hit_s[last[m]] - cost_of.hit_s[n])
            begin += cost
            counts.switches[n] += 1
            counts.hits[n] += hit
            counts.spent_s[n] += cost
            last[m] = n
        begin = max(begin, ready[n])
        start[i] = begin
        free[m] = begin + hold_s[i]
        synced[n] = max(synced[n], begin + whole_s[i])
        counts.completion_s[n] = synced[n]
