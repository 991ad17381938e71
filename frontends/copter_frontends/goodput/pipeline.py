"""Goodput of jobs with both pipeline and data parallelism (thesis 3.3.4 and 3.5.3; docs/method/goodput.md, G15)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput.applications import Application
from copter_frontends.goodput.efficiency import efficiency
from copter_frontends.goodput.throughput import compute_time_s, sync_time_s
from copter_frontends.vocabulary import Configuration

BACKWARD = 3  # time of a stage's forward and backward pass, relative to its forward pass


def pipeline_step_s(application: Application, place: Configuration) -> tuple[float, float]:
    """Return the seconds of a pipeline application's step on whole replicas, and of its synchronisation (G15)."""
    pipeline = application.pipeline
    if pipeline is None:
        raise InvalidDataError(f"application {application.name!r} has no pipeline")
    stages, parameters = pipeline.stages[place.gpu_type], application.gpus[place.gpu_type].parameters
    sync_s = float(sync_time_s(parameters, place.nodes, place.gpus // stages))
    forward_s = float(compute_time_s(parameters, 1))
    return BACKWARD * (stages - 1 + pipeline.microbatches) * forward_s + sync_s, sync_s


def pipeline_goodput(
    application: Application,
    configurations: Sequence[Configuration],
    cap: int,
    batches: NDArray[np.float64],
    noise: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return efficient samples per second in each configuration; 0 if the GPUs are not a multiple of a replica's GPUs.

    With K replicas of P stages: T = 3 (P - 1 + micro-batches) T_grad(1) + T_sync(N, K), M = micro-batches K.
    """
    pipeline, goodput = application.pipeline, np.zeros(len(configurations))
    if pipeline is None:
        return goodput
    for i, place in enumerate(configurations):
        stages, profile = pipeline.stages.get(place.gpu_type), application.gpus.get(place.gpu_type)
        if stages is None or profile is None or place.gpus % stages:
            continue
        replicas = place.gpus // stages
        total = pipeline.microbatches * replicas
        if total > cap:
            continue
        step_s = pipeline_step_s(application, place)[0]
        scale = float(np.interp(total, batches, noise))
        goodput[i] = total / step_s * float(efficiency(scale, application.init_batch_size, total))
    return goodput
