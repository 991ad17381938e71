"""Virtual nodes of equal size in place of nodes of different sizes (docs/papers/baselines.md, B29)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from copter_frontends.policy_kit import NodeInventory
from copter_frontends.vocabulary import Allocation

Ints = NDArray[np.int64]
VirtualNode = tuple[str, int]
"""(node id, number of the virtual node within the node)."""

MOST_POWERFUL_FIRST = ("a100", "v100", "quad", "rtx", "t4")
"""A job with equally many GPUs of several types keeps the first type in this order (thesis 3.4.3); other types come
last.
"""


class VirtualNodes:
    """The nodes of an inventory as virtual nodes of one size, the greatest common divisor of all node sizes.

    Parameters
    ----------
    inventory : NodeInventory
        The present inventory.
    """

    def __init__(self, inventory: NodeInventory) -> None:
        self.types = inventory.types
        nodes = [(k, node) for k, kind in enumerate(self.types) for node in inventory.node_ids(kind)]
        self.size = math.gcd(*(inventory.node_gpus(self.types[k]) for k, _ in nodes))
        pieces = [
            (k, (node, part)) for k, node in nodes for part in range(inventory.node_gpus(self.types[k]) // self.size)
        ]
        self.names: list[VirtualNode] = [name for _, name in pieces]
        self.kind: Ints = np.array([k for k, _ in pieces], dtype=np.int64)
        order = [kind for kind in MOST_POWERFUL_FIRST if kind in self.types]
        order += [kind for kind in self.types if kind not in order]
        self.rank: Ints = np.array([order.index(kind) for kind in self.types], dtype=np.int64)
        self._columns: dict[str, list[int]] = {}
        for column, (node, _) in enumerate(self.names):
            self._columns.setdefault(node, []).append(column)

    def __len__(self) -> int:
        return len(self.names)

    def row(self, allocation: Allocation, like: Mapping[VirtualNode, int]) -> Ints:
        """Return GPUs on each virtual node: as in `like` if that matches the allocation, otherwise filled in order."""
        result = np.zeros(len(self), dtype=np.int64)
        for node, gpus in allocation.nodes:
            columns = self._columns[node]
            known = [like.get(self.names[c], 0) for c in columns]
            for column, before in zip(columns, known, strict=True):
                result[column] = before if sum(known) == gpus else min(gpus, self.size)
                gpus -= 0 if sum(known) == gpus else int(result[column])
        return result

    def allocation(self, row: Ints) -> Allocation | None:
        """Return the GPUs of a row on real nodes of one type; None for an empty row."""
        if not row.any():
            return None
        by_node: dict[str, int] = {}
        for column in np.flatnonzero(row):
            node = self.names[column][0]
            by_node[node] = by_node.get(node, 0) + int(row[column])
        kind = self.types[self.kind[np.flatnonzero(row)[0]]]
        return Allocation(kind, int(row.sum()), tuple(sorted(by_node.items())))

    def named(self, row: Ints) -> dict[VirtualNode, int]:
        """Return a row by its virtual nodes' names, which stay the same when other nodes change."""
        return {self.names[column]: int(row[column]) for column in np.flatnonzero(row)}
