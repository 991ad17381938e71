"""Kernels of the shim: moving load between copies of shards along augmenting paths, and removing copies."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TINY = 1e-12  # differences of loads below this, in mean loads of a server, count as rounding


class Spread(NamedTuple):
    """The copies of all shards, shard after shard, and the load of every server.

    Attributes
    ----------
    first : ndarray (shards + 1,)
        Shard j has the copies ``first[j]`` to ``first[j + 1] - 1``.
    shard_of, server, live, part : ndarray (copies,)
        Shard and server of each copy, whether it exists, and the load that it serves, in mean loads of a server.
    by_first, by : ndarray (servers + 1,), (copies,)
        The copies of server i are ``by[by_first[i]]`` to ``by[by_first[i + 1] - 1]``.
    load : ndarray (servers,)
    """

    first: Ints
    shard_of: Ints
    server: Ints
    live: Bools
    part: Floats
    by_first: Ints
    by: Ints
    load: Floats


class Chain(NamedTuple):
    """Scratch of a search: the copies by which a chain enters and leaves each server, and the servers to look at."""

    entry: Ints
    exit: Ints
    queue: Ints


@numba.njit(cache=True)
def push(spread, source, limit, downwards, chain):  # type: ignore[no-untyped-def]
    """Move load along the shortest chain of copies; returns how much.

    Downwards: from an overloaded server to the first one found below `limit`. Otherwise: to an underloaded server from
    the first one found above `limit`.
    """
    first, server, live, part, load = spread.first, spread.server, spread.live, spread.part, spread.load
    entry, exit_, queue, n = chain.entry, chain.exit, chain.queue, len(spread.load)
    entry[:] = -1
    entry[source] = -2
    queue[0], head, tail, end = source, 0, 1, -1
    while head < tail and end < 0:
        a = queue[head]
        head += 1
        for place in range(spread.by_first[a], spread.by_first[a + 1]):
            own = spread.by[place]
            if not live[own] or (downwards and part[own] <= TINY):
                continue
            j = spread.shard_of[own]
            for other in range(first[j], first[j + 1]):
                b = server[other]
                if not live[other] or entry[b] != -1 or (not downwards and part[other] <= TINY):
                    continue
                entry[b], exit_[b] = other, own
                if (load[b] < limit[b] - TINY) if downwards else (load[b] > limit[b] + TINY):
                    end = b
                    break
                queue[tail] = b
                tail += 1
            if end >= 0:
                break
    if end < 0:
        return 0.0
    amount = abs(limit[end] - load[end])
    amount = min(amount, abs(load[source] - limit[n + source]))
    b = end
    while b != source:  # the least load of the copies along the chain limits the move
        giving = exit_[b] if downwards else entry[b]
        amount = min(amount, part[giving])
        b = server[exit_[b]]
    b = end
    while b != source:
        giving, taking = (exit_[b], entry[b]) if downwards else (entry[b], exit_[b])
        part[giving] -= amount
        part[taking] += amount
        b = server[exit_[b]]
    sign = 1.0 if downwards else -1.0
    load[source] -= sign * amount
    load[end] += sign * amount
    return amount


@numba.njit(cache=True)
def rebalance(spread, lower, upper, most, whole):  # type: ignore[no-untyped-def]
    """Bring all servers into the band by moving load between live copies, in place; returns whether that succeeded.

    `whole`: whether to continue with the other servers if one cannot be brought into the band.
    """
    load, n = spread.load, len(spread.load)
    chain = Chain(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64))
    over, short = np.concatenate((upper, upper)), np.concatenate((lower, lower))
    done = True
    for s in range(n):
        tries = 0
        while load[s] > upper[s] + 1e-11:
            tries += 1
            moved = push(spread, s, over, True, chain)
            if moved <= 0.0 or tries > most:
                done = False
                break
        while load[s] < lower[s] - 1e-11:
            tries += 1
            moved = push(spread, s, short, False, chain)
            if moved <= 0.0 or tries > most:
                done = False
                break
        if not done and not whole:
            return False
    return done


@numba.njit(cache=True)
def do_without(spread, lower, upper, order, least, most):  # type: ignore[no-untyped-def]
    """Remove copies in the given order if the others can keep all servers in the band; returns how many were removed.

    `least` is the number of copies that every shard must keep.
    """
    gone, server, live, part, load = 0, spread.server, spread.live, spread.part, spread.load
    kept_part, kept_load = part.copy(), load.copy()
    for copy in order:
        j = spread.shard_of[copy]
        count, target = 0, -1
        for other in range(spread.first[j], spread.first[j + 1]):
            if live[other]:
                count += 1
                if other != copy and (target < 0 or load[server[other]] < load[server[target]]):
                    target = other
        if count <= least or target < 0 or not live[copy]:
            continue
        kept_part[:] = part
        kept_load[:] = load
        amount = part[copy]
        live[copy], part[copy] = False, 0.0
        part[target] += amount
        load[server[copy]] -= amount
        load[server[target]] += amount
        if rebalance(spread, lower, upper, most, False):
            gone += 1
        else:
            live[copy] = True
            part[:] = kept_part
            load[:] = kept_load
    return gone
