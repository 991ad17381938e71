"""The paper's online primal-dual algorithm, its errors mended (Algorithms 1 and 2; docs/hadar.md, H17 to H19)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from copter.errors import SettingsError
from copter_frontends.hadar.find_alloc import Offer, Wish, find_alloc
from copter_frontends.hadar.holdings import Holdings
from copter_frontends.hadar.job_book import Floats, Ints
from copter_frontends.hadar.posted_prices import PriceFunction
from copter_frontends.hadar.round_values import RoundTerms, RoundValues
from copter_frontends.vocabulary import Allocation


@dataclass(frozen=True, slots=True)
class OnlinePlan:
    """What the online algorithm decides for a round.

    Attributes
    ----------
    bundles : mapping of row to int64 array (types,)
    allocations : mapping of row to Allocation
    payoff, worth : float
        Sum of the jobs' payoffs, and of their worths.
    prices : mapping of GPU type to float
        Posted price of the next GPU, averaged over the type's GPUs, after all jobs are placed.
    posted : float64 array (types, segments)
        The price function as the LP takes it.
    alpha : float
        Half the competitive ratio.
    """

    bundles: Mapping[int, Ints]
    allocations: Mapping[int, Allocation]
    payoff: float
    worth: float
    prices: Mapping[str, float]
    posted: Floats
    alpha: float


@dataclass(frozen=True, slots=True)
class _State:
    """One branch of the DP: servers' free GPUs and prices, payoff and worth so far, and the choices, last first."""

    free: Ints
    price: Floats
    payoff: float
    worth: float
    chosen: tuple[int, Offer, tuple] | None  # type: ignore[type-arg]


@dataclass(frozen=True, slots=True)
class OnlineRule:
    """Dual subroutine: for each job in the queue, place it at its best payoff or pass it over (H19).

    Parameters
    ----------
    width : int
        Branches kept, those of largest payoff. 1 takes every job whose payoff is positive; the exact DP, whose state is
        what is free on every server, would need exponentially many.
    segments : int
        Parts of a type's capacity in the piecewise-linear prices.
    """

    width: int = 4
    segments: int = 8

    def __post_init__(self) -> None:
        if self.width < 1 or self.segments < 1:
            raise SettingsError(f"width is {self.width} and segments {self.segments}, both must be >= 1")

    def plan(self, values: RoundValues, terms: RoundTerms, holdings: Holdings) -> OnlinePlan:
        """Run the algorithm over all jobs, largest worth per GPU first, on a cluster with only the pinned jobs."""
        book, servers, pins = holdings.formulation.book, holdings.servers, holdings.pins
        nodes = [(name, node) for name in servers.types for node in servers.nodes.node_ids(name)]
        number = {node: at for at, (_, node) in enumerate(nodes)}
        kind = np.array([servers.types.index(name) for name, _ in nodes], dtype=np.int64)
        size = np.array([servers.nodes.node_gpus(name) for name, _ in nodes], dtype=np.int64)
        function = PriceFunction.of(values, book.gpus, terms.capacity)
        free = size.copy()
        for pin in pins.values():
            for node, gpus in pin.nodes:
                free[number[node]] -= gpus
        start = _State(free, function.price(kind, (size - free) / size), 0.0, 0.0, None)
        best = self._search(values, terms, holdings, start, (kind, size, number), function)
        allocations = {book.row(job_id): pin for job_id, pin in pins.items()}
        link = best.chosen
        while link is not None:
            row, offer, link = link
            shares = {nodes[at][1]: gpus for at, gpus in zip(offer.servers.tolist(), offer.gpus.tolist(), strict=True)}
            allocations[row] = servers.allocation(shares, values.rate[row])
        after = [best.price[kind == q] for q in range(len(servers.types))]
        return OnlinePlan(
            bundles={row: servers.bundle(allocation) for row, allocation in allocations.items()},
            allocations=allocations,
            payoff=best.payoff,
            worth=best.worth,
            prices={name: float(p.mean()) if len(p) else 0.0 for name, p in zip(servers.types, after, strict=True)},
            posted=function.segments(self.segments),
            alpha=function.alpha,
        )

    def _search(
        self,
        values: RoundValues,
        terms: RoundTerms,
        holdings: Holdings,
        start: _State,
        cluster: tuple[Ints, Ints, dict[str, int]],
        function: PriceFunction,
    ) -> _State:
        """DP_allocation over the queue, with only the best branches kept."""
        kind, size, number = cluster
        book = holdings.formulation.book
        states = [start]
        worth = values.worth.max(axis=1, initial=-1.0) / np.maximum(book.gpus, 1)
        queue = np.flatnonzero((worth > 0) & ~book.pinned)
        for row in queue[np.argsort(-worth[queue], kind="stable")].tolist():
            wish = self._wish(values, terms, holdings, row, number)
            branches = list(states)  # line 15: pass the job over
            for state in states:
                if int(state.free.sum()) < wish.gpus:
                    continue
                offer = find_alloc(wish, kind, size, state.free, state.price)
                if offer is not None:  # line 7: a job that cannot be placed is passed over, and the search goes on
                    branches.append(_placed(state, row, offer, kind, size, function))
            merged: dict[bytes, _State] = {}
            for state in branches:
                key = state.free.tobytes()
                if key not in merged or merged[key].payoff < state.payoff:
                    merged[key] = state
            states = sorted(merged.values(), key=lambda state: -state.payoff)[: self.width]
        return states[0]

    @staticmethod
    def _wish(values: RoundValues, terms: RoundTerms, holdings: Holdings, row: int, number: Mapping[str, int]) -> Wish:
        book = holdings.formulation.book
        held = holdings.held.get(book.jobs[row].id)
        own = None
        if held is not None and values.own[row] > 0:
            at = np.array([number[node] for node, _ in held.nodes], dtype=np.int64)
            own = Offer(at, np.array([gpus for _, gpus in held.nodes], dtype=np.int64), float(values.own[row]), 0.0)
        moving = np.maximum(values.worth[row], 0.0) * terms.moving
        apart = 1.0 - terms.spread_cost
        return Wish(int(book.gpus[row]), values.rate[row], moving, moving * apart, apart, own)


def _placed(state: _State, row: int, offer: Offer, kind: Ints, size: Ints, function: PriceFunction) -> _State:
    """The branch in which a job has an offer: fewer free GPUs, higher prices (lines 10-13)."""
    free, price = state.free.copy(), state.price.copy()
    at = offer.servers
    free[at] -= offer.gpus
    price[at] = function.price(kind[at], (size[at] - free[at]) / size[at])
    chosen = (row, offer, state.chosen)
    return _State(free, price, state.payoff + offer.payoff, state.worth + offer.worth, chosen)  # type: ignore[arg-type]
