"""FIND_ALLOC: the allocation of best payoff for one job at posted prices (Algorithm 2, lines 22-34; H18)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter_frontends.policies.hadar.job_book import Floats, Ints


@dataclass(frozen=True, slots=True)
class Offer:
    """GPUs on servers (numbers and GPUs on each), their worth to the job and their cost."""

    servers: NDArray[np.intp]
    gpus: Ints
    worth: float
    cost: float

    @property
    def payoff(self) -> float:
        """Worth less cost; mu_j if positive."""
        return self.worth - self.cost


@dataclass(frozen=True, slots=True)
class Wish:
    """A job in FIND_ALLOC: number of GPUs, rate and worth by type, loss if spread over servers, current GPUs.

    `pure` and `mixed` are (types,); `held` an Offer at cost zero, or None.
    """

    gpus: int
    rate: Floats
    pure: Floats
    mixed: Floats
    apart: float
    held: Offer | None


def find_alloc(wish: Wish, kind: Ints, size: Ints, free: Ints, price: Floats) -> Offer | None:
    """Return the allocation of largest payoff, or None without a positive one; parameters as :func:`find_allocs`."""
    return next(iter(find_allocs(wish, kind, size, free, price)), None)


def cheapest_first(free: Ints, price: Floats) -> NDArray[np.intp]:
    """Return servers by price, the fullest first among equals."""
    return np.lexsort((free, price))


def find_allocs(
    wish: Wish, kind: Ints, size: Ints, free: Ints, price: Floats, order: NDArray[np.intp] | None = None
) -> list[Offer]:
    """Return the allocations of positive payoff without duplicates, largest first.

    Parameters
    ----------
    wish : Wish
    kind, size, free : int64 arrays (servers,)
        Type, GPUs and free GPUs of each server.
    price : float64 array (servers,)
        Posted price of a GPU.
    order : int array (servers,), optional
        Result of :func:`cheapest_first`, if already known.
    """
    offers = []
    held = wish.held
    if held is not None and bool((held.gpus <= free[held.servers]).all()):
        offers.append(Offer(held.servers, held.gpus, held.worth, float(price[held.servers] @ held.gpus)))
    runs = wish.rate[kind] > 0
    order = cheapest_first(free, price) if order is None else order
    order = order[(runs & (free > 0))[order]]
    for r in np.flatnonzero(wish.rate > 0).tolist():
        together = _together(wish.gpus, r, kind[order], size[order], free[order])
        if together is not None:
            offers.append(_offer(order, together, wish.pure[r], price))
        eligible = wish.rate[kind[order]] >= wish.rate[r]
        apart = _cheapest(wish.gpus, free[order], eligible)
        if apart is not None:
            one_type = len(np.unique(kind[order[apart > 0]])) == 1
            worth = wish.pure[r] * wish.apart if one_type else wish.mixed[r]
            offers.append(_offer(order, apart, worth, price))
    distinct: dict[tuple[bytes, bytes], Offer] = {}
    for offer in offers:
        if offer.payoff > 0:
            by_server = np.argsort(offer.servers)
            key = (offer.servers[by_server].tobytes(), offer.gpus[by_server].tobytes())
            if key not in distinct or distinct[key].payoff < offer.payoff:
                distinct[key] = offer
    return sorted(distinct.values(), key=lambda offer: -offer.payoff)


def _together(gpus: int, r: int, kind: Ints, size: Ints, free: Ints) -> Ints | None:
    """Return GPUs of one type on the fewest and cheapest servers (given in order of price); None if none fit."""
    here = np.flatnonzero(kind == r)
    if len(here) == 0:
        return None
    whole, rest = divmod(gpus, int(size[here[0]]))
    result = np.zeros(len(kind), dtype=np.int64)
    empty = here[free[here] == size[here]][:whole]
    if len(empty) < whole:
        return None
    result[empty] = size[empty]
    if rest:
        fits = here[(free[here] >= rest) & (result[here] == 0)]
        if len(fits) == 0:
            return None
        result[fits[0]] = rest
    return result


def _cheapest(gpus: int, free: Ints, eligible: NDArray[np.bool_]) -> Ints | None:
    """Return the cheapest GPUs on any servers (given in order of price); None if there are too few."""
    room = np.where(eligible, free, 0)
    before = np.concatenate(([0], np.cumsum(room)[:-1]))
    if len(room) == 0 or int(room.sum()) < gpus:
        return None
    return np.asarray(np.clip(gpus - before, 0, room))


def _offer(order: NDArray[np.intp], taken: Ints, worth: float, price: Floats) -> Offer:
    used = np.flatnonzero(taken)
    servers = order[used]
    return Offer(servers, taken[used], float(worth), float(price[servers] @ taken[used]))
