"""Queues with quotas in a tree of cohorts, by Kueue's rules: usage, and the units that a queue may still take.

A queue, or a cohort, owns a nominal quota of each (flavor, resource). A lending limit keeps the part above it for the
owner; the rest is lent to the parent, where each member may take it up to its borrowing limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from copter_serve.queues.errors import QuotaError

Share: TypeAlias = tuple[str, str]  # flavor, resource
Amounts: TypeAlias = Mapping[Share, float]
SLACK = 1e-9  # relative allowance for rounding in sums of amounts
MOST_WORKLOADS = 10**9  # most workloads of one kind
LEAST_WEIGHT = 1e-9  # weights of fair sharing are zero or above this
MOST_LEVELS = 64  # most levels of nested cohorts


@dataclass(frozen=True, slots=True)
class Quota:
    """A node's quota of one flavor's resource; inf for no limit.

    Raises
    ------
    QuotaError
        If one of the three is negative or not a number.
    """

    nominal: float
    borrowing: float = math.inf
    lending: float = math.inf

    def __post_init__(self) -> None:
        for name in ("nominal", "borrowing", "lending"):
            value = getattr(self, name)
            if not value >= 0.0 or (name == "nominal" and math.isinf(value)):
                raise QuotaError(f"{name} quota is {value:g}: it must be a number of 0 or more")


@dataclass(slots=True)
class Node:
    """A queue or a cohort.

    Attributes
    ----------
    name : str
    is_queue : bool
    parent : str or None
        Name of the parent cohort.
    weight : float
        Weight in fair sharing; 0 puts the node behind all others.
    quotas : dict of Share to Quota
    subtree : dict of Share to float
        Quota of the node plus the quota that its children lend.
    used : dict of Share to float
        A queue's usage; for a cohort, its children's usage beyond the quota that they keep.
    """

    name: str
    is_queue: bool
    parent: str | None = None
    weight: float = 1.0
    quotas: dict[Share, Quota] = field(default_factory=dict)
    subtree: dict[Share, float] = field(default_factory=dict)
    used: dict[Share, float] = field(default_factory=dict)

    def kept(self, share: Share) -> float:
        """Return the quota that the node never lends."""
        quota = self.quotas.get(share)
        lending = math.inf if quota is None else quota.lending
        return 0.0 if math.isinf(lending) else max(0.0, self.subtree.get(share, 0.0) - lending)

    def most(self, share: Share) -> float:
        """Return the most usage that the node's own borrowing limit allows; inf without a limit."""
        quota = self.quotas.get(share)
        return self.subtree.get(share, 0.0) + (math.inf if quota is None else quota.borrowing)

    def borrows(self, shares: Iterable[Share], more: Amounts | None = None) -> bool:
        """Whether usage, with `more` in use, exceeds the quota of one of the shares."""
        more = more or {}
        return any(
            self.used.get(each, 0.0) + more.get(each, 0.0) > self.subtree.get(each, 0.0) * (1.0 + SLACK)
            for each in shares
        )


