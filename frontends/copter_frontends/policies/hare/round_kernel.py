"""Compiled passes over jobs and GPU types: the least length of a round, and the jobs' numbers of GPUs."""

from __future__ import annotations

import numpy as np

from copter_frontends.policies.hare.array_groups import Floats, Ints
from copter_frontends.vocabulary.compilation import compiled

BISECTIONS = 60  # halvings of an interval; more than the bits of a double


@compiled
def fits(seconds: float, train: Floats, sync: Floats, tasks: int, gpus: Ints) -> bool:
    """Return whether these GPUs can finish a round of `tasks` tasks within a time."""
    count = 0.0
    for g in range(len(train)):
        if train[g] < np.inf:
            count += max(np.floor((seconds - sync[g]) / train[g] * (1 + 1e-12)), 0.0) * gpus[g]
    return count >= tasks


@compiled
def least_rounds(train: Floats, sync: Floats, tasks: Ints, gpus: Ints, least: Floats) -> None:
    """Write HR2 of each job to `least` (N,), computed by bisection if its fastest type has too few GPUs.

    `gpus` has a row for each job, or one row for all.
    """
    for n in range(len(tasks)):
        here = gpus[min(n, len(gpus) - 1)]
        low, high = np.inf, np.inf
        for g in range(train.shape[1]):
            low = min(low, train[n, g] + sync[n, g])
            high = min(high, train[n, g] * tasks[n] + sync[n, g])
        least[n] = low
        if low == np.inf or fits(low, train[n], sync[n], tasks[n], here):
            continue
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            if fits(middle, train[n], sync[n], tasks[n], here):
                high = middle
            else:
                low = middle
        least[n] = low


@compiled
def kept_or_wanted(
    order: Ints, stays: Ints, held: Ints, wanted: Ints, tasks: Ints, train: Floats, left: Ints, result: Ints
) -> None:
    """Return the GPUs of each job in turn: its current ones or its wanted ones, as far as available.

    Jobs without GPUs then get remaining ones, of their fastest types first. Writes `left` (G,) and `result` (N, G).
    """
    for n in order:
        keeps = stays[n] != 0 and np.all(held[n] <= left)
        for g in range(len(left)):
            result[n, g] = held[n, g] if keeps else min(wanted[n, g], left[g])
            left[g] -= result[n, g]
    for n in order:
        if result[n].any():
            continue
        want = tasks[n]
        while want > 0:
            best = -1
            for g in range(len(left)):
                if left[g] > 0 and train[n, g] < np.inf and (best < 0 or train[n, g] < train[n, best]):
                    best = g
            if best < 0:
                break
            take = min(want, left[best])
            result[n, best] += take
            left[best] -= take
            want -= take
        if not left.any():
            break
