"""Hops: fair assignment of jobs to servers with few fragments, from a throughput estimator down to single servers."""

from copter_frontends.policies.hops.data_loading import DataLoading, LoadingState, fit_loading
from copter_frontends.policies.hops.database import ThroughputDatabase
from copter_frontends.policies.hops.errors import ThroughputDatabaseError, ThroughputError
from copter_frontends.policies.hops.estimator import ThroughputEstimator
from copter_frontends.policies.hops.formulation import GroupFormulation
from copter_frontends.policies.hops.iteration_time import IterationTimes, Links
from copter_frontends.policies.hops.latency_ratio import LatencyQueue
from copter_frontends.policies.hops.loading_records import LearnedLoading, LoadingRecords
from copter_frontends.policies.hops.offers import OfferRules
from copter_frontends.policies.hops.policy import HopsPolicy
from copter_frontends.policies.hops.profiling import profile_by_gpu, profiled
from copter_frontends.policies.hops.profiling_queue import ProfilingQueue
from copter_frontends.policies.hops.requirements import LearningRates, RequirementSet
from copter_frontends.policies.hops.shim import HopsShim
from copter_frontends.policies.hops.throughputs import LearnedThroughputs, ModelledThroughputs, PlacedThroughputs

__all__ = [
    "DataLoading",
    "GroupFormulation",
    "HopsPolicy",
    "HopsShim",
    "IterationTimes",
    "LatencyQueue",
    "LearnedLoading",
    "LearnedThroughputs",
    "LearningRates",
    "Links",
    "LoadingRecords",
    "LoadingState",
    "ModelledThroughputs",
    "OfferRules",
    "PlacedThroughputs",
    "ProfilingQueue",
    "RequirementSet",
    "ThroughputDatabase",
    "ThroughputDatabaseError",
    "ThroughputError",
    "ThroughputEstimator",
    "fit_loading",
    "profile_by_gpu",
    "profiled",
]
