"""Room for jobs that join the current lease: consolidated, beside guaranteed jobs that do not move (chronus.md, C4)."""

from __future__ import annotations

from copter_frontends.policy_kit import NodeInventory


class LeaseRoom:
    """For each GPU type, how many nodes have how many GPUs that no guaranteed or pinned job takes.

    Parameters
    ----------
    nodes : NodeInventory
        Its GPUs are taken by exactly these jobs, with the GPUs that they are rounded up to.
    """

    def __init__(self, nodes: NodeInventory) -> None:
        self._counts = [nodes.nodes_by_free(kind) for kind in nodes.types]

    def largest(self, kind: int) -> int:
        """Return the GPUs of the largest job that fits consolidated on a type, given by its number."""
        counts = self._counts[kind]
        size = len(counts) - 1
        return max(counts[size] * size, max((free for free, nodes in enumerate(counts) if nodes), default=0))

    def take(self, kind: int, gpus: int) -> None:
        """Take the GPUs of a job that fits, by best fit as in :func:`.pack`."""
        counts = self._counts[kind]
        size = len(counts) - 1
        while gpus > 0:
            part = min(gpus, size)
            free = next(free for free in range(part, size + 1) if counts[free])
            counts[free] -= 1
            counts[free - part] += 1
            gpus -= part
