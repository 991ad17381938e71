"""The paper's online primal-dual algorithm with its errors corrected (Algorithms 1 and 2; papers/hadar.md, H17 to
H19).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import SettingsError
from copter_frontends.policies.hadar.find_alloc import Offer, Wish, cheapest_first, find_allocs
from copter_frontends.policies.hadar.holdings import Holdings
from copter_frontends.policies.hadar.job_book import Floats, Ints
from copter_frontends.policies.hadar.posted_prices import PriceFunction
from copter_frontends.policies.hadar.round_values import RoundTerms, RoundValues
from copter_frontends.vocabulary import Allocation

Prices = Literal["round", "printed"]


@dataclass(frozen=True, slots=True)
class OnlinePlan:
    """The online algorithm's decision for a round.

    Attributes
    ----------
    bundles : mapping of row to int64 array (types,)
    allocations : mapping of row to Allocation
    payoff, worth : float
        Sum of the jobs' payoffs, and of their worths.
    prices : mapping of GPU type to float
        Posted price of the next GPU after all jobs are placed, averaged over the type's GPUs.
    posted : float64 array (types, segments)
        The price function in the LP's form.
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


@dataclass(slots=True)
class _State:
    """A branch of the dynamic program: free GPUs, prices, payoff, worth, and its choices, the last one first."""

    free: Ints
    price: Floats
    payoff: float
    worth: float
    chosen: tuple[int, Offer, tuple] | None  # type: ignore[type-arg]
    _order: NDArray[np.intp] | None = None

    @property
    def order(self) -> NDArray[np.intp]:
        """Return the servers, cheapest first; cached."""
        if self._order is None:
            self._order = cheapest_first(self.free, self.price)
        return self._order


@dataclass(frozen=True, slots=True)
class _Park:
    """The servers: type numbers, GPUs, names, and the number of each name."""

    kind: Ints
    size: Ints
    names: list[str]
    number: Mapping[str, int]

    @classmethod
    def of(cls, holdings: Holdings) -> _Park:
        servers = holdings.servers
        nodes = [(q, node) for q, name in enumerate(servers.types) for node in servers.nodes.node_ids(name)]
        size = np.array([servers.nodes.node_gpus(servers.types[q]) for q, _ in nodes], dtype=np.int64)
        names = [node for _, node in nodes]
        kind = np.array([q for q, _ in nodes], dtype=np.int64)
        return cls(kind, size, names, {node: at for at, node in enumerate(names)})


