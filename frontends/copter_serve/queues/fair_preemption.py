"""Preemption under Kueue's fair sharing: workloads of queues with larger shares may be stopped.

Candidates are those of the queue's `within` and `reclaim`, of queues that borrow. From the top cohort down, the queue
with the largest share gives next. If the waiting workload is within its queue's quota, any candidate may be stopped.
Else a strategy compares shares on the level below the lowest common cohort: the asking side's with the new workload,
the other side's without the stopped one (:data:`FINAL`) or with it (:data:`INITIAL`).
"""

from __future__ import annotations

from collections.abc import Sequence

from copter_serve.queues.errors import QueueError
from copter_serve.queues.fair_shares import FairShares
from copter_serve.queues.preemption import (
    Holder,
    Preemption,
    contested_shares,
    may_stop_others,
    reclaims,
    within,
)
from copter_serve.queues.quota_tree import Node, QuotaTree

FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
STRATEGIES = ((FINAL, INITIAL), (FINAL,), (INITIAL,))  # the lists that Kueue accepts, its default first


def require_strategies(strategies: Sequence[str]) -> tuple[str, ...]:
    """Return the strategies as a tuple; QueueError for a list that Kueue does not accept."""
    if tuple(strategies) not in STRATEGIES:
        told = " or ".join(", ".join(each) for each in STRATEGIES)
        raise QueueError(f"preemption strategies are {', '.join(strategies) or 'none'}; Kueue accepts {told}")
    return tuple(strategies)


def fair_victims(
    tree: QuotaTree, rules: Preemption, asking: Holder, holders: Sequence[Holder],
    strategies: Sequence[str] = STRATEGIES[0],
) -> list[Holder] | None:  # fmt: skip
    """Return the workloads that would be stopped for a waiting one; None if fairness does not free enough.

    Parameters are those of :func:`~copter_serve.queues.preemption.victims`, and the strategies in the order in
    which they are tried. Of one queue, those that are being stopped already go first, then the lowest priority and the
    newest workload. At the end, workloads that turn out not to be needed return.
    """
    contested = contested_shares(tree, asking)
    if not contested:
        return []
    if not may_stop_others(tree, rules, asking, contested):
        return None
    candidates: dict[str, list[Holder]] = {}
    for each in sorted(holders, key=lambda each: (not each.evicted, each.priority, -each.since_s)):
        if any(each.amounts.get(share, 0.0) > 0.0 for share in contested) and (
            within(rules, asking, each)
            if each.queue == asking.queue
            else reclaims(rules, asking, each)
            and tree.root(each.queue) == tree.root(asking.queue)
            and tree.queues[each.queue].borrows(contested)
        ):
            candidates.setdefault(each.queue, []).append(each)
    shares = FairShares(tree)
    stopped: list[Holder] = []
    tree.use(asking.queue, asking.amounts)
    try:
        entitled = not tree.queues[asking.queue].borrows(contested)
        left = _first_pass(shares, asking, candidates, stopped, strategies[0], entitled)
        if len(strategies) > 1 and not _fits(tree, asking):
            _second_pass(shares, asking, left, stopped)
        if not _fits(tree, asking):
            return None
        for each in stopped[-2::-1]:
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


def _first_pass(
    shares: FairShares, asking: Holder, candidates: dict[str, list[Holder]], stopped: list[Holder], strategy: str,
    entitled: bool,
) -> dict[str, list[Holder]]:  # fmt: skip
    """Stop workloads by the first strategy until the waiting one fits; return the candidates that it refuses."""
    givers, refused = Givers(shares, asking, candidates), dict[str, list[Holder]]()
    while not _fits(shares.tree, asking) and (queue := givers.next()) is not None:
        while candidates[queue]:
            each = candidates[queue].pop(0)
            if queue == asking.queue or entitled or _may(shares, asking, each, strategy):
                shares.tree.use(queue, each.amounts, -1.0)
                stopped.append(each)
                break
            refused.setdefault(queue, []).append(each)
    return refused


