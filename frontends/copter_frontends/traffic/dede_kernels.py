"""Kernels of DeDe's two half steps: each link by itself, then each source by itself."""

from __future__ import annotations

import numba

SWEEPS = 200
"""Most sweeps of coordinate descent over one source's paths in a half step; usually ten reach the tolerance."""

TOLERANCE = 1e-6
"""A source's half step ends when no path's flow changes by more than this share of the largest capacity."""

BISECTIONS = 60
"""Halvings of the interval that contains a link's excess: more than the bits of a double."""


@numba.njit(cache=True)
def links_step(first, cell, wanted, capacity, price, given):  # type: ignore[no-untyped-def]
    """Divide every link's capacity among the sources, in place (TE19).

    A link's cells get ``x = max(v - t, 0)``, where ``v`` is `wanted` and ``t = max(sum x - capacity + price, 0)``; the
    link's price becomes ``t``.
    """
    for link in range(len(capacity)):
        total, largest = 0.0, 0.0
        for at in range(first[link], first[link + 1]):
            value = wanted[cell[at]]
            if value > 0.0:
                total += value
                largest = max(largest, value)
        low, high = 0.0, 0.0
        if total - capacity[link] + price[link] > 0.0:
            high = total - capacity[link] + price[link]
            for _ in range(BISECTIONS):
                middle = 0.5 * (low + high)
                used = 0.0
                for at in range(first[link], first[link + 1]):
                    used += max(wanted[cell[at]] - middle, 0.0)
                if used - capacity[link] + price[link] > middle:
                    low = middle
                else:
                    high = middle
        price[link] = high
        for at in range(first[link], first[link + 1]):
            given[cell[at]] = max(wanted[cell[at]] - high, 0.0)


@numba.njit(cache=True)
def sources_step(first_pair, first, start, cell, demand, price, target, worth, scale, flow, load):  # type: ignore[no-untyped-def]
    """Choose each source's flows, in place (TE20), by coordinate descent from the present flows.

    Minimises ``-worth sum f + 1/2 sum_d max(F_d - demand_d + price_d, 0)^2 + 1/2 sum_e (load_e - target_e)^2`` over
    f >= 0; `load` is kept equal to the flow over each cell, and `price` becomes the demands' new price.
    """
    for source in range(len(first_pair) - 1):
        for _ in range(SWEEPS):
            largest = 0.0
            for pair in range(first_pair[source], first_pair[source + 1]):
                served = 0.0
                for path in range(first[pair], first[pair + 1]):
                    served += flow[path]
                for path in range(first[pair], first[pair + 1]):
                    hops = start[path + 1] - start[path]
                    pull = worth
                    for entry in range(start[path], start[path + 1]):
                        pull -= load[cell[entry]] - target[cell[entry]]
                    over = served - demand[pair] + price[pair]
                    step = pull / hops
                    if over + step > 0.0:  # the square of the demand's excess adds curvature
                        step = max((pull - over) / (hops + 1.0), min(-over, step))
                    step = max(step, -flow[path])
                    if step != 0.0:
                        flow[path] += step
                        served += step
                        for entry in range(start[path], start[path + 1]):
                            load[cell[entry]] += step
                        largest = max(largest, abs(step))
            if largest <= TOLERANCE * scale:
                break
        for pair in range(first_pair[source], first_pair[source + 1]):
            served = 0.0
            for path in range(first[pair], first[pair + 1]):
                served += flow[path]
            price[pair] = max(served - demand[pair] + price[pair], 0.0)


@numba.njit(cache=True)
def repair_step(first, start, cell, link_of, demand, capacity, flow, load, total, share):  # type: ignore[no-untyped-def]
    """Do one repair step in place: links distribute capacity by load; demands, then paths are scaled down."""
    total[:] = 0.0
    for at in range(len(load)):
        total[link_of[at]] += load[at]
    for at in range(len(load)):
        link = link_of[at]
        share[at] = load[at] / total[link] * capacity[link] if total[link] > 0.0 else 0.0
    load[:] = 0.0
    for pair in range(len(first) - 1):
        served = 0.0
        for path in range(first[pair], first[pair + 1]):
            served += flow[path]
        if served > demand[pair]:
            for path in range(first[pair], first[pair + 1]):
                flow[path] *= demand[pair] / served
        for path in range(first[pair], first[pair + 1]):
            for entry in range(start[path], start[path + 1]):
                load[cell[entry]] += flow[path]
    for path in range(len(start) - 1):
        worst = 1.0
        for entry in range(start[path], start[path + 1]):
            if share[cell[entry]] > 0.0:
                worst = max(worst, load[cell[entry]] / share[cell[entry]])
        flow[path] /= worst
    load[:] = 0.0
    for path in range(len(start) - 1):
        for entry in range(start[path], start[path + 1]):
            load[cell[entry]] += flow[path]
