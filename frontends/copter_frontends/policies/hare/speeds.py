"""Run times of a rigid job on each GPU type, from the goodput model."""

from __future__ import annotations

import math
from collections.abc import Mapping

from copter_frontends.goodput import APPLICATIONS, Application, GoodputModel
from copter_frontends.goodput.applications import application_of
from copter_frontends.policy_kit import requested_gpus
from copter_frontends.vocabulary import Cluster, Configuration, Job


class Speeds:
    """A job's progress per second on its requested number of GPUs, by GPU type; cached by application.

    Parameters
    ----------
    cluster : Cluster
        Its types and node sizes are used.
    applications : mapping, optional
        Applications by name; by default the project's representative jobs.
    """

    def __init__(self, cluster: Cluster, applications: Mapping[str, Application] | None = None) -> None:
        self._node_gpus = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
        self._applications = applications or APPLICATIONS
        self._rates: dict[tuple[str, int, int | None], dict[str, float]] = {}

    def seconds(self, job: Job) -> dict[str, float]:
        """Return the seconds of the whole job on each type that can run it; may raise UnknownApplicationError."""
        application = application_of(job.application, self._applications)
        work = job.work_samples or application.work_samples
        return {kind: work / rate for kind, rate in self._rate(job).items()}

    def _rate(self, job: Job) -> dict[str, float]:
        gpus = requested_gpus(job)
        key = job.application, gpus, job.max_batch_size
        if key not in self._rates:
            sizes = [Configuration(math.ceil(gpus / size), gpus, kind) for kind, size in self._node_gpus.items()]
            row = GoodputModel(sizes, self._applications).row(job.application, 0.0, job.max_batch_size)
            self._rates[key] = {
                size.gpu_type: float(rate) for size, rate in zip(sizes, row.tolist(), strict=True) if rate > 0
            }
        return self._rates[key]
