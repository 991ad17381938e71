"""The policies that the command line knows by name; their modules are imported when one is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from copter_frontends.baselines.names import BASELINE_NAMES

if TYPE_CHECKING:
    from copter_frontends.goodput import GoodputModel
    from copter_frontends.vocabulary import Cluster, Job, SchedulingPolicy


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """How to make a policy.

    Attributes
    ----------
    make : callable (cluster, goodput model, mode, threads) -> SchedulingPolicy
        With its paper's round length; None threads are all there are.
    has_lp : bool
        Whether each round is a linear programme, which another solver can be given too.
    """

    make: Callable[[Cluster, GoodputModel, str, int | None], SchedulingPolicy]
    has_lp: bool


def _make_sia(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
    from copter import Settings

    sia: Any = import_module("copter_frontends.sia")
    policy: SchedulingPolicy = sia.SiaPolicy(cluster, mode=mode, settings=Settings(threads=threads or 0))
    return policy


def _make_hadar(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
    from copter import Settings
    from copter_frontends.hadar import HadarPolicy

    return HadarPolicy(cluster, settings=Settings(threads=threads or 0))


def _make_fifo(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
    from copter_frontends.baselines import FifoPolicy

    return FifoPolicy(cluster, can_run=runs_on(cluster, goodput_model))


def _baseline(name: str) -> PolicyEntry:
    """An entry whose policy the baselines' own registry makes."""

    def make(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
        from copter_frontends.baselines.registry import BASELINES

        return BASELINES[name](cluster, goodput_model, mode, threads)

    return PolicyEntry(make, has_lp=False)


POLICIES: dict[str, PolicyEntry] = {
    "sia": PolicyEntry(_make_sia, has_lp=True),
    "hadar": PolicyEntry(_make_hadar, has_lp=True),
    "fifo": PolicyEntry(_make_fifo, has_lp=False),
    **{name: _baseline(name) for name in BASELINE_NAMES},
}
"""Policies by the name that the command line has for them."""


def runs_on(cluster: Cluster, goodput_model: GoodputModel) -> Callable[[Job, str, int], bool]:
    """Make the test whether a job runs at all on so many GPUs of a type, on as few nodes as can be."""
    from copter_frontends.baselines.base import runs_with
    from copter_frontends.baselines.throughputs import GoodputThroughputs

    return runs_with(GoodputThroughputs(cluster, goodput_model))
