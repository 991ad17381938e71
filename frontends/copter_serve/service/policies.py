"""The service's policies by name, with throughputs that change as they are measured."""

from __future__ import annotations

from collections.abc import Mapping

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.baselines.fifo import FifoPolicy
from copter_frontends.policies.baselines.gavel import GavelPolicy
from copter_frontends.policies.baselines.srtf import SrtfPolicy
from copter_frontends.policies.baselines.themis import ThemisPolicy
from copter_frontends.policies.baselines.tiresias import TiresiasPolicy
from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.policies.registry.baselines import OBJECTIVES
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policy_kit import RunsWith
from copter_frontends.policy_kit.deadlines import StepReward
from copter_frontends.vocabulary import Cluster, Job, SchedulingPolicy, configurations_of
from copter_serve.allocation import AllocationPolicy
from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.job_record import JobRecord

LEASE_S = 1200.0  # a lease of Chronus is about so many seconds, in whole rounds


class ToldThroughputs:
    """Throughputs reported to the service (a :class:`~.policy_kit.Throughputs`).

    A job without reported throughputs runs at 1 on every type, with the GPUs that it requests.
    """

    def __init__(self, jobs: Mapping[str, JobRecord]) -> None:
        self._jobs = jobs

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """Return units per second; 0 if not reported."""
        record = self._jobs.get(job.id)
        if record is None or not record.throughputs:
            return 1.0
        return record.throughputs.get(gpu_type, {}).get(gpus, 0.0)

    def work(self, job: Job) -> float:
        """Return the units of work of a job; 1 if it has none."""
        return 1.0 if job.work_samples is None else job.work_samples


class ToldRewards:
    """Rewards for deadlines that jobs have brought; None for a best-effort job."""

    def __init__(self, jobs: Mapping[str, JobRecord]) -> None:
        self._jobs = jobs

    def __call__(self, job: Job) -> StepReward | None:
        """Return a job's reward."""
        record = self._jobs.get(job.id)
        return None if record is None else record.reward


def make_policy(record: ClusterRecord, cluster: Cluster, jobs: Mapping[str, JobRecord]) -> SchedulingPolicy:
    """Make the scheduling policy that the cluster's record names, with the record's options.

    Parameters
    ----------
    record : ClusterRecord
    cluster : Cluster
        The present nodes.
    jobs : mapping of job id to JobRecord
        Jobs; read whenever the policy asks for a throughput.
    """
    name, round_s, told = record.policy, record.round_s, ToldThroughputs(jobs)
    if name == "allocation":
        return AllocationPolicy(cluster, round_s=round_s, restart_penalty=record.restart_penalty)
    if name in OBJECTIVES:
        return GavelPolicy(cluster, told, OBJECTIVES[name], round_s=round_s, reset_s=None)
    if name in ("fifo", "yarn-cs"):
        return FifoPolicy(cluster, backfill=name == "fifo", round_s=round_s, can_run=RunsWith(told))
    if name == "tiresias":
        return TiresiasPolicy(cluster, round_s=round_s, can_run=RunsWith(told))
    if name == "srtf":
        return SrtfPolicy(cluster, told, round_s=round_s)
    if name == "themis":
        return ThemisPolicy(cluster, told, round_s=round_s)
    if name == "chronus":
        lease_s = round_s * max(round(LEASE_S / round_s), 1)
        return ChronusPolicy(cluster, told, ToldRewards(jobs), lease_s=lease_s, round_s=round_s, selective=True)
    policy = POLICIES[name].build(cluster, GoodputModel(configurations_of(cluster)))
    policy.round_s = round_s
    return policy
