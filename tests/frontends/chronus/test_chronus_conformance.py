"""The conformance suite on Chronus: SLO jobs and best-effort jobs mixed."""

from __future__ import annotations

import random

from conformance import PolicyConformance

from copter_frontends.policies.chronus import ChronusPolicy, Profiler, StepReward
from copter_frontends.vocabulary import Cluster, SchedulingPolicy

HOUR_S = 3600.0


class Mixed(dict[str, StepReward]):
    """A reward for two of three jobs, by the id's number: strict, soft, none."""

    def get(self, job_id: str, default: StepReward | None = None) -> StepReward | None:  # type: ignore[override]
        number = int(job_id.rsplit("-", 1)[1]) if "-" in job_id else 2
        if number % 3 == 2:
            return default
        deadline_s = random.Random(number).uniform(2, 60) * HOUR_S
        return StepReward.soft(deadline_s) if number % 3 else StepReward.strict(deadline_s)


class TestChronus(PolicyConformance):
    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return ChronusPolicy(cluster, rewards=Mixed(), round_s=60.0)


class TestChronusBestEffortOnly(PolicyConformance):
    examples = 6

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return ChronusPolicy(cluster)


class TestChronusWithProfiler(PolicyConformance):
    examples = 6

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return ChronusPolicy(cluster, rewards=Mixed(), round_s=60.0, profiler=Profiler(most_user_gpus=None))
