"""Schedules: the GPU and the start of each task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.completions import Completions
from copter_frontends.policies.hare.instance import Floats, HareInstance, Ints


@dataclass(frozen=True, slots=True, eq=False)
class HareSchedule(Completions):
    """Tasks of chunks with their GPUs and start times.

    Attributes
    ----------
    instance : HareInstance
    chunks : Chunks
    chunk : ndarray (T,) of int
        Chunk of each task; the tasks of a chunk are contiguous.
    gpu : ndarray (T,) of int
        Number of each task's GPU, in the numbering of :attr:`HareInstance.first_gpu`.
    start_s, end_s, synced_s : ndarray (T,)
        Times at which each task starts, leaves its GPU, and has synchronised.
    completion_s : ndarray (N,)
        C_n, the completion time of each job.
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
    def task_job(self) -> Ints:
        """Job of each task, (T,)."""
        return self.chunks.job[self.chunk]

    def sequences(self) -> dict[int, Ints]:
        """Return each used GPU's tasks in order of execution."""
        order = np.lexsort((self.start_s, self.gpu))
        used, first = np.unique(self.gpu[order], return_index=True)
        return dict(zip(used.tolist(), np.split(order, first[1:]), strict=True))

    def gpu_type(self) -> Ints:
        """Type of each task's GPU, (T,)."""
        return gpu_type_of(self.instance)[self.gpu]


def gpu_type_of(instance: HareInstance) -> Ints:
    """Return the type of every GPU by number."""
    return np.repeat(np.arange(len(instance.gpus)), instance.gpus).astype(np.int64)


def timed(
    instance: HareInstance, chunks: Chunks, chunk: Ints, gpu: Ints, start_s: Floats, completion_s: Floats
) -> HareSchedule:
    """Return the schedule of tasks with given starts; their ends are computed (HR17)."""
    job, kind = chunks.job[chunk], gpu_type_of(instance)[gpu]
    count = chunks.rounds[chunk].astype(np.float64)
    train, sync = instance.train_s[job, kind], instance.sync_s[job, kind]
    end = start_s + count * train + (count - 1.0) * sync
    return HareSchedule(instance, chunks, chunk, gpu, start_s, end, end + sync, completion_s)
