"""Free GPUs of one type, node by node, for jobs that never move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Shares = tuple[tuple[str, int], ...]


class FreeGpus:
    """The free GPUs of the nodes of one type.

    A job within a node goes to the fullest node that has room (best fit); a larger one takes whole free nodes, and its
    remainder the fullest node with room. Ties go to the node that was added first.
    """

    def __init__(self, gpus_per_node: int) -> None:
        self._gpus_per_node = gpus_per_node
        self._free: dict[str, int] = {}
        # For each number of free GPUs: node id -> None, in the order of arrival in this bucket.
        self._by_free: list[dict[str, None]] = [{} for _ in range(gpus_per_node + 1)]

    @property
    def nodes(self) -> Iterable[str]:
        """Ids of the nodes, oldest first."""
        return self._free.keys()

    @property
    def count(self) -> int:
        """Number of nodes."""
        return len(self._free)

    @property
    def gpus(self) -> int:
        """Free GPUs."""
        return sum(free * len(nodes) for free, nodes in enumerate(self._by_free))

    @property
    def nodes_by_free(self) -> list[int]:
        """Number of nodes with 0, 1, ... free GPUs."""
        return [len(nodes) for nodes in self._by_free]

    def __contains__(self, node: str) -> bool:
        return node in self._free

    def free_on(self, node: str) -> int:
        """Return the free GPUs of one node."""
        return self._free[node]

    def has_room(self, shares: Shares) -> bool:
        """Whether these GPUs exist and are free."""
        if len(shares) == 1:  # as most have
            return self._free.get(shares[0][0], -1) >= shares[0][1]
        return all(self._free.get(node, -1) >= gpus for node, gpus in shares)

    def add(self, node: str) -> None:
        """Add an empty node."""
        self._free[node] = self._gpus_per_node
        self._by_free[self._gpus_per_node][node] = None

    def drop(self, node: str) -> None:
        """Remove a node, even if jobs run on it."""
        del self._by_free[self._free.pop(node)][node]

    def take(self, shares: Shares) -> None:
        """Take these GPUs, which the caller has checked to be free."""
        free, by_free = self._free, self._by_free
        for node, gpus in shares:
            had = free[node]
            del by_free[had][node]
            free[node] = had - gpus
            by_free[had - gpus][node] = None

    def give(self, shares: Shares) -> None:
        """Return these GPUs; nodes that no longer exist are ignored."""
        free, by_free = self._free, self._by_free
        for node, gpus in shares:
            had = free.get(node)
            if had is not None:
                del by_free[had][node]
                free[node] = had + gpus
                by_free[had + gpus][node] = None

    def give_all(self, many: Iterable[Shares]) -> None:
        """Do :meth:`give` for many shares, one after the other: each node changes once."""
        self._change({node: gpus for node, gpus in _summed(many).items() if node in self._free})

    def short_of_all(self, many: Iterable[Shares]) -> bool:
        """Whether many shares are not free together."""
        free = self._free
        return any(free.get(node, -1) < gpus for node, gpus in _summed(many).items())

    def take_all(self, many: Iterable[Shares]) -> None:
        """Do :meth:`take` for many shares, one after the other: each node changes once."""
        self._change({node: -gpus for node, gpus in _summed(many).items()})

    def _change(self, more: Mapping[str, int]) -> None:
        free, by_free = self._free, self._by_free
        for node, gpus in more.items():
            had = free[node]
            del by_free[had][node]
            free[node] = had + gpus
            by_free[had + gpus][node] = None

    def touch(self, shares: Shares) -> None:
        """Return these GPUs and take them again: among nodes with equally many free GPUs, theirs come last."""
        for node, _ in shares:
            alike = self._by_free[self._free[node]]
            del alike[node]
            alike[node] = None

    def find(self, gpus: int) -> Shares | None:
        """Find room for a job on the fewest nodes, sorted by node id; None if there is none."""
        if gpus <= self._gpus_per_node:
            for nodes in self._by_free[gpus:]:
                for node in nodes:
                    return ((node, gpus),)
            return None
        whole, rest = divmod(gpus, self._gpus_per_node)
        empty = self._by_free[self._gpus_per_node]
        if len(empty) < whole:
            return None
        shares = [(node, self._gpus_per_node) for node, _ in zip(empty, range(whole), strict=False)]
        if rest:
            taken = {node for node, _ in shares}
            fits = (node for nodes in self._by_free[rest:] for node in nodes if node not in taken)
            fullest = next(fits, None)
            if fullest is None:
                return None
            shares.append((fullest, rest))
        return tuple(sorted(shares))

    def take_whole(self, gpus: int) -> Shares | None:
        """Find room as :meth:`find` does, on no more nodes than necessary, and take it; None if there is none."""
        if gpus > self._gpus_per_node:
            shares = self.find(gpus)
            if shares is None or len(shares) > -(-gpus // self._gpus_per_node):
                return None
            self.take(shares)
            return shares
        for had in range(gpus, self._gpus_per_node + 1):
            nodes = self._by_free[had]
            for node in nodes:
                del nodes[node]
                self._free[node] = had - gpus
                self._by_free[had - gpus][node] = None
                return ((node, gpus),)
        return None

    def find_anywhere(self, gpus: int) -> Shares | None:
        """Find room on any nodes, those with most free GPUs first, sorted by node id; None if there is none."""
        shares: list[tuple[str, int]] = []
        left = gpus
        for free in range(self._gpus_per_node, 0, -1):
            for node in self._by_free[free]:
                if left == 0:
                    return tuple(sorted(shares))
                shares.append((node, min(free, left)))
                left -= shares[-1][1]
        return tuple(sorted(shares)) if left == 0 else None


def _summed(many: Iterable[Shares]) -> dict[str, int]:
    """Return the GPUs of many shares by node, in the order in which the nodes have their last share."""
    total = dict[str, int]()
    for shares in many:
        for node, gpus in shares:
            total[node] = total.pop(node, 0) + gpus
    return total
