"""Shard balancing on the differential model: the program in R only, with the columns that a round needs (SH2, SH3).

Each shard with a choice is a request, with a column for every server that may serve it. Each server has a ranged
resource for its load, and one for its memory if that can bind. Shards without reason to leave their servers, and light
shards with several copies, are constants. Every pass prices all missing columns, including those of constant shards, so
the bound holds for the whole program.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from copter import Model, Session, Settings, Solution
from copter_frontends.shards.bounds import price_bound, reduced_costs
from copter_frontends.shards.candidates import first_columns
from copter_frontends.shards.cluster import Bools, Floats, Ints, ShardCluster, summed

SOFT = "out of band"  # id of the request whose columns allow violations of band and memory at a price
PENALTY = 20.0  # cost of one mean load outside the band, relative to the cost of moving it shard by shard
MOST_PASSES = 20  # most passes of solving and pricing in a round
NEW_OF_A_SHARD = 8  # most columns added per shard in a pass
NEW_SHARDS = 256  # most shards that get new columns in a pass
ENOUGH = 1e-6  # relative gap at which a round's program counts as solved
VANISHING = 1e-9  # smaller shares count as zero
Shares = tuple[Ints, Ints, Floats]  # shard, server, share of every copy


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """An optimum of the linear program.

    Attributes
    ----------
    shard, server, share : ndarray (entries,)
        Nonzero entries of R.
    objective, bound : float
        Cost, and a certified bound of the program with all columns.
    columns, passes, iterations : int
    edit_s, solve_s : float
    out_of_band : float
        Load outside the band that R cannot avoid, in mean loads.
    price, memory_price : ndarray (servers,)
        Prices of the last pass.
    least : ndarray (shards,)
        Least reduced cost of every shard at these prices: the duals of the shards' own rows.
    """

    shard: Ints
    server: Ints
    share: Floats
    objective: float
    bound: float
    columns: int
    passes: int
    iterations: int
    edit_s: float
    solve_s: float
    out_of_band: float
    price: Floats
    memory_price: Floats
    least: Floats


class ShardFormulation:
    """The rounds' linear programs in one session.

    Parameters
    ----------
    cluster : ShardCluster
        Cluster of the first round; the number of servers stays the same.
    settings : Settings, optional
    """

    def __init__(self, cluster: ShardCluster, settings: Settings | None = None) -> None:
        self.n = cluster.n_servers
        self.model = Model(sense="min")
        for server in range(self.n):
            self.model.set_count(("load", server), 1.0, 0.0)
        self.session = Session(self.model, settings or Settings())
        self.with_memory: list[int] = []
        self.columns: dict[int, Ints] = {}  # servers of each request's columns

    def solve(
        self, cluster: ShardCluster, load: Floats, standing: Shares | None = None, deadline_s: float | None = None
    ) -> Relaxed:
        """Return an optimum for the round's loads (in mean loads), or the last pass's shares if the deadline comes
        first.

        `standing` are the shares of existing copies, which shards without a choice keep.
        """
        started = time.perf_counter()
        allowed = first_columns(cluster, load)
        self._begin(cluster, load, allowed, standing or even_shares(cluster))
        edit_s, solve_s, iterations, bound, passes = time.perf_counter() - started, 0.0, 0, -np.inf, 0
        while True:
            left = None if deadline_s is None else max(1e-3, deadline_s - (time.perf_counter() - started))
            solution = self.session.solve(deadline_s=left)
            solve_s += solution.solve_time_s
            iterations += solution.iterations
            passes += 1
            begun = time.perf_counter()
            price, memory_price = self._prices(solution)
            found, least = price_bound(cluster, load, price, memory_price)
            bound = max(bound, found)
            over = self._over_memory(cluster, solution)
            late = deadline_s is not None and begun - started > deadline_s
            done = bound >= solution.objective - ENOUGH * (1.0 + abs(solution.objective)) and not len(over)
            if late or passes == MOST_PASSES or (done and solution.status.value == "optimal"):
                break
            self._limit_memory(cluster, load, allowed, over)
            added = self._price_in(cluster, load, allowed, price, memory_price)
            edit_s += time.perf_counter() - begun
            if not added and not len(over):
                break
        return self._answer(solution, bound, passes, iterations, (edit_s, solve_s), (price, memory_price, least))

    # Building a round ---------------------------------------------------------------------------------------------

    def _begin(self, cluster: ShardCluster, load: Floats, allowed: Bools, standing: Shares) -> None:
        """Update the model to the round: constant shards change the servers' bands, shards with a choice become
        requests.
        """
        heavy = np.zeros(cluster.n_shards, dtype=np.bool_)
        heavy[np.argsort(-load, kind="stable")[: self.n]] = True
        count = allowed.sum(axis=1)
        self.has_choice = (count > 1) & (heavy | (allowed & ~cluster.holds).any(axis=1))
        kept = ~self.has_choice[standing[0]]
        self.fixed, self.fixed_on, self.fixed_share = (each[kept] for each in standing)
        with self.model.batch():
            self._drop([shard for shard in self.columns if not self.has_choice[shard]])
            self._soften(cluster, load)
            self._put(cluster, load, np.flatnonzero(self.has_choice), allowed)
            self._count(cluster, load)

    def _count(self, cluster: ShardCluster, load: Floats) -> None:
        """Set the counts of bands and memories, less the usage of constant shards."""
        up = cluster.is_up
        there = summed(self.fixed_on, self.fixed_share * load[self.fixed], self.n)
        lower = np.where(up, 1.0 - cluster.band, 0.0) - there
        upper = np.where(up, 1.0 + cluster.band, 0.0) - there
        self.model.update_counts([("load", server) for server in range(self.n)], upper, lower)
        if self.with_memory:
            size = summed(self.fixed_on, self.fixed_share * cluster.size[self.fixed], self.n)
            at = self.with_memory
            self.model.update_counts([("memory", server) for server in at], (cluster.memory - size)[at])

    def _soften(self, cluster: ShardCluster, load: Floats) -> None:
        """Add columns that leave the band at a price, so that the program is always feasible."""
        positive = load[load > 0.0]
        worst = float(cluster.new_copy.max()) / float(positive.min()) if len(positive) else 1.0
        price = PENALTY * min(worst, 1e4)
        eye, m = sp.identity(self.n, format="csc"), len(self.with_memory)
        usage = sp.block_diag((sp.hstack((eye, -eye)), -sp.identity(m)) if m else (sp.hstack((eye, -eye)),)).tocsc()
        if SOFT in self.model:
            self.model.remove_request(SOFT)
        self.model.add_request(SOFT, np.full(2 * self.n + m, price), usage, resources=self._rows(), limit=np.inf)

    def _put(self, cluster: ShardCluster, load: Floats, shards: Ints, allowed: Bools) -> None:
        """Add or update the requests of shards with a choice; a shard with other servers is a new request."""
        servers = {shard: np.flatnonzero(allowed[shard]) for shard in shards.tolist()}
        same = [shard for shard, at in servers.items() if np.array_equal(self.columns.get(shard, ()), at)]
        if same:
            self._use(cluster, load, same)
            self.model.update_costs(same, [self._costs(cluster, shard, servers[shard]) for shard in same])
        unlike = sorted(servers.keys() - set(same))
        self._drop([shard for shard in unlike if shard in self.columns])
        self.columns |= {shard: servers[shard] for shard in unlike}
        if unlike:
            sizes = [len(servers[shard]) for shard in unlike]
            cost = np.concatenate([self._costs(cluster, shard, servers[shard]) for shard in unlike])
            usage = self._usage(cluster, load, unlike)
            self.model.add_own_requests(
                unlike, sizes, cost, usage, resources=self._rows(), limit=1.0, at_least=1.0, integer=True
            )

    def _costs(self, cluster: ShardCluster, shard: int, servers: Ints) -> Floats:
        """Return the cost of a new copy on each server that has none."""
        cost: Floats = cluster.new_copy[shard] * ~cluster.holds[shard, servers]
        return cost

    def _rows(self) -> list[tuple[str, int]]:
        """Return the resources: each server's load, then the memories that have a row."""
        return [("load", server) for server in range(self.n)] + [("memory", server) for server in self.with_memory]

    def _usage(self, cluster: ShardCluster, load: Floats, shards: list[int]) -> sp.csc_array:
        """Return the usage of the shards' columns, one shard after the other."""
        place = np.full(self.n, -1)
        place[self.with_memory] = self.n + np.arange(len(self.with_memory))
        server = np.concatenate([self.columns[shard] for shard in shards])
        shard = np.repeat(shards, [len(self.columns[each]) for each in shards])
        memory = np.flatnonzero(place[server] >= 0)
        value = np.concatenate((load[shard], cluster.size[shard[memory]]))
        row, column = np.concatenate((server, place[server[memory]])), np.append(np.arange(len(server)), memory)
        return sp.csc_array((value, (row, column)), shape=(self.n + len(self.with_memory), len(server)))

    def _use(self, cluster: ShardCluster, load: Floats, shards: list[int]) -> None:
        """Update the usage of shards whose servers stay."""
        if not shards:
            return
        usage, first = self._usage(cluster, load, shards), 0
        for shard in shards:
            last = first + len(self.columns[shard])
            self.model.update_usage(shard, usage[:, first:last], resources=self._rows())
            first = last

    def _drop(self, shards: list[int]) -> None:
        self.model.remove_requests(shards)
        for shard in shards:
            del self.columns[shard]

    # Passes -------------------------------------------------------------------------------------------------------

    def _prices(self, solution: Solution) -> tuple[Floats, Floats]:
        """Return the prices of load and of memory, (servers,) each."""
        price = solution.prices([("load", server) for server in range(self.n)])
        memory = np.zeros(self.n)
        if self.with_memory:
            rows = [("memory", server) for server in self.with_memory]
            memory[self.with_memory] = solution.prices(rows)
        return np.asarray(price, dtype=np.float64), memory

    def _over_memory(self, cluster: ShardCluster, solution: Solution) -> Ints:
        """Return servers without a memory row whose memory R would exceed."""
        used = summed(self.fixed_on, self.fixed_share * cluster.size[self.fixed], self.n)
        for shard, servers in self.columns.items():
            used[servers] += cluster.size[shard] * solution.of(shard)
        over = used > cluster.memory * (1.0 + 1e-9)
        over[self.with_memory] = False
        return np.flatnonzero(over & cluster.is_up)

    def _limit_memory(self, cluster: ShardCluster, load: Floats, allowed: Bools, over: Ints) -> None:
        """Give servers a memory row."""
        if not len(over):
            return
        with self.model.batch():
            for server in over.tolist():
                self.model.set_count(("memory", server), float(cluster.memory[server]))
            self.with_memory += over.tolist()
            self._soften(cluster, load)
            self._use(cluster, load, [shard for shard, on in self.columns.items() if np.isin(on, over).any()])
            self._count(cluster, load)

    def _price_in(
        self, cluster: ShardCluster, load: Floats, allowed: Bools, price: Floats, memory_price: Floats
    ) -> bool:
        """Add columns that would improve the program; returns whether there were any."""
        reduced = reduced_costs(cluster, load, price, memory_price)
        present = np.where(allowed, reduced, np.inf).min(axis=1)
        present[self.fixed] = 0.0
        np.add.at(present, self.fixed, self.fixed_share * reduced[self.fixed, self.fixed_on])
        reduced[self.has_choice[:, None] & allowed] = np.inf
        reduced[:, ~cluster.is_up] = np.inf
        reduced[cluster.size[:, None] > cluster.memory] = np.inf
        better = present - reduced.min(axis=1)
        shards = np.flatnonzero(better > ENOUGH * 1e-2)
        shards = shards[np.argsort(-better[shards], kind="stable")][:NEW_SHARDS]
        if not len(shards):
            return False
        with self.model.batch():
            for shard in shards.tolist():
                row = reduced[shard]
                most = min(NEW_OF_A_SHARD, self.n - 1)
                servers = np.argpartition(row, most)[:most]
                allowed[shard, servers[row[servers] < present[shard]]] = True
            if not self.has_choice[shards].all():
                self.has_choice[shards] = True
                kept = ~self.has_choice[self.fixed]
                self.fixed, self.fixed_on = self.fixed[kept], self.fixed_on[kept]
                self.fixed_share = self.fixed_share[kept]
                self._count(cluster, load)
            self._put(cluster, load, shards, allowed)
        return True

    def _answer(
        self, solution: Solution, bound: float, passes: int, iterations: int, seconds: tuple[float, float],
        prices: tuple[Floats, Floats, Floats],
    ) -> Relaxed:  # fmt: skip
        """Return the result of the last pass."""
        shards = list(self.columns)
        offset, value = solution.values_of(shards)
        count = np.diff(offset)
        shard = np.concatenate((self.fixed, np.repeat(np.array(shards, dtype=np.int64), count)))
        server = np.concatenate((self.fixed_on, *(self.columns[each] for each in shards)))
        share = np.concatenate((self.fixed_share, value))
        kept = share > VANISHING
        soft = solution.of(SOFT)[: 2 * self.n]
        return Relaxed(
            shard[kept], server[kept], share[kept], float(solution.objective), bound, len(value), passes,
            iterations, *seconds, float(soft.sum()), *prices,
        )  # fmt: skip


def even_shares(cluster: ShardCluster) -> Shares:
    """Return existing copies with equal shares of their shard's load."""
    shard, server = np.nonzero(cluster.holds)
    return shard, server, 1.0 / np.bincount(shard, minlength=cluster.n_shards)[shard]
