"""Baselines by name, over a goodput model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from copter import Settings
from copter_frontends.baselines.edf import EdfPolicy
from copter_frontends.baselines.fifo import FifoPolicy
from copter_frontends.baselines.gavel import GavelObjective, GavelPolicy
from copter_frontends.baselines.genie import GeniePolicy
from copter_frontends.baselines.pollux import LearnedSpeedups, PolluxPolicy, TypeBlindPollux
from copter_frontends.baselines.pop import PopPolicy
from copter_frontends.baselines.shockwave import ShockwavePolicy
from copter_frontends.baselines.srtf import SrtfPolicy
from copter_frontends.baselines.themis import ThemisPolicy
from copter_frontends.baselines.three_sigma import ThreeSigmaPolicy
from copter_frontends.baselines.tiresias import TiresiasPolicy
from copter_frontends.deadlines import DrawnRewards, Rewards
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.profiled import ProfiledApplication, fitted_profiles
from copter_frontends.policy_kit import GoodputThroughputs, RunsWith, TrainingThroughputs
from copter_frontends.policy_kit.measured_throughputs import MeasuredThroughputs
from copter_frontends.semantics import Semantics
from copter_frontends.sia import SiaPolicy
from copter_frontends.sia.paper.cold_highs import ColdSiaPolicy
from copter_frontends.vocabulary import Cluster, SchedulingPolicy

Make = Callable[..., SchedulingPolicy]
"""Function of (cluster, goodput model, mode, settings) and, for policies with deadlines, the jobs' rewards."""


def _gavel(objective: GavelObjective) -> Make:
    def make(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
        rates = GoodputThroughputs(cluster, model, "iterations")
        return GavelPolicy(cluster, rates, objective, settings=settings)

    return make


def _goodput(cluster: Cluster, model: GoodputModel) -> GoodputThroughputs:
    return GoodputThroughputs(cluster, model)


def _fifo(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return FifoPolicy(cluster, can_run=RunsWith(_goodput(cluster, model)))


def _tiresias(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return TiresiasPolicy(cluster, can_run=RunsWith(_goodput(cluster, model)))


def _srtf(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return SrtfPolicy(cluster, _goodput(cluster, model))


def _yarn(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return FifoPolicy(cluster, backfill=False, can_run=RunsWith(_goodput(cluster, model)))


def _themis(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return ThemisPolicy(cluster, _goodput(cluster, model))


def _shockwave(cluster: Cluster, model: GoodputModel, mode: str, settings: Settings) -> SchedulingPolicy:
    return ShockwavePolicy(cluster, _goodput(cluster, model))


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
    return PolluxPolicy(cluster, _goodput(cluster, model))


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


def gavel_of_the_artifact(
    cluster: Cluster,
    profiles: Mapping[str, ProfiledApplication],
    objective: GavelObjective = GavelObjective.MAX_SUM_THROUGHPUT,
    settings: Settings | None = None,
) -> GavelPolicy:
    """Gavel as ported into Sia's public simulator: measured throughputs, one queue, clocks never reset (B12)."""
    rates = MeasuredThroughputs(cluster, profiles)
    asked = settings or Settings()
    if asked.method == "auto":  # ECOS, that simulator's solver, returns an inner point of the optima, not a vertex
        asked = replace(asked, method="interior")
    return GavelPolicy(cluster, rates, objective, reset_s=None, one_queue=True, settings=asked)


def pollux_of_the_artifact(
    cluster: Cluster, semantics: Semantics, profiles: Mapping[str, ProfiledApplication] | None = None
) -> TypeBlindPollux:
    """Pollux as Sia's public simulator runs it: virtual nodes, no types, learned speedups (B29-B32)."""
    speedups = LearnedSpeedups(profiles or fitted_profiles(), semantics.projection_order, semantics.growth)
    sizes = {kind: made.gpus_per_node for kind, made in cluster.types.items()}
    counts = {kind: sum(node.gpu_type == kind for node in cluster.nodes.values()) for kind in sizes}
    most = [min(counts[kind], semantics.max_nodes.get(kind, counts[kind])) * sizes[kind] for kind in sizes]
    return TypeBlindPollux(cluster, speedups, most_gpus=min((gpus for gpus in most if gpus), default=None))


def shockwave_of_the_artifact(cluster: Cluster, model: GoodputModel) -> ShockwavePolicy:
    """Shockwave as ported into Sia's public simulator, which does not tell it of GPU types (B23)."""
    return ShockwavePolicy(cluster, _goodput(cluster, model), type_blind=True)


OBJECTIVES = {
    "gavel": GavelObjective.MAX_SUM_THROUGHPUT,
    "gavel-max-min-fairness": GavelObjective.MAX_MIN_FAIRNESS,
    "gavel-makespan": GavelObjective.MAKESPAN,
    "gavel-finish-time-fairness": GavelObjective.FINISH_TIME_FAIRNESS,
}
"""Gavel's objective by the policy's name."""

BASELINES: dict[str, Make] = {
    "fifo": _fifo,
    **{name: _gavel(objective) for name, objective in OBJECTIVES.items()},
    "tiresias": _tiresias,
    "srtf": _srtf,
    "yarn-cs": _yarn,
    "themis": _themis,
    "shockwave": _shockwave,
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
