"""What the options say to the policy: its semantics, its own arguments, the jobs' deadlines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.output import InputError
from copter_frontends.cli.saving import RunInputs
from copter_frontends.policies.hops import OfferRules
from copter_frontends.policies.sia import TimeSharing
from copter_frontends.policy_kit.deadlines import DrawnRewards, Rewards, StepReward
from copter_frontends.simulator.workload import Workload
from copter_frontends.vocabulary.semantics import Semantics


def semantics_of(asked: SimulateOptions, semantics: Semantics) -> Semantics:
    """Return the policy's semantics, changed by the options."""
    if asked.growth is not None:
        semantics = replace(semantics, growth=asked.growth)
    if asked.deja_vu:
        semantics = replace(semantics, deja_vu=True)
    return semantics if asked.shim is None else replace(semantics, shim=asked.shim)


def own_arguments(asked: SimulateOptions) -> Mapping[str, Any]:
    """Return the policy's own arguments that the options give."""
    if asked.policy == "hops":
        names = ("fairness", "priority", "stay_bonus")
        given: dict[str, Any] = {name: getattr(asked, name) for name in names if getattr(asked, name) is not None}
        if asked.profiling:
            given["profiling"] = True
        return given if asked.sensitivity is None else {**given, "rules": OfferRules(threshold=asked.sensitivity)}
    if asked.policy != "sia":
        return {"unmeasured": asked.unmeasured}
    given = {"quotas": dict(asked.quota)} if asked.quota else {}
    given |= {name: getattr(asked, name) for name in ("power", "incentive") if getattr(asked, name) is not None}
    if asked.time_sharing is not None:
        given["time_sharing"] = TimeSharing(asked.time_sharing, published=asked.penalty == "published")
    return given


def rewards_of(asked: SimulateOptions, inputs: RunInputs, workload: Workload) -> Rewards:
    """Return the jobs' deadlines, from the trace or drawn; the same for every policy."""
    if asked.deadline_source == "own" and not workload.deadlines:
        raise InputError(
            f"--deadlines own: {workload.source}: no job has deadlines of its own (Chronus's traces have them, as "
            "expect_time_list and expect_value_list); take --deadlines drawn"
        )
    if workload.deadlines and asked.deadline_source != "drawn" and asked.mix is None:
        return {job: StepReward.listed(steps) for job, steps in workload.deadlines.items()}
    return DrawnRewards(inputs.cluster, inputs.rates, asked.mix or "mix2", asked.seed)
