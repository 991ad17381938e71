"""Published instances: topologies, demands by seed, and published optima and times for comparison.

They are read from the folder ``te`` of the data (COPTER_DATA). Sources: stanford-futuredata/POP (MIT),
netcontract/ncflow.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from copter_frontends.traffic.demands import DemandConstants, Floats, demand_matrix
from copter_frontends.traffic.errors import NetworkFileError
from copter_frontends.traffic.network import Network
from copter_frontends.traffic.readers import read_network

TOPOLOGIES = ("GtsCe", "UsCarrier", "Cogentco", "Kdl")
OBJECTIVES = {"total": "total_flow", "concurrent": "max_concurrent_flow"}


@dataclass(frozen=True, slots=True)
class Instance:
    """A published instance with its published results (None if not published).

    Attributes
    ----------
    topology, model, scale, seed
    objective : {"total", "concurrent"}
    optimum, gurobi_s : float or None
    pop16, pop16_s, ncflow, ncflow_s, cspf, cspf_s : float or None
    """

    topology: str
    model: str
    scale: float
    seed: int
    objective: str = "total"
    optimum: float | None = None
    gurobi_s: float | None = None
    pop16: float | None = None
    pop16_s: float | None = None
    ncflow: float | None = None
    ncflow_s: float | None = None
    cspf: float | None = None
    cspf_s: float | None = None

    @property
    def name(self) -> str:
        """Unique name among the instances of this objective."""
        return f"{self.topology} {self.model} x{self.scale:g} {self.seed}"

    def network(self) -> Network:
        """The topology."""
        return published_network(self.topology)

    def demands(self) -> Floats:
        """The demand matrix (n, n)."""
        return demand_matrix(self.network(), constants_of(self.topology), self.model, self.scale, self.seed)


def data_folder() -> Path:
    """Return the folder of published instances; raises NetworkFileError if it is absent."""
    found = Path(os.environ.get("COPTER_DATA", "../shared/data")) / "te"
    if not (found / "topologies").is_dir():
        raise NetworkFileError(f"{found} is not there: set COPTER_DATA to the folder of the public data")
    return found


def table(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of the folder."""
    with open(data_folder() / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@lru_cache(maxsize=8)
def published_network(topology: str) -> Network:
    """Return a published topology; its arc order is that of the published path sets."""
    path = data_folder() / "topologies" / f"{topology}.csv"
    if not path.is_file():
        raise NetworkFileError(f"{path} is not there: published topologies are {', '.join(TOPOLOGIES)}")
    return read_network(path)


def constants_of(topology: str) -> DemandConstants:
    """Return the demand constants of a published topology; raises NetworkFileError if there are none."""
    rows = [row for row in table("traffic_parameters.csv") if row["topology"] == topology]
    if not rows:
        raise NetworkFileError(f"traffic_parameters.csv has no row for {topology!r}")
    of = {name: float(value) for name, value in rows[0].items() if name != "topology"}
    return DemandConstants(
        gravity_total=of["gravity_total"],
        uniform_max=of["uniform_max"],
        bimodal_fraction=of["bimodal_fraction"],
        bimodal_low=(of["bimodal_low_min"], of["bimodal_low_max"]),
        bimodal_high=(of["bimodal_high_min"], of["bimodal_high_max"]),
        intra=(of["intra_lambda"], of["intra_decay"], of["intra_factor"]),
        inter=(of["inter_lambda"], of["inter_decay"], of["inter_factor"]),
    )


@lru_cache(maxsize=4)
def instances(objective: str = "total") -> tuple[Instance, ...]:
    """Return all published instances of an objective; total demand distinguishes the two Poisson models."""
    found = []
    for row in table(f"results_{OBJECTIVES[objective]}.csv"):

        def number(name: str, row: dict[str, str] = row) -> float | None:
            return float(row[name]) if row.get(name) else None

        found.append(
            Instance(
                row["topology"],
                row["model"],
                float(row["scale"]),
                int(row["seed"]),
                objective,
                optimum=number("objective_value"),
                gurobi_s=number("gurobi_seconds"),
                pop16=number("pop16_value"),
                pop16_s=number("pop16_seconds"),
                ncflow=number("ncflow_value"),
                ncflow_s=number("ncflow_seconds"),
                cspf=number("cspf_value"),
                cspf_s=number("cspf_seconds"),
            )
        )
    return tuple(found)


def instance(topology: str, seed: int, objective: str = "total") -> Instance:
    """Return the instance of this name; raises NetworkFileError if there is none."""
    for found in instances(objective):
        if found.topology == topology and found.seed == seed:
            return found
    raise NetworkFileError(f"no published instance of {topology} has the seed {seed}")
