"""Checks of a cluster and of pins that every policy makes."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Protocol

from copter.runtime.errors import InvalidDataError, SettingsError
from copter_frontends.vocabulary import (
    Allocation,
    CapacityInUseError,
    Cluster,
    InvalidClusterError,
    InvalidJobError,
)


class HasNodes(Protocol):
    """Interface of a collection of nodes."""

    def __contains__(self, node: str, /) -> bool:
        """Whether a node with this id exists."""


def require_gpus(cluster: Cluster) -> None:
    """Raise InvalidClusterError for a cluster without GPUs."""
    if cluster.gpus == 0:
        raise InvalidClusterError("the cluster has no GPUs: give at least one type a node")


def check_round_s(round_s: float) -> None:
    """Raise SettingsError unless the length of a round is finite and above zero."""
    if not (isfinite(round_s) and round_s > 0):
        raise SettingsError(f"round_s is {round_s}, must be finite and > 0")


def check_times(now_s: float, deadline_s: float) -> None:
    """Raise InvalidDataError unless a plan's time is finite and its deadline above zero."""
    if not isfinite(now_s):
        raise InvalidDataError(f"now_s is {now_s}, must be finite: the seconds at which the round starts")
    if not deadline_s > 0:
        raise InvalidDataError(f"deadline_s is {deadline_s}, must be > 0: the seconds that the plan may take")


def check_nodes(job_id: str, allocation: Allocation, nodes: HasNodes) -> None:
    """Raise if a pin names unknown nodes or its GPUs do not add up.

    Parameters
    ----------
    job_id : str
    allocation : Allocation
        Of one GPU type.
    nodes : HasNodes
        Ids of the nodes of that type.

    Raises
    ------
    InvalidClusterError, InvalidJobError
    """
    missing = [node for node, _ in allocation.nodes if node not in nodes]
    if missing:
        raise InvalidClusterError(
            f"cannot pin job {job_id!r}: no {allocation.gpu_type!r} node is named {', '.join(missing)}"
        )
    if sum(gpus for _, gpus in allocation.nodes) != allocation.gpus:
        raise InvalidJobError(f"cannot pin job {job_id!r}: the nodes of {allocation} do not add up to its GPUs")


def require_free(job_id: str, allocation: Allocation, node_gpus: int, used: Mapping[str, int]) -> None:
    """Raise CapacityInUseError if a pin does not fit beside GPUs that cannot be moved.

    Parameters
    ----------
    job_id : str
    allocation : Allocation
        Of one GPU type.
    node_gpus : int
        GPUs of a node of that type.
    used : mapping of node id to int
        Immovable GPUs in use on each node.
    """
    short = [node for node, gpus in allocation.nodes if used.get(node, 0) + gpus > node_gpus]
    if short:
        raise CapacityInUseError(f"cannot pin job {job_id!r}: other jobs use the GPUs of {', '.join(short)}")
