"""Themis: leases are offered to the jobs farthest from finish-time fairness (Mahajan et al., NSDI '20)."""

from __future__ import annotations

from math import ceil

from copter.runtime.errors import SettingsError
from copter_frontends.policies.baselines.fair_share import FairnessPolicy
from copter_frontends.policy_kit import Throughputs
from copter_frontends.vocabulary import Cluster


class ThemisPolicy(FairnessPolicy):
    """Finish-time-fair allocation of rigid jobs by leases (docs/papers/baselines.md, B18).

    At the end of each lease, the GPUs are offered to the share 1 - `filter_share` of the jobs with the largest
    estimated rho. Remaining GPUs go to the other jobs, running ones first. Within each group larger rho comes first.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    throughputs : Throughputs
    filter_share : float
        Themis's f, at least 0 (all jobs take part in the offer) and below 1.
    round_s : float
        Seconds between plans: the lease.

    Raises
    ------
    SettingsError
        If `filter_share` is out of range.
    """

    def __init__(
        self, cluster: Cluster, throughputs: Throughputs, filter_share: float = 0.8, round_s: float = 360.0
    ) -> None:
        super().__init__(cluster, throughputs, round_s)
        if not 0 <= filter_share < 1:
            raise SettingsError(f"filter_share is {filter_share}, must be from 0 to below 1")
        self.filter_share = filter_share

    def ranking(self, now_s: float) -> list[str]:
        """Rank the jobs of the offer by rho, then the others."""
        self.count_contention()
        rho = {job_id: self.rho(self.jobs[job_id], now_s) for job_id in self.queue()}
        by_rho = sorted(rho, key=lambda job_id: -rho[job_id])
        offered = ceil((1.0 - self.filter_share) * len(by_rho) - 1e-9)
        return by_rho[:offered] + sorted(by_rho[offered:], key=lambda job_id: job_id not in self.held)
