"""Fitting the seven throughput constants to measured steps (docs/method/goodput.md, G11; Pollux, OSDI '21)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from copter.runtime.errors import DimensionError, InvalidDataError
from copter_frontends.goodput.throughput import TINY_S, ThroughputParameters, compute_time_s, step_time_s

GAMMA_WEIGHT = 1e-3  # weight of (gamma - 1)^2 in the fit (G11)
SLOPE_WEIGHT = 1e-2  # weight of (beta_n / alpha_n)^2 and (beta_r / alpha_r)^2 in the fit (G11)
_START = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001)
_OTHER_GAMMAS = (2.0, 4.0)  # further starting points, because the loss is not convex in gamma


@dataclass(frozen=True, slots=True)
class FittedThroughput:
    """Fitted constants, their loss, and the root-mean-square errors of the logarithms of the two times."""

    parameters: ThroughputParameters
    loss: float
    rmsle_compute: float
    rmsle_step: float


@dataclass(frozen=True, slots=True)
class _Points:
    """Measured steps as arrays."""

    nodes: NDArray[np.int64]
    gpus: NDArray[np.int64]
    local_batch: NDArray[np.float64]
    log_compute: NDArray[np.float64]
    log_step: NDArray[np.float64]


def fit_throughput(
    nodes: ArrayLike, gpus: ArrayLike, local_batch_size: ArrayLike, compute_s: ArrayLike, step_s: ArrayLike
) -> FittedThroughput:
    """Fit the model to observed steps by the published loss, bounds and pinning rules.

    Constants that the observations do not determine are not fitted. With only one batch size, alpha_c is half the mean
    compute time. Without a step on several nodes, alpha_n and beta_n are 1.1 times alpha_r and beta_r. Without a step
    on several GPUs of a node, alpha_r and beta_r have their lower limit, 1e-8 s. Without a step on more than two GPUs,
    both betas have the lower limit.

    Parameters
    ----------
    nodes, gpus : array_like (n,) of int
        Nodes and GPUs of each observed step.
    local_batch_size : array_like (n,)
        Samples per GPU.
    compute_s, step_s : array_like (n,)
        Seconds of computing (step less exposed synchronisation), and of the whole step.

    Returns
    -------
    FittedThroughput

    Raises
    ------
    DimensionError
        If the arrays differ in length or are empty.
    InvalidDataError
        If a count is below 1, there are fewer GPUs than nodes, or a time is not finite and > 0.
    """
    points = _checked(nodes, gpus, local_batch_size, compute_s, step_s)
    fixed = _pinned(points)
    free = np.array([i for i in range(7) if i not in fixed])
    starts = []
    for gamma in (_START[6], *_OTHER_GAMMAS):
        theta = np.log(np.array([*_START[:6], gamma]))
        for i, value in fixed.items():
            theta[i] = np.log(value)
        starts.append(_minimised(theta, free, points))
    loss, theta = min(starts, key=lambda start: start[0])
    parameters = _parameters(theta)
    rmsle_compute, rmsle_step = _errors(parameters, points)
    if 2 in fixed:
        parameters = parameters.with_multi_node_floor()
    return FittedThroughput(parameters, loss, rmsle_compute, rmsle_step)


def _checked(
    nodes: ArrayLike, gpus: ArrayLike, local_batch_size: ArrayLike, compute_s: ArrayLike, step_s: ArrayLike
) -> _Points:
    columns = [np.asarray(x, dtype=np.float64) for x in (nodes, gpus, local_batch_size, compute_s, step_s)]
    shapes = [column.shape for column in columns]
    if len(set(shapes)) != 1 or columns[0].ndim != 1 or columns[0].size == 0:
        raise DimensionError(f"observed steps have shapes {shapes}; give five arrays of one length, at least 1")
    for name, column, least in zip(("nodes", "gpus", "local_batch_size"), columns, (1, 1, 1), strict=False):
        _require(np.isfinite(column) & (column >= least), f"{name} must be finite and >= 1", column)
    _require(columns[1] >= columns[0], "a step needs at least one GPU a node, but gpus is", columns[1])
    for name, column in zip(("compute_s", "step_s"), columns[3:], strict=True):
        _require(np.isfinite(column) & (column > 0), f"{name} must be finite and > 0 seconds", column)
    return _Points(
        columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2], np.log(columns[3]), np.log(columns[4])
    )


def _require(good: NDArray[np.bool_], complaint: str, column: NDArray[np.float64]) -> None:
    if not good.all():
        first = int(np.argmin(good))
        raise InvalidDataError(f"observed step {first}: {complaint}; it is {column[first]}")


def _pinned(points: _Points) -> dict[int, float]:
    """Return the constants that are not fitted, by position, with their values."""
    fixed: dict[int, float] = {}
    if np.unique(points.local_batch).size == 1:
        fixed[0] = float(np.exp(points.log_compute).mean()) / 2
    if not (points.nodes > 1).any():
        fixed[2] = fixed[3] = TINY_S
    if not ((points.nodes == 1) & (points.gpus > 1)).any():
        fixed[4] = fixed[5] = TINY_S
    if not (points.gpus > 2).any():
        fixed[3] = fixed[5] = TINY_S
    return fixed


def _minimised(
    theta: NDArray[np.float64], free: NDArray[np.intp], points: _Points
) -> tuple[float, NDArray[np.float64]]:
    """Minimise the loss over the logarithms of the free constants, which brings seconds and microseconds to one
    scale.
    """

    def loss_of(values: NDArray[np.float64]) -> float:
        trial = theta.copy()
        trial[free] = values
        return _loss(_parameters(trial), points)

    bounds = [(np.log(TINY_S), np.log(1e4)) if i < 6 else (0.0, np.log(10.0)) for i in free]
    result = minimize(loss_of, theta[free], method="L-BFGS-B", jac="3-point", bounds=bounds, options={"maxiter": 500})
    fitted = theta.copy()
    fitted[free] = result.x
    return float(result.fun), fitted


def _parameters(theta: NDArray[np.float64]) -> ThroughputParameters:
    values = np.exp(theta)
    values[6] = np.clip(values[6], 1.0, 10.0)  # rounding of the logarithm may exceed the bound slightly
    return ThroughputParameters(*(float(value) for value in values))


def _errors(parameters: ThroughputParameters, points: _Points) -> tuple[float, float]:
    """Return the root-mean-square errors of log compute time and log step time."""
    compute = np.log(compute_time_s(parameters, points.local_batch)) - points.log_compute
    step = np.log(step_time_s(parameters, points.nodes, points.gpus, points.local_batch)) - points.log_step
    return float(np.sqrt((compute**2).mean())), float(np.sqrt((step**2).mean()))


def _loss(parameters: ThroughputParameters, points: _Points) -> float:
    compute, step = _errors(parameters, points)
    slopes = (parameters.beta_n / parameters.alpha_n) ** 2 + (parameters.beta_r / parameters.alpha_r) ** 2
    return compute + step + GAMMA_WEIGHT * (parameters.gamma - 1) ** 2 + SLOPE_WEIGHT * slopes
