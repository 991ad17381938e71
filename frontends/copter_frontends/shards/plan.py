"""The result of a scheme: copies, shares of the load, and quality."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from copter_frontends.shards.cluster import Bools, Floats, Ints, ShardCluster, summed

ROUNDING = 1e-9  # a load counts as within the band up to this relative excess


@dataclass(frozen=True, slots=True, eq=False)
class ShardPlan:
    """Copies of shards on servers, and the share of the load that each copy serves.

    Attributes
    ----------
    shard, server : ndarray (copies,)
        The copies.
    share : ndarray (copies,)
        R; the shares of a shard sum to one.
    holds : ndarray (shards, servers) of bool
        The copies as a table.
    server_load : ndarray (servers,)
    movements, moved_size, cost : float
        Number of new copies, their memory, and their cost (SH11).
    bound : float
        Certified bound: no plan costs less. NaN if the scheme has no bound.
    imbalance : float
        Difference between the most and the least loaded server, divided by the mean load.
    in_band : bool
    status : {"optimal", "feasible", "kept_previous", "out_of_band"}
    seconds : dict
        Times of the round's ``edit``, ``solve`` and ``shim``.
    columns, fractional : int
        Columns of the program, and shards that it split.
    """

    shard: Ints
    server: Ints
    share: Floats
    holds: Bools
    server_load: Floats
    movements: int
    moved_size: float
    cost: float
    bound: float
    imbalance: float
    in_band: bool
    status: str
    seconds: dict[str, float] = field(default_factory=dict)
    columns: int = 0
    fractional: int = 0

    @property
    def gap(self) -> float:
        """Distance of the cost from the bound, relative to the cost."""
        return float(np.maximum(self.cost - self.bound, 0.0)) / max(self.cost, 1.0)


class ShardScheme(Protocol):
    """Interface of every scheme, opponents included."""

    cluster: ShardCluster

    def plan(self, loads: ArrayLike, deadline_s: float | None = None) -> ShardPlan:
        """Return a plan for the round's loads, starting from the current copies, and adopt it."""

    def remove_server(self, server: int) -> None:
        """Remove a failed server with its copies; raises UnknownServerError or ShardError."""

    def add_server(self, server: int) -> None:
        """Bring back a failed server, empty; raises UnknownServerError."""


def plan_of(
    cluster: ShardCluster,
    loads: Floats,
    shard: Ints,
    server: Ints,
    share: Floats,
    bound: float = np.nan,
    status: str = "feasible",
    seconds: dict[str, float] | None = None,
    columns: int = 0,
) -> ShardPlan:
    """Return the plan of some copies, compared with the cluster's current ones."""
    holds = np.zeros_like(cluster.holds)
    holds[shard, server] = True
    server_load = summed(server, share * loads[shard], cluster.n_servers)
    up = cluster.is_up
    mean = float(loads.sum()) / int(up.sum())
    new = holds & ~cluster.holds
    moved = new.sum(axis=1)
    cost = float(moved @ cluster.new_copy)
    spread = float(server_load[up].max() - server_load[up].min()) / mean if mean > 0.0 else 0.0
    off = np.abs(server_load[up] - mean).max() if mean > 0.0 else 0.0
    in_band = bool(off <= cluster.band * mean * (1.0 + ROUNDING))
    if status == "feasible" and cost <= bound * (1.0 + 1e-9) + 1e-9:
        status = "optimal"
    if not in_band:
        status = "out_of_band"
    return ShardPlan(
        shard, server, share, holds, server_load, int(moved.sum()), float(moved @ cluster.size), cost, bound, spread,
        in_band, status, seconds or {}, columns, int((np.bincount(shard, (share > 0) & (share < 1)) > 0).sum()),
    )  # fmt: skip
