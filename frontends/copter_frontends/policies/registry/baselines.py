"""Baselines by name, over a goodput model; opponents of the papers only are in ``copter_papers.opponents.entries``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from copter import Settings
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.profiled import ProfiledApplication
from copter_frontends.policies.baselines.fifo import FifoPolicy
from copter_frontends.policies.baselines.gavel import GavelObjective, GavelPolicy
from copter_frontends.policies.baselines.srtf import SrtfPolicy
from copter_frontends.policies.baselines.themis import ThemisPolicy
from copter_frontends.policies.baselines.tiresias import TiresiasPolicy
from copter_frontends.policy_kit import GoodputThroughputs, RunsWith
from copter_frontends.policy_kit.measured_throughputs import MeasuredThroughputs
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


OBJECTIVES = {
    "gavel": GavelObjective.MAX_SUM_THROUGHPUT,
    "gavel-max-min-fairness": GavelObjective.MAX_MIN_FAIRNESS,
    "gavel-makespan": GavelObjective.MAKESPAN,
    "gavel-finish-time-fairness": GavelObjective.FINISH_TIME_FAIRNESS,
    "gavel-proportional-fairness": GavelObjective.PROPORTIONAL_FAIRNESS,
}
"""Gavel's objective by the policy's name."""

BASELINES: dict[str, Make] = {
    "fifo": _fifo,
    **{name: _gavel(objective) for name, objective in OBJECTIVES.items()},
    "tiresias": _tiresias,
    "srtf": _srtf,
    "yarn-cs": _yarn,
    "themis": _themis,
}
"""Functions (cluster, goodput model, mode, settings) -> policy, by the policy's name on the command line."""
