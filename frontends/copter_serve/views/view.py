"""A cluster at one moment: queues with quotas, running jobs, waiting jobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from copter_serve.queues import QueueError, Quota, QuotaTree
from copter_serve.queues.quota_tree import Amounts, Share
from copter_serve.views.starts import Node, Way

GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu", "gres/gpu")
NO_DEVICES = ("pods", "ephemeral-storage", "hugepages", "attachable-volumes", "memory", "cpu", "storage")


class ViewError(QueueError):
    """Documents that describe no cluster, because their version is unknown, they are damaged, or they cannot be
    read.
    """


@dataclass(frozen=True, slots=True)
class WatchedJob:
    """A job as the cluster's own scheduler reports it.

    Attributes
    ----------
    id, queue : str
    priority : int
    options : tuple of Amounts
        Alternative amounts with which the job may run; for a running job, the amounts in use.
    running : bool
    came_s : float
        Unix time.
    started_s : float
        Unix time; nan for a waiting job.
    held : str
        Why the job may not start even if there is room; empty if it may.
    pod : Mapping of str to float
        Largest amounts that one of its pods or nodes needs, by resource.
    evicted : bool
        Whether it is being stopped, but still holds its quota.
    ways : tuple of Way
        The ways in which a waiting job may start, the preferred first.
    unclear : str
        Why it is not known whether a waiting job may start if there is room; empty if it is. It is never named as one
        that could start, but counts in the bound.
    after : str
        Waiting job that must have started before.
    limit_s : float
        Seconds after which it is ended, if it still runs; infinity if there is no limit or it is not told.
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
    evicted: bool = False
    ways: tuple[Way, ...] = ()
    unclear: str = ""
    after: str = ""
    limit_s: float = math.inf


@dataclass(slots=True)
class ClusterView:
    """A cluster at one moment.

    Attributes
    ----------
    source : str
    tree : QuotaTree
        A settled tree with the usage of the running jobs.
    jobs : list of WatchedJob
    nodes : dict of str to Node
        Empty if the source does not describe nodes.
    limits : dict of str to float
        What is left of limits beside the quotas, by name.
    deserved : dict of (queue, Share) to float
        Amount that a queue should get; its nominal quota if absent.
    skipped : list of str
        A line for each document that could not be read.
    not_modelled : list of str
        What decides about starts and is not in the documents, or not read from them.
    read_s : float
        Unix time of the documents; nan for the present.
    """

    source: str
    tree: QuotaTree
    jobs: list[WatchedJob]
    nodes: dict[str, Node] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    deserved: dict[tuple[str, Share], float] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    not_modelled: list[str] = field(default_factory=list)
    read_s: float = math.nan
    _counted: tuple[str, ...] = ()

    @property
    def counted(self) -> tuple[str, ...]:
        """Return the resources that are counted: GPUs of all names if there are any, else CPUs, else the first one."""
        if not self._counted:
            found = {
                name
                for node in [*self.tree.queues.values(), *self.tree.cohorts.values()]
                for (_, name), amount in node.subtree.items()
                if amount > 0.0
            }
            self._counted = counted_of(found)
        return self._counted

    @property
    def resource(self) -> str:
        """Return the name of what is counted."""
        return " + ".join(self.counted)

    def units(self, amounts: Amounts) -> float:
        """Return the units of the counted resources in some amounts."""
        return sum(amount for share, amount in amounts.items() if share[1] in self.counted)

    def quota(self) -> float:
        """Return the quota of the counted resources over all queues."""
        nodes = [*self.tree.queues.values(), *self.tree.cohorts.values()]
        return sum(quota.nominal for node in nodes for share, quota in node.quotas.items() if share[1] in self.counted)

    def used(self) -> float:
        """Return the units of the counted resource in use."""
        return sum(self.units(job.options[0]) for job in self.jobs if job.running)


def counted_of(found: Iterable[str]) -> tuple[str, ...]:
    """Return the resources to count among those that a cluster has: its GPUs and other devices, else CPUs."""
    names = sorted(found)
    known = tuple(name for name in names if name in GPUS)
    devices = known or tuple(name for name in names if "/" in name and not name.startswith((*NO_DEVICES, "gres/")))
    return devices or (("cpu",) if "cpu" in names or not names else (names[0],))


def pooled(
    total: Amounts,
    limits: Mapping[str, Mapping[Share, float]],
    kept: Mapping[str, Amounts] | None = None,
    parents: Mapping[str, str] | None = None,
    inner: Iterable[str] = (),
) -> QuotaTree:
    """Return the tree of queues that share one pool, each up to its limits.

    Parameters
    ----------
    total : Amounts
        Amounts of the pool.
    limits : mapping of str to mapping of Share to float
        Largest usage of each queue; inf for no limit.
    kept : mapping of str to Amounts, optional
        Amounts that each queue keeps even while it does not use them.
    parents : mapping of str to str, optional
        The parent of each queue that has one.
    inner : iterable of str
        Queues with queues below them.
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
