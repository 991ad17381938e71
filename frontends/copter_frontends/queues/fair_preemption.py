"""Preemption under Kueue's fair sharing: workloads of queues with larger shares may be stopped.

Which workloads are candidates is decided by the queue's `within` and `reclaim`. A workload of another queue may be
stopped if, on the level below the lowest common cohort, the asking side's share with the new workload is at most the
other side's share without the stopped one. If that is not enough, it suffices that it is lower than the other side's
share with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from copter_frontends.queues.fair_shares import FairShares
from copter_frontends.queues.preemption import ANY, LOWER, Holder, Preemption, within
from copter_frontends.queues.quota_tree import SLACK, Node, QuotaTree


def fair_victims(tree: QuotaTree, rules: Preemption, asking: Holder, holders: Sequence[Holder]) -> list[Holder] | None:
    """Return the workloads that would be stopped for a waiting one; None if fairness does not free enough.

    Parameters are those of :func:`~copter_frontends.queues.preemption.victims`. The queue with the largest share gives
    first, its lowest priority and newest workload; workloads that turn out not to be needed return.
    """
    shares, root = FairShares(tree), tree.root(asking.queue)
    candidates: dict[str, list[Holder]] = {}
    for each in sorted(holders, key=lambda each: (-each.priority, each.since_s)):
        own = each.queue == asking.queue
        if (own and within(rules, asking, each)) or (
            not own and tree.root(each.queue) == root and reclaims(rules, asking, each)
        ):
            candidates.setdefault(each.queue, []).append(each)
    stopped: list[Holder] = []
    tree.use(asking.queue, asking.amounts)
    try:
        for final in (True, False):
            left = {queue: [each for each in some if each not in stopped] for queue, some in candidates.items()}
            while any(left.values()) and not _fits(tree, asking):
                queue = max((name for name, some in left.items() if some), key=shares.standing)
                each = left[queue].pop()
                if queue != asking.queue and not _may(shares, asking, each, final):
                    continue
                tree.use(queue, each.amounts, -1.0)
                stopped.append(each)
        if not _fits(tree, asking):
            return None
        for each in stopped[::-1]:
            tree.use(each.queue, each.amounts)
            if _fits(tree, asking):
                stopped.remove(each)
            else:
                tree.use(each.queue, each.amounts, -1.0)
        return list(stopped)
    finally:
        tree.use(asking.queue, asking.amounts, -1.0)
        for each in stopped:
            tree.use(each.queue, each.amounts)


def reclaims(rules: Preemption, asking: Holder, other: Holder) -> bool:
    """Return whether a workload of another queue of the cohort is a candidate."""
    return rules.reclaim == ANY or (rules.reclaim == LOWER and other.priority < asking.priority)


def _fits(tree: QuotaTree, asking: Holder) -> bool:
    """Return whether the waiting workload, whose usage is counted already, exceeds no quota."""
    tree.use(asking.queue, asking.amounts, -1.0)
    fits = tree.room(asking.queue, asking.amounts) > 0
    tree.use(asking.queue, asking.amounts)
    return fits


def _may(shares: FairShares, asking: Holder, other: Holder, final: bool) -> bool:
    """Return whether fairness lets a workload be stopped; `final`: its queue's share is that without it."""
    tree, mine, theirs = shares.tree, shares.path(asking.queue), shares.path(other.queue)
    level = next(at for at, (one, another) in enumerate(zip(mine, theirs, strict=False)) if one is not another)
    if not all(_borrows(node, asking) for node in theirs[level:]):
        return False
    own = shares.share(mine[level])
    if not final:
        return own < shares.share(theirs[level])
    tree.use(other.queue, other.amounts, -1.0)
    after = shares.share(theirs[level])
    tree.use(other.queue, other.amounts)
    return own <= after


def _borrows(node: Node, asking: Holder) -> bool:
    return any(
        node.used.get(share, 0.0) > node.subtree.get(share, 0.0) * (1.0 + SLACK)
        for share, amount in asking.amounts.items()
        if amount > 0.0
    )
