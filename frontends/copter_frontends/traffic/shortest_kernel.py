"""Kernel of the k shortest loopless paths (TE7): Yen's algorithm, with bounds in place of searches.

One search from the target gives the distances of all sources, and these bound the length of every deviation from below.
A deviation is computed only when its bound is the smallest one. Usually the path behind the bound has no loop, so no
search is needed.
"""

from __future__ import annotations

import numba
import numpy as np


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
    taken, length, turn = np.empty((most, n), np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    bound, parent, at = np.empty(most * n, np.int64), np.empty(most * n, np.int64), np.empty(most * n, np.int64)
    held, exact = np.empty((most * n, n), np.int64), np.zeros(most * n, np.bool_)
    on_prefix, allowed = np.zeros(n, np.bool_), np.ones(len(neighbour), np.bool_)
    before, queue = np.full(n, -1, np.int64), np.empty(n, np.int64)
    paths, entries = 0, 0
    for which in range(len(sources)):
        s = sources[which]
        if s == t or hops_to[s] < 0:
            continue
        length[0] = follow(neighbour, following, s, t, taken[0], 0)
        turn[0], found, waiting = 0, 1, 0
        while found < most:
            waiting = deviations(
                start, neighbour, arc, hops_to, taken, length, turn, found, s, bound, parent, at, exact, waiting,
                on_prefix, allowed,
            )  # fmt: skip
            best = next_exact(
                start, neighbour, arc, hops_to, following, taken, length, found, s, t, bound, parent, at, exact,
                held, waiting, on_prefix, allowed, before, queue,
            )  # fmt: skip
            if best < 0:
                break
            length[found], turn[found] = bound[best], at[best]
            taken[found, : bound[best]] = held[best, : bound[best]]
            bound[best] = -1
            found += 1
        for path in range(found):
            for hop in range(length[path]):
                arcs[entries + hop] = arc[taken[path, hop]]
            entries += length[path]
            hops[paths] = length[path]
            paths += 1
        count[which] = found
    return count, hops[:paths].copy(), arcs[:entries].copy()


@numba.njit(cache=True)
def follow(neighbour, following, u, t, into, end):  # type: ignore[no-untyped-def]
    """Write the arcs of the shortest path from u to t; returns the new end."""
    while u != t:
        place = following[u]
        into[end] = place
        end += 1
        u = neighbour[place]
    return end


@numba.njit(cache=True)
def mark(neighbour, arc, taken, length, found, s, path, spur, on_prefix, allowed, setting):  # type: ignore[no-untyped-def]
    """Mark (or unmark) the nodes before a spur node and the arcs by which known paths leave it; returns the spur
    node.
    """
    u = s
    for hop in range(spur):
        on_prefix[u] = setting
        u = neighbour[taken[path, hop]]
    for other in range(found):
        if length[other] <= spur:
            continue
        same = True
        for hop in range(spur):
            if taken[other, hop] != taken[path, hop]:
                same = False
                break
        if same:
            allowed[taken[other, spur]] = not setting
    return u


@numba.njit(cache=True)
def deviations(  # type: ignore[no-untyped-def]
    start, neighbour, arc, hops_to, taken, length, turn, found, s, bound, parent, at, exact, waiting, on_prefix, allowed
):
    """Add the deviations from the last path with lower bounds on their lengths; returns their number."""
    path = found - 1
    for spur in range(turn[path], length[path]):
        for other in range(waiting):  # the arc by which this path leaves the spur node is now excluded
            if bound[other] >= 0 and at[other] == spur and parent[other] != path:
                same = True
                for hop in range(spur):
                    if taken[parent[other], hop] != taken[path, hop]:
                        same = False
                        break
                if same:
                    bound[other] = -1
        u = mark(neighbour, arc, taken, length, found, s, path, spur, on_prefix, allowed, True)
        least = -1
        for place in range(start[u], start[u + 1]):
            v = neighbour[place]
            if arc[place] >= 0 and allowed[place] and not on_prefix[v] and hops_to[v] >= 0:
                reach = spur + 1 + hops_to[v]
                if least < 0 or reach < least:
                    least = reach
        mark(neighbour, arc, taken, length, found, s, path, spur, on_prefix, allowed, False)
        if least >= 0:
            bound[waiting], parent[waiting], at[waiting], exact[waiting] = least, path, spur, False
            waiting += 1
    return waiting


@numba.njit(cache=True)
def next_exact(  # type: ignore[no-untyped-def]
    start, neighbour, arc, hops_to, following, taken, length, found, s, t, bound, parent, at, exact, held, waiting,
    on_prefix, allowed, before, queue,
):  # fmt: skip
    """Return the shortest deviation, computed exactly; -1 if there is none."""
    while True:
        best = -1
        for other in range(waiting):
            if bound[other] >= 0 and (best < 0 or bound[other] < bound[best]):
                best = other
        if best < 0 or exact[best]:
            return best
        spur, path = at[best], parent[best]
        u = mark(neighbour, arc, taken, length, found, s, path, spur, on_prefix, allowed, True)
        on_prefix[u] = True
        held[best, :spur] = taken[path, :spur]
        end = direct(start, neighbour, arc, hops_to, following, u, t, spur, bound[best], on_prefix, allowed, held[best])
        if end < 0:
            end = searched(start, neighbour, arc, u, t, spur, on_prefix, allowed, held[best], before, queue)
        mark(neighbour, arc, taken, length, found, s, path, spur, on_prefix, allowed, False)
        on_prefix[u] = False
        bound[best], exact[best] = end, True


@numba.njit(cache=True)
def direct(start, neighbour, arc, hops_to, following, u, t, spur, bound, on_prefix, allowed, into):  # type: ignore[no-untyped-def]
    """Write the path of the bound if it avoids the prefix; returns the new end, or -1."""
    for place in range(start[u], start[u + 1]):
        v = neighbour[place]
        if arc[place] < 0 or not allowed[place] or on_prefix[v] or hops_to[v] < 0 or spur + 1 + hops_to[v] != bound:
            continue
        w, meets = v, False
        while w != t:
            w = neighbour[following[w]]
            if on_prefix[w]:
                meets = True
                break
        if not meets:
            into[spur] = place
            return follow(neighbour, following, v, t, into, spur + 1)
    return -1


@numba.njit(cache=True)
def searched(start, neighbour, arc, u, t, spur, on_prefix, allowed, into, before, queue):  # type: ignore[no-untyped-def]
    """Write the shortest path from u that avoids the prefix, by search; -1 if there is none."""
    before[:] = -1
    queue[0], first, last = u, 0, 1
    while first < last and before[t] < 0:
        w = queue[first]
        first += 1
        for place in range(start[w], start[w + 1]):
            v = neighbour[place]
            if arc[place] < 0 or on_prefix[v] or before[v] >= 0 or (w == u and not allowed[place]):
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
