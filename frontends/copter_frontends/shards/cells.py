"""Shard balancing in cells: each cell balances its own servers, and cells exchange load (SH10).

A new copy costs the same on any server, so a cell need not know which server of another cell takes its outgoing load.
It suffices that the cells together take in as much load as they give away.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from copter import Model, Solution
from copter_frontends.shards.cluster import Floats, Ints, ShardCluster
from copter_frontends.shards.errors import ShardError
from copter_frontends.shards.formulation import PENALTY, Shares

if TYPE_CHECKING:
    from copter_distributed.cells import Cells

ROOM, NEED = "room for load of other cells", "load that other cells take"
TAKEN, STANDING, OUT = "taken in", "standing", "out of band"  # ids of requests that are not shards
ALONE = 1e-9  # shares of a shard's load below this count as zero


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One cell's servers and the shards whose copies are on them.

    Attributes
    ----------
    servers, shards : ndarray
    load : ndarray (len(shards),)
        In units of the mean load of a server.
    most_in, most_out : float
        Most load that the cell can take in and give away.
    """

    servers: Ints
    shards: Ints
    load: Floats
    most_in: float
    most_out: float


class ShardCells:
    """SH2 split by servers into cells that exchange load (SH10).

    Parameters
    ----------
    cluster : ShardCluster
        All copies of a shard must be in one cell.
    load : ndarray (shards,)
        In units of the mean load of a server.
    parts : int
        Number of cells: blocks of consecutive servers, of nearly equal size.

    Raises
    ------
    ShardError
        If there are more cells than servers, or a shard has copies in two cells or none.
    """

    def __init__(self, cluster: ShardCluster, load: Floats, parts: int) -> None:
        servers = np.flatnonzero(cluster.is_up)
        if not 1 <= parts <= len(servers):
            raise ShardError(f"{parts} cells of {len(servers)} servers: give at least one server a cell")
        self.cluster, self.load = cluster, load
        homes = np.array_split(servers, parts)
        here = np.array([cluster.holds[:, each].any(axis=1) for each in homes])
        for shard in np.flatnonzero(here.sum(axis=0) != 1)[:1].tolist():
            raise ShardError(
                f"shard {shard} has copies in {int(here[:, shard].sum())} cells: all its copies must be in one"
            )
        self.blocks = [self._block(each, np.flatnonzero(mine)) for each, mine in zip(homes, here, strict=True)]
        positive = load[load > 0.0]
        worst = float(cluster.new_copy.max()) / float(positive.min()) if len(positive) else 1.0
        self._penalty = PENALTY * min(worst, 1e4)

    def _block(self, servers: Ints, shards: Ints) -> Block:
        own = self.load[shards]
        return Block(servers, shards, own, len(servers) * (1.0 + self.cluster.band), float(own.sum()))

    @property
    def counts(self) -> dict[Hashable, float]:
        """Return the counts of the cells' shared resources: room for incoming load, and load that may leave."""
        return {ROOM: sum(each.most_in for each in self.blocks), NEED: sum(each.most_out for each in self.blocks)}

    @property
    def alone(self) -> list[Floats]:
        """Return shares of :attr:`counts` with which no cell gives away more load than it takes in."""
        return [np.array([each.most_in, each.most_out]) for each in self.blocks]

    def models(self) -> list[Model]:
        """Return a model for each cell, with rows for the shared resources."""
        return [self._model(block) for block in self.blocks]

    def _model(self, block: Block) -> Model:
        cluster, k = self.cluster, len(block.servers)
        model = Model("min")
        rows = [("load", server) for server in block.servers.tolist()]
        memory = [("memory", server) for server in block.servers.tolist()]
        for row, room, count in zip(rows, memory, cluster.memory[block.servers].tolist(), strict=True):
            model.set_count(row, 1.0 + cluster.band, 1.0 - cluster.band)
            model.set_count(room, count)
        for name, count in self.counts.items():
            model.set_count(name, count)
        eye, one = sp.identity(k, format="csc"), np.ones((1, k))
        for at, shard in enumerate(block.shards.tolist()):
            own, size = float(block.load[at]), float(cluster.size[shard])
            away = np.zeros((2 * k + 2, 1))
            away[2 * k :, 0] = own, -own
            here = sp.vstack((own * eye, size * eye, sp.csc_array((2, k))))
            new = float(cluster.new_copy[shard])
            cost = np.append(new * ~cluster.holds[shard, block.servers], new)
            model.add_request(
                shard, cost, sp.hstack((here, away)).tocsc(), resources=[*rows, *memory, ROOM, NEED],
                limit=1.0, at_least=1.0,
            )  # fmt: skip
        taken = sp.vstack((eye, -one, one)).tocsc()
        model.add_request(TAKEN, np.zeros(k), taken, resources=[*rows, ROOM, NEED], limit=block.most_in)
        out = sp.hstack((eye, -eye)).tocsc()
        model.add_request(OUT, np.full(2 * k, self._penalty), out, resources=rows, limit=np.inf)
        constant = {ROOM: [block.most_in], NEED: [block.most_out]}
        model.add_request(STANDING, [0.0], constant, at_least=1.0)
        return model

    def shares(self, solutions: Sequence[Solution]) -> Shares:
        """Combine the cells' solutions to shares of every copy in the whole program (SH2).

        Outgoing load is assigned to the servers that take load in, in order.

        Raises
        ------
        ShardError
            If a cell is outside the band, or moved load does not fit a server's memory.
        """
        entries: list[tuple[int, int, float]] = []
        away: list[tuple[int, float]] = []
        taken: list[tuple[int, float]] = []
        for block, solution in zip(self.blocks, solutions, strict=True):
            if solution.of(OUT).sum() > ALONE * len(block.servers) * 1e3:
                raise ShardError(f"servers {block.servers[0]} to {block.servers[-1]} cannot be brought into the band")
            for shard in block.shards.tolist():
                column, value = solution.columns_of(shard)
                for at, share in zip(column.tolist(), value.tolist(), strict=True):
                    if share > ALONE and at < len(block.servers):
                        entries.append((shard, int(block.servers[at]), share))
                    elif share > ALONE:
                        away.append((shard, share))
            taken += zip(block.servers.tolist(), solution.of(TAKEN).tolist(), strict=True)
        entries += self._handed_over(away, taken)
        shard, server, share = zip(*entries, strict=True)
        found = np.array(shard, dtype=np.int64), np.array(server, dtype=np.int64), np.array(share)
        used = np.bincount(found[1], weights=found[2] * self.cluster.size[found[0]], minlength=self.cluster.n_servers)
        for at in np.flatnonzero(used > self.cluster.memory * (1.0 + 1e-6))[:1].tolist():
            raise ShardError(f"what server {at} takes in does not fit its memory: {used[at]:g} of it")
        return found

    def _handed_over(
        self, away: list[tuple[int, float]], taken: list[tuple[int, float]]
    ) -> list[tuple[int, int, float]]:
        """Assign outgoing load to the servers that take it in, in order."""
        found: list[tuple[int, int, float]] = []
        waiting = [[server, amount] for server, amount in taken if amount > ALONE]
        for shard, share in away:
            left, own = share, float(self.load[shard])
            while left > ALONE and waiting:
                server, room = waiting[-1]
                part = min(left, room / own) if own > 0.0 else left
                found.append((shard, int(server), part))
                left -= part
                waiting[-1][1] -= part * own
                if waiting[-1][1] <= ALONE:
                    waiting.pop()
            if left > 1e-6:
                raise ShardError(f"nobody takes in {left:g} of shard {shard}: the cells' exchange is not settled")
        return found

    def cost(self, shares: Shares) -> float:
        """Return the objective of SH2 at these shares."""
        shard, server, share = shares
        return float((share * self.cluster.new_copy[shard] * ~self.cluster.holds[shard, server]).sum())

    def cells(self) -> Cells:
        """Return cells over these models, initially independent."""
        # imported here, because the rest of this file needs no distributed session
        from copter_distributed.cells import Cells

        return Cells(self.models(), self.counts, capacity=self.alone)
