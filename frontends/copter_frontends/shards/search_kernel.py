"""The kernel of the local search: the worst server's best move, then its best swap, until nothing improves."""

from __future__ import annotations

import numba

LEAST_GAIN = 1e-9
"""A move must gain at least this, in mean loads, so that rounding errors cannot cause endless moves."""


@numba.njit(cache=True)
def outside(load, band):  # type: ignore[no-untyped-def]
    """Return how far a load, in mean loads, is outside the band."""
    return max(load - (1.0 + band), 0.0) + max((1.0 - band) - load, 0.0)


@numba.njit(cache=True)
def best_move(worst, home, first, load, size, total, used, memory, up, band, price):  # type: ignore[no-untyped-def]
    """Return (gain, shard, server) of the best single move from or to the worst server."""
    gain, best, goal = LEAST_GAIN, -1, -1
    for shard in range(len(home)):
        here = home[shard]
        for target in range(len(total)):
            if not up[target] or target == here or (here != worst and target != worst):
                continue
            if used[target] + size[shard] > memory[target]:
                continue
            saved = outside(total[here], band) + outside(total[target], band)
            saved -= outside(total[here] - load[shard], band) + outside(total[target] + load[shard], band)
            saved += price * ((here != first[shard]) - (target != first[shard]))
            if saved > gain:
                gain, best, goal = saved, shard, target
    return gain, best, goal


@numba.njit(cache=True)
def best_swap(worst, home, first, load, size, total, used, memory, band, price):  # type: ignore[no-untyped-def]
    """Return (gain, shard of the worst server, shard of another server) of the best exchange of two shards."""
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
def search(home, first, load, size, total, used, memory, up, stuck, band, price, most):  # type: ignore[no-untyped-def]
    """Improve `home` in place, at most `most` times; returns (number of steps, whether no step improves)."""
    for made in range(most):
        while True:
            worst, distance = -1, 0.0
            for server in range(len(total)):
                if up[server] and not stuck[server] and outside(total[server], band) > distance:
                    worst, distance = server, outside(total[server], band)
            if worst < 0:
                return made, True
            _, shard, goal = best_move(worst, home, first, load, size, total, used, memory, up, band, price)
            partner = -1
            if shard < 0:
                _, shard, partner = best_swap(worst, home, first, load, size, total, used, memory, band, price)
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
