"""Passes over jobs for the interior-point method: each job's own rows are eliminated (docs/hare.md, HR13-HR16).

Every kernel works on the jobs from `low` to `high` and adds sums over jobs to arrays of the caller's own, so that
ranges can be given to threads. The groups of arrays are described in :mod:`.array_groups`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from copter_frontends.hare.array_groups import Eliminated, Floats, Ints, JobPoint, JobRows, WantedProducts


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", njit(cache=True, nogil=True, error_model="numpy")(function))


@_compiled
def factor(
    low: int, high: int, jobs: JobRows, at: JobPoint, kept: Eliminated, tall: Floats, blocks: Floats, used: Floats
) -> None:
    """Eliminate each job's rows: HR14.

    Written: `kept`, and `tall` (2 N, L G), the columns of HR15. Added to: `blocks` (L, G, G), and `used` (L, G), the
    GPU seconds in use.
    """
    first, start, alpha = jobs.first, jobs.start, jobs.alpha
    v, z, slack, excess = at.v, at.z, at.slack, at.excess
    ratio, inverse, row, inner = kept.ratio, kept.inverse, kept.row, kept.inner
    intervals, types = v.shape[1], v.shape[2]
    spread = np.zeros(intervals)
    for n in range(low, high):
        whole, moment, done = 0.0, 0.0, 0.0
        tall[2 * n : 2 * n + 2] = 0.0
        for i in range(first[n], intervals):
            inv_dual = 1.0 / slack[1, n, i]
            rest = slack[0, n, i] * inv_dual
            total, mean = rest, 0.0
            for g in range(types):
                if alpha[n, g] > 0:
                    inverse[n, i, g] = 1.0 / z[n, i, g]
                    ratio[n, i, g] = v[n, i, g] * inverse[n, i, g]
                else:
                    inverse[n, i, g], ratio[n, i, g] = 0.0, 0.0
                total += ratio[n, i, g]
                mean += alpha[n, g] * ratio[n, i, g]
                done += alpha[n, g] * v[n, i, g]
                used[i, g] += v[n, i, g]
            inv_total = 1.0 / total
            mean *= inv_total
            row[0, n, i], row[1, n, i], row[2, n, i], row[3, n, i] = rest, inv_dual, inv_total, mean
            sigma = rest * mean * mean
            for g in range(types):
                d = ratio[n, i, g]
                off = alpha[n, g] - mean
                sigma += d * off * off
                tall[2 * n, i * types + g] = d * off
                share = d * inv_total
                for k in range(g):
                    blocks[i, g, k] -= share * ratio[n, i, k]
                blocks[i, g, g] += d * (1.0 - share)
            spread[i] = sigma
            whole += sigma
            moment += sigma * start[n, i]
        middle = moment / whole
        curve = excess[0, n] / excess[1, n] + excess[2, n] / excess[3, n]
        for i in range(first[n], intervals):
            off = start[n, i] - middle
            curve += spread[i] * off * off
        root_s, root_h = 1.0 / np.sqrt(whole), 1.0 / np.sqrt(curve)
        for i in range(first[n], intervals):
            off = (start[n, i] - middle) * root_h
            for j in range(i * types, (i + 1) * types):
                a = tall[2 * n, j]
                tall[2 * n, j] = a * root_s
                tall[2 * n + 1, j] = a * off
        inner[n, 0], inner[n, 1], inner[n, 2], inner[n, 3] = whole, middle, curve, 1.0 - done


@_compiled
def reduce_rhs(
    low: int, high: int, jobs: JobRows, at: JobPoint, kept: Eliminated, want: WantedProducts, rows: Floats, rhs: Floats
) -> None:
    """Right-hand side of HR15 for the complementarity products that are wanted.

    Written: `rows` (N, 2), the work and mean rows' own right-hand sides; added to: `rhs` (L, G).
    """
    first, start, alpha = jobs.first, jobs.start, jobs.alpha
    v, slack, excess = at.v, at.slack, at.excess
    ratio, inverse, row, inner = kept.ratio, kept.inverse, kept.row, kept.inner
    want_v, want_slack, want_excess = want.v, want.slack, want.excess
    intervals, types = v.shape[1], v.shape[2]
    move, off = np.zeros((intervals, types)), np.zeros((intervals, types))
    for n in range(low, high):
        whole, middle, curve = inner[n, 0], inner[n, 1], inner[n, 2]
        work, mean_row = inner[n, 3], 0.0
        for i in range(first[n], intervals):
            mean = row[3, n, i]
            moved, lead = want_slack[n, i] * row[1, n, i] - slack[0, n, i], 0.0
            for g in range(types):
                u = want_v[n, i, g] * inverse[n, i, g] - v[n, i, g]
                move[i, g] = u
                moved += u
                lead += alpha[n, g] * u
            lead -= mean * moved
            work -= lead
            mean_row += start[n, i] * lead
            moved *= row[2, n, i]
            for g in range(types):
                off[i, g] = ratio[n, i, g] * (alpha[n, g] - mean)
                move[i, g] -= ratio[n, i, g] * moved
        mean_row -= want_excess[0, n] / excess[1, n] - excess[0, n]
        mean_row += want_excess[1, n] / excess[3, n] - excess[2, n]
        rows[n, 0], rows[n, 1] = work, mean_row
        tilt = (mean_row + middle * work) / curve
        for i in range(first[n], intervals):
            theta = work / whole - (start[n, i] - middle) * tilt
            for g in range(types):
                rhs[i, g] -= move[i, g] + off[i, g] * theta


@_compiled
def row_duals(
    first: int, start: Floats, alpha: Floats, ratio: Floats, mean: Floats, inner: Floats, rows: Floats, dy: Floats
) -> tuple[float, float]:
    """Steps of the duals of one job's HR6 and HR8."""
    whole, middle, curve = inner[0], inner[1], inner[2]
    along, tilted = 0.0, 0.0
    for i in range(first, ratio.shape[0]):
        here = 0.0
        for g in range(ratio.shape[1]):
            here += ratio[i, g] * (alpha[g] - mean[i]) * dy[i, g]
        along += here
        tilted += (start[i] - middle) * here
    dnu = (rows[1] + middle * rows[0] + tilted) / curve
    return (rows[0] - along) / whole + middle * dnu, dnu


