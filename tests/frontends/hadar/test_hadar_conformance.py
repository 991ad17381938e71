"""Hadar through the conformance suite, in each of its modes."""

from __future__ import annotations

from conformance import PolicyConformance

from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.vocabulary import Cluster, SchedulingPolicy


class TestHadarConforms(PolicyConformance):
    keeps_lp = True
    examples = 8
    objective_tolerance = 1e-3  # the shim's own tolerance: its MILP over the jobs in doubt stops at a gap of 5e-4

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HadarPolicy(cluster)


class TestOnlineHadarConforms(PolicyConformance):
    examples = 8

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HadarPolicy(cluster, mode="online")


class TestHadarAtPostedPricesConforms(PolicyConformance):
    keeps_lp = True
    examples = 5
    objective_comparable = False

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HadarPolicy(cluster, mode="lp_posted")


class TestHadarAheadConforms(PolicyConformance):  # its LP is compared with HiGHS's in test_hadar_horizon.py
    examples = 2
    objective_comparable = False

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HadarPolicy(cluster, mode="horizon")
