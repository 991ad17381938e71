"""A cluster at one moment: queues with quotas, what runs, what waits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from copter_frontends.queues import QueueError, Quota, QuotaTree
from copter_frontends.queues.quota_tree import Amounts, Share

GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu", "gres/gpu")


class ViewError(QueueError):
    """Documents that say nothing of a cluster: of an unknown version, damaged, or out of reach."""


@dataclass(frozen=True, slots=True)
class WatchedJob:
    """A job of the cluster's own scheduler.

    Attributes
    ----------
    id, queue : str
    priority : int
    options : tuple of Amounts
        What it may run on; for one that runs, what it runs on.
    running : bool
    came_s : float
        Unix time.
    started_s : float
        Unix time; nan for one that waits.
    held : str
        Why it may not start whatever is free; empty if it may.
    pod : Mapping of str to float
        The largest need of one pod or node, by resource.
    """

    id: str
    queue: str
    priority: int
    options: tuple[Amounts, ...]
    running: bool
    came_s: float
    started_s: float = math.nan
    held: str = ""
    pod: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class ClusterView:
    """A cluster at one moment.

    Attributes
    ----------
    source : str
    tree : QuotaTree
        Settled, with the usage of what runs.
    jobs : list of WatchedJob
    node_free : dict of str to dict
        What each node has free, by resource; empty where the source says nothing of nodes.
    deserved : dict of (queue, Share) to float
        What a queue should get; its nominal quota where it is not here.
    skipped : list of str
        A line for each document that could not be read.
    """

    source: str
    tree: QuotaTree
    jobs: list[WatchedJob]
    node_free: dict[str, dict[str, float]] = field(default_factory=dict)
    deserved: dict[tuple[str, Share], float] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    @property
    def resource(self) -> str:
        """The resource that is counted: GPUs where there are any, else CPUs, else the first."""
        found = {
            share[1] for node in [*self.tree.queues.values(), *self.tree.cohorts.values()] for share in node.subtree
        }
        for name in (*GPUS, "cpu"):
            if name in found:
                return name
        return min(found, default="cpu")

    def units(self, amounts: Amounts) -> float:
        """The counted resource in some amounts."""
        return sum(amount for share, amount in amounts.items() if share[1] == self.resource)

    def quota(self) -> float:
        """Of the counted resource, all in all."""
        nodes = [*self.tree.queues.values(), *self.tree.cohorts.values()]
        return sum(quota.nominal for node in nodes for share, quota in node.quotas.items() if share[1] == self.resource)

    def used(self) -> float:
        """In use of the counted resource."""
        return sum(self.units(job.options[0]) for job in self.jobs if job.running)


def pooled(
    total: Amounts, limits: Mapping[str, Mapping[Share, float]], kept: Mapping[str, Amounts] | None = None,
    parents: Mapping[str, str] | None = None, inner: Iterable[str] = (),
) -> QuotaTree:  # fmt: skip
    """Queues that share one pool, each up to its limits.

    Parameters
    ----------
    total : Amounts
        Of the pool.
    limits : mapping of str to mapping of Share to float
        Most that a queue may use; inf where there is none.
    kept : mapping of str to Amounts, optional
        What a queue keeps even while it does not use it.
    parents : mapping of str to str, optional
        The queue above a queue.
    inner : iterable of str
        Queues that have others below them.
    """
    tree, kept, parents, above = QuotaTree(), kept or {}, parents or {}, set(inner)
    reserved: dict[Share, float] = {}
    for amounts in kept.values():
        for share, amount in amounts.items():
            reserved[share] = reserved.get(share, 0.0) + amount
    for share, amount in reserved.items():
        if amount > total.get(share, 0.0):
            raise ViewError(f"{' '.join(share)}: queues keep {amount:g} and the cluster has {total.get(share, 0.0):g}")
    tree.add_cohort("cluster", {share: Quota(amount - reserved.get(share, 0.0)) for share, amount in total.items()})
    for name, limit in limits.items():
        quotas = {}
        for share in total:
            own = kept.get(name, {}).get(share, 0.0)
            most = limit.get(share, math.inf)
            if most < own:
                raise ViewError(f"queue {name!r}, {' '.join(share)}: it keeps {own:g} and may use {most:g}")
            quotas[share] = Quota(own, most - own, 0.0 if own else math.inf)
        parent = parents.get(name, "cluster")
        if name in above:
            tree.add_cohort(name, quotas, parent)
        else:
            tree.add_queue(name, quotas, parent)
    return tree.settle()
