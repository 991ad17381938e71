"""Base of Hare and its opponents as round-based policies: durations and weights of rigid jobs."""

from __future__ import annotations

from collections.abc import Mapping

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hare.facts import checked_weights
from copter_frontends.policies.hare.job_book import JobBook
from copter_frontends.policies.hare.speeds import Speeds
from copter_frontends.policy_kit import RoundPolicy
from copter_frontends.vocabulary import Cluster, Job

ROUND_S = 300.0  # seconds between two plans


class GangPolicy(RoundPolicy):
    """A policy that treats a job as one chunk with as many tasks as requested GPUs, all on one type per round.

    Parameters
    ----------
    cluster : Cluster
        It is read, not changed.
    goodput : GoodputModel, optional
        Model whose applications are used.
    round_s : float
        Seconds between plans.
    weights : mapping of job id to float, optional
        w_n; 1 for jobs that are not listed.

    Raises
    ------
    InvalidClusterError
        If the cluster has no GPUs.
    InvalidDataError
        If a weight is not finite and above zero.
    """

    def __init__(
        self, cluster: Cluster, goodput: GoodputModel | None, round_s: float, weights: Mapping[str, float] | None
    ) -> None:
        super().__init__(cluster, round_s, self._runs)
        self.book = JobBook(checked_weights(weights), Speeds(cluster, goodput.applications if goodput else None))

    def capacity(self) -> dict[str, int]:
        """GPUs of each type."""
        return {kind: self.nodes.capacity(kind) for kind in self.nodes.types}

    def weight(self, job_id: str) -> float:
        """Return the job's weight w_n."""
        return self.book.weight(job_id)

    def seconds_left(self, job_id: str) -> dict[str, float]:
        """Return the job's remaining seconds on each type that can run it."""
        return self.book.seconds_left(self.jobs[job_id], self.service[job_id].progress)

    def _runs(self, job: Job, gpu_type: str, gpus: int) -> bool:
        return self.book.runs_on(job, gpu_type)
