"""The policies that the command line knows by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from copter import Settings
from copter_frontends.chronus import ChronusPolicy
from copter_frontends.deadlines import DrawnRewards
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.profiled import ProfiledApplication
from copter_frontends.hadar import HadarPolicy, OnlineRule, utility_named
from copter_frontends.hare.opponent_policy import OpponentPolicy
from copter_frontends.hare.policy import HarePolicy
from copter_frontends.hare.task_policy import HareTaskPolicy
from copter_frontends.hare.task_rates import TaskGoodput
from copter_frontends.hops import HopsPolicy, ModelledThroughputs
from copter_frontends.policy_kit import GoodputThroughputs
from copter_frontends.registry.baselines import (
    BASELINES,
    OBJECTIVES,
    gavel_of_the_artifact,
    pollux_of_the_artifact,
    shockwave_of_the_artifact,
)
from copter_frontends.registry.names import BASELINE_NAMES, HADAR_MODES, HARE_SCHEMES, RIGID_NAMES
from copter_frontends.registry.policy_entry import PolicyEntry
from copter_frontends.semantics import Semantics
from copter_frontends.sia import SiaPolicy
from copter_frontends.vocabulary import Cluster, SchedulingPolicy


def _make_sia(
    cluster: Cluster,
    goodput_model: GoodputModel,
    mode: Literal["full", "capped"],
    threads: int | None,
    semantics: Semantics,
    profiles: Mapping[str, ProfiledApplication] | None,
    options: Mapping[str, Any],
) -> SchedulingPolicy:
    settings = Settings(threads=threads or 0)
    return SiaPolicy(
        cluster, goodput_model, mode=mode, settings=settings, semantics=semantics, profiles=profiles, **options
    )


def _hadar(mode: Any = "lp", prices: Any = None, utility: str = "jct") -> PolicyEntry:
    rule = OnlineRule() if prices is None else OnlineRule(prices=prices)

    def make(cluster: Cluster, goodput_model: GoodputModel, _: str, threads: int | None) -> SchedulingPolicy:
        return HadarPolicy(
            cluster,
            GoodputThroughputs(cluster, goodput_model),
            utility=utility_named(utility),
            mode=mode,
            rule=rule,
            settings=Settings(threads=threads or 0),
        )

    return PolicyEntry(make, has_lp=mode != "online")


def _make_hops(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
    return HopsPolicy(cluster, ModelledThroughputs(cluster, goodput_model), settings=Settings(threads=threads or 0))


def _make_hare(
    cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None, weights: Mapping[str, float]
) -> SchedulingPolicy:
    kind = HareTaskPolicy if isinstance(goodput_model, TaskGoodput) else HarePolicy
    return kind(cluster, goodput_model, threads=threads or 0, weights=weights)


def _hare_opponent(scheme: str) -> PolicyEntry:
    def make(
        cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None, weights: Mapping[str, float]
    ) -> SchedulingPolicy:
        return OpponentPolicy(cluster, scheme, goodput_model, weights=weights)

    return PolicyEntry(make, has_lp=False, takes_weights=True)


def _make_chronus(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
    rates = GoodputThroughputs(cluster, goodput_model)
    return ChronusPolicy(cluster, rates, DrawnRewards(cluster, rates))


def _baseline(name: str) -> PolicyEntry:
    """A baseline; under the semantics of Sia's public simulator some are as they were ported there."""

    def make(
        cluster: Cluster,
        goodput_model: GoodputModel,
        mode: str,
        threads: int | None,
        semantics: Semantics,
        profiles: Mapping[str, ProfiledApplication] | None,
    ) -> SchedulingPolicy:
        if name == "pollux" and semantics.training == "agent":
            return pollux_of_the_artifact(cluster, semantics, profiles)
        if name == "shockwave" and semantics.training == "agent":
            return shockwave_of_the_artifact(cluster, goodput_model)
        if name in OBJECTIVES and semantics.training == "agent" and profiles is not None:
            return gavel_of_the_artifact(cluster, profiles, OBJECTIVES[name], threads)
        return BASELINES[name](cluster, goodput_model, mode, threads)

    pollux = name == "pollux"
    rigid = name in RIGID_NAMES
    return PolicyEntry(make, has_lp=False, takes_semantics=True, rigid=rigid, capped=not pollux, type_blind=pollux)


POLICIES: dict[str, PolicyEntry] = {
    "sia": PolicyEntry(_make_sia, has_lp=True, takes_semantics=True, takes_options=True),
    "hadar": _hadar(),
    **{name: _hadar(**way) for name, way in HADAR_MODES.items()},
    "hops": PolicyEntry(_make_hops, has_lp=True),
    "hare": PolicyEntry(_make_hare, has_lp=False, takes_weights=True),
    **{name: _hare_opponent(scheme) for name, scheme in HARE_SCHEMES.items()},
    "chronus": PolicyEntry(_make_chronus, has_lp=True, rigid=True),
    **{name: _baseline(name) for name in BASELINE_NAMES},
}
"""Policies by the name that the command line has for them."""
