"""Counts priority inversions and unused room in admissions, independently of how these were decided.

It computes usage itself from the queues' quotas, for cohorts of one level without lending limits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from copter_serve.queues.quota_tree import SLACK, QuotaTree, Share


@dataclass(frozen=True, slots=True)
class Kind:
    """Identical workloads of a queue: how many wait, and how many were just admitted."""

    queue: str
    request: float
    priority: int
    waiting: int
    admitted: int


class Inversions:
    """Counts of unfair or wasteful admissions over a run.

    Attributes
    ----------
    inversions : int
        Kinds of workloads that waited although admitted workloads of lower priority took enough room for one of them,
        including borrowed quota.
    idle : int
        Kinds of workloads that waited although one of them fitted into the free quota.
    """

    def __init__(self, tree: QuotaTree, share: Share) -> None:
        self.tree, self.share = tree, share
        self.inversions = 0
        self.idle = 0

    def look(self, kinds: Iterable[Kind]) -> None:
        """Count the inversions and the idle room of one moment.

        `kinds` are all kinds of workloads at this moment; the tree's usage includes the admissions.
        """
        listed = list(kinds)
        quota: dict[str, float] = {}
        used: dict[str, float] = {}
        for name, node in self.tree.queues.items():
            cohort = node.parent or name
            quota[cohort] = quota.get(cohort, 0.0) + node.quotas[self.share].nominal
            used[cohort] = used.get(cohort, 0.0) + node.used.get(self.share, 0.0)
        waiting = [each for each in listed if each.waiting > 0]
        for priority in {each.priority for each in waiting}:
            below_in: dict[str, float] = {}
            for each in listed:
                if each.priority < priority and each.admitted > 0:
                    cohort = self.tree.queues[each.queue].parent or each.queue
                    for place in (f"cohort {cohort}", f"queue {each.queue}"):
                        below_in[place] = below_in.get(place, 0.0) + each.request * each.admitted
            for each in waiting:
                if each.priority == priority:
                    node = self.tree.queues[each.queue]
                    cohort, own = node.parent or each.queue, node.quotas[self.share]
                    free = quota[cohort] - used[cohort]
                    top = own.nominal + own.borrowing - node.used.get(self.share, 0.0)
                    need = each.request - SLACK * (1.0 + each.request)
                    if min(free, top) >= need:
                        self.idle += 1
                    elif (
                        min(
                            free + below_in.get(f"cohort {cohort}", 0.0), top + below_in.get(f"queue {each.queue}", 0.0)
                        )
                        >= need
                    ):
                        self.inversions += 1
