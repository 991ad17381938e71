"""The nodes of one GPU type, numbered."""

from __future__ import annotations

from dataclasses import dataclass, field

from copter_frontends.placement.errors import PlacementError
from copter_frontends.vocabulary import Cluster


@dataclass(frozen=True, slots=True)
class NodeTable:
    """Node ids of one type in the cluster's order, and the number of each id."""

    gpu_type: str
    gpus_per_node: int
    ids: list[str] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)

    @property
    def gpus(self) -> int:
        """Capacity of the type, GPUs."""
        return len(self.ids) * self.gpus_per_node


def node_tables(cluster: Cluster) -> dict[str, NodeTable]:
    """Number the nodes of a cluster, type by type.

    Raises
    ------
    PlacementError
        If nodes of one type differ in size (thesis 3.3.4 assumes equal sizes).
    """
    tables = {name: NodeTable(name, kind.gpus_per_node) for name, kind in cluster.types.items()}
    for node in cluster.nodes.values():
        table = tables.get(node.gpu_type)
        if table is None or node.gpus != table.gpus_per_node:
            size = "unknown" if table is None else f"of {table.gpus_per_node} GPUs per node"
            raise PlacementError(
                f"node {node.id!r} has {node.gpus} GPUs of type {node.gpu_type!r}, which is {size}; "
                "give nodes of another size a GPU type of their own"
            )
        table.index[node.id] = len(table.ids)
        table.ids.append(node.id)
    return tables
