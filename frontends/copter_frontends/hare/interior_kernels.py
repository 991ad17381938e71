"""Passes over jobs for the interior-point method: each job's own rows are eliminated (docs/hare.md, HR13-HR16).

Every kernel works on the jobs from `low` to `high` and adds sums over jobs to arrays of the caller's own, so that
ranges can be given to threads. v and z are (N, L, G): GPU seconds and their reduced costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", njit(cache=True, nogil=True, error_model="numpy")(function))


@_compiled
def factor(
    low: int, high: int, first: Ints, start: Floats, alpha: Floats, v: Floats, z: Floats, slack: Floats, excess: Floats,
    inner: Floats, tall: Floats, blocks: Floats, used: Floats,
) -> None:  # fmt: skip
    """Eliminate each job's rows: HR14.

    `slack` (2, N, L) are the slacks of HR5 and their duals; `excess` (4, N): e, its dual, surplus, its dual. Written:
    `inner` (N, 4): S, the weighted mean start, H, residual of HR6; `tall` (2 N, L G): the columns of HR15. Added to:
    `blocks` (L, G, G) and `used` (L, G), the GPU seconds in use.
    """
    intervals, types = v.shape[1], v.shape[2]
    weight = np.zeros(types)
    spread = np.zeros(intervals)
    for n in range(low, high):
        whole, moment, done = 0.0, 0.0, 0.0
        tall[2 * n : 2 * n + 2] = 0.0
        for i in range(first[n], intervals):
            rest = slack[0, n, i] / slack[1, n, i]
            total, mean = rest, 0.0
            for g in range(types):
                weight[g] = 0.0
                if alpha[n, g] > 0:
                    weight[g] = v[n, i, g] / z[n, i, g]
                    total += weight[g]
                    mean += alpha[n, g] * weight[g]
                    done += alpha[n, g] * v[n, i, g]
                    used[i, g] += v[n, i, g]
            mean /= total
            sigma = rest * mean * mean
            for g in range(types):
                d = weight[g]
                if d > 0:
                    off = alpha[n, g] - mean
                    sigma += d * off * off
                    tall[2 * n, i * types + g] = d * off
                    share = d / total
                    for k in range(types):
                        blocks[i, g, k] -= share * weight[k]
                    blocks[i, g, g] += d
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
    low: int, high: int, first: Ints, start: Floats, alpha: Floats, v: Floats, z: Floats, slack: Floats, excess: Floats,
    inner: Floats, want_v: Floats, want_slack: Floats, want_excess: Floats, rows: Floats, rhs: Floats,
) -> None:  # fmt: skip
    """Right-hand side of HR15 for the complementarity products that are wanted: `want_v`, `want_slack`, `want_excess`.

    Written: `rows` (N, 2), the work and mean rows' own right-hand sides; added to: `rhs` (L, G).
    """
    intervals, types = v.shape[1], v.shape[2]
    move, off, weight = np.zeros((intervals, types)), np.zeros((intervals, types)), np.zeros(types)
    for n in range(low, high):
        whole, middle, curve = inner[n, 0], inner[n, 1], inner[n, 2]
        work, mean_row = inner[n, 3], 0.0
        for i in range(first[n], intervals):
            rest = slack[0, n, i] / slack[1, n, i]
            moved = want_slack[n, i] / slack[1, n, i] - slack[0, n, i]
            total, mean, lead = rest, 0.0, 0.0
            for g in range(types):
                weight[g] = 0.0
                move[i, g] = 0.0
                if alpha[n, g] > 0:
                    weight[g] = v[n, i, g] / z[n, i, g]
                    total += weight[g]
                    mean += alpha[n, g] * weight[g]
                    u = want_v[n, i, g] / z[n, i, g] - v[n, i, g]
                    move[i, g] = u
                    moved += u
                    lead += alpha[n, g] * u
            mean /= total
            lead -= mean * moved
            work -= lead
            mean_row += start[n, i] * lead
            for g in range(types):
                off[i, g] = weight[g] * (alpha[n, g] - mean)
                move[i, g] -= weight[g] * moved / total
        mean_row -= want_excess[0, n] / excess[1, n] - excess[0, n]
        mean_row += want_excess[1, n] / excess[3, n] - excess[2, n]
        rows[n, 0], rows[n, 1] = work, mean_row
        tilt = (mean_row + middle * work) / curve
        for i in range(first[n], intervals):
            theta = work / whole - (start[n, i] - middle) * tilt
            for g in range(types):
                rhs[i, g] -= move[i, g] + off[i, g] * theta


@_compiled
def tally(x: float, z: float, dx: float, dz: float, found: Floats) -> None:
    """Take a pair into `found` (6,): largest primal and dual step so far; sums of x z, x dz, z dx, dx dz."""
    if dx < 0:
        found[0] = min(found[0], -x / dx)
    if dz < 0:
        found[1] = min(found[1], -z / dz)
    found[2] += x * z
    found[3] += x * dz
    found[4] += z * dx
    found[5] += dx * dz


@_compiled
def row_duals(
    first: int, start: Floats, alpha: Floats, v: Floats, z: Floats, slack: Floats, slack_dual: Floats, inner: Floats,
    rows: Floats, dy: Floats,
) -> tuple[float, float]:  # fmt: skip
    """Steps of the duals of one job's HR6 and HR8."""
    whole, middle, curve = inner[0], inner[1], inner[2]
    along, tilted = 0.0, 0.0
    for i in range(first, v.shape[0]):
        total, mean = slack[i] / slack_dual[i], 0.0
        for g in range(v.shape[1]):
            if alpha[g] > 0:
                weight = v[i, g] / z[i, g]
                total += weight
                mean += alpha[g] * weight
        mean /= total
        here = 0.0
        for g in range(v.shape[1]):
            if alpha[g] > 0:
                here += v[i, g] / z[i, g] * (alpha[g] - mean) * dy[i, g]
        along += here
        tilted += (start[i] - middle) * here
    dnu = (rows[1] + middle * rows[0] + tilted) / curve
    return (rows[0] - along) / whole + middle * dnu, dnu


