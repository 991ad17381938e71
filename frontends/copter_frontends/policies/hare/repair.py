"""Repair of a point that nearly satisfies the relaxation's rows, so that it satisfies them (docs/papers/hare.md,
HR15).
"""

from __future__ import annotations

import numpy as np

from copter_frontends.policies.hare.formulation import Relaxation
from copter_frontends.policies.hare.instance import Floats, Ints
from copter_frontends.vocabulary.compilation import compiled

LEAST = 1e-14  # a row with less room than this share of its right-hand side counts as full


def repaired(data: Relaxation, near: Floats, urgency: Floats, least_share: float = 0.0) -> Floats | None:
    """Return a point that satisfies HR4 to HR6 and v >= 0 up to rounding; None if the grid has no room for all work.

    Columns below `least_share` of their upper limit are set to zero, and overfull rows are scaled down. Missing work is
    then added in the earliest intervals with room, on the job's fastest type, for the most urgent jobs first.

    Parameters
    ----------
    near : ndarray (N, L, G)
        GPU seconds; not changed.
    urgency : ndarray (N,)
        Jobs of larger urgency come first; the duals of HR8 are a good choice.
    least_share : float
    """
    room, v = np.zeros_like(data.capacity), near.copy()
    shrink(data.first, data.alpha, data.parallel, data.capacity, least_share, v, room)
    order = np.argsort(-urgency, kind="stable").astype(np.int64)
    lack = fill(order, data.first, data.alpha, data.parallel, room, v)
    return v if lack <= 1e-9 else None


@compiled
def shrink(
    first: Ints, alpha: Floats, parallel: Floats, capacity: Floats, least_share: float, v: Floats, room: Floats
) -> None:
    """Set small columns to zero, then scale the rows of HR5 and HR4 and each job's work to their limits.

    Writes `v`, and the remaining capacities `room` (L, G).
    """
    jobs, intervals, types = v.shape
    used = np.zeros((intervals, types))
    for n in range(jobs):
        for i in range(intervals):
            own = 0.0
            for g in range(types):
                if i < first[n] or v[n, i, g] <= least_share * min(parallel[n, i], 1.0 / max(alpha[n, g], 1e-300)):
                    v[n, i, g] = 0.0
                own += v[n, i, g]
            scale = parallel[n, i] / own if own > parallel[n, i] else 1.0
            for g in range(types):
                v[n, i, g] *= scale
                used[i, g] += v[n, i, g]
    for i in range(intervals):
        for g in range(types):
            room[i, g] = capacity[i, g] / used[i, g] if used[i, g] > capacity[i, g] else 1.0
    for n in range(jobs):
        done = 0.0
        for i in range(first[n], intervals):
            for g in range(types):
                v[n, i, g] *= room[i, g]
                done += alpha[n, g] * v[n, i, g]
        if done > 1.0:
            v[n] /= done
    room[:] = capacity
    for n in range(jobs):
        room -= v[n]


@compiled
def fill(order: Ints, first: Ints, alpha: Floats, parallel: Floats, room: Floats, v: Floats) -> float:
    """Give the jobs in `order` their missing work, earliest intervals first; returns the largest remaining shortage.

    Changes `room` (L, G) and `v` (N, L, G).
    """
    intervals, types = room.shape
    worst = 0.0
    for n in order:
        need = 1.0
        for i in range(first[n], intervals):
            for g in range(types):
                need -= alpha[n, g] * v[n, i, g]
        for i in range(first[n], intervals):
            if need <= 1e-15:
                break
            own, least = parallel[n, i], LEAST * parallel[n, i]
            for g in range(types):
                own -= v[n, i, g]
            while own > least and need > 1e-15:
                best = -1
                for g in range(types):
                    if alpha[n, g] > 0 and room[i, g] > least and (best < 0 or alpha[n, g] > alpha[n, best]):
                        best = g
                if best < 0:
                    break
                take = min(own, room[i, best], need / alpha[n, best])
                v[n, i, best] += take
                room[i, best] -= take
                own -= take
                need -= alpha[n, best] * take
        worst = max(worst, need)
    return worst
