"""YARN's capacity scheduler with a static quota for each class of jobs (chronus.md, section 4.3 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from copter.runtime.errors import SettingsError
from copter_frontends.policies.baselines.fifo import FifoPolicy
from copter_frontends.policy_kit import CanRun, Choice, requested_gpus
from copter_frontends.vocabulary import Cluster


class YarnQuotaPolicy(FifoPolicy):
    """First come, first served in two queues, each with its own share of the GPUs.

    The first job that does not fit blocks its queue, but not the other one. A job larger than its queue's quota starts
    when no other job of the queue runs, so that it does not wait for ever.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    slo_jobs : mapping or set of job ids
        Jobs with deadlines; all others are best effort.
    slo_share : float
        Share of the GPUs for the SLO queue; the paper takes the ratio of the two kinds of jobs.
    round_s : float
    can_run : callable (job, GPU type, GPUs) -> bool, optional

    Raises
    ------
    SettingsError
        If the share is not between 0 and 1.
    """

    def __init__(
        self,
        cluster: Cluster,
        slo_jobs: Mapping[str, object] | frozenset[str],
        slo_share: float,
        round_s: float = 60.0,
        can_run: CanRun | None = None,
    ) -> None:
        super().__init__(cluster, backfill=False, round_s=round_s, can_run=can_run)
        if not (isfinite(slo_share) and 0.0 <= slo_share <= 1.0):
            raise SettingsError(f"slo_share is {slo_share}, must be between 0 and 1")
        self.slo_jobs, self.slo_share = frozenset(slo_jobs), slo_share

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Start the jobs that fit into each queue's quota, in order of submission."""
        total = sum(self.nodes.capacity(kind) for kind in self.nodes.types)
        quota = {True: round(self.slo_share * total), False: total - round(self.slo_share * total)}
        used = {True: 0, False: 0}
        for job_id, held in self.held.items():
            used[job_id in self.slo_jobs] += held.gpus
        full: set[tuple[str, int]] = set()
        open_queues = {True, False}
        for job_id in [j for j in self.queue() if j not in self.held]:
            queue, gpus = job_id in self.slo_jobs, requested_gpus(self.jobs[job_id])
            if queue not in open_queues:
                continue
            fits = used[queue] + gpus <= quota[queue] or used[queue] == 0
            result = self._place(self.jobs[job_id], full) if fits else None
            if result is None:
                open_queues.discard(queue)
                continue
            self.hold(job_id, result)
            used[queue] += gpus
        return Choice({j: (held.gpu_type, held.gpus) for j, held in self.held.items() if j not in self.pins})
