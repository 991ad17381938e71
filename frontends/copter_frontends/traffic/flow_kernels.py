"""Kernels of the exact shim: loads by compensated sums, flows scaled to fit, greedy filling.

Sums use Neumaier's method: the result is the exact sum up to two roundings, for any number of terms.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def add_up(total, rest, at, value):  # type: ignore[no-untyped-def]
    """Add a term to a compensated sum, in place."""
    before = total[at]
    grown = before + value
    if abs(before) >= abs(value):
        rest[at] += (before - grown) + value
    else:
        rest[at] += (value - grown) + before
    total[at] = grown


@numba.njit(cache=True)
def compensated(first, start, arc, flow, n_arcs):  # type: ignore[no-untyped-def]
    """Return (flow of every pair, load of every arc), each exact up to two roundings."""
    pairs = len(first) - 1
    served, served_rest, load, load_rest = np.zeros(pairs), np.zeros(pairs), np.zeros(n_arcs), np.zeros(n_arcs)
    for pair in range(pairs):
        for path in range(first[pair], first[pair + 1]):
            if flow[path] == 0.0:
                continue
            add_up(served, served_rest, pair, flow[path])
            for entry in range(start[path], start[path + 1]):
                add_up(load, load_rest, arc[entry], flow[path])
    return served + served_rest, load + load_rest


@numba.njit(cache=True)
def stranded_pairs(first, start, arc, capacity):  # type: ignore[no-untyped-def]
    """Mark pairs without a path whose links all have capacity."""
    found = np.ones(len(first) - 1, np.bool_)
    for pair in range(len(first) - 1):
        for path in range(first[pair], first[pair + 1]):
            alive = True
            for entry in range(start[path], start[path + 1]):
                if capacity[arc[entry]] <= 0.0:
                    alive = False
                    break
            if alive:
                found[pair] = False
                break
    return found


@numba.njit(cache=True)
def scale_to_fit(first, start, arc, flow, served, demand, load, capacity, keep):  # type: ignore[no-untyped-def]
    """Scale paths, in place, by their worst link and their demand; returns how many were scaled.

    An exceeded link or demand is scaled to the share `keep`, a little less than one, of its capacity or size.
    """
    scaled = 0
    factor = np.ones(len(capacity))
    for e in range(len(capacity)):
        if load[e] > capacity[e] * keep:
            factor[e] = capacity[e] / load[e] * keep
    for pair in range(len(first) - 1):
        own = 1.0
        if served[pair] > demand[pair] * keep:
            own = demand[pair] / served[pair] * keep
        for path in range(first[pair], first[pair + 1]):
            if flow[path] == 0.0:
                continue
            worst = own
            for entry in range(start[path], start[path + 1]):
                worst = min(worst, factor[arc[entry]])
            if worst < 1.0:
                flow[path] *= worst
                scaled += 1
    return scaled


@numba.njit(cache=True)
def fill(order, first, start, arc, flow, want, room, least):  # type: ignore[no-untyped-def]
    """Add flow to the pairs of `order`, path by path, as far as their demands and the links allow, in place.

    Amounts up to `least` are skipped. Returns the total flow added.
    """
    given = 0.0
    for pair in order:
        for path in range(first[pair], first[pair + 1]):
            if want[pair] <= least:
                break
            amount = want[pair]
            for entry in range(start[path], start[path + 1]):
                amount = min(amount, room[arc[entry]])
                if amount <= least:
                    break
            if amount > least:
                flow[path] += amount
                want[pair] -= amount
                given += amount
                for entry in range(start[path], start[path + 1]):
                    room[arc[entry]] -= amount
    return given


@numba.njit(cache=True)
def dead_paths(start, arc, capacity):  # type: ignore[no-untyped-def]
    """Return, for each path, whether it has a link without capacity."""
    found = np.zeros(len(start) - 1, np.bool_)
    for path in range(len(start) - 1):
        for entry in range(start[path], start[path + 1]):
            if capacity[arc[entry]] <= 0.0:
                found[path] = True
                break
    return found


@numba.njit(cache=True)
def largest_remainders(first, ideal, buckets, weight):  # type: ignore[no-untyped-def]
    """Round `ideal` to whole numbers by largest remainders, in place; it sums to `buckets` or zero in every pair."""
    for pair in range(len(first) - 1):
        left, total = buckets, 0.0
        for path in range(first[pair], first[pair + 1]):
            total += ideal[path]
            weight[path] = int(np.floor(ideal[path] + 1e-9))
            left -= weight[path]
        if total <= 0.0:
            continue
        for _ in range(left):
            best, most = -1, -1.0
            for path in range(first[pair], first[pair + 1]):
                rest = ideal[path] - weight[path]
                if ideal[path] > 0.0 and rest > most + 1e-12:
                    best, most = path, rest
            weight[best] += 1
