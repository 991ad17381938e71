"""The lower bound on every schedule that prices of GPU seconds certify (docs/papers/hare.md, HR11 and HR12)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from copter_frontends.policies.hare.array_groups import Floats, JobRows
from copter_frontends.policies.hare.formulation import Relaxation
from copter_frontends.vocabulary.compilation import compiled

_LAM_STEPS, _NU_STEPS = 40, 24  # most tangents for each of a job's two prices
_FLAT = 1e-11  # relative gap under the tangents at which the search for a price ends

_FLAT_NU = 1e-7  # relative gap at which the search for the outer price nu ends


@compiled
def job_value(
    lam: float, nu: float, first: int, start: Floats, alpha: Floats, parallel: Floats, price: Floats
) -> tuple[float, float, float]:
    """Return (value, slope in lam, work-weighted start) of HR12 for one job, without nu h; the slope in nu is h plus
    the start.
    """
    value, slope, mean = lam, 1.0, 0.0
    for i in range(first, price.shape[0]):
        best, share = 0.0, 0.0
        worth = lam - start[i] * nu
        if worth <= 0:
            continue
        for g in range(price.shape[1]):
            margin = alpha[g] * worth - price[i, g]
            if margin > best:
                best, share = margin, alpha[g]
        value -= parallel[i] * best
        slope -= parallel[i] * share
        mean += parallel[i] * share * start[i]
    return value, slope, mean


@compiled
def best_lam(
    lam: float, nu: float, first: int, start: Floats, alpha: Floats, parallel: Floats, price: Floats
) -> tuple[float, float, float]:
    """Return (largest value over lam, its lam, its mean start) for a given nu, by tangents from a guess of lam.

    The value is concave and piecewise linear in lam. The next trial is where the tangents at the two ends of a bracket
    meet.
    """
    value, slope, mean = job_value(lam, nu, first, start, alpha, parallel, price)
    low, low_value, low_slope, low_mean = lam, value, slope, mean
    high, high_value, high_slope, high_mean = lam, value, slope, mean
    step = 1e-2 * max(abs(lam), 1e-12)
    for _ in range(60):
        if low_slope > 0 and high_slope <= 0:
            break
        if high_slope > 0:
            low, low_value, low_slope, low_mean = high, high_value, high_slope, high_mean
            high += step
            high_value, high_slope, high_mean = job_value(high, nu, first, start, alpha, parallel, price)
        else:
            high, high_value, high_slope, high_mean = low, low_value, low_slope, low_mean
            low -= step
            low_value, low_slope, low_mean = job_value(low, nu, first, start, alpha, parallel, price)
        step *= 4.0
    best, best_at = (low_value, low) if low_value > high_value else (high_value, high)
    for _ in range(_LAM_STEPS):
        if low_slope <= 0 or high_slope > 0:
            break
        at = (high_value - low_value + low_slope * low - high_slope * high) / (low_slope - high_slope)
        top = low_value + low_slope * (at - low)
        value, slope, mean = job_value(at, nu, first, start, alpha, parallel, price)
        if value > best:
            best, best_at = value, at
        if top - value <= _FLAT * (abs(top) + abs(at)) or not low < at < high:
            break
        if slope > 0:
            low, low_value, low_slope, low_mean = at, value, slope, mean
        else:
            high, high_value, high_slope, high_mean = at, value, slope, mean
    share = 0.0
    if low_slope > 0 >= high_slope:
        share = low_slope / (low_slope - high_slope)
    return best, best_at, (1.0 - share) * low_mean + share * high_mean


@compiled
def job_bounds(low: int, high: int, jobs: JobRows, price: Floats, lam: Floats, nu: Floats, phi: Floats) -> None:
    """Write phi_n of HR12, maximised from the guesses (lam, nu), which are replaced by the maximiser.

    The value is concave in nu too. If the slope at an end of the range points out of the range, this end is the
    maximum. Otherwise the next trial is where the tangents at the two ends of the bracket meet.
    """
    first, start, alpha, parallel = jobs.first, jobs.start, jobs.alpha, jobs.parallel
    weight, excess = jobs.weight, jobs.excess
    for n in range(low, high):
        at = min(max(nu[n], 0.0), weight[n])
        guess, phi[n] = lam[n] + (at - nu[n]) * start[n, first[n]], -np.inf
        left, left_value, left_slope = 0.0, 0.0, -1.0
        right, right_value, right_slope = weight[n], 0.0, 1.0
        for _ in range(_NU_STEPS):
            value, guess, mean = best_lam(guess, at, first[n], start[n], alpha[n], parallel[n], price)
            slope = excess[n] + mean
            value += at * excess[n]
            if value > phi[n]:
                phi[n], lam[n], nu[n] = value, guess, at
            if slope > 0:
                left, left_value, left_slope = at, value, slope
            else:
                right, right_value, right_slope = at, value, slope
            if left == right:
                break
            if left_slope <= 0 or right_slope > 0:
                after = right if slope > 0 else left
            else:
                after = (right_value - left_value + left_slope * left - right_slope * right) / (
                    left_slope - right_slope
                )
                top = left_value + left_slope * (after - left)
                if top - phi[n] <= _FLAT_NU * abs(lam[n]) or not left < after < right:
                    break
            guess, at = guess + (after - at) * mean, after


def best_prices(
    data: Relaxation, price: Floats, lam: Floats, nu: Floats, pool: ThreadPoolExecutor | None = None, ranges: int = 16
) -> tuple[Floats, Floats, Floats]:
    """Return (phi, lam, nu), each (N,): HR12 of every job at the prices, and the duals of the job that attain it."""
    n = len(data.weight)
    lam, nu, phi = lam.copy(), nu.copy(), np.zeros(n)
    jobs, paid = data.rows, np.maximum(price, 0.0)
    spans = [(n * k // ranges, n * (k + 1) // ranges) for k in range(ranges)]
    list((pool.map if pool else map)(lambda span: job_bounds(*span, jobs, paid, lam, nu, phi), spans))
    return phi, lam, nu


def certified_bound(
    data: Relaxation, price: Floats, lam: Floats, nu: Floats, pool: ThreadPoolExecutor | None = None, ranges: int = 16
) -> float:
    """Return a lower bound on the objective of every schedule (HR11), including the constant; valid for any arguments.

    Parameters
    ----------
    data : Relaxation
    price : ndarray (L, G)
        Prices of GPU seconds; negative prices count as zero.
    lam, nu : ndarray (N,)
        Guesses of the duals of each job's work and excess rows; they are improved for each job.
    pool : ThreadPoolExecutor, optional
    """
    phi, _, _ = best_prices(data, price, lam, nu, pool, ranges)
    return data.constant + float(phi.sum()) - float((data.capacity * np.maximum(price, 0.0)).sum())