@_compiled
def tally(x: float, z: float, dx: float, dz: float, sums: Floats) -> None:
    """Take a pair into `sums` (6,): largest -dx / x and -dz / z so far; sums of x z, x dz, z dx, dx dz."""
    if -dx > sums[0] * x:
        sums[0] = -dx / x
    if -dz > sums[1] * z:
        sums[1] = -dz / z
    sums[2] += x * z
    sums[3] += x * dz
    sums[4] += z * dx
    sums[5] += dx * dz


@_compiled
def substitute(
    low: int,
    high: int,
    jobs: JobRows,
    at: JobPoint,
    kept: Eliminated,
    want: WantedProducts,
    rows: Floats,
    dy: Floats,
    step: JobPoint,
    dinner: Floats,
    sums: Floats,
) -> None:
    """Steps of each job's own variables from the step of the prices, HR16.

    Written: `step`, and `dinner` (N, 2): of the duals of HR6 and HR8. Every pair goes into `sums` (:func:`tally`).
    """
    first, start, alpha = jobs.first, jobs.start, jobs.alpha
    v, z, slack, excess = at.v, at.z, at.slack, at.excess
    ratio, inverse, row, inner = kept.ratio, kept.inverse, kept.row, kept.inner
    want_v, want_slack, want_excess = want.v, want.slack, want.excess
    dv, dz, dslack, dexcess = step.v, step.z, step.slack, step.excess
    types = v.shape[2]
    slope = np.zeros(types)
    for n in range(low, high):
        dlam, dnu = row_duals(first[n], start[n], alpha[n], ratio[n], row[3, n], inner[n], rows[n], dy)
        dinner[n, 0], dinner[n, 1] = dlam, dnu
        for i in range(first[n], v.shape[1]):
            theta = dlam - start[n, i] * dnu
            move = want_slack[n, i] * row[1, n, i] - slack[0, n, i]
            total = move + theta * row[3, n, i] / row[2, n, i]
            for g in range(types):
                slope[g] = alpha[n, g] * theta + dy[i, g]
                dv[n, i, g] = want_v[n, i, g] * inverse[n, i, g] - v[n, i, g]
                total += dv[n, i, g] + ratio[n, i, g] * dy[i, g]
            dmu = -total * row[2, n, i]
            for g in range(types):
                if alpha[n, g] > 0:
                    dv[n, i, g] += ratio[n, i, g] * (slope[g] + dmu)
                    dz[n, i, g] = -slope[g] - dmu
                    tally(v[n, i, g], z[n, i, g], dv[n, i, g], dz[n, i, g], sums)
            dslack[0, n, i], dslack[1, n, i] = move + row[0, n, i] * dmu, -dmu
            tally(slack[0, n, i], slack[1, n, i], dslack[0, n, i], -dmu, sums)
        for k in range(0, 4, 2):
            x, dual = excess[k, n], excess[k + 1, n]
            rise = -dnu if k == 0 else dnu
            step = want_excess[k // 2, n] / dual - x - x / dual * rise
            dexcess[k, n], dexcess[k + 1, n] = step, rise
            tally(x, dual, step, rise, sums)


@_compiled
def aim_second_order(low: int, high: int, jobs: JobRows, target: float, step: JobPoint, want: WantedProducts) -> None:
    """Products wanted by Mehrotra's corrector: `target` less the product of the predictor's steps."""
    first, alpha = jobs.first, jobs.alpha
    dv, dz, dslack = step.v, step.z, step.slack
    want_v, want_slack = want.v, want.slack
    intervals, types = dv.shape[1], dv.shape[2]
    for n in range(low, high):
        for i in range(first[n], intervals):
            want_slack[n, i] = target - dslack[0, n, i] * dslack[1, n, i]
            for g in range(types):
                if alpha[n, g] > 0:
                    want_v[n, i, g] = target - dv[n, i, g] * dz[n, i, g]


@_compiled
def aim_central(
    low: int,
    high: int,
    jobs: JobRows,
    target: float,
    primal: float,
    dual: float,
    at: JobPoint,
    step: JobPoint,
    want: WantedProducts,
) -> None:
    """Gondzio's correction: products that a step of (primal, dual) takes far from `target` are moved closer to it."""
    first, alpha = jobs.first, jobs.alpha
    v, z, slack = at.v, at.z, at.slack
    dv, dz, dslack = step.v, step.z, step.slack
    want_v, want_slack = want.v, want.slack
    intervals, types = dv.shape[1], dv.shape[2]
    for n in range(low, high):
        for i in range(first[n], intervals):
            product = (slack[0, n, i] + primal * dslack[0, n, i]) * (slack[1, n, i] + dual * dslack[1, n, i])
            want_slack[n, i] += nearer(product, target)
            for g in range(types):
                if alpha[n, g] > 0:
                    product = (v[n, i, g] + primal * dv[n, i, g]) * (z[n, i, g] + dual * dz[n, i, g])
                    want_v[n, i, g] += nearer(product, target)


@_compiled
def shift(low: int, high: int, first: Ints, primal: float, dual: float, at: JobPoint, step: JobPoint) -> None:
    """Move the columns of the jobs by a step, and their reduced costs by another."""
    v, z, dv, dz = at.v, at.z, step.v, step.z
    for n in range(low, high):
        for i in range(first[n], v.shape[1]):
            for g in range(v.shape[2]):
                v[n, i, g] += primal * dv[n, i, g]
                z[n, i, g] += dual * dz[n, i, g]


@_compiled
def nearer(product: float, target: float) -> float:
    """Change that brings a product to within a factor of ten of the target; at most ten times the target."""
    if product < 0.1 * target:
        return 0.1 * target - product
    if product > 10.0 * target:
        return max(10.0 * target - product, -10.0 * target)
    return 0.0
