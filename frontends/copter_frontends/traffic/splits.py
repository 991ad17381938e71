"""Splits for routers: integer buckets per path, as in hash tables of equal-cost groups (TE13)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from copter_frontends.traffic.errors import DemandError
from copter_frontends.traffic.flow_kernels import largest_remainders
from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.shim import KEEP, exact_sums

BUCKETS = 64  # buckets of a router's weights by default
MOST_BUCKETS = 65536  # most buckets of a router


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Weights of paths, and the rates that they can carry.

    Attributes
    ----------
    buckets : int
        The weights of a pair's paths sum to this, or to zero if the pair has no flow.
    weight : ndarray (paths,) of int64
    rate : ndarray (pairs,)
        Largest rate of each pair such that no link is exceeded when traffic is split by the weights.
    flows : ndarray (paths,)
        rate * weight / buckets; exactly feasible.
    """

    buckets: int
    weight: NDArray[np.int64]
    rate: Floats
    flows: Floats


def router_splits(paths: Paths, flows: Floats, capacity: Floats, buckets: int = BUCKETS) -> Splits:
    """Round flows to path weights by largest remainders, and reduce rates to the links' capacity.

    Rounding moves traffic between a pair's paths and may overload a full link, so the rates of the pairs that use it
    are lowered.

    Parameters
    ----------
    paths : Paths
    flows : ndarray (paths,)
        Feasible flows.
    capacity : ndarray (arcs,)
    buckets : int
        Number of buckets, 1 to 65,536.

    Raises
    ------
    DemandError
        If the number of buckets is out of range.
    """
    if not 1 <= buckets <= MOST_BUCKETS:
        raise DemandError(f"{buckets} buckets: give a number from 1 to {MOST_BUCKETS}")
    served = exact_sums(paths, flows)[0]
    share = np.divide(flows, served[paths.pair_of], out=np.zeros(len(flows)), where=flows > 0.0)
    weight = np.zeros(paths.n_paths, dtype=np.int64)
    largest_remainders(paths.first, share * buckets, buckets, weight)
    rate = served.copy()
    for _ in range(4):
        found = rate[paths.pair_of] * (weight / buckets)
        load = exact_sums(paths, found)[1]
        factor = np.ones_like(load)
        over = load > capacity * KEEP
        if not over.any():
            return Splits(buckets, weight, rate, found)
        factor[over] = capacity[over] / load[over] * KEEP * KEEP
        of_path = np.minimum.reduceat(factor[paths.arc], paths.start[:-1])
        rate *= np.minimum(paths.least(np.where(weight > 0, of_path, 1.0), none=1.0), 1.0)
    used = np.where(over[paths.arc] & (weight[paths.path_of_entry] > 0), paths.pair_of[paths.path_of_entry], -1)
    rate[np.unique(used[used >= 0])] = 0.0
    return Splits(buckets, weight, rate, rate[paths.pair_of] * (weight / buckets))


def write_splits(paths: Paths, splits: Splits, file: str | Path) -> None:
    """Write a CSV row for every path with a weight: the pair, its rate, the weight, the buckets, the path's nodes."""
    nodes = paths.network.nodes
    with open(file, "w", newline="", encoding="utf-8") as out:
        rows = csv.writer(out)
        rows.writerow(("source", "target", "rate", "weight", "buckets", "path"))
        for path in np.flatnonzero(splits.weight).tolist():
            pair = int(paths.pair_of[path])
            source, target = (nodes[end] for end in paths.pairs[pair].tolist())
            way = " ".join(str(nodes[node]) for node in paths.nodes_of(path))
            rate = repr(float(splits.rate[pair]))
            rows.writerow((source, target, rate, int(splits.weight[path]), splits.buckets, way))
