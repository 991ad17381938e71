"""One job's point on the central path at given prices: where the interior-point method starts a new job (HR17)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from copter_frontends.hare.array_groups import Floats, Ints, JobPoint, JobRows

_OUTER = 20  # bisections on the dual of HR8
_BISECTIONS = 40
_NEAR = 0.01  # relative residual of the work, which the interior-point method removes
_INNER = 12  # Newton steps on one interval's row


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", njit(cache=True, nogil=True, error_model="numpy")(function))


@_compiled
def fill_interval(base: Floats, limit: float, target: float, z: Floats) -> float:
    """Dual t > 0 of one interval's row: sum_g target / (base_g + t) + target / t = limit; z_g = base_g + t.

    Columns with an infinite base do not exist. Newton on the reciprocal from the left end, which never overshoots.
    """
    lowest, count = np.inf, 1
    for g in range(base.shape[0]):
        if base[g] < np.inf:
            lowest = min(lowest, base[g])
            count += 1
    start = max(0.0, -lowest)
    t = start + target / limit
    high = start + count * target / limit
    t = max(t, start * (1.0 + 1e-15))
    low = t
    for _ in range(_INNER):
        total, slope = target / t, target / (t * t)
        for g in range(base.shape[0]):
            if base[g] < np.inf:
                part = target / (base[g] + t)
                total += part
                slope += part * part / target
        if abs(total - limit) <= 1e-4 * limit:
            break
        if total < limit:
            high = min(high, t)
        else:
            low = max(low, t)
        t += total * (total - limit) / (limit * slope)
        if not low <= t <= high:
            t = 0.5 * (low + high)
    for g in range(base.shape[0]):
        z[g] = base[g] + t
    return t


@_compiled
def work_at(
    lam: float, nu: float, n: int, jobs: JobRows, price: Floats, target: float, base: Floats, z: Floats, dual: Floats
) -> tuple[float, float]:
    """(work, mean busy time) of the central point at the duals (lam, nu); z and the rows' duals are written."""
    first, start, alpha, parallel = jobs.first[n], jobs.start[n], jobs.alpha[n], jobs.parallel[n]
    work, mean = 0.0, 0.0
    intervals, types = price.shape
    for i in range(first, intervals):
        for g in range(types):
            base[g] = np.inf
            if alpha[g] > 0:
                base[g] = price[i, g] - alpha[g] * (lam - start[i] * nu)
        dual[i] = fill_interval(base, parallel[i], target, z[i])
        for g in range(types):
            if alpha[g] > 0:
                done = alpha[g] * target / z[i, g]
                work += done
                mean += start[i] * done
    return work, mean


@_compiled
def excess_dual(behind: float, weight: float, target: float) -> float:
    """nu in (0, weight) with target / (weight - nu) - target / nu = behind."""
    low, high = 0.0, weight
    for _ in range(60):
        nu = 0.5 * (low + high)
        if target / (weight - nu) - target / nu < behind:
            low = nu
        else:
            high = nu
    return 0.5 * (low + high)


@_compiled
def work_dual(
    lam: float, nu: float, n: int, jobs: JobRows, price: Floats, target: float, base: Floats, z: Floats, dual: Floats
) -> tuple[float, float]:
    """(lam, mean busy time) at which the work is one within `_NEAR`, for a given nu, from a guess of lam.

    The guess is bracketed, then false position with the older end's residual halved (Illinois), on the log of the work.
    """
    work, mean = work_at(lam, nu, n, jobs, price, target, base, z, dual)
    off, step = np.log(work), 0.02 * max(abs(lam), 1e-12)
    low, high, low_off, high_off, last = lam, lam, off, off, 0
    for _ in range(_BISECTIONS):
        if abs(off) <= _NEAR:
            return lam, mean
        if low_off < 0 < high_off:
            break
        lam += -step if off > 0 else step
        step *= 3.0
        work, mean = work_at(lam, nu, n, jobs, price, target, base, z, dual)
        if off > 0:
            high, high_off = low, low_off
            low, low_off = lam, np.log(work)
        else:
            low, low_off = high, high_off
            high, high_off = lam, np.log(work)
        off = np.log(work)
    for _ in range(_BISECTIONS):
        if abs(off) <= _NEAR:
            break
        lam = (low * high_off - high * low_off) / (high_off - low_off)
        work, mean = work_at(lam, nu, n, jobs, price, target, base, z, dual)
        off = np.log(work)
        if off > 0:
            high, high_off = lam, off
            low_off *= 0.5 if last == 1 else 1.0
            last = 1
        else:
            low, low_off = lam, off
            high_off *= 0.5 if last == -1 else 1.0
            last = -1
    return lam, mean


@_compiled
def respond(chosen: Ints, jobs: JobRows, price: Floats, target: float, at: JobPoint, lam: Floats) -> None:
    """Write the central points of the jobs `chosen` at `price` (L, G) and products `target`.

    Guesses of the duals of HR6 and HR8 are read from `lam` and ``excess[3]``. The dual of HR8 that a point implies
    falls as the dual that it was made with rises, so that the right one lies between the two.
    """
    first, alpha, parallel, weight, behind = jobs.first, jobs.alpha, jobs.parallel, jobs.weight, jobs.excess
    v, z, slack, excess = at.v, at.z, at.slack, at.excess
    intervals, types = price.shape
    base = np.zeros(types)
    for n in chosen:
        dual = np.zeros(intervals)
        odds = (excess[3, n] + 1e-3 * weight[n]) / (weight[n] - excess[3, n] + 1e-3 * weight[n])
        low, high = -40.0, 40.0  # of log(nu / (weight - nu))
        nu, mean = 0.0, 0.0
        for _ in range(_OUTER):
            nu = weight[n] * odds / (1.0 + odds)
            lam[n], mean = work_dual(lam[n], nu, n, jobs, price, target, base, z[n], dual)
            wanted = excess_dual(behind[n] + mean, weight[n], target)
            aim, here = np.log(wanted / (weight[n] - wanted)), np.log(odds)
            if abs(aim - here) <= 0.2:
                break
            low, high = max(low, min(aim, here)), min(high, max(aim, here))
            if aim > here:
                low = max(low, here)
            else:
                high = min(high, here)
            odds = np.exp(0.5 * (low + high))
        for i in range(intervals):
            slack[0, n, i], slack[1, n, i] = 1.0, 1.0
            used = 0.0
            for g in range(types):
                v[n, i, g] = 0.0
                if alpha[n, g] > 0 and i >= first[n]:
                    v[n, i, g] = target / z[n, i, g]
                    used += v[n, i, g]
                else:
                    z[n, i, g] = 1.0
            if i >= first[n]:
                slack[0, n, i], slack[1, n, i] = max(parallel[n, i] - used, 1e-3 * target / dual[i]), dual[i]
        late = behind[n] + mean
        surplus = target / nu
        excess[0, n] = late + surplus
        if excess[0, n] <= 0.1 * target / (weight[n] - nu):
            excess[0, n] = target / (weight[n] - nu)
            surplus = excess[0, n] - late
        excess[1, n], excess[2, n], excess[3, n] = weight[n] - nu, surplus, nu
