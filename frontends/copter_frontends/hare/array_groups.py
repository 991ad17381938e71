"""Named groups of arrays, the parameters of Hare's compiled passes over jobs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class JobRows(NamedTuple):
    """Data of the jobs' own rows (docs/papers/hare.md, HR4 to HR9); attributes as in :class:`.Relaxation`.

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
        Chunks in their order; job and rounds of each chunk; where its tasks begin, and how many are to be placed.
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
    """When GPUs are free, sorted within each type.

    Attributes
    ----------
    times : float64 array (GPUs,)
    gpu : int64 array (GPUs,)
        Number of the GPU that is free at that time.
    first, end : int64 arrays (G,)
        Type g is at [first[g], end[g]).
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
        By planned start.
    chunk, job, gpu : int64 arrays (T,)
    hold_s, whole_s : float64 arrays (T,)
        Seconds on the GPU, and until synchronised.
    """

    order: Ints
    chunk: Ints
    job: Ints
    gpu: Ints
    hold_s: Floats
    whole_s: Floats


class Switching(NamedTuple):
    """Seconds of a switch to each job, and the memory for kept models.

    Attributes
    ----------
    hit_s, miss_s : float64 arrays (N,)
        Seconds where the model is still on the GPU, and where it is not.
    sizes : float64 array (N, 2)
        Megabytes while running, and kept.
    capacity : float64 array (GPUs,)
        Megabytes.
    """

    hit_s: Floats
    miss_s: Floats
    sizes: Floats
    capacity: Floats


class ExecutionCounts(NamedTuple):
    """Counters of a run of the tasks, written by kernels.

    Attributes
    ----------
    completion_s, spent_s : float64 arrays (N,)
        When each job ends; seconds spent on switches.
    switches, hits : int64 arrays (N,)
    """

    completion_s: Floats
    switches: Ints
    hits: Ints
    spent_s: Floats
