"""The policies that the command line knows by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from copter import Settings
from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.profiled import ProfiledApplication
from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.policies.chronus.profiler import Profiler
from copter_frontends.policies.hadar import HadarPolicy, OnlineRule, Unmeasured, utility_named
from copter_frontends.policies.hare.policy import HarePolicy
from copter_frontends.policies.hare.task_policy import HareTaskPolicy
from copter_frontends.policies.hops import HopsPolicy, ModelledThroughputs, ProfilingQueue, ThroughputEstimator
from copter_frontends.policies.hops.profiling_queue import IterationModel
from copter_frontends.policies.registry.baselines import BASELINES, OBJECTIVES, gavel_of_the_artifact
from copter_frontends.policies.registry.elsewhere import PartlyElsewhere
from copter_frontends.policies.registry.names import (
    BASELINE_NAMES,
    HADAR_MODES,
    HARE_SCHEMES,
    OPPONENT_ENTRIES,
    RIGID_NAMES,
)
from copter_frontends.policies.registry.policy_entry import PolicyEntry
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.policies.sia.objective import objective_of
from copter_frontends.policy_kit import GoodputThroughputs, SeenTimes, TrainingThroughputs
from copter_frontends.policy_kit.deadlines import DeadlineOptions, DrawnRewards
from copter_frontends.vocabulary import Cluster, SchedulingPolicy
from copter_frontends.vocabulary.semantics import Semantics

LEASE_S, BEST_EFFORT_S = 1200.0, 300.0  # lengths of Chronus's SLO leases and best-effort leases, as in its paper


def _make_sia(
    cluster: Cluster,
    goodput_model: GoodputModel,
    mode: Literal["full", "capped"],
    settings: Settings,
    semantics: Semantics,
    profiles: Mapping[str, ProfiledApplication] | None,
    options: Mapping[str, Any],
) -> SchedulingPolicy:
    terms = {name: options[name] for name in ("power", "incentive") if name in options}
    return SiaPolicy(
        cluster,
        goodput_model,
        mode=mode,
        objective=replace(objective_of(semantics), **terms),
        settings=settings,
        semantics=semantics,
        profiles=profiles,
        **{name: value for name, value in options.items() if name not in terms},
    )


def _hadar(mode: Any = "lp", prices: Any = None, utility: str = "jct") -> PolicyEntry:
    rule = OnlineRule() if prices is None else OnlineRule(prices=prices)

    def make(
        cluster: Cluster, goodput_model: GoodputModel, _: str, settings: Settings, options: Mapping[str, Any]
    ) -> SchedulingPolicy:
        rates = GoodputThroughputs(cluster, goodput_model)
        return HadarPolicy(
            cluster,
            Unmeasured(rates) if options.get("unmeasured") else rates,
            utility=utility_named(utility),
            mode=mode,
            rule=rule,
            settings=settings,
        )

    return PolicyEntry(make, has_lp=mode != "online", takes_options=True)


def _make_hops(
    cluster: Cluster, goodput_model: GoodputModel, mode: str, settings: Settings, options: Mapping[str, Any]
) -> SchedulingPolicy:
    further = {name: value for name, value in options.items() if name != "profiling"}
    if not options.get("profiling"):
        return HopsPolicy(cluster, ModelledThroughputs(cluster, goodput_model), settings=settings, **further)
    if not isinstance(goodput_model, IterationModel):
        raise SettingsError("Hops profiles jobs whose iterations are known: --cluster hops-64 or hops-512")
    estimator = ThroughputEstimator()
    policy = HopsPolicy(cluster, estimator, settings=settings, **further)
    return ProfilingQueue(policy, estimator, goodput_model.iteration_times())


def _make_hare(
    cluster: Cluster,
    goodput_model: GoodputModel,
    mode: str,
    settings: Settings,
    weights: Mapping[str, float],
    profiling: bool = False,
    relaxation: Literal["worthwhile", "always"] = "worthwhile",
) -> SchedulingPolicy:
    seen = SeenTimes() if profiling else None
    return HareTaskPolicy(
        cluster, goodput_model, threads=settings.threads, weights=weights, seen=seen, relaxation=relaxation
    )


def _make_hare_gang(
    cluster: Cluster, goodput_model: GoodputModel, mode: str, settings: Settings, weights: Mapping[str, float]
) -> SchedulingPolicy:
    return HarePolicy(cluster, goodput_model, threads=settings.threads, weights=weights)


def _make_chronus(
    cluster: Cluster, goodput_model: GoodputModel, mode: str, settings: Settings, deadlines: DeadlineOptions | None
) -> SchedulingPolicy:
    rates = TrainingThroughputs(cluster, goodput_model)
    asked = deadlines or DeadlineOptions(DrawnRewards(cluster, rates))
    lease_s = LEASE_S if asked.lease_s is None else asked.lease_s
    return ChronusPolicy(
        cluster,
        rates,
        asked.rewards,
        lease_s=lease_s,
        round_s=round_of_lease_s(lease_s),
        selective=asked.selective,
        profiler=Profiler() if asked.profiling else None,
    )


def round_of_lease_s(lease_s: float) -> float:
    """Return the seconds of a best-effort lease for SLO leases of this length: five minutes as in the paper, or the
    nearest length that divides the SLO lease.
    """
    return lease_s / max(round(lease_s / BEST_EFFORT_S), 1)


def _baseline(name: str) -> PolicyEntry:
    """Return the entry of a baseline; under the semantics of Sia's public simulator, Gavel is as ported there."""

    def make(
        cluster: Cluster,
        goodput_model: GoodputModel,
        mode: str,
        settings: Settings,
        semantics: Semantics,
        profiles: Mapping[str, ProfiledApplication] | None,
    ) -> SchedulingPolicy:
        if name in OBJECTIVES and semantics.training == "agent" and profiles is not None:
            return gavel_of_the_artifact(cluster, profiles, OBJECTIVES[name], settings)
        return BASELINES[name](cluster, goodput_model, mode, settings)

    return PolicyEntry(make, has_lp=False, takes_semantics=True, rigid=name in RIGID_NAMES)


POLICIES: PartlyElsewhere[PolicyEntry] = PartlyElsewhere(
    {
        "sia": PolicyEntry(_make_sia, has_lp=True, takes_semantics=True, takes_options=True),
        "hadar": _hadar(),
        **{name: _hadar(**way) for name, way in HADAR_MODES.items()},
        "hops": PolicyEntry(_make_hops, has_lp=True, takes_options=True),
        "hare": PolicyEntry(_make_hare, has_lp=True, takes_weights=True, takes_profiling=True, by_tasks=True),
        "hare-relaxed": PolicyEntry(
            partial(_make_hare, relaxation="always"), True, takes_weights=True, takes_profiling=True, by_tasks=True
        ),
        "hare-gang": PolicyEntry(_make_hare_gang, has_lp=False, takes_weights=True),
        **dict.fromkeys(HARE_SCHEMES, OPPONENT_ENTRIES),
        "chronus": PolicyEntry(_make_chronus, has_lp=True, takes_deadlines=True, rigid=True),
        **{name: _baseline(name) if name in BASELINES else OPPONENT_ENTRIES for name in BASELINE_NAMES},
    }
)
"""Policies by their names on the command line; those of the papers' opponents are loaded when they are asked for."""
