"""The order in which Kueue's fair sharing considers waiting workloads: a tournament in every cohort, the lowest first.

Each queue nominates its first workload. In a cohort the nominees of its members compete: those whose member would not
borrow what they ask for come first, then those that leave their member the lowest share, then by priority, then by age.
The winner is the cohort's nominee in the cohort above.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from copter_serve.queues.ask import Ask
from copter_serve.queues.fair_shares import FairShares
from copter_serve.queues.quota_tree import Node

Rank: TypeAlias = tuple[bool, float, int, float]
Place: TypeAlias = tuple[bool, str]  # whether it is a queue, and its name


class Tournament:
    """Waiting workloads in the order in which they are considered.

    The caller adds the usage of what it admits before it takes the next workload.

    Parameters
    ----------
    shares : FairShares
        Shares of the tree at its present usage.
    asks : sequence of Ask
        Each takes part as often as its count, by its first option. Queues are in order of priority, then age.
    """

    def __init__(self, shares: FairShares, asks: Sequence[Ask]) -> None:
        self._shares, self._tree = shares, shares.tree
        self._queued: dict[str, list[Ask]] = {}
        for ask in sorted(asks, key=lambda ask: (-ask.priority, ask.since_s))[::-1]:
            self._queued.setdefault(ask.queue, []).extend([ask] * ask.count)
        # a cohort's members by the ranks of their nominees; entries of earlier nominees stay, and are passed over
        self._members: dict[str, list[tuple[Rank, int, Place, Ask]]] = {}
        self._entries: dict[Place, int] = {}
        self._count = 0
        for queue in self._queued:
            self._nominate(queue)

    def __iter__(self) -> Iterator[Ask]:
        tops: dict[str, None] = {}
        for queue, asks in self._queued.items():
            if self._tree.queues[queue].parent is None:
                yield from asks[::-1]
            else:
                tops[self._tree.root(queue)] = None
        for cohort in tops:
            while (ask := self._winner(cohort)) is not None:
                self._queued[ask.queue].pop()
                yield ask
                self._nominate(ask.queue)

    def _nominate(self, queue: str) -> None:
        """Enter the nominees of a queue and of the cohorts above it anew."""
        node: Node = self._tree.queues[queue]
        ask = self._queued[queue][-1] if self._queued[queue] else None
        while node.parent is not None:
            place = node.is_queue, node.name
            self._count += 1
            self._entries[place] = self._count
            if ask is not None:
                entry = self._rank(node, ask), self._count, place, ask
                heapq.heappush(self._members.setdefault(node.parent, []), entry)
            node = self._tree.cohorts[node.parent]
            ask = self._winner(node.name)

    def _winner(self, cohort: str) -> Ask | None:
        members = self._members.get(cohort, [])
        while members and self._entries[members[0][2]] != members[0][1]:
            heapq.heappop(members)
        return members[0][3] if members else None

    def _rank(self, node: Node, ask: Ask) -> Rank:
        """Return the rank of a workload that stands for a node; lower ranks go first."""
        amounts = ask.options[0]
        self._tree.use(ask.queue, amounts)
        found = node.borrows(amounts), self._shares.share(node), -ask.priority, ask.since_s
        self._tree.use(ask.queue, amounts, -1.0)
        return found
