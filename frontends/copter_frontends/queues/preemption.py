"""Kueue's rules of preemption: which workloads may be stopped for a waiting one, and which ones Kueue would stop.

A waiting workload may stop workloads of its own queue of lower priority (`within`). It may also stop workloads of other
queues in its cohort that use more than their nominal quota, if it stays within its own queue's quota (`reclaim`). If
the queue may borrow while it preempts (`borrow`), it may stop those only if their priority is lower and at most a
threshold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from copter_frontends.queues.errors import QueueError
from copter_frontends.queues.quota_tree import SLACK, Amounts, QuotaTree

NEVER, LOWER, LOWER_OR_NEWER, ANY = "Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any"
ALLOWED = {"within": (NEVER, LOWER, LOWER_OR_NEWER), "reclaim": (NEVER, LOWER, ANY), "borrow": (NEVER, LOWER)}


@dataclass(frozen=True, slots=True)
class Preemption:
    """A queue's rules of preemption, with Kueue's own values.

    Attributes
    ----------
    within : {"Never", "LowerPriority", "LowerOrNewerEqualPriority"}
    reclaim : {"Never", "LowerPriority", "Any"}
    borrow : {"Never", "LowerPriority"}
    borrow_most : float
        Highest priority that a borrower may stop.
    """

    within: str = NEVER
    reclaim: str = NEVER
    borrow: str = NEVER
    borrow_most: float = math.inf

    def __post_init__(self) -> None:
        for name, allowed in ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise QueueError(
                    f"preemption: {name} is {getattr(self, name)!r}; it must be one of {', '.join(allowed)}"
                )


@dataclass(frozen=True, slots=True)
class Holder:
    """A workload that holds quota."""

    key: str
    queue: str
    amounts: Amounts
    priority: int
    since_s: float


def victims(tree: QuotaTree, rules: Preemption, asking: Holder, holders: Sequence[Holder]) -> list[Holder] | None:
    """Return the workloads that would be stopped for a waiting one; None if the rules do not free enough.

    Candidates are stopped in order of priority, the newest first, until the waiting workload fits. Then those that fit
    beside it return, the highest priority first. The tree's usage is restored at the end.

    Parameters
    ----------
    tree : QuotaTree
        Includes the holders' usage.
    rules : Preemption
        Rules of the asking queue.
    asking : Holder
        The waiting workload; `since_s` is its arrival.
    holders : sequence of Holder
        Running workloads.
    """
    own_node, root = tree.queues[asking.queue], tree.root(asking.queue)
    own = [each for each in holders if each.queue == asking.queue and within(rules, asking, each)]
    freed = {share: sum(each.amounts.get(share, 0.0) for each in own) for share in asking.amounts}
    nominal = all(
        share in own_node.quotas and amount <= own_node.quotas[share].nominal * (1.0 + SLACK)
        for share, amount in asking.amounts.items()
    ) and all(
        own_node.used.get(share, 0.0) - freed[share] + amount <= own_node.quotas[share].nominal * (1.0 + SLACK)
        for share, amount in asking.amounts.items()
    )
    others = [
        each
        for each in holders
        if each.queue != asking.queue and tree.root(each.queue) == root and across(rules, asking, each, nominal)
    ]
    candidates = sorted([*others, *own], key=lambda each: (each.queue == asking.queue, each.priority, -each.since_s))
    stopped: list[Holder] = []
    try:
        for each in candidates:
            if tree.room(asking.queue, asking.amounts):
                break
            if each.queue == asking.queue or _borrows(tree, each, asking):
                tree.use(each.queue, each.amounts, -1.0)
                stopped.append(each)
        if not tree.room(asking.queue, asking.amounts):
            return None
        if any(each.queue != asking.queue for each in stopped) and rules.borrow == NEVER:
            used = own_node.used
            if any(
                used.get(s, 0.0) + a > own_node.quotas[s].nominal * (1.0 + SLACK) for s, a in asking.amounts.items()
            ):
                return None
        for each in sorted(stopped, key=lambda each: -each.priority):
            tree.use(each.queue, each.amounts)
            if tree.room(asking.queue, asking.amounts):
                stopped.remove(each)
            else:
                tree.use(each.queue, each.amounts, -1.0)
        return list(stopped)
    finally:
        for each in stopped:
            tree.use(each.queue, each.amounts)


def within(rules: Preemption, asking: Holder, other: Holder) -> bool:
    """Return whether a workload of the same queue may be stopped."""
    if rules.within == NEVER:
        return False
    newer = rules.within == LOWER_OR_NEWER and other.priority == asking.priority and other.since_s > asking.since_s
    return other.priority < asking.priority or newer


def across(rules: Preemption, asking: Holder, other: Holder, nominal: bool) -> bool:
    """Return whether a workload of another queue may be stopped; `nominal`: the asking one keeps to its own quota."""
    if nominal and (rules.reclaim == ANY or (rules.reclaim == LOWER and other.priority < asking.priority)):
        return True
    return rules.borrow == LOWER and other.priority < asking.priority and other.priority <= rules.borrow_most


def _borrows(tree: QuotaTree, holder: Holder, asking: Holder) -> bool:
    """Return whether a holder's queue uses more than its nominal quota of some resource that is asked for."""
    node = tree.queues[holder.queue]
    return any(
        node.used.get(share, 0.0) > node.quotas[share].nominal * (1.0 + SLACK)
        for share in asking.amounts
        if share in node.quotas and holder.amounts.get(share, 0.0) > 0.0
    )
