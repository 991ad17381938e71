"""The policies that the command line knows by name; their modules are imported when one is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def _make_fifo(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
    from copter_frontends.baselines import FifoPolicy

    return FifoPolicy(cluster, can_run=runs_on(cluster, goodput_model))


def _make_hare(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
    policy: Any = import_module("copter_frontends.hare.policy")
    made: SchedulingPolicy = policy.HarePolicy(cluster, goodput_model, threads=threads or 0)
    return made


POLICIES: dict[str, PolicyEntry] = {
    "sia": PolicyEntry(_make_sia, has_lp=True),
    "fifo": PolicyEntry(_make_fifo, has_lp=False),
    "hare": PolicyEntry(_make_hare, has_lp=False),
}
"""Policies by the name that the command line has for them."""


def runs_on(cluster: Cluster, goodput_model: GoodputModel) -> Callable[[Job, str, int], bool]:
    """Make the test whether a job runs at all on so many GPUs of a type, on as few nodes as can be."""
    from copter_frontends.simulator.goodput_source import same_model_for
    from copter_frontends.vocabulary import Configuration

    @cache
    def goodput(application: str, max_batch_size: int | None, gpu_type: str, gpus: int) -> float:
        nodes = math.ceil(gpus / cluster.types[gpu_type].gpus_per_node)
        model = same_model_for(goodput_model, [Configuration(nodes, gpus, gpu_type)])
        return float(model.row(application, 0.0, max_batch_size)[0])

    return lambda job, gpu_type, gpus: goodput(job.application, job.max_batch_size, gpu_type, gpus) > 0
