"""Hadar: one job's tasks on several GPU types, priced by a linear program or the paper's online algorithm."""

from copter_frontends.policies.hadar.estimator import ThroughputEstimator, Unmeasured
from copter_frontends.policies.hadar.formulation import HadarFormulation
from copter_frontends.policies.hadar.horizon import Horizon
from copter_frontends.policies.hadar.online import OnlineRule
from copter_frontends.policies.hadar.policy import HadarPolicy
from copter_frontends.policies.hadar.posted_prices import PriceFunction
from copter_frontends.policies.hadar.shim import HadarShim
from copter_frontends.policies.hadar.utility import (
    AverageJct,
    CompletionUtility,
    EffectiveThroughput,
    FinishTimeFairness,
    Makespan,
    utility_named,
)

__all__ = [
    "AverageJct",
    "CompletionUtility",
    "EffectiveThroughput",
    "FinishTimeFairness",
    "HadarFormulation",
    "HadarPolicy",
    "HadarShim",
    "Horizon",
    "Makespan",
    "OnlineRule",
    "PriceFunction",
    "ThroughputEstimator",
    "Unmeasured",
    "utility_named",
]
