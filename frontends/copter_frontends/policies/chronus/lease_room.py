"""Room for jobs that join the current lease: consolidated, beside guaranteed jobs that do not move (chronus.md, C4)."""

from __future__ import annotations

import numpy as np

from copter_frontends.policies.chronus.options import Ints
from copter_frontends.policy_kit import NodeInventory
from copter_frontends.vocabulary.compilation import compiled


class LeaseRoom:
    """For each GPU type, how many nodes have how many GPUs that no guaranteed or pinned job takes.

    Parameters
    ----------
    nodes : NodeInventory
        Its GPUs are taken by exactly these jobs, with the GPUs that they are rounded up to.

    Attributes
    ----------
    sizes : int64 array (types,)
        GPUs of a node of each type.
    counts : int64 array (types, GPUs of the largest node + 1)
        Nodes by their free GPUs.
    """

    def __init__(self, nodes: NodeInventory) -> None:
        self.sizes: Ints = np.array([nodes.node_gpus(kind) for kind in nodes.types], dtype=np.int64)
        self.counts: Ints = np.zeros((len(self.sizes), int(self.sizes.max()) + 1), dtype=np.int64)
        for kind, name in enumerate(nodes.types):
            self.counts[kind, : self.sizes[kind] + 1] = nodes.nodes_by_free(name)

    def largest(self, kind: int) -> int:
        """Return the GPUs of the largest job that fits consolidated on a type, given by its number."""
        return int(largest_in(self.counts[kind], self.sizes[kind]))

    def take(self, kind: int, gpus: int) -> None:
        """Take the GPUs of a job that fits, by best fit as in :func:`.pack`."""
        take_in(self.counts[kind], self.sizes[kind], gpus)


@compiled
def largest_in(counts: Ints, size: int) -> int:
    """Return the GPUs of the largest job that fits consolidated on nodes of this size, given their number by free
    GPUs.
    """
    largest: int = counts[size] * size
    for free in range(size, 0, -1):
        if counts[free]:
            return max(largest, free)
    return largest


@compiled
def take_in(counts: Ints, size: int, gpus: int) -> None:
    """Take the GPUs of a job that fits, by best fit."""
    while gpus > 0:
        part = min(gpus, size)
        free = part
        while free < size and not counts[free]:
            free += 1
        counts[free] -= 1
        counts[free - part] += 1
        gpus -= part
