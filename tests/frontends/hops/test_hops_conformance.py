"""Hops through the conformance suite, with the paper's objective and with a bonus for staying."""

from __future__ import annotations

from collections.abc import Hashable

from conformance import PolicyConformance

from copter_frontends.hops import HopsPolicy
from copter_frontends.vocabulary import Cluster, SchedulingPolicy


class TestHopsConforms(PolicyConformance):
    examples = 8
    objective_tolerance = 1e-3  # below it the shim does not search on

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HopsPolicy(cluster)

    def state(self, policy: SchedulingPolicy) -> Hashable | None:
        assert isinstance(policy, HopsPolicy)
        offers = sorted((job, each.key, each.gain.tobytes()) for job, each in policy.book.offers.items())
        return tuple(offers), tuple(sorted(policy.book.age_s.items())), policy.groups.key


class TestHopsOfThePaperConforms(PolicyConformance):
    examples = 5
    objective_tolerance = 1e-3

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HopsPolicy(cluster, stay_bonus=0.0, full_round_s=60.0)
