"""Sia: goodput-optimised scheduling of adaptive jobs on heterogeneous GPUs (thesis chapters 3 and 4)."""

from copter_frontends.policies.sia.formulation import SiaFormulation
from copter_frontends.policies.sia.objective import SiaObjective, restart_factor
from copter_frontends.policies.sia.policy import SiaPolicy
from copter_frontends.policies.sia.time_sharing import TimeSharing

__all__ = ["SiaFormulation", "SiaObjective", "SiaPolicy", "TimeSharing", "restart_factor"]
