"""The opponents of the papers by their names on the command line: their constructors and options.

:data:`copter_frontends.policies.registry.policies.POLICIES` looks them up here when one is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from copter import Settings
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.profiled import ProfiledApplication, fitted_profiles
from copter_frontends.policies.registry.baselines import Make
from copter_frontends.policies.registry.names import HARE_SCHEMES, RIGID_NAMES
from copter_frontends.policies.registry.policy_entry import PolicyEntry
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.policy_kit import GoodputThroughputs, TrainingThroughputs
from copter_frontends.policy_kit.deadlines import DeadlineOptions, DrawnRewards, Rewards
from copter_frontends.vocabulary import Cluster, SchedulingPolicy
from copter_frontends.vocabulary.semantics import Semantics
from copter_papers.hare.opponent_policy import OpponentPolicy
from copter_papers.opponents.edf import EdfPolicy
from copter_papers.opponents.genie import GeniePolicy
from copter_papers.opponents.pollux import LearnedSpeedups, PolluxPolicy, TypeBlindPollux
from copter_papers.opponents.pop import PopPolicy
from copter_papers.opponents.shockwave import ShockwavePolicy
from copter_papers.opponents.three_sigma import ThreeSigmaPolicy
from copter_papers.sia.cold_highs import ColdSiaPolicy


def _shockwave(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return ShockwavePolicy(cluster, GoodputThroughputs(cluster, model))


def _shockwave_log(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return ShockwavePolicy(cluster, GoodputThroughputs(cluster, model), true_log=True)


def _given_or_drawn(rewards: Rewards | None, cluster: Cluster, rates: TrainingThroughputs) -> Rewards:
    return DrawnRewards(cluster, rates) if rewards is None else rewards


def _edf(
    cluster: Cluster, model: GoodputModel, mode: str, settings: Settings, rewards: Rewards | None = None
) -> SchedulingPolicy:
    rates = TrainingThroughputs(cluster, model)
    return EdfPolicy(cluster, rates, _given_or_drawn(rewards, cluster, rates))


def _three_sigma(
    cluster: Cluster, model: GoodputModel, mode: str, settings: Settings, rewards: Rewards | None = None
) -> SchedulingPolicy:
    rates = TrainingThroughputs(cluster, model)
    return ThreeSigmaPolicy(cluster, rates, _given_or_drawn(rewards, cluster, rates))


def _genie(
    cluster: Cluster, model: GoodputModel, mode: str, settings: Settings, rewards: Rewards | None = None
) -> SchedulingPolicy:
    rates = TrainingThroughputs(cluster, model)
    return GeniePolicy(cluster, rates, _given_or_drawn(rewards, cluster, rates))


def _pollux(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return PolluxPolicy(cluster, GoodputThroughputs(cluster, model))


def _lp_star(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return ColdSiaPolicy(cluster, threads=settings.threads, goodput=model, mode=_mode(mode))


def _milp(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return ColdSiaPolicy(cluster, integer=True, threads=settings.threads, goodput=model, mode=_mode(mode))


def pop(part: Make, parts: int) -> Make:
    """Return the constructor of POP over another policy."""

    def make(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
        return PopPolicy(cluster, lambda piece: part(piece, model, mode, settings), parts)

    return make


def _sia(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return SiaPolicy(cluster, model, mode=_mode(mode), settings=settings)


def _mode(word: str) -> Literal["full", "capped"]:
    return "capped" if word == "capped" else "full"


def pollux_of_the_artifact(
    cluster: Cluster, semantics: Semantics, profiles: Mapping[str, ProfiledApplication] | None = None
) -> TypeBlindPollux:
    """Pollux as Sia's public simulator runs it: virtual nodes, no types, learned speedups (B29-B32)."""
    speedups = LearnedSpeedups(profiles or fitted_profiles(), semantics.projection_order, semantics.growth)
    sizes = {kind: made.gpus_per_node for kind, made in cluster.types.items()}
    counts = {kind: sum(node.gpu_type == kind for node in cluster.nodes.values()) for kind in sizes}
    most = [min(counts[kind], semantics.max_nodes.get(kind, counts[kind])) * sizes[kind] for kind in sizes]
    return TypeBlindPollux(cluster, speedups, most_gpus=min((gpus for gpus in most if gpus), default=None))


def shockwave_of_the_artifact(cluster: Cluster, model: GoodputModel, true_log: bool = False) -> ShockwavePolicy:
    """Shockwave as ported into Sia's public simulator, which does not tell it of GPU types (B23)."""
    return ShockwavePolicy(cluster, GoodputThroughputs(cluster, model), type_blind=True, true_log=true_log)


OPPONENTS: dict[str, Make] = {
    "shockwave": _shockwave,
    "shockwave-log": _shockwave_log,
    "edf": _edf,
    "3sigma": _three_sigma,
    "genie": _genie,
    "pollux": _pollux,
    "lp-star": _lp_star,
    "milp": _milp,
    "pop-16": pop(_milp, 16),
    "pop-16-copter": pop(_sia, 16),
}
"""Functions (cluster, goodput model, mode, settings) -> policy, by the policy's name on the command line."""


def _hare_opponent(scheme: str) -> PolicyEntry:
    def make(
        cluster: Cluster, goodput_model: GoodputModel, mode: str, settings: Settings, weights: Mapping[str, float]
    ) -> SchedulingPolicy:
        return OpponentPolicy(cluster, scheme, goodput_model, weights=weights)

    return PolicyEntry(make, has_lp=False, takes_weights=True)


def _deadline_opponent(name: str) -> PolicyEntry:
    """Return the entry of an opponent for jobs with deadlines."""

    def make(
        cluster: Cluster, goodput_model: GoodputModel, mode: str, settings: Settings, deadlines: DeadlineOptions | None
    ) -> SchedulingPolicy:
        return OPPONENTS[name](cluster, goodput_model, mode, settings, None if deadlines is None else deadlines.rewards)

    return PolicyEntry(make, has_lp=False, takes_deadlines=True, rigid=True)


def _opponent(name: str) -> PolicyEntry:
    """Return the entry of an opponent; under the semantics of Sia's public simulator, some are as ported there."""

    def make(
        cluster: Cluster,
        goodput_model: GoodputModel,
        mode: str,
        settings: Settings,
        semantics: Semantics,
        profiles: Mapping[str, ProfiledApplication] | None,
    ) -> SchedulingPolicy:
        if name == "pollux" and semantics.training == "agent":
            return pollux_of_the_artifact(cluster, semantics, profiles)
        if name in ("shockwave", "shockwave-log") and semantics.training == "agent":
            return shockwave_of_the_artifact(cluster, goodput_model, true_log=name == "shockwave-log")
        return OPPONENTS[name](cluster, goodput_model, mode, settings)

    pollux = name == "pollux"
    rigid = name in RIGID_NAMES
    return PolicyEntry(make, has_lp=False, takes_semantics=True, rigid=rigid, capped=not pollux, type_blind=pollux)


WITH_DEADLINES = ("edf", "3sigma", "genie")

ENTRIES: dict[str, PolicyEntry] = {
    **{name: _hare_opponent(scheme) for name, scheme in HARE_SCHEMES.items()},
    **{name: _deadline_opponent(name) if name in WITH_DEADLINES else _opponent(name) for name in OPPONENTS},
}
"""The opponents' entries by name."""
