"""Events of a cluster: node failures and repairs, capacity added and removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from copter_frontends.vocabulary import Cluster, InvalidClusterError

What = Literal["fail", "repair", "add", "remove"]


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One change of a cluster, effective at the first round that starts at or after its time.

    Parameters
    ----------
    time_s : float
    what : {"fail", "repair", "add", "remove"}
        When a node *fails*, its jobs lose their GPUs and their training since the last checkpoint, the start of their
        phase. A *repaired* node comes back under its old name. *add* and *remove* are the operator's changes: jobs on a
        removed node write a checkpoint first.
    gpu_type : str
    nodes : tuple of str
        Names of the nodes; optional for *add*.
    count : int
        Number of nodes to add, if no names are given.
    """

    time_s: float
    what: What
    gpu_type: str
    nodes: tuple[str, ...] = ()
    count: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.time_s < float("inf"):
            raise InvalidClusterError(f"cluster event: time_s is {self.time_s}, must be finite and >= 0")
        if self.what not in ("fail", "repair", "add", "remove"):
            raise InvalidClusterError(f"cluster event: what is {self.what!r}, must be fail, repair, add or remove")
        if not self.nodes and not (self.what == "add" and self.count >= 1):
            raise InvalidClusterError(f"cluster event: {self.what} at {self.time_s:g} s names no nodes")


def random_failures(
    cluster: Cluster, hours: float, mean_hours_between: float, mean_repair_hours: float, seed: int
) -> list[ClusterEvent]:
    """Failures and repairs of every node, each at exponentially distributed times.

    Parameters
    ----------
    cluster : Cluster
    hours : float
        No node fails later than this; every failed node is repaired.
    mean_hours_between : float
        Mean hours from a node's start or repair to its next failure.
    mean_repair_hours : float
    seed : int

    Raises
    ------
    InvalidClusterError
        If a mean is not positive.
    """
    if not (mean_hours_between > 0 and mean_repair_hours > 0):
        raise InvalidClusterError(
            f"mean hours between failures {mean_hours_between} and of a repair {mean_repair_hours} must be positive"
        )
    rng = np.random.default_rng(seed)
    events: list[ClusterEvent] = []
    for node in cluster.nodes.values():
        at = float(rng.exponential(mean_hours_between))
        while at < hours:
            back = at + float(rng.exponential(mean_repair_hours))
            events.append(ClusterEvent(at * 3600, "fail", node.gpu_type, (node.id,)))
            events.append(ClusterEvent(back * 3600, "repair", node.gpu_type, (node.id,)))
            at = back + float(rng.exponential(mean_hours_between))
    return in_order(events)


def in_order(events: Sequence[ClusterEvent]) -> list[ClusterEvent]:
    """Sort events by time; at equal times, additions and repairs precede removals and failures."""
    return sorted(events, key=lambda event: (event.time_s, event.what in ("fail", "remove")))
