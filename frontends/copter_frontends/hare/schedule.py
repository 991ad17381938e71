"""Schedules: which GPU runs which task when; list scheduling in the relaxation's order (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from copter_frontends.hare.chunks import Chunks
from copter_frontends.hare.instance import Floats, HareInstance, Ints
from copter_frontends.hare.list_kernel import list_schedule
from copter_frontends.vocabulary import InvalidJobError

Rule = Literal["earliest_finish", "paper"]


@dataclass(frozen=True, slots=True, eq=False)
class HareSchedule:
    """Tasks of chunks with their GPUs and start times.

    Attributes
    ----------
    instance : HareInstance
    chunks : Chunks
    chunk : ndarray (T,) of int
        Chunk of each task; a chunk's tasks stand together.
    gpu : ndarray (T,) of int
        Its GPU's number (by type, :attr:`HareInstance.first_gpu`).
    start_s, end_s, synced_s : ndarray (T,)
        When it starts, leaves its GPU, and has synchronised.
    completion_s : ndarray (N,)
        C_n.
    """

    instance: HareInstance
    chunks: Chunks
    chunk: Ints
    gpu: Ints
    start_s: Floats
    end_s: Floats
    synced_s: Floats
    completion_s: Floats

    @property
    def objective(self) -> float:
        """Sum of w_n C_n."""
        return self.instance.objective(self.completion_s)

    @property
    def makespan_s(self) -> float:
        """When the last job completes."""
        return float(self.completion_s.max(initial=0.0))

    @property
    def task_job(self) -> Ints:
        """Job of each task, (T,)."""
        return self.chunks.job[self.chunk]

    def sequences(self) -> dict[int, Ints]:
        """Tasks of each GPU that has any, in the order in which it runs them."""
        order = np.lexsort((self.start_s, self.gpu))
        used, first = np.unique(self.gpu[order], return_index=True)
        return dict(zip(used.tolist(), np.split(order, first[1:]), strict=True))

    def gpu_type(self) -> Ints:
        """Type of each task's GPU, (T,)."""
        return gpu_type_of(self.instance)[self.gpu]


def gpu_type_of(instance: HareInstance) -> Ints:
    """Type of every GPU by its number."""
    return np.repeat(np.arange(len(instance.gpus)), instance.gpus).astype(np.int64)


def middle_order(instance: HareInstance, chunks: Chunks, mean_busy_s: Floats) -> Ints:
    """Chunks by their middle completion H_i (HR19); the chunks of a job stay in order.

    Parameters
    ----------
    mean_busy_s : ndarray (N,)
        M_n of the relaxation.
    """
    ell = instance.least_round_s()
    middle = chunks.first_round + 0.5 * (chunks.rounds + 1)
    key = mean_busy_s[chunks.job] + (middle - 0.5 * (instance.rounds[chunks.job] + 1)) * ell[chunks.job]
    return np.lexsort((np.arange(len(chunks)), key)).astype(np.int64)


def schedule_in_order(
    instance: HareInstance,
    chunks: Chunks,
    order: Ints,
    rule: Rule = "earliest_finish",
    ready_s: Floats | None = None,
    free_s: Floats | None = None,
) -> HareSchedule:
    """List scheduling: take the chunks in `order` and place their tasks one by one.

    Parameters
    ----------
    order : ndarray (B,) of int
        Every chunk once, a job's chunks in their own order.
    rule : {"earliest_finish", "paper"}
        Where a task goes: the GPU on which it would be synchronised first (ties: the faster type, then the GPU that was
        idle for the shortest time), or the GPU that is free first, as Algorithm 1's line
        12 prints it, however slow.
    ready_s : ndarray (N,), optional
        When each job may start, its arrival by default.
    free_s : ndarray (GPUs,), optional
        When each GPU is free, zero by default.

    Raises
    ------
    InvalidJobError
        If a job's later chunk stands before an earlier one, or an unknown rule is asked for.
    """
    if rule not in ("earliest_finish", "paper"):
        raise InvalidJobError(f"rule is {rule!r}, must be 'earliest_finish' or 'paper'")
    _check_order(chunks, order)
    tasks = instance.tasks[chunks.job]
    offset = np.concatenate(([0], np.cumsum(tasks)))
    total = int(offset[-1])
    start, where = np.zeros(total), np.zeros(total, dtype=np.int64)
    ready = (instance.arrival_s if ready_s is None else np.maximum(ready_s, instance.arrival_s)).copy()
    times, gpu = _sorted_free(instance, free_s)
    first = instance.first_gpu
    list_schedule(
        order, chunks.job, chunks.rounds, instance.tasks, instance.train_s, instance.sync_s, ready, times, gpu,
        first, first + instance.gpus, rule == "paper", start, where, offset[:-1],
    )  # fmt: skip
    chunk = np.repeat(np.arange(len(chunks)), tasks)
    return timed(instance, chunks, chunk, where, start, ready)


def timed(
    instance: HareInstance, chunks: Chunks, chunk: Ints, gpu: Ints, start_s: Floats, completion_s: Floats
) -> HareSchedule:
    """A schedule with the tasks' ends worked out (HR18)."""
    job, kind = chunks.job[chunk], gpu_type_of(instance)[gpu]
    count = chunks.rounds[chunk].astype(np.float64)
    train, sync = instance.train_s[job, kind], instance.sync_s[job, kind]
    end = start_s + count * train + (count - 1.0) * sync
    return HareSchedule(instance, chunks, chunk, gpu, start_s, end, end + sync, completion_s)


def _sorted_free(instance: HareInstance, free_s: Floats | None) -> tuple[Floats, Ints]:
    """Free times and GPU numbers, sorted within each type."""
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
