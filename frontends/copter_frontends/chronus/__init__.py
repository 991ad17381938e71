"""Chronus: deadlines by leases (Gao et al., SoCC '21; docs/papers/chronus.md)."""

from copter_frontends.chronus.formulation import LeaseFormulation, LeaseSolution
from copter_frontends.chronus.job_book import Notice, Standing
from copter_frontends.chronus.lease_grid import LeaseGrid
from copter_frontends.chronus.policy import ChronusPolicy
from copter_frontends.chronus.profiler import Profiler
from copter_frontends.chronus.selector import Selector
from copter_frontends.chronus.shim import LeaseShim
from copter_frontends.deadlines import StepReward, weighted_miss_rate

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
