"""Hadar's other ways by name: each policy is what its name says."""

from __future__ import annotations

import pytest

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hadar import (
    AverageJct,
    EffectiveThroughput,
    FinishTimeFairness,
    HadarPolicy,
    Makespan,
    OnlineRule,
)
from copter_frontends.policies.registry.names import HADAR_MODES
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.vocabulary import configurations_of
from copter_frontends.vocabulary.named_clusters import named_cluster

SAYS = {
    "hadar": ("lp", AverageJct),
    "hadar-online": ("online", AverageJct),
    "hadar-printed": ("online", AverageJct),
    "hadar-posted": ("lp_posted", AverageJct),
    "hadar-horizon": ("horizon", AverageJct),
    "hadar-makespan": ("lp", Makespan),
    "hadar-finish-time-fairness": ("lp", FinishTimeFairness),
    "hadar-throughput": ("lp", EffectiveThroughput),
}


def test_every_way_is_tested() -> None:
    assert set(SAYS) == {"hadar", *HADAR_MODES}


@pytest.mark.parametrize("name", SAYS)
def test_a_name_is_a_mode_and_a_utility(name: str) -> None:
    cluster = named_cluster("hadar-60")
    policy = POLICIES[name].build(cluster, GoodputModel(configurations_of(cluster)))
    assert isinstance(policy, HadarPolicy)
    mode, utility = SAYS[name]
    assert policy.mode == mode
    assert isinstance(policy.formulation.utility, utility)
    assert policy.rule.prices == ("printed" if name == "hadar-printed" else OnlineRule().prices)
