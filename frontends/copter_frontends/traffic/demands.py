"""Demand matrices: the published generators, by seed (TE8 to TE11 in docs/method/traffic.md), and their check.

The generators are those of POP (Narayanan et al., SOSP 2021) and NCFlow (Abuzaid et al., NSDI 2021) with NumPy's legacy
random numbers, so they reproduce the published instances to the last bit of float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from copter_frontends.traffic.errors import DemandError
from copter_frontends.traffic.network import Network

Floats = NDArray[np.float64]

MODELS = ("gravity", "uniform", "bimodal", "poisson-high-intra", "poisson-high-inter")
MOST_DEMAND = 1e15
"""Larger demands are refused, because sums of flows would lose precision."""


@dataclass(frozen=True, slots=True)
class DemandConstants:
    """Constants of the five models for one network.

    Attributes
    ----------
    gravity_total : float
        Total demand of all pairs at scale 1.
    uniform_max : float
    bimodal_fraction : float
        Share of pairs with high demand.
    bimodal_low, bimodal_high : (float, float)
        Ranges of the low and the high demands.
    intra, inter : (float, float, float)
        Rate, decay per hop, and factor of the two Poisson models.
    """

    gravity_total: float
    uniform_max: float
    bimodal_fraction: float = 0.2
    bimodal_low: tuple[float, float] = (0.0, 0.03)
    bimodal_high: tuple[float, float] = (0.06, 0.12)
    intra: tuple[float, float, float] = (1e9, 0.1, 4e-7)
    inter: tuple[float, float, float] = (1000.0, 0.9, 1e-4)

    @classmethod
    def for_network(cls, network: Network) -> DemandConstants:
        """Return constants for a network without published ones: total demand is the arcs' total capacity divided by
        400.
        """
        total = float(network.capacity.sum()) / 400.0
        pairs = network.n_nodes * (network.n_nodes - 1)
        mean = total / pairs
        return cls(total, 2.0 * mean, 0.2, (0.0, mean), (2.0 * mean, 4.0 * mean), inter=(1000.0, 0.9, mean / 250.0))


def demand_matrix(network: Network, constants: DemandConstants, model: str, scale: float, seed: int) -> Floats:
    """Return a matrix (n, n) of demands between nodes, zero on the diagonal.

    Parameters
    ----------
    network : Network
    constants : DemandConstants
    model : str
        One of :data:`MODELS`.
    scale : float
    seed : int
        From 0 to 2**32 - 1.

    Raises
    ------
    DemandError
        For an unknown model, and for a scale that is negative or not finite.
    """
    if model not in MODELS:
        raise DemandError(f"unknown demand model {model!r}: one of {', '.join(MODELS)}")
    if not (np.isfinite(scale) and scale >= 0.0):
        raise DemandError(f"the scale is {scale}: give a number from 0 on")
    rng, n = np.random.RandomState(seed), network.n_nodes
    if model == "gravity":
        found = _gravity(network, rng) * np.float32(constants.gravity_total) * np.float32(scale)
    elif model == "uniform":
        found = (rng.rand(n, n) * constants.uniform_max).astype(np.float32) * np.float32(scale)
    elif model == "bimodal":
        found = _bimodal(n, constants, rng) * scale
    else:
        found = _poisson(network, constants.intra if model.endswith("intra") else constants.inter, rng, scale)
    matrix = found.astype(np.float64)
    np.fill_diagonal(matrix, 0.0)
    return checked_matrix(network, np.maximum(matrix, 0.0))


def _gravity(network: Network, rng: np.random.RandomState) -> NDArray[np.float32]:
    """Return shares by outgoing and incoming capacity, with 25% noise (TE8)."""
    n = network.n_nodes
    out, into = (np.bincount(ends, network.capacity, n) for ends in (network.source, network.target))
    rest = into.sum() - into
    mean = (out / max(out.sum(), 1e-300))[:, None] * into[None, :] / np.maximum(rest, 1e-300)[:, None]
    off, drawn = ~np.eye(n, dtype=np.bool_), np.zeros((n, n))
    drawn[off] = np.maximum(rng.normal(mean[off], mean[off] / 4.0), 0.0)
    return drawn.astype(np.float32)


def _bimodal(n: int, constants: DemandConstants, rng: np.random.RandomState) -> Floats:
    """Draw a share of the pairs from the high range, the others from the low range (TE10)."""
    high = rng.rand(n, n) < constants.bimodal_fraction
    found = np.zeros((n, n))
    for part, (low, top) in ((~high, constants.bimodal_low), (high, constants.bimodal_high)):
        found[part] = rng.uniform(low, top, int(part.sum()))
    return found


def _poisson(
    network: Network, constants: tuple[float, float, float], rng: np.random.RandomState, scale: float
) -> NDArray[np.float32]:
    """Draw Poisson numbers whose rate decreases with the hops between nodes (TE11)."""
    rate, decay, factor = constants
    hops = hops_between(network)
    drawn = rng.poisson(np.where(np.isfinite(hops), rate * decay ** np.where(np.isfinite(hops), hops, 0.0), 0.0))
    return drawn.astype(np.float32) * np.float32(factor) * np.float32(scale)


def hops_between(network: Network) -> Floats:
    """Return hops between nodes, (n, n); infinite for unreachable pairs."""
    graph = csr_array((np.ones(network.n_arcs), (network.source, network.target)), shape=(network.n_nodes,) * 2)
    return np.asarray(shortest_path(graph, method="D", unweighted=True))


# Checks ---------------------------------------------------------------------------------------------------------------


def checked_matrix(network: Network, matrix: ArrayLike) -> Floats:
    """Return a copy of a demand matrix; raises DemandError that names the first wrong pair."""
    found = np.array(matrix, dtype=np.float64)
    n = network.n_nodes
    if found.shape != (n, n):
        raise DemandError(f"demands have shape {found.shape}, must be ({n}, {n}): one row and column a node")
    pairs = np.argwhere(_wrong(found) | (np.eye(n, dtype=np.bool_) & (found != 0.0)))
    for u, v in pairs[:1].tolist():
        name = f"{network.nodes[u]!r} -> {network.nodes[v]!r}"
        if u == v:
            raise DemandError(f"demand {name} of a node to itself is {found[u, v]:g}: it uses no link; leave it out")
        raise _wrong_demand(name, found[u, v])
    return found


def checked_demands(names: list[str], demands: ArrayLike) -> Floats:
    """Return a copy of some pairs' demands; raises DemandError that names the first wrong one."""
    found = np.array(demands, dtype=np.float64)
    found = np.full(len(names), float(found)) if found.ndim == 0 else found
    if found.shape != (len(names),):
        raise DemandError(f"demands have shape {found.shape}, must be ({len(names)},): one for each pair")
    for at in np.flatnonzero(_wrong(found))[:1].tolist():
        raise _wrong_demand(names[at], found[at])
    return found


def _wrong(demands: Floats) -> NDArray[np.bool_]:
    return ~(np.isfinite(demands) & (demands >= 0.0) & (demands <= MOST_DEMAND))


def _wrong_demand(name: str, value: float) -> DemandError:
    return DemandError(f"demand {name} is {value}: give a number from 0 to {MOST_DEMAND:g}")
