"""Speeds as the Profiler measures them: on at most two nodes, with or without errors (papers/chronus.md, C21)."""

from __future__ import annotations

import zlib
from math import isfinite

import numpy as np

from copter.runtime.errors import SettingsError
from copter_frontends.policy_kit import Throughputs, iteration_time
from copter_frontends.vocabulary import Cluster, Job


class ProfiledRates:
    """Throughputs measured on one and two nodes only; on more nodes they follow a formula (C21).

    Parameters
    ----------
    cluster : Cluster
        Its nodes' numbers of GPUs are used.
    truth : Throughputs
        The measured rates.
    noise : float
        Standard deviation of the normal relative error of each job's work; a job's error does not change (Fig. 6(d)).
    seed : int
    """

    def __init__(self, cluster: Cluster, truth: Throughputs, noise: float = 0.0, seed: int = 0) -> None:
        if not (isfinite(noise) and noise >= 0):
            raise SettingsError(f"noise is {noise}, must be finite and >= 0")
        self._per_node = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
        self._truth, self._noise, self._seed = truth, noise, seed

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """Return the units of work per second: measured on up to two nodes, by the formula on more."""
        size = self._per_node[gpu_type]
        nodes = -(-gpus // size)
        if nodes <= 2:
            return self._truth.rate(job, gpu_type, gpus, progress)
        one, two = (self._truth.rate(job, gpu_type, n * size, progress) for n in (1, 2))
        if one <= 0 or two <= 0:
            return 0.0
        batch = float(gpus) / size  # units of work of an iteration, relative to those on one node
        return batch / iteration_time(1.0 / one, 2.0 / two, nodes)

    def work(self, job: Job) -> float:
        """Return the job's true work with a random relative error, at least a tenth of the true work."""
        error = 0.0
        if self._noise > 0:
            draw = np.random.default_rng([self._seed, zlib.crc32(job.id.encode())])
            error = self._noise * float(draw.standard_normal())
        return self._truth.work(job) * max(1.0 + error, 0.1)
