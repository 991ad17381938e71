"""Kernel of the k shortest loopless paths (TE7): Yen's algorithm, with bounds in place of searches.

One search from the target gives the distances of all sources, and these bound the length of every deviation from below.
A deviation is computed only when its bound is the smallest one. Usually the path behind the bound has no loop, so no
search is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Roads(NamedTuple):
    """The arcs, node by node, and how each node reaches the target.

    Attributes
    ----------
    start, neighbour, arc : ndarray
        Entries of each node, and the node and the arc of each entry; -1 for an arc that is only used backwards.
    hops_to, following : ndarray (nodes,)
        Hops to the target, and the entry by which the shortest path goes on; -1 if it is unreachable.
    """

    start: Ints
    neighbour: Ints
    arc: Ints
    hops_to: Ints
    following: Ints


class Paths(NamedTuple):
    """The paths of one source so far: entries, hops, and where each leaves the path that it deviates from."""

    taken: Ints
    length: Ints
    turn: Ints


class Deviations(NamedTuple):
    """Candidates for the next path.

    Attributes
    ----------
    bound : ndarray (deviations,)
        Least hops, or the hops themselves if `exact`; -1 once it is used or excluded.
    parent, at : ndarray (deviations,)
        The path that it leaves, and after how many hops.
    exact : ndarray (deviations,) bool
    held : ndarray (deviations, nodes)
        Entries of an exact one.
    """

    bound: Ints
    parent: Ints
    at: Ints
    exact: Bools
    held: Ints


class Scratch(NamedTuple):
    """Marks of nodes and entries that a deviation must avoid, and the arrays of a search."""

    on_prefix: Bools
    allowed: Bools
    before: Ints
    queue: Ints


@numba.njit(cache=True)
def distances_to(start, neighbour, backward, t):  # type: ignore[no-untyped-def]
    """Return (hops, next arc) of every node towards t; -1 if unreachable."""
    n = len(start) - 1
    hops, following = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    queue = np.empty(n, np.int64)
    queue[0], first, last, hops[t] = t, 0, 1, 0
    while first < last:
        u = queue[first]
        first += 1
        for place in range(start[u], start[u + 1]):
            way = backward[place]  # entry of the arc from the neighbour to u
            v = neighbour[place]
            if way >= 0 and hops[v] < 0:
                hops[v], following[v] = hops[u] + 1, way
                queue[last] = v
                last += 1
    return hops, following


@numba.njit(cache=True)
def k_shortest(start, neighbour, arc, backward, t, sources, most):  # type: ignore[no-untyped-def]
    """Return (paths of each source, hops of each path, arcs): up to `most` shortest paths to t, by hops."""
    n = len(start) - 1
    hops_to, following = distances_to(start, neighbour, backward, t)
    count = np.zeros(len(sources), np.int64)
    hops = np.empty(most * len(sources), np.int64)
    arcs = np.empty(most * len(sources) * n, np.int64)
    roads = Roads(start, neighbour, arc, hops_to, following)
    known = Paths(np.empty((most, n), np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64))
    new = Deviations(
        np.empty(most * n, np.int64), np.empty(most * n, np.int64), np.empty(most * n, np.int64),
        np.zeros(most * n, np.bool_), np.empty((most * n, n), np.int64),
    )  # fmt: skip
    scratch = Scratch(
        np.zeros(n, np.bool_), np.ones(len(neighbour), np.bool_), np.full(n, -1, np.int64), np.empty(n, np.int64)
    )
    paths, entries = 0, 0
    for which in range(len(sources)):
        s = sources[which]
        if s == t or hops_to[s] < 0:
            continue
        known.length[0] = follow(roads, s, t, known.taken[0], 0)
        known.turn[0], found, waiting = 0, 1, 0
        while found < most:
            waiting = deviate(roads, known, found, s, new, waiting, scratch)
            best = next_exact(roads, known, found, s, t, new, waiting, scratch)
            if best < 0:
                break
            known.length[found], known.turn[found] = new.bound[best], new.at[best]
            known.taken[found, : new.bound[best]] = new.held[best, : new.bound[best]]
            new.bound[best] = -1
            found += 1
        for path in range(found):
            for hop in range(known.length[path]):
                arcs[entries + hop] = arc[known.taken[path, hop]]
            entries += known.length[path]
            hops[paths] = known.length[path]
            paths += 1
        count[which] = found
    return count, hops[:paths].copy(), arcs[:entries].copy()


@numba.njit(cache=True)
def follow(roads, u, t, into, end):  # type: ignore[no-untyped-def]
    """Write the arcs of the shortest path from u to t; returns the new end."""
    while u != t:
        place = roads.following[u]
        into[end] = place
        end += 1
        u = roads.neighbour[place]
    return end


@numba.njit(cache=True, inline="always")  # a call would count the references to every array
def mark(roads, known, found, s, path, spur, scratch, setting):  # type: ignore[no-untyped-def]
    """Mark (or unmark) the nodes before a spur node and the arcs by which known paths leave it; returns the spur
    node.
    """
    u, taken = s, known.taken
    for hop in range(spur):
        scratch.on_prefix[u] = setting
        u = roads.neighbour[taken[path, hop]]
    for other in range(found):
        if known.length[other] <= spur:
            continue
        same = True
        for hop in range(spur):
            if taken[other, hop] != taken[path, hop]:
                same = False
                break
        if same:
            scratch.allowed[taken[other, spur]] = not setting
    return u


@numba.njit(cache=True)
def deviate(roads, known, found, s, new, waiting, scratch):  # type: ignore[no-untyped-def]
    """Add the deviations from the last path with lower bounds on their lengths; returns their number."""
    path, taken, bound, parent, at = found - 1, known.taken, new.bound, new.parent, new.at
    start, neighbour, hops_to = roads.start, roads.neighbour, roads.hops_to
    for spur in range(known.turn[path], known.length[path]):
        for other in range(waiting):  # the arc by which this path leaves the spur node is now excluded
            if bound[other] >= 0 and at[other] == spur and parent[other] != path:
                same = True
                for hop in range(spur):
                    if taken[parent[other], hop] != taken[path, hop]:
                        same = False
                        break
                if same:
                    bound[other] = -1
        u = mark(roads, known, found, s, path, spur, scratch, True)
        least = -1
        for place in range(start[u], start[u + 1]):
            v = neighbour[place]
            if roads.arc[place] >= 0 and scratch.allowed[place] and not scratch.on_prefix[v] and hops_to[v] >= 0:
                reach = spur + 1 + hops_to[v]
                if least < 0 or reach < least:
                    least = reach
        mark(roads, known, found, s, path, spur, scratch, False)
        if least >= 0:
            bound[waiting], parent[waiting], at[waiting], new.exact[waiting] = least, path, spur, False
            waiting += 1
    return waiting


@numba.njit(cache=True)
def next_exact(roads, known, found, s, t, new, waiting, scratch):  # type: ignore[no-untyped-def]
    """Return the shortest deviation, computed exactly; -1 if there is none."""
    bound, exact, held = new.bound, new.exact, new.held
    while True:
        best = -1
        for other in range(waiting):
            if bound[other] >= 0 and (best < 0 or bound[other] < bound[best]):
                best = other
        if best < 0 or exact[best]:
            return best
        spur, path = new.at[best], new.parent[best]
        u = mark(roads, known, found, s, path, spur, scratch, True)
        scratch.on_prefix[u] = True
        held[best, :spur] = known.taken[path, :spur]
        end = direct(roads, u, t, spur, bound[best], scratch, held[best])
        if end < 0:
            end = searched(roads, u, t, spur, scratch, held[best])
        mark(roads, known, found, s, path, spur, scratch, False)
        scratch.on_prefix[u] = False
        bound[best], exact[best] = end, True


@numba.njit(cache=True)
def direct(roads, u, t, spur, bound, scratch, into):  # type: ignore[no-untyped-def]
    """Write the path of the bound if it avoids the prefix; returns the new end, or -1."""
    neighbour, hops_to, on_prefix = roads.neighbour, roads.hops_to, scratch.on_prefix
    for place in range(roads.start[u], roads.start[u + 1]):
        v = neighbour[place]
        if roads.arc[place] < 0 or not scratch.allowed[place] or on_prefix[v]:
            continue
        if hops_to[v] < 0 or spur + 1 + hops_to[v] != bound:
            continue
        w, meets = v, False
        while w != t:
            w = neighbour[roads.following[w]]
            if on_prefix[w]:
                meets = True
                break
        if not meets:
            into[spur] = place
            return follow(roads, v, t, into, spur + 1)
    return -1


@numba.njit(cache=True)
def searched(roads, u, t, spur, scratch, into):  # type: ignore[no-untyped-def]
    """Write the shortest path from u that avoids the prefix, by search; -1 if there is none."""
    start, arc, allowed, before, queue = roads.start, roads.arc, scratch.allowed, scratch.before, scratch.queue
    before[:] = -1
    queue[0], first, last = u, 0, 1
    while first < last and before[t] < 0:
        w = queue[first]
        first += 1
        for place in range(start[w], start[w + 1]):
            v = roads.neighbour[place]
            if arc[place] < 0 or scratch.on_prefix[v] or before[v] >= 0 or (w == u and not allowed[place]):
                continue
            before[v] = place
            queue[last] = v
            last += 1
    if before[t] < 0:
        return -1
    # The path is written backwards, then reversed. The lists give the source node of each entry.
    end, v = spur, t
    while v != u:
        place = before[v]
        into[end] = place
        end += 1
        v = np.searchsorted(start, place, side="right") - 1
    for i in range((end - spur) // 2):
        into[spur + i], into[end - 1 - i] = into[end - 1 - i], into[spur + i]
    return end