def _second_pass(
    shares: FairShares, asking: Holder, candidates: dict[str, list[Holder]], stopped: list[Holder]
) -> None:  # fmt: skip
    """Stop at most one workload of each queue by the second strategy, until the waiting one fits."""
    givers = Givers(shares, asking, candidates)
    while not _fits(shares.tree, asking) and (queue := givers.next()) is not None:
        each = candidates[queue][0]
        candidates[queue] = []
        if _may(shares, asking, each, INITIAL):
            shares.tree.use(queue, each.amounts, -1.0)
            stopped.append(each)


class Givers:
    """The order in which queues give: from the top cohort down, always the borrowing member with the largest share.

    Parameters
    ----------
    shares : FairShares
    asking : Holder
        Its queue, and the cohorts above, take part even if they do not borrow.
    candidates : dict of str to list of Holder
        Workloads by queue, in the order in which they go; the caller removes those that it has tried.
    """

    def __init__(self, shares: FairShares, asking: Holder, candidates: dict[str, list[Holder]]) -> None:
        self._shares, self._asking, self._candidates = shares, asking, candidates
        queue = shares.tree.queues[asking.queue]
        self._above = {node.name for node in shares.tree.above(queue)}
        self._gone: set[tuple[bool, str]] = set()  # nodes that give nothing any more

    def next(self) -> str | None:
        """Return the queue that gives next; None if no queue gives."""
        tree, asking = self._shares.tree, self._asking.queue
        if tree.queues[asking].parent is None:
            return asking if self._candidates.get(asking) else None
        root = tree.cohorts[tree.root(asking)]
        while (False, root.name) not in self._gone:
            found = self._below(root)
            if found is not None:
                return found
        return None

    def _below(self, cohort: Node) -> str | None:
        """Return the queue below a cohort that gives next; None if a cohort was found that gives nothing."""
        best: tuple[tuple[float, bool, tuple[float, ...]], Node] | None = None
        for node in self._shares.tree.members(cohort.name):
            if (node.is_queue, node.name) in self._gone:
                continue
            if not self._gives(node):
                self._gone.add((node.is_queue, node.name))
                continue
            # between equal shares a cohort comes first, then the queue whose next workload goes first
            rank = (self._shares.share(node), not node.is_queue, self._urgency(node))
            if best is None or rank > best[0]:
                best = rank, node
        if best is None:
            self._gone.add((False, cohort.name))
            return None
        return best[1].name if best[1].is_queue else self._below(best[1])

    def _gives(self, node: Node) -> bool:
        borrows = node.borrows(node.used)
        if node.is_queue:
            return bool(self._candidates.get(node.name)) and (borrows or node.name == self._asking.queue)
        return borrows or node.name in self._above

    def _urgency(self, node: Node) -> tuple[float, ...]:
        if not node.is_queue:
            return ()
        first = self._candidates[node.name][0]
        return float(first.evicted), float(node.name != self._asking.queue), -float(first.priority), first.since_s


def _fits(tree: QuotaTree, asking: Holder) -> bool:
    """Return whether the waiting workload, whose usage is counted already, exceeds no quota."""
    tree.use(asking.queue, asking.amounts, -1.0)
    fits = tree.room(asking.queue, asking.amounts) > 0
    tree.use(asking.queue, asking.amounts)
    return fits


def _may(shares: FairShares, asking: Holder, other: Holder, strategy: str) -> bool:
    """Return whether a strategy lets a workload of another queue be stopped."""
    tree, mine, theirs = shares.tree, shares.path(asking.queue), shares.path(other.queue)
    level = next(at for at, (one, another) in enumerate(zip(mine, theirs, strict=False)) if one is not another)
    own = shares.share(mine[level])
    if strategy == INITIAL:
        return own < shares.share(theirs[level])
    tree.use(other.queue, other.amounts, -1.0)
    after = shares.share(theirs[level])
    tree.use(other.queue, other.amounts)
    return own <= after
