"""Named groups of arrays, the parameters of Hare's compiled passes over jobs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class JobRows(NamedTuple):
    """Data of the jobs' own rows (docs/papers/hare.md, HR5 to HR9); attributes as in :class:`.Relaxation`.

    Attributes
    ----------
    first : int64 array (N,)
    start, parallel : float64 arrays (N, L)
    alpha : float64 array (N, G)
    weight, excess : float64 arrays (N,)
    """

    first: Ints
    start: Floats
    parallel: Floats
    alpha: Floats
    weight: Floats
    excess: Floats


class ChunkList(NamedTuple):
    """Chunks in the order in which they are placed.

    Attributes
    ----------
    order, job, rounds, offset, tasks : int64 arrays (B,)
        Order of the chunks; job and number of rounds of each chunk; position of its first task, and number of its tasks
        to place.
    """

    order: Ints
    job: Ints
    rounds: Ints
    offset: Ints
    tasks: Ints


class TaskTimes(NamedTuple):
    """Seconds of each job's tasks.

    Attributes
    ----------
    train, sync : float64 arrays (N, G)
    """

    train: Floats
    sync: Floats


class FreeTimes(NamedTuple):
    """Times from which GPUs are free, sorted within each type.

    Attributes
    ----------
    times : float64 array (GPUs,)
    gpu : int64 array (GPUs,)
        Number of the GPU that is free from that time on.
    first, end : int64 arrays (G,)
        Type g occupies the positions from first[g] to before end[g].
    """

    times: Floats
    gpu: Ints
    first: Ints
    end: Ints


class Tasks(NamedTuple):
    """Planned tasks, for the executor.

    Attributes
    ----------
    order : int64 array (T,)
        Tasks sorted by planned start.
    chunk, job, gpu : int64 arrays (T,)
    hold_s, whole_s : float64 arrays (T,)
        Seconds on the GPU, and seconds until synchronised.
    """

    order: Ints
    chunk: Ints
    job: Ints
    gpu: Ints
    hold_s: Floats
    whole_s: Floats


class Switching(NamedTuple):
    """Seconds of a switch to each job, and memory for kept models.

    Attributes
    ----------
    hit_s, miss_s : float64 arrays (N,)
        Seconds of a switch if the model is still on the GPU, and if it is not.
    sizes : float64 array (N, 2)
        Megabytes of the model while it runs, and while it is kept.
    capacity : float64 array (GPUs,)
        Megabytes of memory.
    """

    hit_s: Floats
    miss_s: Floats
    sizes: Floats
    capacity: Floats


class ExecutionCounts(NamedTuple):
    """Results of a run of the tasks, written by kernels.

    Attributes
    ----------
    completion_s, spent_s : float64 arrays (N,)
        End of each job, and seconds spent on switches to it.
    switches, hits : int64 arrays (N,)
    """

    completion_s: Floats
    switches: Ints
    hits: Ints
    spent_s: Floats
