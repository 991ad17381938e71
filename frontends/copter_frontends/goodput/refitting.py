"""Refitting of the throughput model while a job runs: one starting point, the public simulator's tolerance (G12)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import minimize

from copter_frontends.goodput.fitting import GAMMA_WEIGHT, SLOPE_WEIGHT
from copter_frontends.goodput.throughput import TINY_S, ThroughputParameters

Floats = NDArray[np.float64]
Observation = tuple[int, int, int, float, float]
"""(nodes, GPUs, local batch, seconds of the step, seconds of its exposed synchronisation)."""

START = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001)  # starting point of the fit: the seven throughput constants (G12)
TOLERANCE = 1e-5  # relative change of the fit's error at which L-BFGS-B ends (G12)


def _loss_and_gradient(theta: Floats, points: Floats, gradient: Floats) -> float:
    """Return the loss G11 and its gradient in the seven constants.

    `points` is (n, 5): nodes, GPUs, local batch, log compute time, log step time.
    """
    alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma = theta
    n = points.shape[0]
    square_c = square_s = 0.0
    by_compute, by_step = np.zeros(7), np.zeros(7)
    for i in range(n):
        nodes, gpus, local = points[i, 0], points[i, 1], points[i, 2]
        further = max(gpus - 2.0, TINY_S)
        compute = alpha_c + beta_c * local
        sync, at = TINY_S + TINY_S * further, -1
        if nodes > 1:
            sync, at = alpha_n + beta_n * further, 2
        elif gpus > 1:
            sync, at = alpha_r + beta_r * further, 4
        off = math.log(compute) - points[i, 3]
        square_c += off * off
        by_compute[0] += off / compute
        by_compute[1] += off / compute * local
        power_c, power_s = compute**gamma, sync**gamma
        total = power_c + power_s
        miss = math.log(total) / gamma - points[i, 4]
        square_s += miss * miss
        slope = miss * power_c / (compute * total)
        by_step[0] += slope
        by_step[1] += slope * local
        if at >= 0:
            slope = miss * power_s / (sync * total)
            by_step[at] += slope
            by_step[at + 1] += slope * further
        mixed = (power_c * math.log(compute) + power_s * math.log(sync)) / total
        by_step[6] += miss * (mixed - math.log(total) / gamma) / gamma
    error_c, error_s = math.sqrt(square_c / n), math.sqrt(square_s / n)
    ratio_n, ratio_r = beta_n / alpha_n, beta_r / alpha_r
    for k in range(7):
        gradient[k] = by_compute[k] / (n * max(error_c, 1e-12)) + by_step[k] / (n * max(error_s, 1e-12))
    gradient[2] -= 2 * SLOPE_WEIGHT * ratio_n * ratio_n / alpha_n
    gradient[3] += 2 * SLOPE_WEIGHT * ratio_n / alpha_n
    gradient[4] -= 2 * SLOPE_WEIGHT * ratio_r * ratio_r / alpha_r
    gradient[5] += 2 * SLOPE_WEIGHT * ratio_r / alpha_r
    gradient[6] += 2 * GAMMA_WEIGHT * (gamma - 1)
    loss: float = error_c + error_s + GAMMA_WEIGHT * (gamma - 1) ** 2 + SLOPE_WEIGHT * (ratio_n**2 + ratio_r**2)
    return loss


_compile: Callable[..., Any] = njit(cache=True, nogil=True)
loss_and_gradient: Callable[..., float] = _compile(_loss_and_gradient)


def refit(observations: Sequence[Observation]) -> ThroughputParameters:
    """Fit the seven constants to a job's observations, with the published start, bounds, pinning and tolerance (G12).

    Unlike :func:`~copter_frontends.goodput.fitting.fit_throughput`, which searches for the best fit, this reproduces
    the fit of the public simulator's jobs: one descent, which may stop early.
    """
    seen = np.array(observations, dtype=np.float64)
    compute = seen[:, 3] - seen[:, 4]
    points = np.column_stack([seen[:, :3], np.log(compute), np.log(seen[:, 3])])
    start, lower, upper = np.array(START), np.array([TINY_S] * 6 + [1.0]), np.array([np.inf] * 6 + [10.0])
    if np.unique(seen[:, 2]).size == 1:
        start[0] = lower[0] = upper[0] = compute.mean() / 2
    pinned: list[int] = []
    several = bool((seen[:, 0] > 1).any())
    pinned += [] if several else [2, 3]
    pinned += [] if ((seen[:, 0] == 1) & (seen[:, 1] > 1)).any() else [4, 5]
    pinned += [] if (seen[:, 1] > 2).any() else [3, 5]
    for i in pinned:
        start[i] = upper[i] = lower[i]

    def objective(theta: Floats) -> tuple[float, Floats]:
        gradient = np.empty(7)
        return float(loss_and_gradient(theta, points, gradient)), gradient

    result = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=list(zip(lower, upper, strict=True)), tol=TOLERANCE
    ).x
    result = np.clip(result, lower, upper)
    parameters = ThroughputParameters(*(float(value) for value in result))
    return parameters if several else parameters.with_multi_node_floor()
