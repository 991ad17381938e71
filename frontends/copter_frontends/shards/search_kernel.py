"""The kernel of the local search: the worst server's best move, then its best swap, until nothing improves."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LEAST_GAIN = 1e-9
"""A move must gain at least this, in mean loads, so that rounding errors cannot cause endless moves."""


class Homes(NamedTuple):
    """The server of each shard, and what the servers hold.

    Attributes
    ----------
    home, first : ndarray (shards,)
        Server of each shard now, and before the search.
    load, size : ndarray (shards,)
        Load of each shard, in mean loads of a server; memory that it needs.
    total, used, memory : ndarray (servers,)
        Load and memory that each server's shards need, and its memory.
    up : ndarray (servers,) bool
        Whether it may hold shards.
    """

    home: Ints
    first: Ints
    load: Floats
    size: Floats
    total: Floats
    used: Floats
    memory: Floats
    up: NDArray[np.bool_]


@numba.njit(cache=True)
def outside(load, band):  # type: ignore[no-untyped-def]
    """Return how far a load, in mean loads, is outside the band."""
    return max(load - (1.0 + band), 0.0) + max((1.0 - band) - load, 0.0)


@numba.njit(cache=True)
def best_move(worst, at, band, price):  # type: ignore[no-untyped-def]
    """Return (gain, shard, server) of the best single move from or to the worst server."""
    home, first, load, total = at.home, at.first, at.load, at.total
    gain, best, goal = LEAST_GAIN, -1, -1
    for shard in range(len(home)):
        here = home[shard]
        for target in range(len(total)):
            if not at.up[target] or target == here or (here != worst and target != worst):
                continue
            if at.used[target] + at.size[shard] > at.memory[target]:
                continue
            saved = outside(total[here], band) + outside(total[target], band)
            saved -= outside(total[here] - load[shard], band) + outside(total[target] + load[shard], band)
            saved += price * ((here != first[shard]) - (target != first[shard]))
            if saved > gain:
                gain, best, goal = saved, shard, target
    return gain, best, goal


@numba.njit(cache=True)
def best_swap(worst, at, band, price):  # type: ignore[no-untyped-def]
    """Return (gain, shard of the worst server, shard of another server) of the best exchange of two shards."""
    home, first, load, size, total, used, memory = at.home, at.first, at.load, at.size, at.total, at.used, at.memory
    gain, best, other = LEAST_GAIN, -1, -1
    for shard in range(len(home)):
        if home[shard] != worst:
            continue
        for partner in range(len(home)):
            there = home[partner]
            if there == worst:
                continue
            grown = size[partner] - size[shard]
            if used[worst] + grown > memory[worst] or used[there] - grown > memory[there]:
                continue
            more = load[partner] - load[shard]
            saved = outside(total[worst], band) + outside(total[there], band)
            saved -= outside(total[worst] + more, band) + outside(total[there] - more, band)
            saved += price * ((worst != first[shard]) - (there != first[shard]))
            saved += price * ((there != first[partner]) - (worst != first[partner]))
            if saved > gain:
                gain, best, other = saved, shard, partner
    return gain, best, other


@numba.njit(cache=True)
def search(at, stuck, band, price, most):  # type: ignore[no-untyped-def]
    """Improve the shards' homes in place, at most `most` times; returns (number of steps, whether no step improves)."""
    home, load, size, total, used = at.home, at.load, at.size, at.total, at.used
    for made in range(most):
        while True:
            worst, distance = -1, 0.0
            for server in range(len(total)):
                if at.up[server] and not stuck[server] and outside(total[server], band) > distance:
                    worst, distance = server, outside(total[server], band)
            if worst < 0:
                return made, True
            _, shard, goal = best_move(worst, at, band, price)
            partner = -1
            if shard < 0:
                _, shard, partner = best_swap(worst, at, band, price)
            if shard >= 0:
                break
            stuck[worst] = True
        here = home[shard]
        if partner >= 0:
            goal = home[partner]
            home[partner] = here
            total[here] += load[partner]
            total[goal] -= load[partner]
            used[here] += size[partner]
            used[goal] -= size[partner]
        home[shard] = goal
        total[here] -= load[shard]
        total[goal] += load[shard]
        used[here] -= size[shard]
        used[goal] += size[shard]
        stuck[:] = False
    return most, False