@dataclass(frozen=True, slots=True)
class OnlineRule:
    """The dual subroutine: place each queued job at one of its best payoffs or skip it (H19).

    Parameters
    ----------
    width : int
        Number of branches kept: those of largest payoff, and the one without placements, in which a large job can still
        be placed after many small ones. The exact DP, whose state is the free GPUs of every server, would need
        exponentially many.
    segments : int
        Number of parts of a type's capacity in the piecewise-linear prices.
    offers : int
        Number of allocations tried for a job in every branch: those of largest payoff. With 1, as in line 28, a job may
        occupy GPUs that another job needs more.
    prices : {"round", "printed"}
        The price function: H17, or (6) to (8) as printed in the paper.
    """

    width: int = 4
    segments: int = 8
    offers: int = 3
    prices: Prices = "round"

    def __post_init__(self) -> None:
        if self.width < 1 or self.segments < 1 or self.offers < 1:
            raise SettingsError(
                f"width is {self.width}, segments {self.segments} and offers {self.offers}; all must be >= 1"
            )
        if self.prices not in ("round", "printed"):
            raise SettingsError(f"prices is {self.prices!r}, must be 'round' or 'printed'")

    def price_function(self, values: RoundValues, terms: RoundTerms, holdings: Holdings) -> PriceFunction:
        """Return the price function of a round."""
        formulation = holdings.formulation
        if self.prices == "printed":
            return PriceFunction.printed(formulation.book, formulation.utility, terms)
        return PriceFunction.of(values, formulation.book.gpus, terms.capacity)

    def plan(
        self,
        values: RoundValues,
        terms: RoundTerms,
        holdings: Holdings,
        avoided: Mapping[str, Collection[str]] | None = None,
    ) -> OnlinePlan:
        """Run the algorithm over all jobs, largest worth per GPU first, on a cluster with only the pinned jobs.

        `avoided` are servers that a job gets only if there are no others.
        """
        book, servers, pins = holdings.formulation.book, holdings.servers, holdings.pins
        park = _Park.of(holdings)
        function = self.price_function(values, terms, holdings)
        free = park.size.copy()
        for pin in pins.values():
            for node, gpus in pin.nodes:
                free[park.number[node]] -= gpus
        start = _State(free, function.price(park.kind, (park.size - free) / park.size), 0.0, 0.0, None)
        best = self._search(values, terms, holdings, start, park, function, avoided or {})
        allocations = {book.row(job_id): pin for job_id, pin in pins.items()}
        link = best.chosen
        while link is not None:
            row, offer, link = link
            shares = {park.names[at]: n for at, n in zip(offer.servers.tolist(), offer.gpus.tolist(), strict=True)}
            allocations[row] = servers.allocation(shares, values.rate[row])
        after = [best.price[park.kind == q] for q in range(len(servers.types))]
        return OnlinePlan(
            bundles={row: servers.bundle(allocation) for row, allocation in allocations.items()},
            allocations=allocations,
            payoff=best.payoff,
            worth=best.worth,
            prices={name: float(p.mean()) if len(p) else 0.0 for name, p in zip(servers.types, after, strict=True)},
            posted=function.segments(self.segments, terms.capacity),
            alpha=function.alpha,
        )

    def _search(
        self,
        values: RoundValues,
        terms: RoundTerms,
        holdings: Holdings,
        start: _State,
        park: _Park,
        function: PriceFunction,
        avoided: Mapping[str, Collection[str]],
    ) -> _State:
        """Run DP_allocation over the queue, keeping only the best branches."""
        book = holdings.formulation.book
        states = [start]
        worth = values.worth.max(axis=1, initial=-1.0) / np.maximum(book.gpus, 1)
        queue = np.flatnonzero((worth > 0) & ~book.pinned)
        for row in queue[np.argsort(-worth[queue], kind="stable")].tolist():
            wish = self._wish(values, terms, holdings, row, park.number)
            shut = [park.number[node] for node in avoided.get(book.ids[row], ()) if node in park.number]
            branches = list(states)  # line 15: skip the job
            for state in states:
                if int(state.free.sum()) < wish.gpus:
                    continue
                # Line 7: a job that cannot be placed is skipped, and the search goes on.
                found: list[Offer] = []
                if shut:
                    free = state.free.copy()
                    free[shut] = 0
                    found = find_allocs(wish, park.kind, park.size, free, state.price, state.order)
                found = found or find_allocs(wish, park.kind, park.size, state.free, state.price, state.order)
                branches += [_placed(state, row, offer, park, function) for offer in found[: self.offers]]
            if len(branches) > len(states):
                states = self._kept(branches, start)
        return max(states, key=lambda state: state.payoff)

    def _kept(self, branches: list[_State], start: _State) -> list[_State]:
        """Return the best branches, one per set of free GPUs, and the branch without placements."""
        merged: dict[bytes, _State] = {}
        for state in branches:
            key = state.free.tobytes()
            if key not in merged or merged[key].payoff < state.payoff:
                merged[key] = state
        kept = sorted(merged.values(), key=lambda state: -state.payoff)[: self.width]
        return kept if any(state is start for state in kept) else [*kept, start]

    @staticmethod
    def _wish(values: RoundValues, terms: RoundTerms, holdings: Holdings, row: int, number: Mapping[str, int]) -> Wish:
        book = holdings.formulation.book
        held = holdings.held.get(book.ids[row])
        own = None
        if held is not None and values.own[row] > 0:
            at = np.array([number[node] for node, _ in held.nodes], dtype=np.int64)
            own = Offer(at, np.array([gpus for _, gpus in held.nodes], dtype=np.int64), float(values.own[row]), 0.0)
        moving = np.maximum(values.worth[row], 0.0) * terms.moving(book.restart_s[row : row + 1])
        apart = 1.0 - terms.spread_cost
        return Wish(int(book.gpus[row]), values.rate[row], moving, moving * apart, apart, own)


def _placed(state: _State, row: int, offer: Offer, park: _Park, function: PriceFunction) -> _State:
    """Return the branch after a job takes an offer: fewer free GPUs, higher prices (lines 10-13)."""
    free, price = state.free.copy(), state.price.copy()
    at = offer.servers
    free[at] -= offer.gpus
    price[at] = function.price(park.kind[at], (park.size[at] - free[at]) / park.size[at])
    chosen = (row, offer, state.chosen)
    return _State(free, price, state.payoff + offer.payoff, state.worth + offer.worth, chosen)  # type: ignore[arg-type]
