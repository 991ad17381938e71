"""Published traffic-engineering instances: topologies, demand matrices and what they are checked against.

Reads the folder `te` of the data (COPTER_DATA). Topologies are of the Internet Topology Zoo; demand models and
published optima are those of POP (Narayanan et al., SOSP 2021) and NCFlow (Abuzaid et al., NSDI 2021), regenerated
from seeds.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from families.program import Floats, Ints


@dataclass(frozen=True, slots=True)
class Network:
    """An instance: a topology, and a demand matrix by model, scale and seed.

    Attributes
    ----------
    share : float
        Of the ordered pairs, drawn at random, that are kept.
    capacity : float or None
        Of every arc; None for the topology's own.
    """

    topology: str
    model: str
    scale: float
    seed: int
    share: float = 1.0
    capacity: float | None = None


NETWORKS: dict[str, Network] = {
    "GtsCe": Network("GtsCe", "gravity", 64, 1321948195),
    "UsCarrier": Network("UsCarrier", "uniform", 64, 262493073),
    "Cogentco": Network("Cogentco", "gravity", 64, 1229219359),
    "Kdl-tenth": Network("Kdl", "gravity", 16, 1710674203, 0.1, 100.0),
    "Kdl": Network("Kdl", "gravity", 16, 1710674203),
}


def folder() -> Path:
    """Where the data are; ValueError if they are not there."""
    found = Path(os.environ.get("COPTER_DATA", "../shared/data")) / "te"
    if not (found / "topologies").is_dir():
        raise ValueError(f"{found} is not there: set COPTER_DATA to the folder of the public data")
    return found


def table(name: str) -> list[dict[str, str]]:
    """Rows of a CSV file of the folder."""
    with open(folder() / name, newline="") as file:
        return list(csv.DictReader(file))


def arcs(topology: str) -> tuple[Ints, Ints, Floats]:
    """(sources, targets, capacities) of the arcs, in the order of the file."""
    rows = np.loadtxt(folder() / "topologies" / f"{topology}.csv", delimiter=",", skiprows=1, ndmin=2)
    return rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64), rows[:, 2].copy()


def demands(network: Network) -> Floats:
    """The matrix (n, n), zero where there is no commodity."""
    source, target, capacity = arcs(network.topology)
    n = int(source.max()) + 1
    rows = [row for row in table("traffic_parameters.csv") if row["topology"] == network.topology]
    constant = {name: float(value) for name, value in rows[0].items() if name != "topology"}
    rng = np.random.RandomState(network.seed)
    if network.model == "gravity":
        out, into = np.bincount(source, capacity, n), np.bincount(target, capacity, n)
        mean = (out / out.sum())[:, None] * into[None, :] / (into.sum() - into)[:, None]
        off = ~np.eye(n, dtype=bool)
        drawn = np.zeros((n, n))
        drawn[off] = np.maximum(rng.normal(mean[off], mean[off] / 4.0), 0.0)
        found = drawn.astype(np.float32) * np.float32(constant["gravity_total"]) * np.float32(network.scale)
    elif network.model == "uniform":
        found = (rng.rand(n, n) * constant["uniform_max"]).astype(np.float32) * np.float32(network.scale)
    elif network.model == "bimodal":
        high = rng.rand(n, n) < constant["bimodal_fraction"]
        found = np.zeros((n, n))
        for part, name in ((~high, "low"), (high, "high")):
            low, top = constant[f"bimodal_{name}_min"], constant[f"bimodal_{name}_max"]
            found[part] = rng.uniform(low, top, int(part.sum()))
        found *= network.scale
    else:
        raise ValueError(f"unknown demand model {network.model!r}: gravity, uniform or bimodal")
    found = found.astype(np.float64)
    np.fill_diagonal(found, 0.0)
    if network.share < 1.0:
        kept = np.random.RandomState(0).random_sample((n, n)) < network.share
        found[~kept] = 0.0
    return np.maximum(found, 0.0)