@_compiled
def interval_steps(
    theta: float, alpha: Floats, v: Floats, z: Floats, want: Floats, slack: float, slack_dual: float, slack_want: float,
    dy: Floats, dv: Floats, dz: Floats, found: Floats,
) -> tuple[float, float]:  # fmt: skip
    """Steps of one job's columns in one interval; those of the interval's slack and its dual are returned."""
    move = slack_want / slack_dual - slack
    total, mean, moved, priced = slack / slack_dual, 0.0, move, 0.0
    for g in range(v.shape[0]):
        if alpha[g] > 0:
            weight = v[g] / z[g]
            total += weight
            mean += alpha[g] * weight
            moved += want[g] / z[g] - v[g]
            priced += weight * dy[g]
    dmu = -(moved + mean * theta + priced) / total
    for g in range(v.shape[0]):
        if alpha[g] > 0:
            slope = alpha[g] * theta + dmu + dy[g]
            dv[g] = want[g] / z[g] - v[g] + v[g] / z[g] * slope
            dz[g] = -slope
            tally(v[g], z[g], dv[g], dz[g], found)
    ds = move + slack / slack_dual * dmu
    tally(slack, slack_dual, ds, -dmu, found)
    return ds, -dmu


@_compiled
def substitute(
    low: int, high: int, first: Ints, start: Floats, alpha: Floats, v: Floats, z: Floats, slack: Floats, excess: Floats,
    inner: Floats, want_v: Floats, want_slack: Floats, want_excess: Floats, rows: Floats, dy: Floats, dv: Floats,
    dz: Floats, dslack: Floats, dexcess: Floats, dinner: Floats, found: Floats,
) -> None:  # fmt: skip
    """Steps of all that is a job's own from the step of the prices, HR16.

    Overwritten: the steps; `dinner` (N, 2): of the duals of HR6 and HR8. Every pair goes into `found` (:func:`tally`).
    """
    for n in range(low, high):
        dlam, dnu = row_duals(first[n], start[n], alpha[n], v[n], z[n], slack[0, n], slack[1, n], inner[n], rows[n], dy)
        dinner[n, 0], dinner[n, 1] = dlam, dnu
        for i in range(first[n], v.shape[1]):
            dslack[0, n, i], dslack[1, n, i] = interval_steps(
                dlam - start[n, i] * dnu, alpha[n], v[n, i], z[n, i], want_v[n, i], slack[0, n, i], slack[1, n, i],
                want_slack[n, i], dy[i], dv[n, i], dz[n, i], found,
            )  # fmt: skip
        for k in range(0, 4, 2):
            x, dual = excess[k, n], excess[k + 1, n]
            rise = -dnu if k == 0 else dnu
            step = want_excess[k // 2, n] / dual - x - x / dual * rise
            dexcess[k, n], dexcess[k + 1, n] = step, rise
            tally(x, dual, step, rise, found)


@_compiled
def aim_second_order(
    low: int, high: int, first: Ints, alpha: Floats, target: float, dv: Floats, dz: Floats, dslack: Floats,
    want_v: Floats, want_slack: Floats,
) -> None:  # fmt: skip
    """Products wanted by Mehrotra's corrector: `target` less the product of the predictor's steps."""
    intervals, types = dv.shape[1], dv.shape[2]
    for n in range(low, high):
        for i in range(first[n], intervals):
            want_slack[n, i] = target - dslack[0, n, i] * dslack[1, n, i]
            for g in range(types):
                if alpha[n, g] > 0:
                    want_v[n, i, g] = target - dv[n, i, g] * dz[n, i, g]


@_compiled
def aim_central(
    low: int, high: int, first: Ints, alpha: Floats, target: float, primal: float, dual: float, v: Floats, z: Floats,
    slack: Floats, dv: Floats, dz: Floats, dslack: Floats, want_v: Floats, want_slack: Floats,
) -> None:  # fmt: skip
    """Gondzio's correction: products that a step of (primal, dual) would take far from `target` are wanted nearer."""
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
def nearer(product: float, target: float) -> float:
    """Change that brings a product within a factor of ten of the target; at most ten times the target."""
    if product < 0.1 * target:
        return 0.1 * target - product
    if product > 10.0 * target:
        return max(10.0 * target - product, -10.0 * target)
    return 0.0
