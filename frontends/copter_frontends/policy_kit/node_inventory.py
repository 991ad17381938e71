"""The nodes of a cluster with their free GPUs, for policies that place their jobs themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from copter_frontends.policy_kit.checks import check_nodes, require_free
from copter_frontends.policy_kit.free_gpus import FreeGpus, Shares
from copter_frontends.vocabulary import (
    Allocation,
    CapacityInUseError,
    Cluster,
    InvalidClusterError,
    UnknownGpuTypeError,
)


class NodeInventory:
    """Nodes by GPU type and their free GPUs.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._node_gpus = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
        self._free = {name: FreeGpus(gpus) for name, gpus in self._node_gpus.items()}
        for node in cluster.nodes.values():
            self._free[node.gpu_type].add(node.id)
        self._made = dict.fromkeys(self._node_gpus, 0)

    @property
    def types(self) -> tuple[str, ...]:
        """Return the GPU types, in the cluster's order."""
        return tuple(self._free)

    def node_gpus(self, gpu_type: str) -> int:
        """Return the GPUs of a node of this type."""
        return self._node_gpus[gpu_type]

    def capacity(self, gpu_type: str) -> int:
        """Return the total GPUs of a type."""
        return self._free[gpu_type].count * self._node_gpus[gpu_type]

    def free(self, gpu_type: str) -> int:
        """Return the free GPUs of a type."""
        return self._free[gpu_type].gpus

    def node_ids(self, gpu_type: str) -> list[str]:
        """Return the ids of a type's nodes, oldest first."""
        return list(self._free[gpu_type].nodes)

    def free_on(self, gpu_type: str, node: str) -> int:
        """Return the free GPUs of one node of a type."""
        return self._free[gpu_type].free_on(node)

    def free_by_node(self, gpu_type: str) -> dict[str, int]:
        """Return the free GPUs of each node of a type, oldest node first."""
        free = self._free[gpu_type]
        return {node: free.free_on(node) for node in free.nodes}

    def nodes_by_free(self, gpu_type: str) -> list[int]:
        """Return the number of a type's nodes with 0, 1, ... free GPUs."""
        return self._free[gpu_type].nodes_by_free

    def has(self, gpu_type: str, node: str) -> bool:
        """Whether this type has a node with this id."""
        return node in self._free[gpu_type]

    def find(self, gpu_type: str, gpus: int, split: bool = False) -> Shares | None:
        """Return (node, GPUs) on the fewest nodes (baselines.md, B3), or on any nodes with `split`; None without
        room.
        """
        free = self._free[gpu_type]
        shares = free.find(gpus)
        return free.find_anywhere(gpus) if shares is None and split else shares

    def take_whole(self, gpu_type: str, gpus: int) -> Shares | None:
        """Do :meth:`find` and :meth:`take`, on no more nodes than necessary; None, and nothing is taken, without
        room.
        """
        return self._free[gpu_type].take_whole(gpus)

    def take(self, allocation: Allocation) -> None:
        """Take GPUs that are free."""
        if not allocation.mixture:
            self._free[allocation.gpu_type].take(allocation.nodes)
            return
        for kind, nodes in self._by_type(allocation):
            self._free[kind].take(nodes)

    def take_all(self, allocations: Iterable[Allocation]) -> None:
        """Do :meth:`take` for many allocations, one after the other."""
        take = {kind: free.take for kind, free in self._free.items()}
        for allocation in allocations:
            if allocation.mixture:
                self.take(allocation)
            else:
                take[allocation.gpu_type](allocation.nodes)

    def give_all(self, allocations: Iterable[Allocation]) -> None:
        """Do :meth:`give` for many allocations, one after the other."""
        for kind, shares in self._shares_of(allocations).items():
            self._free[kind].give_all(shares)

    def take_together(self, allocations: Iterable[Allocation]) -> bool:
        """Do :meth:`take` for many allocations, one after the other, if all their GPUs are free; return whether."""
        of_kind = self._shares_of(allocations)
        if any(self._free[kind].short_of_all(shares) for kind, shares in of_kind.items()):
            return False
        for kind, shares in of_kind.items():
            self._free[kind].take_all(shares)
        return True

    def _shares_of(self, allocations: Iterable[Allocation]) -> dict[str, list[Shares]]:
        """Return the nodes of many allocations by GPU type."""
        result: dict[str, list[Shares]] = {kind: [] for kind in self._free}
        for allocation in allocations:
            if allocation.mixture:
                for kind, nodes in self._by_type(allocation):
                    result[kind].append(nodes)
            else:
                result[allocation.gpu_type].append(allocation.nodes)
        return result

    def give(self, allocation: Allocation) -> None:
        """Return GPUs; nodes that no longer exist are ignored."""
        if not allocation.mixture:
            self._free[allocation.gpu_type].give(allocation.nodes)
            return
        for kind, nodes in self._by_type(allocation):
            self._free[kind].give(nodes)

    def touch(self, allocation: Allocation) -> None:
        """Do :meth:`give` and then :meth:`take` of GPUs that are taken."""
        for kind, nodes in self._by_type(allocation):
            self._free[kind].touch(nodes)

    def has_room(self, gpu_type: str, shares: Shares) -> bool:
        """Whether these nodes exist with their types and have enough free GPUs."""
        return self._free[gpu_type].has_room(shares)

    def short_of(self, allocation: Allocation) -> list[str]:
        """Return the nodes of an allocation on which its GPUs are not free."""
        parts = self._by_type(allocation)
        return [node for kind, nodes in parts for node, gpus in nodes if self._free[kind].free_on(node) < gpus]

    def _by_type(self, allocation: Allocation) -> list[tuple[str, Shares]]:
        """Return an allocation's nodes by GPU type; a mixture's removed nodes are left out."""
        if not allocation.mixture:
            return [(allocation.gpu_type, allocation.nodes)]
        own = [(kind, tuple(each for each in allocation.nodes if self.has(kind, each[0]))) for kind in self.types]
        return [(kind, nodes) for kind, nodes in own if nodes]

    def require_free(self, job_id: str, allocation: Allocation, held: Iterable[Allocation]) -> None:
        """Raise CapacityInUseError if an allocation does not fit next to others that cannot be moved."""
        used: dict[str, int] = {}
        for other in held:
            for node, gpus in other.nodes:
                used[node] = used.get(node, 0) + gpus
        for kind, nodes in self._by_type(allocation):
            part = Allocation(kind, sum(gpus for _, gpus in nodes), nodes)
            require_free(job_id, part, self._node_gpus[kind], used)

    # Adding and removing nodes
    # ----------------------------------------------------------------------------------------------

    def add(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes, named or not."""
        names = self._whole_nodes(gpu_type, count, nodes)
        known = [name for name in names if any(name in free for free in self._free.values())]
        if known:
            raise InvalidClusterError(f"cannot add nodes that are there already: {', '.join(known)}")
        for name in names or self._new_names(gpu_type, count // self._node_gpus[gpu_type]):
            self._free[gpu_type].add(name)

    def choose(self, gpu_type: str, count: int, nodes: Iterable[str], pinned: Collection[str]) -> list[str]:
        """Return ids of nodes with `count` GPUs in total: the named nodes, or the emptiest, newest first; nothing
        changes.

        Raises CapacityInUseError if there are fewer GPUs, or pinned jobs are on these nodes.
        """
        names = self._whole_nodes(gpu_type, count, nodes)
        free = self._free[gpu_type]
        have = list(free.nodes)
        if count > self.capacity(gpu_type):
            raise CapacityInUseError(f"cannot take {count} {gpu_type!r} GPUs away: there are {self.capacity(gpu_type)}")
        missing = [name for name in names if name not in free]
        if missing:
            raise InvalidClusterError(f"cannot remove {gpu_type!r} nodes that are not there: {', '.join(missing)}")
        if not names:
            movable = [name for name in reversed(have) if name not in pinned]
            names = sorted(movable, key=free.free_on, reverse=True)[: count // self._node_gpus[gpu_type]]
        stuck = [name for name in names if name in pinned]
        if stuck or len(names) * self._node_gpus[gpu_type] < count:
            raise CapacityInUseError(
                f"cannot take {count} {gpu_type!r} GPUs away: pinned jobs use {', '.join(stuck) or 'the rest'}; "
                "unpin them first"
            )
        return names

    def drop(self, gpu_type: str, names: Iterable[str]) -> None:
        """Remove nodes."""
        for name in names:
            self._free[gpu_type].drop(name)

    def check(self, job_id: str, allocation: Allocation) -> None:
        """Raise InvalidClusterError or InvalidJobError unless an allocation's nodes exist and its GPUs add up."""
        for kind, gpus in allocation.by_type.items():
            self._whole_nodes(kind, 0, ())
            own = allocation.nodes
            if allocation.mixture:
                own = tuple(each for each in own if self.has(kind, each[0]))
            check_nodes(job_id, Allocation(kind, gpus, own), self._free[kind])

    def _whole_nodes(self, gpu_type: str, count: int, nodes: Iterable[str]) -> list[str]:
        if gpu_type not in self._node_gpus:
            known = ", ".join(sorted(self._node_gpus))
            raise UnknownGpuTypeError(f"unknown GPU type {gpu_type!r}; the cluster has: {known}")
        size, names = self._node_gpus[gpu_type], list(dict.fromkeys(nodes))
        if count < 0 or count % size or (names and len(names) * size != count):
            named = f" ({len(names)} nodes are named)" if names else ""
            raise InvalidClusterError(f"{count} {gpu_type!r} GPUs{named} are not whole nodes of {size}")
        return names

    def _new_names(self, gpu_type: str, count: int) -> list[str]:
        names: list[str] = []
        while len(names) < count:
            name = f"{gpu_type}-{self._made[gpu_type]}"
            self._made[gpu_type] += 1
            if name not in self._free[gpu_type]:
                names.append(name)
        return names
