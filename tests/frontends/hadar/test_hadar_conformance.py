"""Hadar through the conformance suite, in each of its modes."""

from __future__ import annotations

from collections.abc import Hashable

from conformance import PolicyConformance

from copter_frontends.hadar import HadarPolicy
from copter_frontends.vocabulary import Cluster, SchedulingPolicy


class TestHadarConforms(PolicyConformance):
    examples = 8
    objective_tolerance = 1e-3  # the shim's own tolerance: its MILP over the jobs in doubt stops at a gap of 5e-4

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HadarPolicy(cluster)

    def state(self, policy: SchedulingPolicy) -> Hashable | None:
        assert isinstance(policy, HadarPolicy)
        book = policy.book
        order = sorted(range(len(book)), key=lambda row: book.jobs[row].id)
        fields = (book.gpus[order], book.rates[order], book.held[order], book.total[order])
        return tuple(array.tobytes() for array in fields), tuple(policy.formulation.capacity.tolist())


class TestOnlineHadarConforms(PolicyConformance):
    examples = 8

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HadarPolicy(cluster, mode="online")


class TestHadarAtPostedPricesConforms(PolicyConformance):
    examples = 5
    objective_comparable = False

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HadarPolicy(cluster, mode="lp_posted")
