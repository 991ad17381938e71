"""Types shared by all schedulers: jobs, GPU types, clusters, configurations, plans, policies."""

from copter_frontends.vocabulary.cluster import Cluster, GpuType, Node
from copter_frontends.vocabulary.configuration import Configuration, configurations_for, configurations_of
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
from copter_frontends.vocabulary.job import Job, Shape
from copter_frontends.vocabulary.own_goodput import BatchInference, GoodputTable, LatencyInference, OwnGoodput
from copter_frontends.vocabulary.plan import Allocation, Plan, PlanStatus
from copter_frontends.vocabulary.policy import (
    FACTS,
    FollowsAtOnce,
    JoinedAtOnce,
    PinnedAtOnce,
    SchedulingPolicy,
    ToldAtOnce,
    at_once,
    progress_at_once,
    tell_jobs,
    tell_progress,
    with_defaults,
)
from copter_frontends.vocabulary.service import Attained

__all__ = [
    "FACTS",
    "Allocation",
    "Attained",
    "BatchInference",
    "CapacityInUseError",
    "Cluster",
    "Configuration",
    "DuplicateJobError",
    "FollowsAtOnce",
    "FrontendError",
    "GoodputTable",
    "GpuType",
    "InvalidClusterError",
    "InvalidJobError",
    "Job",
    "JoinedAtOnce",
    "LatencyInference",
    "Node",
    "OwnGoodput",
    "PinnedAtOnce",
    "Plan",
    "PlanStatus",
    "SchedulingPolicy",
    "Shape",
    "ToldAtOnce",
    "TraceError",
    "UnknownGpuTypeError",
    "UnknownJobError",
    "at_once",
    "configurations_for",
    "configurations_of",
    "progress_at_once",
    "tell_jobs",
    "tell_progress",
    "with_defaults",
]