class QuotaTree:
    """All queues and cohorts.

    Attributes
    ----------
    queues, cohorts : dict of str to Node
        A cohort that a queue names but that was not added has no quota of its own.
    fair : bool
        Whether queues of a cohort share what they borrow by their weights (:mod:`.fair_shares`).
    """

    def __init__(self) -> None:
        self.fair = False
        self.queues: dict[str, Node] = {}
        self.cohorts: dict[str, Node] = {}
        self._members: dict[str, list[Node]] = {}  # by cohort

    def add_queue(
        self, name: str, quotas: Mapping[Share, Quota], cohort: str | None = None, weight: float = 1.0
    ) -> None:  # fmt: skip
        """Add a queue; QuotaError if it exists, has a weight below 0, or borrowing or lending limits but no cohort."""
        self._add(self.queues, "queue", name, quotas, cohort, weight)

    def add_cohort(
        self, name: str, quotas: Mapping[Share, Quota] | None = None, parent: str | None = None, weight: float = 1.0
    ) -> None:  # fmt: skip
        """Add a cohort; QuotaError as for a queue."""
        self._add(self.cohorts, "cohort", name, quotas or {}, parent, weight)

    @staticmethod
    def _add(
        nodes: dict[str, Node], kind: str, name: str, quotas: Mapping[Share, Quota], parent: str | None, weight: float
    ) -> None:  # fmt: skip
        if not (weight == 0.0 or LEAST_WEIGHT < weight < math.inf):
            raise QuotaError(f"{kind} {name!r} has the weight {weight:g}: it must be 0 or above {LEAST_WEIGHT:g}")
        if name in nodes:
            raise QuotaError(f"{kind} {name!r} is described twice: keep one of the two")
        if parent is None:
            for share, quota in quotas.items():
                for limit in ("borrowing", "lending"):
                    if not math.isinf(getattr(quota, limit)):
                        raise QuotaError(
                            f"{kind} {name!r}, {' '.join(share)}: a {limit} limit needs a cohort to {limit[:-3]} "
                            f"{'from' if limit == 'borrowing' else 'to'}; name the cohort, or take the limit away"
                        )
        nodes[name] = Node(name, kind == "queue", parent, weight, dict(quotas))

    def settle(self) -> QuotaTree:
        """Sum the quotas up the tree and reset usage to zero; QuotaError if cohorts form a circle."""
        for node in [*self.queues.values(), *self.cohorts.values()]:
            if node.parent is not None and node.parent not in self.cohorts:
                self.cohorts[node.parent] = Node(node.parent, False)
        for name in self.cohorts:
            seen, at = [name], self.cohorts[name].parent
            while at is not None:
                if at in seen or len(seen) > MOST_LEVELS:
                    raise QuotaError(f"cohorts {' -> '.join([*seen, at])} stand above one another in a circle")
                seen.append(at)
                at = self.cohorts[at].parent
        self._members = {name: [] for name in self.cohorts}
        for node in [*self.queues.values(), *self.cohorts.values()]:
            node.subtree = {share: quota.nominal for share, quota in node.quotas.items()}
            node.used = {}
            if node.parent is not None:
                self._members[node.parent].append(node)
        for node in sorted(self.cohorts.values(), key=self._depth, reverse=True):
            self._lend(node)
        return self

    def _depth(self, node: Node) -> int:
        return sum(1 for _ in self.above(node))

    def _lend(self, cohort: Node) -> None:
        for child in self._members[cohort.name]:
            for share, quota in child.subtree.items():
                cohort.subtree[share] = cohort.subtree.get(share, 0.0) + quota - child.kept(share)

    def members(self, cohort: str) -> list[Node]:
        """Return the queues and cohorts directly below a cohort."""
        return self._members[cohort]

    def above(self, node: Node) -> Iterator[Node]:
        """Yield the cohorts above a node, the nearest first."""
        while node.parent is not None:
            node = self.cohorts[node.parent]
            yield node

    def root(self, queue: str) -> str:
        """Return the name of the top cohort above a queue, or of the queue itself if it has no cohort."""
        node = self.queues[queue]
        names = [each.name for each in self.above(node)]
        return names[-1] if names else queue

    # Usage --------------------------------------------------------------------------------------------------------

    def available(self, queue: str, share: Share) -> float:
        """Return how much more the queue may use; negative if usage exceeds the quota."""
        return self._available(self.queues[queue], share)

    def _available(self, node: Node, share: Share) -> float:
        kept, used = node.kept(share), node.used.get(share, 0.0)
        if node.parent is None:
            return node.subtree.get(share, 0.0) - used
        room = self._available(self.cohorts[node.parent], share)
        room = min(room, node.most(share) - max(used, kept))
        return max(0.0, kept - used) + room

    def room(self, queue: str, amounts: Amounts) -> int:
        """Return how many workloads of these amounts a queue may admit now; a huge number if they take nothing."""
        most = MOST_WORKLOADS
        for share, amount in amounts.items():
            if amount > 0.0:
                if share not in self.queues[queue].quotas:
                    return 0
                room = self.available(queue, share)
                most = min(most, math.floor(room / amount + SLACK * (1.0 + room / amount))) if room > 0.0 else 0
        return max(most, 0)

    def use(self, queue: str, amounts: Amounts, sign: float = 1.0) -> None:
        """Add amounts to a queue's usage, or remove them if `sign` is -1."""
        for share, amount in amounts.items():
            node, delta = self.queues[queue], sign * amount
            while True:
                kept, before = node.kept(share), node.used.get(share, 0.0)
                node.used[share] = before + delta
                delta = max(0.0, before + delta - kept) - max(0.0, before - kept)
                if node.parent is None or delta == 0.0:
                    break
                node = self.cohorts[node.parent]
