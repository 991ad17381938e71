"""Baselines by name, over a goodput model."""

from __future__ import annotations

from collections.abc import Callable

from copter import Settings
from copter_frontends.baselines.gavel import GavelObjective, GavelPolicy
from copter_frontends.baselines.throughputs import GoodputThroughputs
from copter_frontends.goodput import GoodputModel
from copter_frontends.vocabulary import Cluster, SchedulingPolicy

Make = Callable[[Cluster, GoodputModel, str, int | None], SchedulingPolicy]


def _gavel(objective: GavelObjective) -> Make:
    def make(cluster: Cluster, model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
        rates = GoodputThroughputs(cluster, model, "iterations")
        return GavelPolicy(cluster, rates, objective, settings=Settings(threads=threads or 0))

    return make


BASELINES: dict[str, Make] = {
    "gavel": _gavel(GavelObjective.MAX_SUM_THROUGHPUT),
    "gavel-max-min-fairness": _gavel(GavelObjective.MAX_MIN_FAIRNESS),
    "gavel-makespan": _gavel(GavelObjective.MAKESPAN),
    "gavel-finish-time-fairness": _gavel(GavelObjective.FINISH_TIME_FAIRNESS),
}
"""(cluster, goodput model, mode, threads) -> policy, by the name that the command line has for it."""
