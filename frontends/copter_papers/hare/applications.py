"""The paper's eight models as applications of the simulator, so that any policy can run on its testbed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from copter_frontends.goodput import Application
from copter_frontends.goodput.applications import GpuProfile
from copter_frontends.goodput.throughput import ThroughputParameters
from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.models import MODELS, HareModel
from copter_frontends.policies.hare.switching import model_of
from copter_frontends.vocabulary import Job

MOST_TASKS = 64  # largest number of tasks of a round
NO_NOISE = 1e12  # noise scale in samples, so large that all batch sizes are equally efficient


def _application(model: HareModel) -> Application:
    """Return a model as an application: a sample is a task, and a step is a round of parallel tasks (HR1)."""
    gpus = {}
    for kind in model.speed:
        seconds = model.train_s(kind) + model.sync_s()
        gpus[kind] = GpuProfile(ThroughputParameters(seconds, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 1, 1)
    return Application(
        name=model.name,
        init_batch_size=1,
        max_batch_size=MOST_TASKS,
        work_samples=1000.0,
        noise_scale=(NO_NOISE, NO_NOISE),
        restart_s=1e-3 * model.hare_ms,
        policy_restart_s=1e-3 * model.hare_ms,
        slowdown=1.0,
        gpus=MappingProxyType(gpus),
    )


HARE_APPLICATIONS: Mapping[str, Application] = MappingProxyType({m.name: _application(m) for m in MODELS.values()})
"""Applications by model; a start takes Table 3's switching time."""


def as_jobs(jobs: Iterable[HareJob]) -> list[Job]:
    """Return jobs of the eight models for any policy, with at most as many GPUs as tasks in a round.

    Raises
    ------
    InvalidJobError
        If a job's model is none of the eight.
    """
    return [
        Job(
            id=job.id,
            application=model_of(job.model).name,
            submit_s=job.arrival_s,
            work_samples=float(job.rounds * job.tasks),
            requested_gpus=job.tasks,
            batch_size=job.tasks,
            max_gpus=job.tasks,
        )
        for job in jobs
    ]
