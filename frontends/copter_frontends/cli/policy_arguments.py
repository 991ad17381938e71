"""What the options say to the policy: its semantics, its own arguments, the solver that it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.output import InputError
from copter_frontends.cli.pulse import told
from copter_frontends.policies.hops import OfferRules
from copter_frontends.policies.sia import TimeSharing
from copter_frontends.policies.sia.objective import objective_of
from copter_frontends.vocabulary.semantics import PRESETS, Semantics

if TYPE_CHECKING:
    from copter_frontends.policy_kit.highs_comparison import HighsComparison


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
        given = {name: getattr(asked, name) for name in names if getattr(asked, name) is not None}
        if asked.profiling:
            given["profiling"] = True
        return given if asked.sensitivity is None else {**given, "rules": OfferRules(threshold=asked.sensitivity)}
    if asked.policy != "sia":
        return {"unmeasured": asked.unmeasured}
    given = {"quotas": dict(asked.quota)} if asked.quota else {}
    objective = objective_of(PRESETS[asked.semantics])
    power = objective.power if asked.power is None else asked.power
    incentive = objective.incentive if asked.incentive is None else asked.incentive
    if asked.power is not None or asked.incentive is not None:
        given["objective"] = replace(objective, power=power, incentive=incentive)
    if asked.time_sharing is not None:
        given["time_sharing"] = TimeSharing(asked.time_sharing, published=asked.penalty == "published")
    return given


def comparison_of(asked: SimulateOptions, policy: Any) -> HighsComparison | None:
    """Return an observer that also solves every k-th program with HiGHS, if asked for."""
    if not asked.compare:
        return None
    try:
        from copter_frontends.policy_kit.highs_comparison import HighsComparison  # needs highspy, an optional extra
    except ImportError as error:
        raise InputError(f"--compare highs: {error}; pip install highspy") from error
    comparison = HighsComparison(policy, asked.compare_every, asked.compare_time_limit)
    comparison.around = lambda index: told(lambda: f"HiGHS solves the program of round {index + 1} for comparison")
    return comparison
