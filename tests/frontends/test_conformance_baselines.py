"""Every baseline through the conformance suite."""

from __future__ import annotations

from conformance import PolicyConformance

from copter_frontends.baselines import GoodputThroughputs
from copter_frontends.baselines.gavel import GavelObjective, GavelPolicy
from copter_frontends.goodput import GoodputModel
from copter_frontends.vocabulary import Cluster, SchedulingPolicy, configurations_of


def goodput_of(cluster: Cluster) -> GoodputThroughputs:
    return GoodputThroughputs(cluster, GoodputModel(configurations_of(cluster)))


class GavelConforms(PolicyConformance):
    objective: GavelObjective
    examples = 5
    objective_tolerance = 1e-5

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return GavelPolicy(cluster, goodput_of(cluster), self.objective)


class TestGavelMaxSumThroughput(GavelConforms):
    objective = GavelObjective.MAX_SUM_THROUGHPUT


class TestGavelMaxMinFairness(GavelConforms):
    objective = GavelObjective.MAX_MIN_FAIRNESS


class TestGavelMakespan(GavelConforms):
    objective = GavelObjective.MAKESPAN


class TestGavelFinishTimeFairness(GavelConforms):
    objective = GavelObjective.FINISH_TIME_FAIRNESS
    objective_tolerance = 2e-3
