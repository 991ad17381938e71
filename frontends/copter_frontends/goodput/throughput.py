"""The throughput model: seconds per step and samples per second (method/goodput.md, G1 to G4; Pollux, OSDI '21)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from copter.runtime.errors import InvalidDataError

TINY_S = 1e-8  # seconds used for zero: no synchronisation, or a coefficient without observation
MULTI_NODE_MARGIN = 1.1  # synchronisation time between nodes, relative to that within a node, if it was not observed


@dataclass(frozen=True, slots=True)
class ThroughputParameters:
    """The seven fitted constants of one application on one GPU type.

    Parameters
    ----------
    alpha_c, beta_c : float
        Compute time per step: seconds, and seconds per sample of the local batch.
    alpha_n, beta_n : float
        Synchronisation over several nodes: seconds with two GPUs, and seconds per further GPU.
    alpha_r, beta_r : float
        Synchronisation within one node: seconds with two GPUs, and seconds per further GPU.
    gamma : float
        Overlap of computation and synchronisation: 1 none, 10 nearly perfect.

    Raises
    ------
    InvalidDataError
        If a time is negative or not finite, or gamma is outside 1 to 10.
    """

    alpha_c: float
    beta_c: float
    alpha_n: float
    beta_n: float
    alpha_r: float
    beta_r: float
    gamma: float

    def __post_init__(self) -> None:
        for name in ("alpha_c", "beta_c", "alpha_n", "beta_n", "alpha_r", "beta_r"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise InvalidDataError(f"throughput parameter {name} is {value}, must be finite and >= 0 seconds")
        if not 1 <= self.gamma <= 10:
            raise InvalidDataError(f"throughput parameter gamma is {self.gamma}, must be from 1 to 10")

    def as_array(self) -> NDArray[np.float64]:
        """Return the constants in the order of the fields, shape (7,)."""
        compute, network, node = (self.alpha_c, self.beta_c), (self.alpha_n, self.beta_n), (self.alpha_r, self.beta_r)
        return np.array([*compute, *network, *node, self.gamma])

    def with_multi_node_floor(self) -> ThroughputParameters:
        """Raise alpha_n and beta_n to at least 1.1 times alpha_r and beta_r (for a type never seen on two nodes)."""
        return replace(
            self,
            alpha_n=max(self.alpha_n, MULTI_NODE_MARGIN * self.alpha_r),
            beta_n=max(self.beta_n, MULTI_NODE_MARGIN * self.beta_r),
        )


def compute_time_s(parameters: ThroughputParameters, local_batch_size: ArrayLike) -> NDArray[np.float64]:
    """Return the seconds to compute one local gradient (G1); any shape."""
    return parameters.alpha_c + parameters.beta_c * np.asarray(local_batch_size, dtype=np.float64)


def sync_time_s(parameters: ThroughputParameters, nodes: ArrayLike, gpus: ArrayLike) -> NDArray[np.float64]:
    """Return the seconds to average gradients over `gpus` GPUs on `nodes` nodes (G2); shapes broadcast."""
    nodes, gpus = np.asarray(nodes), np.asarray(gpus)
    further = np.maximum(gpus - 2, TINY_S)
    between = parameters.alpha_n + parameters.beta_n * further
    within = parameters.alpha_r + parameters.beta_r * further
    return np.where(nodes > 1, between, np.where(gpus > 1, within, TINY_S))


def step_time_s(
    parameters: ThroughputParameters, nodes: ArrayLike, gpus: ArrayLike, local_batch_size: ArrayLike
) -> NDArray[np.float64]:
    """Return the seconds of a step with synchronisation; computation and synchronisation overlap (G3); shapes
    broadcast.
    """
    compute = compute_time_s(parameters, local_batch_size)
    sync = sync_time_s(parameters, nodes, gpus)
    longer, shorter = np.maximum(compute, sync), np.minimum(compute, sync)
    gamma = parameters.gamma
    return np.asarray(longer * (1.0 + (shorter / longer) ** gamma) ** (1.0 / gamma))


def throughput(
    parameters: ThroughputParameters,
    nodes: ArrayLike,
    gpus: ArrayLike,
    local_batch_size: ArrayLike,
    accumulation_steps: ArrayLike = 0,
) -> NDArray[np.float64]:
    """Return samples per second (G4); shapes broadcast.

    Parameters
    ----------
    parameters : ThroughputParameters
    nodes, gpus : array_like of int
        Nodes and GPUs of the configuration.
    local_batch_size : array_like of int
        Samples per GPU and gradient.
    accumulation_steps : array_like of int
        Number of gradients summed locally before the synchronised one.
    """
    steps = np.asarray(accumulation_steps)
    total = np.asarray(gpus) * np.asarray(local_batch_size) * (steps + 1)
    seconds = steps * compute_time_s(parameters, local_batch_size)
    seconds = seconds + step_time_s(parameters, nodes, gpus, local_batch_size)
    return np.asarray(total / seconds, dtype=np.float64)
