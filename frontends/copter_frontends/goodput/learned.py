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
    """Return a job's best goodput in efficient samples per second, (n,), on each number of nodes and GPUs
    (docs/method/goodput.md, G7).

    Parameters
    ----------
    job : Job
        The job; a fixed batch size is kept, and the largest one is at most the application's.
    known : ProfiledApplication
    limits : ProfiledSteps
        Limits of the local batch on this GPU type.
    parameters : ThroughputParameters
        Constants fitted by the job's agent.
    noise_scale : float
        Last measured noise scale, in samples.
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
