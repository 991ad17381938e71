"""Sia and Gavel behind Hops's queue, as the Hops paper ran them: "the same latency ratio priority" (section 4.2).

Jobs are in the order of waiting time over expected running time (HP19). A round plans the service window (HP22): the
shortest prefix of the queue whose least GPUs fill the cluster. Jobs behind it wait, and lose what they have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hops_sia import SiaOnSets

from copter_frontends.policies.baselines.gavel import GavelPolicy
from copter_frontends.policies.hops import RequirementSet
from copter_frontends.policies.hops.latency_ratio import LEAST, age_s, age_terms
from copter_frontends.policy_kit import Choice, RoundPolicy, Throughputs
from copter_frontends.vocabulary import Cluster, Job

Sets = Mapping[str, RequirementSet]


class LatencyOrder:
    """The latency ratios of a policy's jobs."""

    def __init__(self, cluster: Cluster, throughputs: Throughputs, sets: Sets) -> None:
        self._throughputs, self._sets = throughputs, sets
        self._gpus = {kind: cluster.capacity(kind) for kind in cluster.types}
        self._wait_s: dict[str, float] = {}
        self._age_s: dict[str, float] = {}
        self._now_s = 0.0

    def age_s(self, job: Job) -> float:
        """The running time that is expected without waiting."""
        if job.id not in self._age_s:
            sizes = self._sets[job.id].sizes
            per_gpu = {kind: self._throughputs.rate(job, kind, sizes[0]) / sizes[0] for kind in self._gpus}
            terms = age_terms(per_gpu, self._gpus, float(np.mean(sizes)))
            self._age_s[job.id] = age_s(self._throughputs.work(job), terms)
        return self._age_s[job.id]

    def window(self, policy: RoundPolicy, now_s: float, least: Mapping[str, int]) -> list[str]:
        """The jobs of a round, the one that has waited longest for its age first; `least` are the GPUs of each."""
        elapsed_s, self._now_s = max(now_s - self._now_s, 0.0), now_s
        for job_id, job in policy.jobs.items():
            before = self._wait_s.get(job_id)
            if before is None:
                self._wait_s[job_id] = max(now_s - job.submit_s, 0.0)
            elif job_id not in policy.held:
                self._wait_s[job_id] = before + elapsed_s
        ratio = {job_id: self._wait_s[job_id] / max(self.age_s(job), LEAST) for job_id, job in policy.jobs.items()}
        found, room = [], sum(policy.room().values())
        for job_id in sorted((j for j in ratio if j not in policy.pins), key=lambda j: -ratio[j]):
            if room <= 0:
                break
            found.append(job_id)
            room -= least[job_id]
        return found


class QueuedSia(SiaOnSets):
    """Sia on the jobs of the window."""

    def __init__(self, cluster: Cluster, throughputs: Throughputs, sets: Sets) -> None:
        super().__init__(cluster, throughputs, sets)
        self._ratios = LatencyOrder(cluster, throughputs, sets)
        self._served: set[str] = set()

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Sia's plan of the window."""
        self._served = set(self._ratios.window(self, now_s, {j: self._sets[j].sizes[0] for j in self.jobs}))
        return super().choose(now_s, deadline_s)

    def _values(self, job_id: str, now_s: float) -> np.ndarray:  # type: ignore[type-arg]
        values = super()._values(job_id, now_s)
        return values if job_id in self._served or job_id in self.pins else np.full_like(values, -1.0)


class QueuedGavel(GavelPolicy):
    """Gavel, whose rounds go to the jobs of the window."""

    def __init__(self, cluster: Cluster, throughputs: Throughputs, objective: str, sets: Sets, **further: Any) -> None:
        super().__init__(cluster, throughputs, objective, **further)
        self._ratios = LatencyOrder(cluster, throughputs, sets)
        self._served: list[str] = []

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Gavel's choice among the window's jobs."""
        self._served = self._ratios.window(self, now_s, {j: job.requested_gpus for j, job in self.jobs.items()})
        return super().choose(now_s, deadline_s)

    def queue(self) -> list[str]:
        """The window."""
        return self._served
