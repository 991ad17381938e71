"""GPU types, nodes and the cluster that they make up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from copter_frontends.vocabulary.errors import InvalidClusterError, UnknownGpuTypeError


@dataclass(frozen=True, slots=True)
class GpuType:
    """A kind of GPU and the size of the nodes that carry it (homogeneous within a type)."""

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
        """Number of GPUs of one type."""
        return sum(node.gpus for node in self.nodes_of(gpu_type))

    def nodes_of(self, gpu_type: str) -> list[Node]:
        """Nodes of one type, oldest first."""
        self.type_of(gpu_type)
        return [node for node in self.nodes.values() if node.gpu_type == gpu_type]

    def type_of(self, gpu_type: str) -> GpuType:
        """The type of this name; UnknownGpuTypeError if there is none."""
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
        """Take nodes out by id; all or none of them."""
        wanted = list(dict.fromkeys(ids))
        missing = [i for i in wanted if i not in self.nodes]
        if missing:
            raise InvalidClusterError(f"cannot remove nodes that the cluster does not have: {', '.join(missing)}")
        return [self.nodes.pop(i) for i in wanted]
