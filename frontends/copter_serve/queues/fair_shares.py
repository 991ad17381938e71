"""Kueue's fair sharing: a share for each queue and cohort.

The share of a node is what it uses above its quota, as a part of what its cohort can lend, for the resource where this
is largest, divided by the node's weight. A node of weight zero that borrows has an infinite share.
"""

from __future__ import annotations

import math

from copter_serve.queues.quota_tree import SLACK, Amounts, Node, QuotaTree, Share


class FairShares:
    """The shares of a tree's nodes at its present usage.

    Parameters
    ----------
    tree : QuotaTree
        Settled; quotas and weights stay the same while this object is used.
    """

    def __init__(self, tree: QuotaTree) -> None:
        self.tree = tree
        self._lendable: dict[str, dict[str, float]] = {}

    def share(self, node: Node) -> float:
        """Return a node's share; zero without a cohort."""
        if node.parent is None:
            return 0.0
        borrowed: dict[str, float] = {}
        for share, used in node.used.items():
            over = used - node.subtree.get(share, 0.0)
            if over > SLACK * (1.0 + used):
                borrowed[share[1]] = borrowed.get(share[1], 0.0) + over
        if not borrowed:
            return 0.0
        if node.weight == 0.0:
            return math.inf
        lendable = self._lendable_by(node.parent)
        return max(
            (amount / lendable[name] for name, amount in borrowed.items() if lendable.get(name, 0.0) > 0.0), default=0.0
        ) / node.weight  # fmt: skip

    def _lendable_by(self, cohort: str) -> dict[str, float]:
        """Return how much of each resource the members of a cohort can use in all."""
        if cohort not in self._lendable:
            node, found = self.tree.cohorts[cohort], dict[str, float]()
            top = [node, *self.tree.above(node)][-1]
            for share in top.subtree:
                found[share[1]] = found.get(share[1], 0.0) + self._reach(node, share)
            self._lendable[cohort] = found
        return self._lendable[cohort]

    def _reach(self, node: Node, share: Share) -> float:
        if node.parent is None:
            return node.subtree.get(share, 0.0)
        return min(node.most(share), node.kept(share) + self._reach(self.tree.cohorts[node.parent], share))

    def path(self, queue: str) -> list[Node]:
        """Return the nodes from below the top cohort down to the queue; only the queue if it has no cohort."""
        node = self.tree.queues[queue]
        return ([node, *self.tree.above(node)][:-1] or [node])[::-1]

    def standing(self, queue: str, amounts: Amounts | None = None) -> tuple[float, ...]:
        """Return the shares on the path to a queue, the top first, as they are with more amounts in use."""
        self.tree.use(queue, amounts or {})
        found = tuple(self.share(node) for node in self.path(queue))
        self.tree.use(queue, amounts or {}, -1.0)
        return found
