"""Hops: fair assignment of jobs to servers with few fragments, from a throughput estimator down to single servers."""

from copter_frontends.hops.data_loading import DataLoading, LoadingState, fit_loading
from copter_frontends.hops.database import ThroughputDatabase
from copter_frontends.hops.errors import ThroughputDatabaseError, ThroughputError
from copter_frontends.hops.estimator import ThroughputEstimator
from copter_frontends.hops.formulation import GroupFormulation
from copter_frontends.hops.iteration_time import IterationTimes, Links
from copter_frontends.hops.latency_ratio import LatencyQueue
from copter_frontends.hops.loading_records import LearnedLoading, LoadingRecords
from copter_frontends.hops.offers import OfferRules
from copter_frontends.hops.policy import HopsPolicy
from copter_frontends.hops.profiling import profile_by_gpu, profiled
from copter_frontends.hops.profiling_queue import ProfilingQueue
from copter_frontends.hops.requirements import LearningRates, RequirementSet
from copter_frontends.hops.shim import HopsShim
from copter_frontends.hops.throughputs import LearnedThroughputs, ModelledThroughputs, PlacedThroughputs

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
