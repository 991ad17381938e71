"""GPU types, nodes and clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from copter_frontends.vocabulary.errors import CapacityInUseError, InvalidClusterError, UnknownGpuTypeError


@dataclass(frozen=True, slots=True)
class GpuType:
    """A kind of GPU, with the number of GPUs on each of its nodes."""

    name: str
    gpus_per_node: int

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidClusterError("a GPU type needs a name")
        if self.gpus_per_node < 1:
            raise InvalidClusterError(f"GPU type {self.name!r}: gpus_per_node is {self.gpus_per_node}, must be >= 1")


@dataclass(frozen=True, slots=True)
class Node:
    """One machine: an id, the type of its GPUs, and how many of them there are."""

    id: str
    gpu_type: str
    gpus: int


@dataclass(slots=True)
class Cluster:
    """A set of nodes, by GPU type, in a fixed order.

    Build it with :meth:`of`; add and remove nodes with :meth:`add_nodes` and :meth:`remove_nodes`.
    """

    types: dict[str, GpuType] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    _next_index: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, counts: Mapping[str, tuple[int, int]]) -> Cluster:
        """Make a cluster from ``{type name: (nodes, GPUs per node)}``.

        Raises
        ------
        InvalidClusterError
            If there is no GPU at all, or a count is negative.
        """
        cluster = cls()
        for name, (nodes, gpus_per_node) in counts.items():
            if nodes < 0:
                raise InvalidClusterError(f"GPU type {name!r}: the number of nodes is {nodes}, must be >= 0")
            cluster.types[name] = GpuType(name, gpus_per_node)
            cluster.add_nodes(name, nodes)
        if cluster.gpus == 0:
            raise InvalidClusterError("the cluster has no GPUs: give at least one type a node")
        return cluster

    @property
    def gpus(self) -> int:
        """Number of GPUs in the cluster."""
        return sum(node.gpus for node in self.nodes.values())

    def capacity(self, gpu_type: str) -> int:
        """Return the number of GPUs of one type."""
        return sum(node.gpus for node in self.nodes_of(gpu_type))

    def nodes_of(self, gpu_type: str) -> list[Node]:
        """Return the nodes of one type, oldest first."""
        self.type_of(gpu_type)
        return [node for node in self.nodes.values() if node.gpu_type == gpu_type]

    def type_of(self, gpu_type: str) -> GpuType:
        """Return the type of this name; raises UnknownGpuTypeError if there is none."""
        try:
            return self.types[gpu_type]
        except KeyError:
            known = ", ".join(sorted(self.types)) or "none"
            raise UnknownGpuTypeError(f"unknown GPU type {gpu_type!r}; the cluster has: {known}") from None

    def add_nodes(self, gpu_type: str, count: int) -> list[Node]:
        """Add `count` whole nodes of a known type; return them."""
        kind = self.type_of(gpu_type)
        if count < 0:
            raise InvalidClusterError(f"cannot add {count} nodes of {gpu_type!r}: the count must be >= 0")
        first = self._next_index.get(gpu_type, 0)
        added = [Node(f"{gpu_type}-{first + i}", gpu_type, kind.gpus_per_node) for i in range(count)]
        self.nodes.update((node.id, node) for node in added)
        self._next_index[gpu_type] = first + count
        return added

    def remove_nodes(self, ids: Iterable[str]) -> list[Node]:
        """Remove nodes by id; on an error none is removed."""
        wanted = list(dict.fromkeys(ids))
        missing = [i for i in wanted if i not in self.nodes]
        if missing:
            raise InvalidClusterError(f"cannot remove nodes that the cluster does not have: {', '.join(missing)}")
        return [self.nodes.pop(i) for i in wanted]

    def copy(self) -> Cluster:
        """Return an independent cluster with the same types and nodes."""
        return Cluster(dict(self.types), dict(self.nodes), dict(self._next_index))

    def add_whole_nodes(self, gpu_type: str, gpus: int, ids: Iterable[str] = ()) -> list[Node]:
        """Add `gpus` GPUs of a type as whole nodes, under the given ids if there are any; return the nodes.

        Raises
        ------
        UnknownGpuTypeError
        InvalidClusterError
            If the GPUs are not whole nodes, or there are too few or too many ids, or an id is already taken.
        """
        kind, names = self.type_of(gpu_type), list(ids)
        count = self._whole_nodes(kind, gpus)
        if not names:
            return self.add_nodes(gpu_type, count)
        if len(set(names)) != count:
            raise InvalidClusterError(
                f"{gpus} GPUs of {gpu_type!r} are {count} nodes, but {len(set(names))} ids are given"
            )
        taken = [name for name in names if name in self.nodes]
        if taken:
            raise InvalidClusterError(f"node {taken[0]!r} is in the cluster already")
        added = [Node(name, gpu_type, kind.gpus_per_node) for name in names]
        self.nodes.update((node.id, node) for node in added)
        return added

    def choose_whole_nodes(self, gpu_type: str, gpus: int, ids: Iterable[str] = ()) -> set[str]:
        """Return ids of nodes with `gpus` GPUs in total: the given nodes, or the newest; nothing changes.

        Raises
        ------
        UnknownGpuTypeError
        InvalidClusterError
            If the GPUs are not whole nodes, or an id is not of this type.
        CapacityInUseError
            If there are fewer GPUs.
        """
        kind, names = self.type_of(gpu_type), set(ids)
        count = self._whole_nodes(kind, gpus)
        here = [node.id for node in self.nodes_of(gpu_type)]
        if count > len(here):
            raise CapacityInUseError(
                f"cannot remove {gpus} GPUs of {gpu_type!r}: the cluster has {len(here) * kind.gpus_per_node}"
            )
        if not names:
            return set(here[len(here) - count :])
        missing = sorted(names - set(here))
        if missing or len(names) != count:
            raise InvalidClusterError(
                f"{gpus} GPUs of {gpu_type!r} are {count} of its nodes, but {len(names)} ids are given"
                + (f", of which {missing[0]!r} is not one" if missing else "")
            )
        return names

    @staticmethod
    def _whole_nodes(kind: GpuType, gpus: int) -> int:
        if gpus < 0 or gpus % kind.gpus_per_node:
            raise InvalidClusterError(
                f"{gpus} GPUs of {kind.name!r} are not whole nodes: give a multiple of {kind.gpus_per_node}"
            )
        return gpus // kind.gpus_per_node
