"""The papers' own jobs on the papers' own clusters, for ``copter simulate``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hare.task_rates import TaskGoodput
from copter_frontends.simulator.workload import Workload
from copter_frontends.vocabulary import Cluster, configurations_of
from copter_papers.hare.applications import HARE_APPLICATIONS
from copter_papers.hare.testbed import testbed_workload
from copter_papers.hops.testbed import HOPS_APPLICATIONS, IterationGoodput, hops_workload


@dataclass(frozen=True, slots=True)
class Testbed:
    """A paper's evaluation: how its jobs train, and what they are.

    Attributes
    ----------
    goodput : callable (cluster) -> GoodputModel
    workload : callable (number of jobs or None, seed) -> Workload
    """

    goodput: Callable[[Cluster], GoodputModel]
    workload: Callable[[int | None, int], Workload]


def _hare(cluster: Cluster) -> GoodputModel:
    return TaskGoodput(configurations_of(cluster), HARE_APPLICATIONS)


def _hops(cluster: Cluster) -> GoodputModel:
    return IterationGoodput(configurations_of(cluster), HOPS_APPLICATIONS)


TESTBEDS = {
    "hare-15": Testbed(_hare, testbed_workload),
    "hops-64": Testbed(_hops, lambda jobs, seed: hops_workload("hops-64", jobs, seed)),
    "hops-512": Testbed(_hops, lambda jobs, seed: hops_workload("hops-512", jobs, seed)),
}
"""Testbeds by the cluster's name."""
