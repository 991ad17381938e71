"""Shards and servers: sizes, memory, copies, and the constraints of a balance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from copter_frontends.shards.errors import ShardError, UnknownServerError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

BAND = 0.05  # half width of the band, as a share of the mean load, as published
MEMORY = 16.0  # default memory of a server; a copy's default size is 1
COSTS = ("unit", "size")
MOST_LOAD = 1e18  # largest load of a shard, so that sums stay accurate


@dataclass(frozen=True, eq=False)
class ShardCluster:
    """Shards, servers and the copies at the start of a round.

    Parameters
    ----------
    size : ndarray (shards,)
        Memory of a copy of each shard, above zero.
    memory : ndarray (servers,)
    holds : ndarray (shards, servers) of bool
        T: whether each server holds a copy of each shard.
    band : float
        Largest distance of a server's load from the mean load of the running servers, as a share of the mean.
    replicas : int
        Least number of copies of every shard.
    cost : {"unit", "size"}
        Cost of a new copy: one, or the shard's size.
    up : ndarray (servers,) of bool
        Whether each server is running.

    Raises
    ------
    ShardError
    """

    size: Floats
    memory: Floats
    holds: Bools
    band: float = BAND
    replicas: int = 1
    cost: str = "unit"
    up: Bools | None = None

    def __post_init__(self) -> None:
        d, n = len(self.size), len(self.memory)
        if self.up is None:
            object.__setattr__(self, "up", np.ones(n, dtype=np.bool_))
        if d == 0 or n == 0 or self.holds.shape != (d, n) or self.holds.dtype != np.bool_:
            raise ShardError(f"holds must be bools of shape ({d}, {n}): one row a shard, one column a server")
        for what, array in (("size", self.size), ("memory", self.memory)):
            bad = ~(np.isfinite(array) & (array >= 0.0)) | ((array == 0.0) & (what == "size"))
            for at in np.flatnonzero(bad)[:1].tolist():
                raise ShardError(f"{what} {at} is {array[at]}: give positive numbers")
        if not (np.isfinite(self.band) and 0.0 < self.band < 1.0):
            raise ShardError(f"the band is {self.band}: give a share above 0 and below 1")
        if self.cost not in COSTS:
            raise ShardError(f"unknown cost {self.cost!r}: one of {', '.join(COSTS)}")
        self._check_room()

    def _check_room(self) -> None:
        servers = np.flatnonzero(self.is_up)
        if not 1 <= self.replicas <= len(servers):
            raise ShardError(f"{self.replicas} replicas do not fit on {len(servers)} servers, at most one on each")
        memory = self.memory[servers]
        order = np.sort(memory)[::-1]
        for shard in np.flatnonzero(self.size > order[self.replicas - 1])[:1].tolist():
            raise ShardError(
                f"shard {shard} of size {self.size[shard]:g} does not fit on {self.replicas} servers: the largest have "
                f"{order[0]:g}"
            )
        if self.replicas * float(self.size.sum()) > float(memory.sum()):
            raise ShardError(
                f"{self.replicas} copies of all shards take {self.replicas * self.size.sum():g}, the servers have "
                f"{memory.sum():g}: add servers or memory"
            )

    @classmethod
    def round_robin(
        cls, shards: int, servers: int, memory: ArrayLike = MEMORY, band: float = BAND, replicas: int = 1,
        cost: str = "unit", size: ArrayLike = 1.0,
    ) -> ShardCluster:  # fmt: skip
        """Return the published start: shard j on server j mod N, further replicas on the following servers."""
        if shards < 1 or servers < 1:
            raise ShardError(f"{shards} shards on {servers} servers: give at least one of each")
        if replicas > servers:
            raise ShardError(f"{replicas} replicas do not fit on {servers} servers, at most one on each")
        holds = np.zeros((shards, servers), dtype=np.bool_)
        for extra in range(replicas):
            holds[np.arange(shards), (np.arange(shards) + extra) % servers] = True
        sizes = np.broadcast_to(np.asarray(size, dtype=np.float64), shards).copy()
        memories = np.broadcast_to(np.asarray(memory, dtype=np.float64), servers).copy()
        return cls(sizes, memories, holds, band, replicas, cost)

    @property
    def is_up(self) -> Bools:
        """Return the mask of running servers."""
        if self.up is None:
            raise ShardError("a cluster without its servers' state")
        return self.up

    @property
    def n_shards(self) -> int:
        """Number of shards, D."""
        return len(self.size)

    @property
    def n_servers(self) -> int:
        """Number of servers, N, including failed ones."""
        return len(self.memory)

    @property
    def new_copy(self) -> Floats:
        """Return the cost of a new copy of each shard, (shards,)."""
        return np.ones(self.n_shards) if self.cost == "unit" else self.size

    def checked_loads(self, loads: ArrayLike) -> Floats:
        """Return a copy of the shards' loads; raises ShardError that names the first wrong one."""
        found = np.array(loads, dtype=np.float64)
        if found.shape != (self.n_shards,):
            raise ShardError(f"loads have shape {found.shape}, must be ({self.n_shards},): one for each shard")
        for at in np.flatnonzero(~(np.isfinite(found) & (found >= 0.0) & (found <= MOST_LOAD)))[:1].tolist():
            raise ShardError(f"the load of shard {at} is {found[at]}: give a number from 0 to {MOST_LOAD:g}")
        return found

    def with_holds(self, holds: Bools) -> ShardCluster:
        """Return the cluster with other copies."""
        return replace(self, holds=holds)

    def without_server(self, server: int) -> ShardCluster:
        """Return the cluster without a server and its copies; raises ShardError or UnknownServerError."""
        self._require(server, True)
        up, holds = self.is_up.copy(), self.holds.copy()
        up[server], holds[:, server] = False, False
        return replace(self, up=up, holds=holds)

    def with_server(self, server: int) -> ShardCluster:
        """Return the cluster with a failed server back, empty; raises UnknownServerError."""
        self._require(server, False)
        up = self.is_up.copy()
        up[server] = True
        return replace(self, up=up)

    def _require(self, server: int, up: bool) -> None:
        if not 0 <= server < self.n_servers:
            raise UnknownServerError(f"there is no server {server}: servers are 0 to {self.n_servers - 1}")
        if bool(self.is_up[server]) != up:
            raise UnknownServerError(f"server {server} is {'down' if up else 'up'} already")


def summed(places: Ints, values: Floats, count: int) -> Floats:
    """Return float sums of values by index; zeros for indices without values."""
    return np.bincount(places, values, count).astype(np.float64)
