"""Chronus: deadlines by leases (Gao et al., SoCC '21; docs/papers/chronus.md)."""

from copter_frontends.policies.chronus.formulation import LeaseFormulation, LeaseSolution
from copter_frontends.policies.chronus.job_book import Notice
from copter_frontends.policies.chronus.lease_grid import LeaseGrid
from copter_frontends.policies.chronus.policy import ChronusPolicy
from copter_frontends.policies.chronus.profiler import Profiler
from copter_frontends.policies.chronus.selector import Selector
from copter_frontends.policies.chronus.shim import LeaseShim
from copter_frontends.policies.chronus.slo_record import Standing
from copter_frontends.policy_kit.deadlines import StepReward, weighted_miss_rate

__all__ = [
    "ChronusPolicy",
    "LeaseFormulation",
    "LeaseGrid",
    "LeaseShim",
    "LeaseSolution",
    "Notice",
    "Profiler",
    "Selector",
    "Standing",
    "StepReward",
    "weighted_miss_rate",
]
