"""The quotas' rules as rows of a linear program that is kept between rounds, and plans that obey the rules exactly.

For a queue q, a flavor's resource f, u the queue's usage, k what it never lends, b its borrowing limit, N its quota:

- row ("most", q, f): u <= N + b, where there is a limit;
- row ("kept", q, f): u - p <= k with a column p >= 0, the usage passed on to the cohort; p is u where k is zero;
- row ("pool", root, f): the usage passed on is in sum at most the root's quota; cohorts in between are as queues.

Running workloads lower the rows' right sides. A workload is all or nothing: the plan starts from the program's values
and admits workloads one by one by the tree's own arithmetic, higher priorities first. So no plan exceeds a quota, and
the program's bound holds for every set of workloads that the quotas admit without stopping one that runs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from copter import Model, Session, Settings
from copter_serve.queues.ask import Ask
from copter_serve.queues.errors import QueueError
from copter_serve.queues.fair_shares import FairShares
from copter_serve.queues.quota_tree import Amounts, Node, QuotaTree, Share
from copter_serve.queues.tournament import Tournament

ORDERS = ("program", "large", "small")  # orders in which whole workloads are admitted
FAIR = "fair"  # order in which fair sharing admits them
WHOLE = 1e-6  # a value this close to a whole number counts as whole
PREFERENCE = 1e-6  # relative loss of value of each option after the first
Row = tuple[str, str, str, str, str]  # kind, queue or cohort, name, flavor, resource


@dataclass(frozen=True, slots=True)
class AdmissionPlan:
    """The workloads that may start now, their value and a bound on it.

    Attributes
    ----------
    starts : dict of hashable to list of int
        For each ask, how many workloads start by each of its options; asks without starts are missing.
    value, bound : float
        Value of the starts, and an upper bound on the value of any admission.
    bound_is_certified : bool
    lp_value : float
    prices : dict of Row to float
        Value of one more unit of each row.
    solve_s : float
        Seconds of the solve.
    """

    starts: dict[Hashable, list[int]]
    value: float
    bound: float
    bound_is_certified: bool
    lp_value: float
    prices: dict[Row, float]
    solve_s: float

    @property
    def gap(self) -> float:
        """Return the relative distance of the plan's value from its bound."""
        return max(0.0, self.bound - self.value) / max(1.0, abs(self.bound))


