"""Kueue's preemption rules as rows of the program, which limit the usage that may be freed by stopping workloads.

For a queue q and a flavor's resource f, s are the units that q frees in itself, t those it frees in other queues, and
v those that other queues free in q; the v of a top cohort's queues sum to at most the t:

- s is at most the usage of q's own workloads that its first waiting one may stop, t that of others' workloads, v the
  usage of q's workloads that any other queue's first waiting one may stop, and s + v the usage of q's workloads;
- row ("freed", q, f): s + t <= what q starts, plus one workload for each start of which more is freed than needed, plus
  what q uses above its quota;
- row ("reclaimed", q, f): t - s - v <= what is left of q's nominal quota, plus one workload for each waiting one; not
  if q may borrow while it preempts, if fair sharing decides, or if cohorts are nested, whose quotas count, too;
- s and v free units in all rows from q up to the top.

A waiting workload of several resources may stop others for one of them and free much of another; then only the first
limits hold. Workloads may be split and victims taken in any order. So the program allows everything that Kueue does,
and its bound holds for Kueue. Stopping one unit costs as much as the least valuable unit is worth.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from copter_serve.queues.admission_model import AdmissionModel
from copter_serve.queues.ask import Ask
from copter_serve.queues.preemption import ANY, NEVER, Holder, Preemption, reclaims, within
from copter_serve.queues.quota_tree import Share

Place: TypeAlias = tuple[str, Share]  # queue, flavor's resource


class PreemptionRows:
    """Rows and columns of preemption, added to an admission model before its first asks.

    Parameters
    ----------
    admission : AdmissionModel
    rules : mapping of str to Preemption
        By queue.
    resource : str or tuple of str
        The resources in which values are counted.
    holders : sequence of Holder
        Running workloads that may be stopped.
    """

    def __init__(
        self, admission: AdmissionModel, rules: Mapping[str, Preemption], resource: str | tuple[str, ...],
        holders: Sequence[Holder],
    ) -> None:  # fmt: skip
        self.admission, self.holders, tree = admission, list(holders), admission.tree
        self.root = {name: tree.root(name) for name in tree.queues}
        self.largest: dict[Place, float] = {}  # largest workload, and usage in sum, below a top cohort
        self.whole: dict[Place, float] = {}
        self.held: dict[Place, float] = {}  # usage in sum in a queue
        for each in holders:
            for share, amount in each.amounts.items():
                place = self.root[each.queue], share
                self.largest[place] = max(self.largest.get(place, 0.0), amount)
                self.whole[place] = self.whole.get(place, 0.0) + amount
                if share in tree.queues[each.queue].quotas:
                    self.held[each.queue, share] = self.held.get((each.queue, share), 0.0) + amount
        self.rules = {
            name: each
            for name, each in rules.items()
            if name in tree.queues and (each.within, each.reclaim) != (NEVER, NEVER)
        }
        self.places: list[Place] = [(name, share) for name in self.rules for share in sorted(tree.queues[name].quotas)]
        asked = {(self.root[name], share) for name, share in self.places}
        self.givers = [(name, share) for name, share in self.held if (self.root[name], share) in asked]
        with admission.model.batch():
            self._make_rows((resource,) if isinstance(resource, str) else resource)

    def _make_rows(self, counted: tuple[str, ...]) -> None:
        model = self.admission.model
        for name, share in self.places:
            for kind in ("freed", "reclaimed", "held"):
                model.set_count((kind, name, *share), self.held.get((name, share), 0.0))
            model.set_count(("spent", self.root[name], *share), 0.0)
        known = set(self.places)
        for name, share in dict.fromkeys((*self.places, *self.givers)):
            freed, reclaimed, held = ((kind, name, *share) for kind in ("freed", "reclaimed", "held"))
            spent = ("spent", self.root[name], *share)
            cost = [-1.0 if share[1] in counted else 0.0]
            own: dict[Hashable, list[float]] = {row: [-1.0] for row in self.admission.rows_to_top(name, share)}
            if (name, share) in known:
                own |= {reclaimed: [-1.0], held: [1.0]}
                others: dict[Hashable, list[float]] = {freed: [1.0], reclaimed: [1.0], spent: [-1.0]}
                model.add_request(("stops", name, *share), cost, own | {freed: [1.0]}, limit=0.0)
                model.add_request(("reclaims", name, *share), [0.0], others, limit=0.0)
                self.admission.against[name, share] = (freed, self.largest.get((self.root[name], share), 0.0))
            if (name, share) in self.held:
                model.add_request(("gives", name, *share), cost, own | {spent: [1.0]}, limit=0.0)

    def update(self, asks: Sequence[Ask]) -> None:
        """Set the limits for the waiting workloads: a queue's first one decides what the queue may stop."""
        if not self.places:
            return
        tree, waiting = self.admission.tree, dict[str, list[Ask]]()
        for ask in asks:
            waiting.setdefault(ask.queue, []).append(ask)
        counts: list[float] = []
        limits: list[float] = []
        for name, share in self.places:
            queue, rules, asking = tree.queues[name], self.rules[name], waiting.get(name, [])
            place = self.root[name], share
            whole, largest = self.whole.get(place, 0.0), self.largest.get(place, 0.0)
            options = [option for each in asking for option in each.options]
            simple = all(sum(amount > 0.0 for amount in option.values()) <= 1 for option in options)
            over = queue.used.get(share, 0.0) - queue.subtree.get(share, 0.0)
            freed = max(0.0, over, -tree.available(name, share)) if simple else whole
            reclaimed = whole
            if simple and rules.borrow == NEVER and not tree.fair and len(list(tree.above(queue))) == 1:
                reclaimed = max(0.0, -over) + largest * sum(each.count for each in asking)
            counts += [freed, reclaimed]
            limits += self._stoppable(name, share, asking)
        rows = [(kind, name, *share) for name, share in self.places for kind in ("freed", "reclaimed")]
        stops = [(kind, name, *share) for name, share in self.places for kind in ("stops", "reclaims")]
        gives = [("gives", name, *share) for name, share in self.givers]
        with self.admission.model.batch():
            self.admission.model.update_counts(rows, np.array(counts))
            self.admission.model.update_limits([*stops, *gives], np.array([*limits, *self._given(waiting)]))

    def _given(self, waiting: Mapping[str, Sequence[Ask]]) -> list[float]:
        """Return the units that the first waiting workloads of all queues may free at each place."""
        reach: dict[str, float] = {}  # below a top cohort, workloads of lower priorities may be stopped
        for name, rules in self.rules.items():
            if name in waiting and rules.reclaim != NEVER:
                most = math.inf if rules.reclaim == ANY else max(ask.priority for ask in waiting[name])
                reach[self.root[name]] = max(reach.get(self.root[name], -math.inf), most)
        found = dict.fromkeys(self.givers, 0.0)
        for each in self.holders:
            if each.priority < reach.get(self.root[each.queue], -math.inf):
                for share, amount in each.amounts.items():
                    if (each.queue, share) in found:
                        found[each.queue, share] += amount
        return list(found.values())

    def _stoppable(self, name: str, share: Share, waiting: Sequence[Ask]) -> tuple[float, float]:
        """Return the units that a queue's first waiting workload may free in its own queue, and in others."""
        if not waiting:
            return 0.0, 0.0
        rules = self.rules[name]
        first = max(waiting, key=lambda ask: (ask.priority, -ask.since_s))
        asking = Holder(str(first.key), name, {}, first.priority, first.since_s)
        own = others = 0.0
        for each in self.holders:
            amount = each.amounts.get(share, 0.0)
            if each.queue == name:
                own += amount if within(rules, asking, each) else 0.0
            elif self.root[each.queue] == self.root[name] and reclaims(rules, asking, each):
                others += amount
        return own, others
