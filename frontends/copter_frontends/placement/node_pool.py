"""The nodes of one type during a placement: free GPUs and the jobs on them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping

from copter_frontends.placement.node_table import NodeTable
from copter_frontends.vocabulary import Allocation


class NodePool:
    """Free GPUs of every node of one type.

    The pool is used in two stages. First, :meth:`hold` keeps jobs on their nodes. Then :meth:`sort_nodes` sorts the
    nodes into buckets by their free GPUs, and the other methods place and evict jobs. Each bucket is ordered by node
    number, so that choices depend on the present state only, not on the order of earlier calls.

    Attributes
    ----------
    table : NodeTable
    free : list of int
        Free GPUs, by node number.
    buckets : list of list of int
        Node numbers by free GPUs, 0 to the node's size; ascending.
    homes : dict of job id to (node number, GPUs)
        Jobs of less than a node that may be moved.
    pinned : list of job ids
        Jobs that may not be moved.
    clash : bool
        Whether :meth:`hold` met a job whose previous node another job has already filled.
    """

    __slots__ = ("_residents", "buckets", "clash", "free", "homes", "pinned", "table")

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.free = [table.gpus_per_node] * len(table.ids)
        self.buckets: list[list[int]] = []
        self.homes: dict[str, tuple[int, int]] = {}
        self.pinned: list[str] = []
        self.clash = False
        self._residents: dict[int, dict[str, int]] | None = None

    def copy(self) -> NodePool:
        """Return a pool with the same jobs, whose nodes are not sorted yet."""
        other = NodePool(self.table)
        other.free, other.homes, other.pinned = self.free.copy(), self.homes.copy(), self.pinned.copy()
        return other

    def hold(self, job: str, old: Allocation) -> bool:
        """Keep a job on its previous nodes; returns False and changes nothing if they are gone, irregular or taken."""
        size, gpus, nodes, free = self.table.gpus_per_node, old.gpus, old.nodes, self.free
        if gpus <= size:
            if len(nodes) != 1 or nodes[0][1] != gpus:
                return False
            node = self.table.index.get(nodes[0][0])
            if node is None:
                return False
            if free[node] < gpus:
                self.clash = True
                return False
            free[node] -= gpus
            if gpus < size:
                self.homes[job] = (node, gpus)
            return True
        index = self.table.index
        spots = {index[name] for name, held in nodes if held == size and name in index}
        if len(spots) != len(nodes) or len(spots) * size != gpus:
            return False
        if any(free[node] != size for node in spots):
            self.clash = True
            return False
        for node in spots:
            free[node] = 0
        return True

    def hold_for_good(self, job: str, old: Allocation) -> bool:
        """Like :meth:`hold`, for a job that may not be moved afterwards."""
        held = self.hold(job, old)
        if held:
            self.fix(job)
        return held

    def fix(self, job: str) -> None:
        """Let a job that is held not be moved afterwards."""
        self.homes.pop(job, None)
        self.pinned.append(job)

    def let_pins_go(self, allocations: Mapping[str, Allocation]) -> None:
        """Let the pinned jobs, which have these allocations, move again, as a new placement begins."""
        for job in self.pinned:
            (node, gpus), *others = allocations[job].nodes
            if not others and gpus < self.table.gpus_per_node:
                self.homes[job] = (self.table.index[node], gpus)
        self.pinned, self.clash, self._residents = [], False, None

    def release(self, job: str, held: Allocation) -> None:
        """Undo :meth:`hold`."""
        self.homes.pop(job, None)
        for node, gpus in held.nodes:
            self.free[self.table.index[node]] += gpus

    def sort_nodes(self) -> None:
        """Sort the nodes into buckets by free GPUs; call this after the last :meth:`hold`."""
        self.buckets = [[] for _ in range(self.table.gpus_per_node + 1)]
        for node, free in enumerate(self.free):
            self.buckets[free].append(node)

    @property
    def residents(self) -> dict[int, dict[str, int]]:
        """Return the movable jobs smaller than a node and their GPUs, by node number; computed on first use."""
        if self._residents is None:
            self._residents = {}
            for job, (node, gpus) in self.homes.items():
                self._residents.setdefault(node, {})[job] = gpus
        return self._residents

    def best_fit(self, gpus: int) -> int | None:
        """Return the fullest node with enough free GPUs, the first of equals; None if there is none."""
        for bucket in self.buckets[gpus:]:
            if bucket:
                return bucket[0]
        return None

    def put(self, job: str, gpus: int, node: int) -> None:
        """Put a job smaller than a node on a node with room."""
        self._change_free(node, -gpus)
        self.homes[job] = (node, gpus)
        if self._residents is not None:
            self._residents.setdefault(node, {})[job] = gpus

    def evict(self, job: str) -> int:
        """Remove a movable job smaller than a node from its node; returns its GPUs."""
        node, gpus = self.homes.pop(job)
        if self._residents is not None:
            del self._residents[node][job]
            if not self._residents[node]:
                del self._residents[node]
        self._change_free(node, gpus)
        return gpus

    def fill(self, node: int) -> None:
        """Give an entirely free node to a job of whole nodes."""
        self._change_free(node, -self.table.gpus_per_node)

    def fill_last(self) -> int:
        """Give the last free node, far from the small jobs, to a job of whole nodes; returns the node."""
        node = self.buckets[-1][-1]
        self.fill(node)
        return node

    def _change_free(self, node: int, by_gpus: int) -> None:
        bucket = self.buckets[self.free[node]]
        del bucket[bisect_left(bucket, node)]
        self.free[node] += by_gpus
        insort(self.buckets[self.free[node]], node)
