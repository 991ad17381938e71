"""Kueue's rules of preemption: which workloads may be stopped for a waiting one, and which ones Kueue would stop.

A waiting workload may stop workloads of its own queue (`within`). It may also stop workloads of other queues in its
tree of cohorts (`reclaim`), if they and every cohort between them and the lowest common cohort use more than their
quota. Among these, it has an advantage over workloads outside a queue or cohort whose quota it fits. Without an
advantage the asking queue must end within its own quota, unless it may borrow meanwhile (`borrow`) and the other's
priority is lower and at most a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from copter_serve.queues.errors import QueueError
from copter_serve.queues.quota_tree import SLACK, Amounts, Node, QuotaTree, Share

NEVER, LOWER, LOWER_OR_NEWER, ANY = "Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any"
ALLOWED = {"within": (NEVER, LOWER, LOWER_OR_NEWER), "reclaim": (NEVER, LOWER, ANY), "borrow": (NEVER, LOWER)}


@dataclass(frozen=True, slots=True)
class Preemption:
    """A queue's rules of preemption, with Kueue's own values.

    Attributes
    ----------
    within : {"Never", "LowerPriority", "LowerOrNewerEqualPriority"}
        Kueue's `withinClusterQueue`.
    reclaim : {"Never", "LowerPriority", "Any"}
        Kueue's `reclaimWithinCohort`.
    borrow : {"Never", "LowerPriority"}
        Kueue's `borrowWithinCohort`; without effect if `reclaim` is "Never".
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
    """A workload that holds quota since a time, or waits since then; `came_s` is its arrival, by default the same.

    If it is `evicted`, it is being stopped already.
    """

    key: str
    queue: str
    amounts: Amounts
    priority: int
    since_s: float
    came_s: float | None = None
    evicted: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A workload that may be stopped.

    Attributes
    ----------
    holder : Holder
    below : tuple of Node
        Its queue and the cohorts below the lowest common one, which must all borrow; empty for the asking queue's own.
    ahead : bool
        Whether the waiting workload fits a quota that this one is outside of.
    while_borrowing : bool
        Whether it may be stopped although the asking queue borrows.
    """

    holder: Holder
    below: tuple[Node, ...] = ()
    ahead: bool = False
    while_borrowing: bool = True


def victims(tree: QuotaTree, rules: Preemption, asking: Holder, holders: Sequence[Holder]) -> list[Holder] | None:
    """Return the workloads that would be stopped for a waiting one; None if the rules do not free enough.

    Those that are being stopped already come first; then other queues', those with an advantage before the rest; then
    the queue's own. Each group is in order of priority, the newest first. They are stopped until the waiting workload
    fits. Then those that fit beside it return, the last stopped first. The tree's usage is restored at the end.

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
    contested = contested_shares(tree, asking)
    if not contested:
        return []
    if not may_stop_others(tree, rules, asking, contested):
        return None
    users = [each for each in holders if any(each.amounts.get(share, 0.0) > 0.0 for share in contested)]
    others = _across(tree, rules, asking, users, contested)
    own = [Candidate(each) for each in users if each.queue == asking.queue and within(rules, asking, each)]
    candidates = in_order([*others, *own])
    queue = tree.queues[asking.queue]
    below = all(queue.used.get(share, 0.0) < queue.subtree.get(share, 0.0) for share in contested)
    if not others or (rules.borrow == NEVER and not below):
        attempts: tuple[bool, ...] = (True,)
    elif rules.borrow == NEVER and not any(each.ahead for each in others):
        attempts = (False, True)
    else:
        attempts = (True, False)
    for borrowing in attempts:
        found = _attempt(tree, asking, candidates, contested, borrowing)
        if found is not None:
            return found
    return None


def contested_shares(tree: QuotaTree, asking: Holder) -> list[Share]:
    """Return the shares of which less is left than a workload needs."""
    return [
        share
        for share, amount in asking.amounts.items()
        if amount > 0.0 and not tree.room(asking.queue, {share: amount})
    ]


