"""The types that all schedulers share: jobs, GPU types, clusters, configurations, plans and policies."""

from copter_frontends.vocabulary.cluster import Cluster, GpuType, Node
from copter_frontends.vocabulary.configuration import Configuration, configurations_of
from copter_frontends.vocabulary.errors import (
    CapacityInUseError,
    DuplicateJobError,
    FrontendError,
    InvalidClusterError,
    InvalidJobError,
    TraceError,
    UnknownGpuTypeError,
    UnknownJobError,
)
from copter_frontends.vocabulary.job import Job
from copter_frontends.vocabulary.plan import Allocation, Plan, PlanStatus
from copter_frontends.vocabulary.policy import FACTS, SchedulingPolicy

__all__ = [
    "FACTS",
    "Allocation",
    "CapacityInUseError",
    "Cluster",
    "Configuration",
    "DuplicateJobError",
    "FrontendError",
    "GpuType",
    "InvalidClusterError",
    "InvalidJobError",
    "Job",
    "Node",
    "Plan",
    "PlanStatus",
    "SchedulingPolicy",
    "TraceError",
    "UnknownGpuTypeError",
    "UnknownJobError",
    "configurations_of",
]