class AdmissionModel:
    """One session for all rounds of a set of queues.

    Parameters
    ----------
    tree : QuotaTree
        A settled tree with the usage of running workloads, which the caller keeps up to date; :meth:`plan` restores it.
    settings : Settings, optional
    """

    def __init__(self, tree: QuotaTree, settings: Settings | None = None) -> None:
        self.tree = tree
        self.model = Model(sense="max")
        self.session = Session(self.model, settings or Settings())
        self.asks: dict[Hashable, Ask] = {}
        # rows that starts relax, with the request and the amount
        self.against: dict[tuple[str, Share], tuple[Hashable, float]] = {}
        self._rows: list[Row] = []
        self._known: set[Row] = set()
        self._through: dict[tuple[str, Share], list[Row]] = {}
        self._nodes: list[tuple[str, Node, Share]] = []
        with self.model.batch():
            self._make_rows()

    def _make_rows(self) -> None:
        tree = self.tree
        shares = {share for node in [*tree.queues.values(), *tree.cohorts.values()] for share in node.subtree}
        for node in [*tree.queues.values(), *tree.cohorts.values()]:
            kind = "queue" if node.is_queue else "cohort"
            for share in sorted(shares & node.subtree.keys()):
                if node.parent is None:
                    self._rows.append(("pool", kind, node.name, *share))
                else:
                    if not math.isinf(node.most(share)):
                        self._rows.append(("most", kind, node.name, *share))
                    if node.kept(share) > 0.0:
                        self._rows.append(("kept", kind, node.name, *share))
                self._nodes.append((kind, node, share))
        self._known = known = set(self._rows)
        for row in self._rows:
            self.model.set_count(row, 0.0)
        for kind, node, share in self._nodes:
            if ("kept", kind, node.name, *share) in known:
                usage = {("kept", kind, node.name, *share): [-1.0]}
                usage |= {row: [1.0] for row in self._rows_from(tree.cohorts[str(node.parent)], share, known)}
                self.model.add_request(("passes", kind, node.name, *share), [0.0], usage, limit=math.inf)
        for name, node in tree.queues.items():
            for share in node.quotas:
                self._through[name, share] = self._rows_from(node, share, known)

    def _rows_from(self, node: Node, share: Share, known: set[Row]) -> list[Row]:
        """Return the rows in which a unit used at a node counts, up to the first row that keeps the unit."""
        found: list[Row] = []
        for each in (node, *self.tree.above(node)):
            kind = "queue" if each.is_queue else "cohort"
            for what in ("pool", "most", "kept"):
                row: Row = (what, kind, each.name, *share)
                if row in known:
                    found.append(row)
                    if what == "kept":
                        return found
        return found

    def rows_to_top(self, queue: str, share: Share) -> list[Row]:
        """Return the rows of a queue and of all cohorts above it."""
        node, found = self.tree.queues[queue], list[Row]()
        for each in (node, *self.tree.above(node)):
            kind = "queue" if each.is_queue else "cohort"
            found += [(what, kind, each.name, *share) for what in ("pool", "most", "kept")]
        return [row for row in found if row in self._known]

    # A round ------------------------------------------------------------------------------------------------------

    def update(self, asks: Sequence[Ask]) -> int:
        """Put the present asks and the present usage into the model; return the number of edits.

        Raises
        ------
        QueueError
            For an ask of an unknown queue or without options; the model is then unchanged.
        """
        now = {ask.key: ask for ask in asks}
        if len(now) < len(asks):
            raise QueueError("an ask is given twice: keys must differ")
        for ask in asks:
            for queue in ask.queues or (ask.queue,):
                if queue not in self.tree.queues:
                    raise QueueError(f"workload {ask.key!r}: there is no queue {queue!r}; describe it, or drop the ask")
            if not ask.options:
                raise QueueError(f"workload {ask.key!r} has no flavor that it may run on: drop the ask")
        edits = 0
        with self.model.batch():
            gone = [key for key in self.asks if key not in now or not self._alike(self.asks[key], now[key])]
            if gone:
                self.model.remove_requests(gone)
            fresh = [ask for ask in asks if ask.key not in self.asks or not self._alike(self.asks[ask.key], ask)]
            for ask in fresh:
                self._add(ask)
            left = set(gone)
            kept = [key for key in self.asks if key in now and key not in left]
            moved = [key for key in kept if self.asks[key].count != now[key].count]
            if moved:
                self.model.update_limits(moved, np.array([now[key].count for key in moved], dtype=np.float64))
            priced = [key for key in kept if self.asks[key].value != now[key].value]
            if priced:
                self.model.update_costs(priced, [self._costs(now[key]) for key in priced])
            edits = len(gone) + len(fresh) + len(moved) + len(priced)
            self.model.update_counts(self._rows, self._room())
        self.asks = now
        return edits

    def see(self, tree: QuotaTree) -> None:
        """Replace the tree by one with the same queues, cohorts and quotas but another usage."""
        self.tree = tree
        nodes = {"queue": tree.queues, "cohort": tree.cohorts}
        self._nodes = [(kind, nodes[kind][node.name], share) for kind, node, share in self._nodes]

    @staticmethod
    def _alike(one: Ask, other: Ask) -> bool:
        return (one.queue, one.queues, one.options) == (other.queue, other.queues, other.options)

    @staticmethod
    def _costs(ask: Ask) -> np.ndarray:
        return ask.value * (1.0 - PREFERENCE * np.arange(len(ask.options)))

    def _add(self, ask: Ask) -> None:
        usage: dict[Hashable, list[float]] = {}
        upper = np.full(len(ask.options), math.inf)
        for at, option in enumerate(ask.options):
            for share, amount in option.items():
                rows = self._through.get((ask.queue_of(at), share))
                if rows is None:
                    upper[at] = 0.0 if amount > 0.0 else upper[at]
                    continue
                for row in rows:
                    usage.setdefault(row, [0.0] * len(ask.options))[at] += amount
                if (ask.queue_of(at), share) in self.against:
                    relaxed, more = self.against[ask.queue_of(at), share]
                    usage.setdefault(relaxed, [0.0] * len(ask.options))[at] -= amount + more
        bound: float | np.ndarray = math.inf if np.isinf(upper).all() else upper
        limit = float(ask.count)
        self.model.add_request(ask.key, self._costs(ask), usage, limit=limit, upper=bound, integer=True)

    def _room(self) -> np.ndarray:
        """Return the units left in each row; zero where usage exceeds the row's bound."""
        left = dict.fromkeys(self._rows, 0.0)
        for kind, node, share in self._nodes:
            used = node.used.get(share, 0.0)
            if node.parent is None:
                left[("pool", kind, node.name, *share)] += max(node.subtree.get(share, 0.0) - used, 0.0)
                continue
            if ("most", kind, node.name, *share) in left:
                left[("most", kind, node.name, *share)] = max(node.most(share) - used, 0.0)
            if ("kept", kind, node.name, *share) in left:
                left[("kept", kind, node.name, *share)] = max(node.kept(share) - used, 0.0)
        return np.array(list(left.values()))

    def plan(self, deadline_s: float | None = None, searched: bool = False) -> AdmissionPlan:
        """Solve the program, and admit whole workloads.

        Parameters
        ----------
        deadline_s : float, optional
        searched : bool
            Whether to also try large workloads first and small ones first, and return the best of the three plans. With
            fair sharing there is one order, that of the shares.
        """
        solution = self.session.solve(deadline_s=deadline_s)
        keys = list(self.asks)
        offsets, values = solution.values_of(keys)
        wished = {key: values[offsets[at] : offsets[at + 1]] for at, key in enumerate(keys)}
        orders = (FAIR,) if self.tree.fair else ORDERS[: len(ORDERS) if searched else 1]
        found = [self._filled(wished, order) for order in orders]
        value, starts = max(found, key=lambda each: each[0])
        rows = solution.prices()[: len(self._rows)]
        prices = {row: float(price) for row, price in zip(self._rows, rows, strict=True) if price > 0.0}
        return AdmissionPlan(
            starts, value, max(solution.bound, value), solution.bound_is_certified, solution.objective, prices,
            solution.solve_time_s,
        )  # fmt: skip

    def _filled(self, wished: Mapping[Hashable, np.ndarray], order: str) -> tuple[float, dict[Hashable, list[int]]]:
        """Return starts of whole workloads in one order, and their value; the tree is left unchanged."""
        taken: list[tuple[str, Amounts, int]] = []
        try:
            starts = self._admit(wished, order, taken)
        finally:
            for queue, option, count in taken:
                self.tree.use(queue, option, -count)
        value = math.fsum(
            count * float(cost)
            for key, counts in starts.items()
            for count, cost in zip(counts, self._costs(self.asks[key]), strict=True)
        )
        return value, starts

    def _admit(
        self, wished: Mapping[Hashable, np.ndarray], order: str, taken: list[tuple[str, Amounts, int]]
    ) -> dict[Hashable, list[int]]:
        """Admit whole workloads by priority: on each level first those that are whole in the program, then any that
        fit.
        """
        starts: dict[Hashable, list[int]] = {}
        if order == FAIR:
            for ask in Tournament(FairShares(self.tree), list(self.asks.values())):
                for at in np.argsort(-wished[ask.key], kind="stable").tolist():
                    before = sum(starts.get(ask.key, ()))
                    self._start(ask, at, 1, starts, taken)
                    if sum(starts.get(ask.key, ())) > before:
                        break
            return starts
        tiers: dict[int, list[Ask]] = {}
        for ask in self.asks.values():
            if ask.count > 0:
                tiers.setdefault(ask.priority, []).append(ask)
        for priority in sorted(tiers, reverse=True):
            if order == "program":
                for ask in tiers[priority]:
                    for at, value in enumerate(wished[ask.key]):
                        self._start(ask, at, math.floor(value + WHOLE), starts, taken)
                waiting = sorted(tiers[priority], key=lambda ask: (-float(wished[ask.key].sum() % 1.0), ask.since_s))
            else:
                sign = -1.0 if order == "large" else 1.0
                waiting = sorted(tiers[priority], key=lambda ask: (sign * ask.value, ask.since_s))
            for ask in waiting:
                for at in np.argsort(-wished[ask.key], kind="stable").tolist():
                    self._start(ask, at, ask.count, starts, taken)
        return starts

    def _start(
        self, ask: Ask, at: int, most: int, starts: dict[Hashable, list[int]], taken: list[tuple[str, Amounts, int]]
    ) -> None:  # fmt: skip
        """Start up to `most` of an ask's workloads by one option."""
        begun = starts.get(ask.key)
        count = min(most, ask.count - (0 if begun is None else sum(begun)))
        option = ask.options[at]
        if count > 0:
            count = min(count, self.tree.room(ask.queue_of(at), option))
        if count > 0:
            self.tree.use(ask.queue_of(at), option, count)
            taken.append((ask.queue_of(at), option, count))
            starts.setdefault(ask.key, [0] * len(ask.options))[at] += count
