"""Deadlines for jobs that have none, drawn as the paper draws them (docs/chronus.md, C17)."""

from __future__ import annotations

import zlib

import numpy as np

from copter_frontends.baselines.base import requested_gpus
from copter_frontends.baselines.throughputs import Throughputs
from copter_frontends.chronus.rewards import StepReward
from copter_frontends.chronus.workload import MIXES, draw_reward
from copter_frontends.vocabulary import Cluster, Job, TraceError


class DrawnRewards:
    """The class and the deadlines of any job; the same whenever, and in whatever order, it is asked.

    Parameters
    ----------
    cluster : Cluster
    throughputs : Throughputs
        A job's duration is that of its work on the GPUs it asks for, on the fastest type.
    mix : {"slo", "mix1", "mix2"}
        Shares of strict, soft and best-effort jobs (Table 1).
    seed : int
    """

    def __init__(self, cluster: Cluster, throughputs: Throughputs, mix: str = "mix2", seed: int = 0) -> None:
        if mix not in MIXES:
            raise TraceError(f"mix is {mix!r}, must be one of {', '.join(MIXES)}")
        self._types, self._throughputs, self._mix, self._seed = tuple(cluster.types), throughputs, mix, seed

    def __call__(self, job: Job) -> StepReward | None:
        """The reward of a job; None for best effort, and for a job that runs nowhere."""
        rate = max(self._throughputs.rate(job, kind, requested_gpus(job)) for kind in self._types)
        if not rate > 0:
            return None
        rng = np.random.default_rng([self._seed, zlib.crc32(job.id.encode())])
        return draw_reward(self._throughputs.work(job) / rate, self._mix, rng)
