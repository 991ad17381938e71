"""Passes over jobs for the interior-point method: each job's own rows are eliminated in place (docs/hare.md, H13-H16).

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
    """Eliminate each job's rows: H14.

    `slack` (2, N, L) are the slacks of H5 and their duals; `excess` (4, N): e, its dual, surplus, its dual. Written:
    `inner` (N, 4): S, the weighted mean start, H, residual of H6; `tall` (2 N, L G): the columns of H15. Added to:
    `blocks` (L, G, G) and `used` (L, G), the GPU seconds in use.
    """
    intervals, types = v.shape[1], v.shape[2]
    weight = np.zeros(types)
    spread = np.zeros(intervals)
    for n in range(low, high):
        whole, moment, done = 0.0, 0.0, 0.0
        tall[2 * n : 2 * n + 2] = 0.0
        for l in range(first[n], intervals):
            rest = slack[0, n, l] / slack[1, n, l]
            total, mean = rest, 0.0
            for g in range(types):
                weight[g] = 0.0
                if alpha[n, g] > 0:
                    weight[g] = v[n, l, g] / z[n, l, g]
                    total += weight[g]
                    mean += alpha[n, g] * weight[g]
                    done += alpha[n, g] * v[n, l, g]
                    used[l, g] += v[n, l, g]
            mean /= total
            sigma = rest * mean * mean
            for g in range(types):
                d = weight[g]
                if d > 0:
                    off = alpha[n, g] - mean
                    sigma += d * off * off
                    tall[2 * n, l * types + g] = d * off
                    share = d / total
                    for k in range(types):
                        blocks[l, g, k] -= share * weight[k]
                    blocks[l, g, g] += d
            spread[l] = sigma
            whole += sigma
            moment += sigma * start[n, l]
        middle = moment / whole
        curve = excess[0, n] / excess[1, n] + excess[2, n] / excess[3, n]
        for l in range(first[n], intervals):
            off = start[n, l] - middle
            curve += spread[l] * off * off
        root_s, root_h = 1.0 / np.sqrt(whole), 1.0 / np.sqrt(curve)
        for l in range(first[n], intervals):
            off = (start[n, l] - middle) * root_h
            for j in range(l * types, (l + 1) * types):
                a = tall[2 * n, j]
                tall[2 * n, j] = a * root_s
                tall[2 * n + 1, j] = a * off
        inner[n, 0], inner[n, 1], inner[n, 2], inner[n, 3] = whole, middle, curve, 1.0 - done


@_compiled
def reduce_rhs(
    low: int, high: int, first: Ints, start: Floats, alpha: Floats, v: Floats, z: Floats, slack: Floats, excess: Floats,
    inner: Floats, want_v: Floats, want_slack: Floats, want_excess: Floats, rows: Floats, rhs: Floats,
) -> None:  # fmt: skip
    """Right-hand side of H15 for the complementarity products that are wanted: `want_v`, `want_slack`, `want_excess`.

    Written: `rows` (N, 2), the work and mean rows' own right-hand sides; added to: `rhs` (L, G).
    """
    intervals, types = v.shape[1], v.shape[2]
    move, off, weight = np.zeros((intervals, types)), np.zeros((intervals, types)), np.zeros(types)
    for n in range(low, high):
        whole, middle, curve = inner[n, 0], inner[n, 1], inner[n, 2]
        work, mean_row = inner[n, 3], 0.0
        for l in range(first[n], intervals):
            rest = slack[0, n, l] / slack[1, n, l]
            moved = want_slack[n, l] / slack[1, n, l] - slack[0, n, l]
            total, mean, lead = rest, 0.0, 0.0
            for g in range(types):
                weight[g] = 0.0
                move[l, g] = 0.0
                if alpha[n, g] > 0:
                    weight[g] = v[n, l, g] / z[n, l, g]
                    total += weight[g]
                    mean += alpha[n, g] * weight[g]
                    u = want_v[n, l, g] / z[n, l, g] - v[n, l, g]
                    move[l, g] = u
                    moved += u
                    lead += alpha[n, g] * u
            mean /= total
            lead -= mean * moved
            work -= lead
            mean_row += start[n, l] * lead
            for g in range(types):
                off[l, g] = weight[g] * (alpha[n, g] - mean)
                move[l, g] -= weight[g] * moved / total
        mean_row -= want_excess[0, n] / excess[1, n] - excess[0, n]
        mean_row += want_excess[1, n] / excess[3, n] - excess[2, n]
        rows[n, 0], rows[n, 1] = work, mean_row
        tilt = (mean_row + middle * work) / curve
        for l in range(first[n], intervals):
            theta = work / whole - (start[n, l] - middle) * tilt
            for g in range(types):
                rhs[l, g] -= move[l, g] + off[l, g] * theta


@_compiled
def substitute(
    low: int, high: int, first: Ints, start: Floats, alpha: Floats, v: Floats, z: Floats, slack: Floats, excess: Floats,
    inner: Floats, want_v: Floats, want_slack: Floats, want_excess: Floats, rows: Floats, dy: Floats, dv: Floats,
    dz: Floats, dslack: Floats, dexcess: Floats, dinner: Floats, found: Floats,
) -> None:  # fmt: skip
    """Steps of all that is a job's own from the step of the prices, H16.

    Overwritten: the steps; `dinner` (N, 2): of the duals of H6 and H8. `found` (6,): largest primal and dual step
    (minimum over calls), and the sums of x z, x dz, z dx, dx dz (added to).
    """
    intervals, types = v.shape[1], v.shape[2]
    weight, move, off = np.zeros(types), np.zeros((intervals, types)), np.zeros((intervals, types))
    primal, dual = found[0], found[1]
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for n in range(low, high):
        whole, middle, curve = inner[n, 0], inner[n, 1], inner[n, 2]
        along, tilted = 0.0, 0.0
        for l in range(first[n], intervals):
            rest = slack[0, n, l] / slack[1, n, l]
            total, mean, priced = rest, 0.0, 0.0
            for g in range(types):
                weight[g] = 0.0
                if alpha[n, g] > 0:
                    weight[g] = v[n, l, g] / z[n, l, g]
                    total += weight[g]
                    mean += alpha[n, g] * weight[g]
                    priced += weight[g] * dy[l, g]
            mean /= total
            here = 0.0
            for g in range(types):
                here += weight[g] * (alpha[n, g] - mean) * dy[l, g]
            along += here
            tilted += (start[n, l] - middle) * here
        dnu = (rows[n, 1] + middle * rows[n, 0] + tilted) / curve
        dlam = (rows[n, 0] - along) / whole + middle * dnu
        dinner[n, 0], dinner[n, 1] = dlam, dnu
        for l in range(first[n], intervals):
            rest = slack[0, n, l] / slack[1, n, l]
            us = want_slack[n, l] / slack[1, n, l] - slack[0, n, l]
            theta = dlam - start[n, l] * dnu
            total, mean, moved, priced = rest, 0.0, us, 0.0
            for g in range(types):
                weight[g] = 0.0
                if alpha[n, g] > 0:
                    weight[g] = v[n, l, g] / z[n, l, g]
                    total += weight[g]
                    mean += alpha[n, g] * weight[g]
                    u = want_v[n, l, g] / z[n, l, g] - v[n, l, g]
                    move[l, g] = u
                    moved += u
                    priced += weight[g] * dy[l, g]
            dmu = -(moved + mean * theta + priced) / total
            ds, dzs = us + rest * dmu, -dmu
            dslack[0, n, l], dslack[1, n, l] = ds, dzs
            x, dual_x = slack[0, n, l], slack[1, n, l]
            if ds < 0:
                primal = min(primal, -x / ds)
            if dzs < 0:
                dual = min(dual, -dual_x / dzs)
            s0 += x * dual_x
            s1 += x * dzs
            s2 += dual_x * ds
            s3 += ds * dzs
            for g in range(types):
                if alpha[n, g] > 0:
                    slope = alpha[n, g] * theta + dmu + dy[l, g]
                    step, rise = move[l, g] + weight[g] * slope, -slope
                    dv[n, l, g], dz[n, l, g] = step, rise
                    x, dual_x = v[n, l, g], z[n, l, g]
                    if step < 0:
                        primal = min(primal, -x / step)
                    if rise < 0:
                        dual = min(dual, -dual_x / rise)
                    s0 += x * dual_x
                    s1 += x * rise
                    s2 += dual_x * step
                    s3 += step * rise
        for k in range(0, 4, 2):
            x, dual_x = excess[k, n], excess[k + 1, n]
            rise = -dnu if k == 0 else dnu
            step = want_excess[k // 2, n] / dual_x - x - x / dual_x * rise
            dexcess[k, n], dexcess[k + 1, n] = step, rise
            if step < 0:
                primal = min(primal, -x / step)
            if rise < 0:
                dual = min(dual, -dual_x / rise)
            s0 += x * dual_x
            s1 += x * rise
            s2 += dual_x * step
            s3 += step * rise
    found[0], found[1] = primal, dual
    found[2] += s0
    found[3] += s1
    found[4] += s2
    found[5] += s3


@_compiled
def aim_second_order(
    low: int, high: int, first: Ints, alpha: Floats, target: float, dv: Floats, dz: Floats, dslack: Floats,
    want_v: Floats, want_slack: Floats,
) -> None:  # fmt: skip
    """Products wanted by Mehrotra's corrector: `target` less the product of the predictor's steps."""
    intervals, types = dv.shape[1], dv.shape[2]
    for n in range(low, high):
        for l in range(first[n], intervals):
            want_slack[n, l] = target - dslack[0, n, l] * dslack[1, n, l]
            for g in range(types):
                if alpha[n, g] > 0:
                    want_v[n, l, g] = target - dv[n, l, g] * dz[n, l, g]


@_compiled
def aim_central(
    low: int, high: int, first: Ints, alpha: Floats, target: float, primal: float, dual: float, v: Floats, z: Floats,
    slack: Floats, dv: Floats, dz: Floats, dslack: Floats, want_v: Floats, want_slack: Floats,
) -> None:  # fmt: skip
    """Gondzio's correction: products that a step of (primal, dual) would take far from `target` are wanted nearer."""
    intervals, types = dv.shape[1], dv.shape[2]
    for n in range(low, high):
        for l in range(first[n], intervals):
            product = (slack[0, n, l] + primal * dslack[0, n, l]) * (slack[1, n, l] + dual * dslack[1, n, l])
            want_slack[n, l] += nearer(product, target)
            for g in range(types):
                if alpha[n, g] > 0:
                    product = (v[n, l, g] + primal * dv[n, l, g]) * (z[n, l, g] + dual * dz[n, l, g])
                    want_v[n, l, g] += nearer(product, target)


@_compiled
def nearer(product: float, target: float) -> float:
    """Change that brings a product within a factor of ten of the target; at most ten times the target."""
    if product < 0.1 * target:
        return 0.1 * target - product
    if product > 10.0 * target:
        return max(10.0 * target - product, -10.0 * target)
    return 0.0
