"""Hops's clusters on the simulator: jobs of Table 2's models, for any policy (HP28)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from copter_frontends.goodput import Application, GoodputModel
from copter_frontends.goodput.applications import GpuProfile
from copter_frontends.goodput.throughput import ThroughputParameters
from copter_frontends.policies.hops import IterationTimes
from copter_frontends.simulator.workload import Workload
from copter_frontends.vocabulary import Configuration, Job
from copter_papers.hops.workload import (
    GPU_SPEEDS,
    MODELS,
    RESTART_S,
    SERVER_SPEEDS,
    TrainedModel,
    hops_jobs,
    iteration_times,
)

JOBS_PER_HOUR = {"hops-64": 12.5, "hops-512": 100.0}
"""Jobs per hour by cluster: the paper's 100 per hour on 512 GPUs, and the same rate per GPU on 64."""
JOBS = {"hops-64": 62, "hops-512": 500}
"""Number of jobs by cluster: the paper's 500 on 512 GPUs, and as many per GPU on 64."""

MOST_BATCH = 1 << 20
"""Limit on the total batch in samples, which these jobs never reach: their batch is proportional to their GPUs."""
NO_NOISE = 1e12
"""Noise scale in samples at which all batch sizes are equally efficient, because Table 2's jobs are measured in
samples only.
"""


def _application(name: str, model: TrainedModel) -> Application:
    kinds = [kind for kind in GPU_SPEEDS if kind != "rtx3090"] + [f"rtx3090-{server}" for server in SERVER_SPEEDS]
    gpus = {}
    for kind in kinds:
        step_s = model.batch / iteration_times(model, kind).throughput(1, 1)
        batch = int(model.batch)
        gpus[kind] = GpuProfile(ThroughputParameters(step_s, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), batch, batch)
    return Application(
        name=name,
        init_batch_size=int(model.batch),
        max_batch_size=MOST_BATCH,
        work_samples=1.0,
        noise_scale=(NO_NOISE, NO_NOISE),
        restart_s=RESTART_S,
        policy_restart_s=RESTART_S,
        slowdown=1.0,
        gpus=MappingProxyType(gpus),
    )


HOPS_APPLICATIONS: Mapping[str, Application] = MappingProxyType({n: _application(n, m) for n, m in MODELS.items()})
"""Table 2's models by name, on the GPU types of the paper's clusters."""


class IterationGoodput(GoodputModel):
    """The goodput model of Table 2's jobs: samples per second from the parts of an iteration (HP22), for any
    progress.
    """

    def iteration_times(self) -> dict[str, dict[str, IterationTimes]]:
        """Return the true parts of an iteration by application and GPU type, which a profiling run measures."""
        kinds = {configuration.gpu_type for configuration in self.configurations}
        return {name: {kind: iteration_times(MODELS[name], kind) for kind in sorted(kinds)} for name in MODELS}

    def row(self, application: str, progress: float, max_batch_size: int | None = None) -> NDArray[np.float64]:
        """Return samples per second in each configuration; the batch follows from the GPUs."""
        return self._samples_per_s(application, None)

    def job_row(self, job: Job, progress: float) -> NDArray[np.float64]:
        """Return samples per second in each configuration; a job with fixed GPUs has only configurations for them."""
        return self._samples_per_s(job.application, job.gpus)

    def _samples_per_s(self, application: str, gpus: int | None) -> NDArray[np.float64]:
        found = np.zeros(len(self.configurations))
        used = self.holds(gpus) if gpus else np.ones(len(found), dtype=np.bool_)
        for at in np.flatnonzero(used).tolist():
            place = self.configurations[at]
            found[at] = _rate(application, replace(place, gpus=gpus) if gpus else place)
        return found


def _rate(application: str, place: Configuration) -> float:
    """Return samples per second of a whole job."""
    return place.gpus * iteration_times(MODELS[application], place.gpu_type).throughput(place.gpus, place.nodes)


def hops_workload(cluster: str, jobs: int | None, seed: int) -> Workload:
    """Return the paper's jobs with the smallest and largest size of their requirement sets.

    Parameters
    ----------
    cluster : {"hops-64", "hops-512"}
    jobs : int, optional
        Number of jobs; by default :data:`JOBS`.
    seed : int
        The same seed gives the same jobs.
    """
    drawn, sets = hops_jobs(jobs if jobs is not None else JOBS[cluster], JOBS_PER_HOUR[cluster], seed)
    bounded = [replace(job, min_gpus=sets[job.id].smallest, max_gpus=sets[job.id].sizes[-1]) for job in drawn]
    source = f"Hops's evaluation: {len(drawn):,} jobs of Table 2, {JOBS_PER_HOUR[cluster]:g} an hour"
    return Workload(bounded, source, [], sampled=False)
