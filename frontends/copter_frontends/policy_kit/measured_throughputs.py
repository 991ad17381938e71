"""Throughputs of rigid jobs from measured steps, as in the Gavel port of Sia's public simulator (B12)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput.batch_kernel import EPSILON
from copter_frontends.goodput.pipeline import pipeline_step_s
from copter_frontends.goodput.profiled import ProfiledApplication, profile_of
from copter_frontends.vocabulary import Cluster, Configuration, Job

UNMEASURED = 0.1  # iterations per second on a type on which the job's size was not measured


class MeasuredThroughputs:
    """Measured speeds of jobs of fixed batch size, whose GPUs fill whole nodes first (a :class:`.Throughputs`).

    Parameters
    ----------
    cluster : Cluster
        Gives the GPUs per node of each type; read once.
    profiles : mapping of application to ProfiledApplication
    """

    def __init__(self, cluster: Cluster, profiles: Mapping[str, ProfiledApplication]) -> None:
        self._per_node = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
        self._profiles = profiles
        self._known: dict[tuple[str, int, str, int], float] = {}

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """Return iterations of the job's whole batch per second; they do not depend on progress."""
        key = (job.application, self._batch(job), gpu_type, gpus)
        if key not in self._known:
            self._known[key] = self._measured(*key)
        return self._known[key]

    def work(self, job: Job) -> float:
        """Return the number of iterations at the initial batch size, if every iteration counted as one."""
        application = profile_of(self._profiles, job)
        if job.work_samples is not None:
            return job.work_samples / application.init_batch_size
        return float(application.epoch_ends[-1])

    def _batch(self, job: Job) -> int:
        profile = profile_of(self._profiles, job)
        known = job.batch_size if job.batch_size is not None else job.max_batch_size
        return profile.init_batch_size if known is None else known

    def _measured(self, name: str, batch: int, gpu_type: str, gpus: int) -> float:
        application = self._profiles[name]
        steps, size = application.steps.get(gpu_type), self._per_node[gpu_type]
        if steps is None:
            return 0.0
        pipeline = application.application.pipeline
        if pipeline is not None:
            if gpus % pipeline.stages[gpu_type]:
                return 0.0
            where = Configuration(-(-gpus // size), gpus, gpu_type)
            return 1.0 / pipeline_step_s(application.application, where)[0]
        placement = (*[size] * (gpus // size), *([gpus % size] if gpus % size else []))
        share = math.ceil(batch / gpus - EPSILON)
        accumulation = math.ceil(share / steps.max_local - EPSILON) - 1
        if gpus == 1:
            accumulation = max(1, accumulation)
        local = math.ceil(share / (accumulation + 1) - EPSILON)
        local = min(local, application.max_batch_size // (gpus * (accumulation + 1)))
        if local < steps.min_local:
            return UNMEASURED
        try:
            step_s, sync_s = steps.step(placement, local)
        except InvalidDataError:
            return UNMEASURED
        return 1.0 / (step_s + (step_s - sync_s) * accumulation)
