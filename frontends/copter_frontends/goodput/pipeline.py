"""Goodput of jobs that are pipeline and data parallel at once (thesis 3.3.4 and 3.5.3; docs/goodput.md, G15)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from copter_frontends.goodput.applications import Application
from copter_frontends.goodput.efficiency import efficiency
from copter_frontends.goodput.throughput import compute_time_s, sync_time_s
from copter_frontends.vocabulary import Configuration

BACKWARD = 3  # a stage's forward and backward pass over its forward pass


def pipeline_goodput(
    application: Application,
    configurations: Sequence[Configuration],
    cap: int,
    batches: NDArray[np.float64],
    noise: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Efficient samples per second in each configuration; 0 where the GPUs are no multiple of a replica's.

    With K replicas of P stages: T = 3 (P - 1 + micro-batches) T_grad(1) + T_sync(N, K), M = micro-batches K.
    """
    pipeline, goodput = application.pipeline, np.zeros(len(configurations))
    assert pipeline is not None
    for i, place in enumerate(configurations):
        stages, profile = pipeline.stages.get(place.gpu_type), application.gpus.get(place.gpu_type)
        if stages is None or profile is None or place.gpus % stages:
            continue
        replicas = place.gpus // stages
        total = pipeline.microbatches * replicas
        if total > cap:
            continue
        forward_s = float(compute_time_s(profile.parameters, 1))
        step_s = BACKWARD * (stages - 1 + pipeline.microbatches) * forward_s
        step_s += float(sync_time_s(profile.parameters, place.nodes, replicas))
        scale = float(np.interp(total, batches, noise))
        goodput[i] = total / step_s * float(efficiency(scale, application.init_batch_size, total))
    return goodput
