"""Hops through the conformance suite, with the paper's objective and with a bonus for staying."""

from __future__ import annotations

from conformance import PolicyConformance

from copter_frontends.policies.hops import HopsPolicy
from copter_frontends.vocabulary import Cluster, SchedulingPolicy


class TestHopsConforms(PolicyConformance):
    keeps_lp = True
    edits_lp_each_plan = False
    examples = 8
    objective_tolerance = 1e-3  # below it the shim does not search on

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HopsPolicy(cluster)


class TestHopsOfThePaperConforms(PolicyConformance):
    keeps_lp = True
    examples = 5
    objective_tolerance = 1e-3

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HopsPolicy(cluster, stay_bonus=0.0, full_round_s=60.0)
