"""The certified bound: what any prices of GPU seconds prove about the best schedule (docs/hare.md, HR11 and HR12)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from copter_frontends.hare.instance import Floats
from copter_frontends.hare.relaxation import Relaxation

_STEPS = 26  # halvings of the bracket of a job's price

Ints = NDArray[np.int64]


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", njit(cache=True, nogil=True, error_model="numpy")(function))


@_compiled
def job_value(
    lam: float, nu: float, first: int, start: Floats, alpha: Floats, parallel: Floats, price: Floats
) -> tuple[float, float]:
    """(value, slope in lam) of HR12 for one job, without the constant nu h."""
    value, slope = lam, 1.0
    for i in range(first, price.shape[0]):
        best, share = 0.0, 0.0
        worth = lam - start[i] * nu
        for g in range(price.shape[1]):
            margin = alpha[g] * worth - price[i, g]
            if margin > best:
                best, share = margin, alpha[g]
        value -= parallel[i] * best
        slope -= parallel[i] * share
    return value, slope


@_compiled
def best_value(
    lam: float, nu: float, first: int, start: Floats, alpha: Floats, parallel: Floats, price: Floats
) -> tuple[float, float]:
    """(largest value over lam found, its lam), by bracketing from a guess and halving."""
    value, slope = job_value(lam, nu, first, start, alpha, parallel, price)
    best, at = value, lam
    step = 1e-3 * max(abs(lam), 1e-12) * (1.0 if slope > 0 else -1.0)
    low, high, rising = lam, lam, slope > 0
    for _ in range(60):
        probe = lam + step
        value, slope = job_value(probe, nu, first, start, alpha, parallel, price)
        if value > best:
            best, at = value, probe
        if rising:
            if slope <= 0:
                high = probe
                break
            low = probe
        else:
            if slope > 0:
                low = probe
                break
            high = probe
        step *= 4.0
    for _ in range(_STEPS):
        probe = 0.5 * (low + high)
        value, slope = job_value(probe, nu, first, start, alpha, parallel, price)
        if value > best:
            best, at = value, probe
        if slope > 0:
            low = probe
        else:
            high = probe
        if high - low <= 1e-9 * abs(high):
            break
    return best, at


@_compiled
def job_bounds(
    low: int, high: int, first: Ints, start: Floats, alpha: Floats, parallel: Floats, weight: Floats, excess: Floats,
    price: Floats, lam: Floats, nu: Floats, found: Floats,
) -> None:  # fmt: skip
    """Best value of each job found from the guesses (lam, nu): at that nu, and at the nearer end of its range."""
    for n in range(low, high):
        own = min(max(nu[n], 0.0), weight[n])
        value, at = best_value(lam[n], own, first[n], start[n], alpha[n], parallel[n], price)
        best = value + own * excess[n]
        end = weight[n] if own > 0.5 * weight[n] else 0.0
        guess = at + (end - own) * start[n, first[n]]
        value, _ = best_value(guess, end, first[n], start[n], alpha[n], parallel[n], price)
        found[n] = max(best, value + end * excess[n])


def certified_bound(
    data: Relaxation, price: Floats, lam: Floats, nu: Floats, pool: ThreadPoolExecutor | None = None, ranges: int = 16
) -> float:
    """A value that no schedule beats (HR11), constant included, whatever the arguments are.

    Parameters
    ----------
    data : Relaxation
    price : ndarray (L, G)
        Prices of GPU seconds; negative ones are taken as zero.
    lam, nu : ndarray (N,)
        Guesses of the duals of each job's work and excess rows; they are improved job by job.
    pool : ThreadPoolExecutor, optional
    """
    n = len(data.weight)
    y, found = np.maximum(price, 0.0), np.zeros(n)
    rest = (data.first, data.start, data.alpha, data.parallel, data.weight, data.excess, y, lam, nu, found)
    spans = [(n * k // ranges, n * (k + 1) // ranges) for k in range(ranges)]
    list((pool.map if pool else map)(lambda span: job_bounds(*span, *rest), spans))
    return data.constant + float(found.sum()) - float((data.capacity * y).sum())