def may_stop_others(tree: QuotaTree, rules: Preemption, asking: Holder, contested: Iterable[Share]) -> bool:
    """Return whether Kueue looks for workloads to stop: for each contested share, the workload is within the nominal
    quota, fits the quota of a queue or cohort below the top, or may stop others while it borrows.
    """
    queue = tree.queues[asking.queue]
    while_borrowing = rules.reclaim != NEVER if tree.fair else rules.borrow != NEVER
    return while_borrowing or all(
        asking.amounts[share] <= queue.subtree.get(share, 0.0) * (1.0 + SLACK)
        or _fits_below_the_top(tree, queue, share, asking.amounts[share])
        for share in contested
    )


def _fits_below_the_top(tree: QuotaTree, queue: Node, share: Share, amount: float) -> bool:
    for node in (queue, *tree.above(queue)):
        if not node.borrows([share], {share: amount}):
            return node.parent is not None
        amount -= max(0.0, node.kept(share) - node.used.get(share, 0.0))
    return False


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates in the order in which they are stopped."""

    def place(each: Candidate) -> tuple[bool, bool, bool, int, float]:
        return not each.holder.evicted, not each.below, not each.ahead, each.holder.priority, -each.holder.since_s

    return sorted(candidates, key=place)


def _across(
    tree: QuotaTree, rules: Preemption, asking: Holder, users: Iterable[Holder], contested: Sequence[Share]
) -> list[Candidate]:
    """Return the candidates of other queues."""
    queue = tree.queues[asking.queue]
    above = list(tree.above(queue))
    # for each cohort: whether the workload fits the quota of the queue or of a cohort below it
    ahead, need, fits = dict[str, bool](), dict(asking.amounts), False
    for node, cohort in zip((queue, *above), above, strict=False):
        fits = fits or not node.borrows(need, need)
        ahead[cohort.name] = fits
        need = {
            share: max(0.0, amount - max(0.0, node.kept(share) - node.used.get(share, 0.0)))
            for share, amount in need.items()
        }
    found = []
    for each in users:
        if each.queue == asking.queue or not reclaims(rules, asking, each):
            continue
        path = [tree.queues[each.queue], *tree.above(tree.queues[each.queue])]
        common = next((at for at, node in enumerate(path) if not node.is_queue and node.name in ahead), None)
        if common is not None and all(node.borrows(contested) for node in path[:common]):
            first = ahead[path[common].name]
            lower = rules.borrow == LOWER and each.priority < asking.priority and each.priority <= rules.borrow_most
            found.append(Candidate(each, tuple(path[:common]), first, first or lower))
    return found


def _attempt(
    tree: QuotaTree, asking: Holder, candidates: Sequence[Candidate], contested: Sequence[Share], borrowing: bool
) -> list[Holder] | None:
    """Return the workloads to stop, if the asking queue may (or may not) end above its quota; None if too few."""
    stopped: list[Holder] = []

    def fits() -> bool:
        room = tree.room(asking.queue, asking.amounts) > 0
        return room and (borrowing or not tree.queues[asking.queue].borrows(asking.amounts, asking.amounts))

    try:
        for each in candidates:
            if (each.while_borrowing or not borrowing) and all(node.borrows(contested) for node in each.below):
                tree.use(each.holder.queue, each.holder.amounts, -1.0)
                stopped.append(each.holder)
                if fits():
                    break
        else:
            return None
        for holder in stopped[-2::-1]:
            tree.use(holder.queue, holder.amounts)
            if fits():
                stopped.remove(holder)
            else:
                tree.use(holder.queue, holder.amounts, -1.0)
        return list(stopped)
    finally:
        for holder in stopped:
            tree.use(holder.queue, holder.amounts)


def within(rules: Preemption, asking: Holder, other: Holder) -> bool:
    """Return whether a workload of the same queue may be stopped."""
    if rules.within == NEVER:
        return False
    came_s = other.since_s if other.came_s is None else other.came_s
    newer = rules.within == LOWER_OR_NEWER and other.priority == asking.priority and came_s > asking.since_s
    return other.priority < asking.priority or newer


def reclaims(rules: Preemption, asking: Holder, other: Holder) -> bool:
    """Return whether the priorities let a workload of another queue be stopped."""
    return rules.reclaim == ANY or (rules.reclaim == LOWER and other.priority < asking.priority)
