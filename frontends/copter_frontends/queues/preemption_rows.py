"""Kueue's preemption rules as rows of the program, which limit the usage that a queue may free by stopping workloads.

For a queue q with rules and a flavor's resource f, let s be the units that q frees in itself, t those it frees in
others:

- row ("freed", q, f): s + t <= what q starts, plus one workload for each start of which more is freed than needed;
- row ("within", q, f): s <= usage of q's own workloads that its highest waiting priority may stop;
- row ("reclaimed", q, f): t <= usage of others' workloads that it may stop (of queues that may come to borrow); and, if
  q may not borrow while it preempts, t <= what is left of q's nominal quota, counting its own stopped workloads, plus
  one workload for each waiting one of which more is freed than needed;
- s frees units in all rows that q's usage is in, t in those from its cohort up.

Here workloads may be split and victims taken in any order. So the program allows everything that Kueue does, and its
bound holds for Kueue. Stopping one unit costs as much as the least valuable unit is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from copter_frontends.queues.admission_model import AdmissionModel
from copter_frontends.queues.ask import Ask
from copter_frontends.queues.preemption import NEVER, Holder, Preemption, across, within
from copter_frontends.queues.quota_tree import Share

Place: TypeAlias = tuple[str, Share]  # queue, flavor's resource


class PreemptionRows:
    """Rows and columns of preemption, added to an admission model before its first asks.

    Parameters
    ----------
    admission : AdmissionModel
    rules : mapping of str to Preemption
        By queue.
    resource : str
        The resource in which values are counted.
    holders : sequence of Holder
        Running workloads that may be stopped.
    """

    def __init__(
        self, admission: AdmissionModel, rules: Mapping[str, Preemption], resource: str, holders: Sequence[Holder]
    ) -> None:  # fmt: skip
        self.holders = list(holders)
        largest: dict[Share, float] = {}
        for each in holders:
            for share, amount in each.amounts.items():
                largest[share] = max(largest.get(share, 0.0), amount)
        self.largest = largest
        self.admission = admission
        self.rules = {
            name: each
            for name, each in rules.items()
            if name in admission.tree.queues and (each.within, each.reclaim, each.borrow) != (NEVER, NEVER, NEVER)
        }
        self.places: list[Place] = [
            (name, share) for name in self.rules for share in sorted(admission.tree.queues[name].quotas)
        ]
        model = admission.model
        with model.batch():
            for name, share in self.places:
                for kind in ("freed", "within", "reclaimed"):
                    model.set_count((kind, name, *share), 0.0)
                rows = admission.rows_of(name, share)
                cost = -1.0 if share[1] == resource else 0.0
                above = admission.rows_above(name, share)
                for kind, freed in (("within", rows), ("reclaimed", above)):
                    usage = {row: [-1.0] for row in freed}
                    usage |= {("freed", name, *share): [1.0], (kind, name, *share): [1.0]}  # type: ignore[dict-item]
                    model.add_request(("stops", kind, name, *share), [cost], usage, limit=np.inf)
                admission.against[name, share] = (("freed", name, *share), largest.get(share, 0.0))

    def update(self, asks: Sequence[Ask]) -> None:
        """Set the rows' bounds for the waiting workloads: a queue's highest priority decides what it may stop."""
        if not self.places:
            return
        tree = self.admission.tree
        highest: dict[str, Ask] = {}
        for ask in asks:
            best = highest.setdefault(ask.queue, ask)
            if (ask.priority, -ask.since_s) > (best.priority, -best.since_s):
                highest[ask.queue] = ask
        counts = []
        for name, share in self.places:
            if name not in highest:
                counts += [0.0, 0.0]
                continue
            rules, node, first = self.rules[name], tree.queues[name], highest[name]
            asking = Holder(str(first.key), name, {}, first.priority, first.since_s)
            own = sum(
                each.amounts.get(share, 0.0)
                for each in self.holders
                if each.queue == name and within(rules, asking, each)
            )
            others = sum(
                each.amounts.get(share, 0.0)
                for each in self.holders
                if each.queue != name and tree.root(each.queue) == tree.root(name) and across(rules, asking, each, True)
            )
            if rules.borrow == NEVER and not tree.fair:  # with fair sharing, who borrows may stop who borrows more
                left = node.quotas[share].nominal - node.used.get(share, 0.0) + own
                waiting = sum(each.count for each in asks if each.queue == name)
                others = min(
                    others, max(0.0, left) + waiting * self.largest.get(share, 0.0)
                )  # the last workload stopped for each start may free more than needed
            counts += [own, others]
        rows = [(kind, name, *share) for name, share in self.places for kind in ("within", "reclaimed")]
        self.admission.model.update_counts(rows, np.array(counts))
