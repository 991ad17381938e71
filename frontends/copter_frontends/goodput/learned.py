"""Goodput from a job's own observations: fitted throughput and measured noise scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter_frontends.goodput.batch_kernel import best_batches
from copter_frontends.goodput.profiled import ProfiledApplication, ProfiledSteps
from copter_frontends.goodput.throughput import ThroughputParameters
from copter_frontends.vocabulary import Job

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def learned_goodput(
    job: Job,
    known: ProfiledApplication,
    limits: ProfiledSteps,
    parameters: ThroughputParameters,
    noise_scale: float,
    nodes: Ints,
    gpus: Ints,
) -> Floats:
    """Best goodput of a job on so many nodes and GPUs, efficient samples per second, (n,) (docs/method/goodput.md, G7).

    Parameters
    ----------
    job : Job
        Its batch size is kept where it is fixed, its largest one is no more than the application's.
    known : ProfiledApplication
    limits : ProfiledSteps
        Of the GPU type: least and most samples on one GPU.
    parameters : ThroughputParameters
        As the job's agent has fitted them.
    noise_scale : float
        Samples, as last measured.
    nodes, gpus : ndarray (n,)
    """
    cap = known.max_batch_size if job.max_batch_size is None else min(job.max_batch_size, known.max_batch_size)
    count = len(gpus)
    goodput, local, accumulation = np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64)
    best_batches(
        parameters.as_array()[None, :],
        np.array([[limits.min_local, limits.max_local]], dtype=np.int64),
        nodes,
        gpus,
        np.zeros(count, dtype=np.int64),
        known.init_batch_size,
        cap,
        True,
        job.batch_size or 0,
        np.ones(1),
        np.array([noise_scale]),
        goodput,
        local,
        accumulation,
    )
    return goodput
