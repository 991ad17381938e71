"""Kernel of the arc-disjoint rule for paths (TE6): a unit maximum flow from every source, decomposed.

A graph is given as lists of neighbours: entries ``start[u]`` to ``start[u + 1] - 1`` are those of node u. `arc` is the
number of the arc to the neighbour, -1 if only the opposite arc exists; `reverse` is the index of u's entry in the
neighbour's list.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def paths_from(start, neighbour, arc, reverse, s, targets, most):  # type: ignore[no-untyped-def]
    """Return (paths of each target, hops of each path, arcs): maximum flows of unit arcs from s, decomposed into
    paths.
    """
    n = len(start) - 1
    count = np.zeros(len(targets), np.int64)
    hops = np.empty(most * len(targets), np.int64)
    arcs = np.empty(most * len(targets) * n, np.int64)
    flow, paths, entries = np.zeros(len(neighbour), np.int8), 0, 0
    for at in range(len(targets)):
        t = targets[at]
        flow[:] = 0
        for _ in range(min(start[s + 1] - start[s], start[t + 1] - start[t])):
            if not augment(start, neighbour, arc, reverse, flow, s, t):
                break
        own, length = decompose(start, neighbour, flow, s, t)
        order = np.argsort(length, kind="mergesort")[:most]
        for path in order:
            first = entries
            entries = cut_loops(own[path, : length[path]], arc, neighbour, s, arcs, entries)
            hops[paths] = entries - first
            paths += 1
        count[at] = len(order)
    return count, hops[:paths].copy(), arcs[:entries].copy()


@numba.njit(cache=True)
def augment(start, neighbour, arc, reverse, flow, s, t):  # type: ignore[no-untyped-def]
    """Send one more unit along a path found by bidirectional search; returns whether there is one."""
    n = len(start) - 1
    # Entries of the arcs by which each side of the search reached a node; -1: not reached; -2: the side's own end.
    before, after = np.full(n, -1), np.full(n, -1)
    before[s], after[t] = -2, -2
    ahead, back = np.empty(n, np.int64), np.empty(n, np.int64)
    ahead[0], back[0] = s, t
    ahead_first, ahead_end, back_first, back_end = 0, 1, 0, 1
    meeting = -1
    while meeting < 0:
        forwards = ahead_end - ahead_first <= back_end - back_first
        queue, first, end = (ahead, ahead_first, ahead_end) if forwards else (back, back_first, back_end)
        entered, other = (before, after) if forwards else (after, before)
        last = end
        for i in range(first, end):
            u = queue[i]
            for place in range(start[u], start[u + 1]):
                v = neighbour[place]
                used = place if forwards else reverse[place]
                if entered[v] == -1 and flow[used] < (arc[used] >= 0):  # without an arc, flow can only be taken back
                    entered[v] = used
                    if other[v] != -1:
                        meeting = v
                        break
                    queue[last] = v
                    last += 1
            if meeting >= 0:
                break
        if meeting < 0 and last == end:
            return False
        if forwards:
            ahead_first, ahead_end = end, last
        else:
            back_first, back_end = end, last
    v = meeting
    while v != s:
        place = before[v]
        flow[place] += 1
        flow[reverse[place]] -= 1
        v = neighbour[reverse[place]]
    v = meeting
    while v != t:
        place = after[v]
        flow[place] += 1
        flow[reverse[place]] -= 1
        v = neighbour[place]
    return True


@numba.njit(cache=True)
def decompose(start, neighbour, flow, s, t):  # type: ignore[no-untyped-def]
    """Return (entries of each path's arcs, (paths, most); lengths): from each node, follow the last arc with flow
    left.
    """
    degree = start[s + 1] - start[s]
    own, length = np.empty((degree, len(neighbour)), np.int64), np.zeros(degree, np.int64)
    left = start[1:].copy()  # the unused arcs of a node are those before this entry
    paths = 0
    for first in range(start[s], start[s + 1]):
        if flow[first] < 1:
            continue
        own[paths, 0], length[paths] = first, 1
        u = neighbour[first]
        while u != t:
            place = left[u] - 1
            while flow[place] < 1:
                place -= 1
            left[u] = place
            own[paths, length[paths]] = place
            length[paths] += 1
            u = neighbour[place]
        paths += 1
    return own[:paths], length[:paths]


@numba.njit(cache=True)
def cut_loops(places, arc, neighbour, s, arcs, end):  # type: ignore[no-untyped-def]
    """Write a path's arcs from `end` on, without loops; returns the new end."""
    first = end
    nodes = np.empty(len(places) + 1, np.int64)
    nodes[0] = s
    for place in places:
        v = neighbour[place]
        arcs[end] = arc[place]
        end += 1
        for visited in range(end - first):
            if nodes[visited] == v:
                end = first + visited
                break
        nodes[end - first] = v
    return end
