"""The shim from the relaxation's solution to a schedule: an order of chunks, then list scheduling (Algorithm 1)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from copter_frontends.policies.hare.array_groups import ChunkList, FreeTimes, TaskTimes
from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.instance import Floats, HareInstance, Ints
from copter_frontends.policies.hare.list_kernel import list_schedule
from copter_frontends.policies.hare.schedule import HareSchedule, gpu_type_of
from copter_frontends.vocabulary import InvalidJobError

Rule = Literal["earliest_finish", "paper"]


def middle_order(instance: HareInstance, chunks: Chunks, mean_busy_s: Floats, ell: Floats | None = None) -> Ints:
    """Order chunks by middle completion H_i (HR18); a job's chunks stay in order.

    Parameters
    ----------
    mean_busy_s : ndarray (N,)
        M_n of the relaxation.
    ell : ndarray (N,), optional
        :meth:`.HareInstance.least_round_s` of the instance, if it is known.
    """
    ell = instance.least_round_s() if ell is None else ell
    middle = chunks.first_round + 0.5 * (chunks.rounds + 1)
    key = mean_busy_s[chunks.job] + (middle - 0.5 * (instance.rounds[chunks.job] + 1)) * ell[chunks.job]
    return np.argsort(key, kind="stable").astype(np.int64)


def schedule_in_order(
    instance: HareInstance,
    chunks: Chunks,
    order: Ints,
    rule: Rule = "earliest_finish",
    ready_s: Floats | None = None,
    free_s: Floats | None = None,
    first_tasks: Ints | None = None,
    synced_s: Floats | None = None,
) -> HareSchedule:
    """List scheduling: place the tasks of the chunks one by one in `order`.

    Parameters
    ----------
    order : ndarray (B,) of int
        Each chunk once; the chunks of a job must be in order.
    rule : {"earliest_finish", "paper"}
        The GPU of a task: the one on which it would be synchronised first (among equals the faster type, then the GPU
        that has been idle for the shortest time), or the one that is free first, as in line 12 of Algorithm 1.
    ready_s : ndarray (N,), optional
        Time from which each job may start; by default its arrival.
    free_s : ndarray (GPUs,), optional
        Time from which each GPU is free; by default zero.
    first_tasks : ndarray (N,) of int, optional
        Number of tasks of each job's first chunk to place if its other tasks already run; by default all.
    synced_s : ndarray (N,), optional
        Time at which these running tasks will have synchronised.

    Raises
    ------
    InvalidJobError
        If a job's chunks are not in order, or the rule is unknown.
    """
    if rule not in ("earliest_finish", "paper"):
        raise InvalidJobError(f"rule is {rule!r}, must be 'earliest_finish' or 'paper'")
    _check_order(chunks, order)
    tasks = instance.tasks[chunks.job]
    if first_tasks is not None:
        tasks[chunks.first[:-1]] = first_tasks
    offset = np.concatenate(([0], np.cumsum(tasks)))
    total = int(offset[-1])
    start, end, synced, where = np.zeros(total), np.zeros(total), np.zeros(total), np.zeros(total, dtype=np.int64)
    ready = (instance.arrival_s if ready_s is None else np.maximum(ready_s, instance.arrival_s)).copy()
    times, gpu = _sorted_free(instance, free_s)
    first = instance.first_gpu
    list_schedule(
        ChunkList(order, chunks.job, chunks.rounds, offset[:-1], tasks),
        TaskTimes(instance.train_s, instance.sync_s),
        ready,
        np.zeros(instance.n_jobs) if synced_s is None else synced_s,
        FreeTimes(times, gpu, first, first + instance.gpus),
        rule == "paper",
        start,
        end,
        synced,
        where,
    )
    chunk = np.repeat(np.arange(len(chunks)), tasks)
    return HareSchedule(instance, chunks, chunk, where, start, end, synced, ready)


def _sorted_free(instance: HareInstance, free_s: Floats | None) -> tuple[Floats, Ints]:
    """Return the free times and GPU numbers, sorted within each type."""
    count = int(instance.gpus.sum())
    free = np.zeros(count) if free_s is None else np.array(free_s, dtype=np.float64)
    order = np.lexsort((np.arange(count), free, gpu_type_of(instance)))
    return free[order], order.astype(np.int64)


def _check_order(chunks: Chunks, order: Ints) -> None:
    place = np.empty(len(chunks), dtype=np.int64)
    place[order] = np.arange(len(order))
    same = chunks.job[1:] == chunks.job[:-1]
    wrong = np.flatnonzero(same & (place[1:] < place[:-1]))
    if len(wrong):
        b = int(wrong[0])
        raise InvalidJobError(f"the order puts chunk {b + 1} of job {chunks.job[b]} before chunk {b}, which it needs")
