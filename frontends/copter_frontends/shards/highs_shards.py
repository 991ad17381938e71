"""Opponents by HiGHS: the whole mixed-integer program, its relaxation with the thesis's shim, and POP's parts."""

from __future__ import annotations

import time
from contextlib import suppress

import highspy
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from copter.highs.lp import filled_lp, run_highs, silent_highs
from copter_frontends.shards.cluster import Floats, Ints, ShardCluster
from copter_frontends.shards.errors import NoRoomError, ShardError
from copter_frontends.shards.formulation import Shares
from copter_frontends.shards.plan import ShardPlan, plan_of
from copter_frontends.shards.policy import ShardBase, with_homes
from copter_frontends.shards.shim import repair

GAP = 0.05  # relative gap at which HiGHS ends the integer program, as published
LIMIT_S = 600.0  # HiGHS's time limit for a program, in seconds
VANISHING = 1e-9  # smaller shares count as zero


def solve_whole(
    cluster: ShardCluster, load: Floats, integer: bool, time_limit_s: float, gap: float = GAP,
    start: Shares | None = None,
) -> tuple[Shares | None, float]:  # fmt: skip
    """Return (nonzero R, bound) by HiGHS, for SH1 with X or SH2 in R only; None instead of R without a solution in
    time.

    Parameters
    ----------
    cluster : ShardCluster
    load : ndarray (shards,)
        Loads in mean loads.
    integer : bool
    time_limit_s, gap : float
    start : tuple of ndarrays, optional
        Shares to start from.
    """
    if not integer:
        return Relaxation().solve(cluster, load, time_limit_s)
    up = np.flatnonzero(cluster.is_up)
    d, n = cluster.n_shards, len(up)
    cost = (cluster.new_copy[:, None] * ~cluster.holds[:, up]).ravel()
    column, shard, server = np.arange(d * n), np.repeat(np.arange(d), n), np.tile(np.arange(n), d)
    blocks = [
        sp.csr_array((np.ones(d * n), (shard, column)), shape=(d, d * n)),
        sp.csr_array((load[shard], (server, column)), shape=(n, d * n)),
    ]
    memory = sp.csr_array((cluster.size[shard], (server, column)), shape=(n, d * n))
    lower = [np.ones(d), np.full(n, 1.0 - cluster.band), np.full(n, -np.inf)]
    upper = [np.ones(d), np.full(n, 1.0 + cluster.band), cluster.memory[up]]
    identity = sp.identity(d * n, format="csr")
    matrix = sp.block_array(
        [[blocks[0], None], [blocks[1], None], [None, memory], [identity, -identity], [None, blocks[0]]]
    )
    lower += [np.full(d * n, -np.inf), np.full(d, float(cluster.replicas))]
    upper += [np.zeros(d * n), np.full(d, np.inf)]
    cost = np.concatenate((np.zeros(d * n), cost))
    highs = _highs(matrix.tocsc(), cost, np.concatenate(lower), np.concatenate(upper), d * n)
    highs.setOptionValue("time_limit", float(min(time_limit_s, 1e9)))
    highs.setOptionValue("mip_rel_gap", gap)
    if start is not None:
        _begin_at(highs, cluster, up, start)
    run_highs(highs)
    info = highs.getInfo()
    if info.primal_solution_status != 2:
        return None, -np.inf
    share = np.array(highs.getSolution().col_value)[: d * n]
    return _shares(share, up, d), float(info.mip_dual_bound)


def _shares(share: Floats, up: Ints, shards: int) -> Shares:
    """Return the nonzero shares of all pairs; HiGHS's sum to one only within a tolerance."""
    kept = np.flatnonzero(share > VANISHING)
    shard, server, share = kept // len(up), kept % len(up), share[kept]
    return shard, up[server], share / np.bincount(shard, share, shards)[shard]


class Relaxation:
    """SH2 by HiGHS, which keeps its object and its last basis as long as the same servers are up.

    A round's loads are coefficients of all columns, so that each round passes the program anew, in one call; the basis
    stays. HiGHS uses all its threads.
    """

    def __init__(self) -> None:
        self.highs = silent_highs()
        self.up: Ints = np.zeros(0, dtype=np.int64)
        self.shards = 0

    def solve(self, cluster: ShardCluster, load: Floats, time_limit_s: float) -> tuple[Shares | None, float]:
        """Return (nonzero R, bound); None instead of R without a solution in time. Loads are in mean loads."""
        up = np.flatnonzero(cluster.is_up)
        d, n = cluster.n_shards, len(up)
        shard, server = np.repeat(np.arange(d), n), np.tile(np.arange(n), d)
        data = highspy.HighsLp()
        data.num_row_, data.num_col_ = d + 2 * n, d * n
        data.col_cost_ = (cluster.new_copy[:, None] * ~cluster.holds[:, up]).ravel()
        data.col_lower_, data.col_upper_ = np.zeros(d * n), np.ones(d * n)
        data.row_lower_ = np.concatenate((np.ones(d), np.full(n, 1.0 - cluster.band), np.full(n, -np.inf)))
        data.row_upper_ = np.concatenate((np.ones(d), np.full(n, 1.0 + cluster.band), cluster.memory[up]))
        data.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        data.a_matrix_.start_ = 3 * np.arange(d * n + 1)
        data.a_matrix_.index_ = np.column_stack((shard, d + server, d + n + server)).ravel()
        data.a_matrix_.value_ = np.column_stack((np.ones(d * n), load[shard], cluster.size[shard])).ravel()
        basis = self.highs.getBasis() if d == self.shards and np.array_equal(up, self.up) else None
        self.highs.passModel(data)
        if basis is not None and basis.valid:
            self.highs.setBasis(basis)
        self.up, self.shards = up, d
        self.highs.setOptionValue("time_limit", self.highs.getRunTime() + float(min(time_limit_s, 1e9)))
        run_highs(self.highs)
        info = self.highs.getInfo()
        if info.primal_solution_status != 2:
            return None, -np.inf
        return _shares(np.array(self.highs.getSolution().col_value), up, d), float(info.objective_function_value)


def _highs(matrix: sp.csc_array, cost: Floats, lower: Floats, upper: Floats, binaries: int) -> highspy.Highs:
    """Return a HiGHS object with the program; the last `binaries` columns are binary."""
    highs = silent_highs()
    highs.setOptionValue("threads", 1)
    kinds = np.arange(len(cost)) >= len(cost) - binaries
    columns = (np.zeros(len(cost)), np.ones(len(cost)))
    highs.passModel(filled_lp(cost, matrix, (lower, upper), columns, kinds.astype(int) if binaries else None))
    return highs


def _begin_at(highs: highspy.Highs, cluster: ShardCluster, up: Ints, start: Shares) -> None:
    """Give HiGHS a first solution."""
    place = np.full(cluster.n_servers, -1)
    place[up] = np.arange(len(up))
    share = np.zeros((cluster.n_shards, len(up)))
    share[start[0], place[start[1]]] = start[2]
    held = np.zeros_like(share)
    held[start[0], place[start[1]]] = 1.0
    found = highspy.HighsSolution()
    found.col_value = np.concatenate((share.ravel(), held.ravel())).tolist()
    highs.setSolution(found)


class HighsBase(ShardBase):
    """Base of the opponents that hand a round to HiGHS.

    Parameters
    ----------
    cluster : ShardCluster
    time_limit_s : float
        Time limit of a round.
    """

    def __init__(self, cluster: ShardCluster, time_limit_s: float = LIMIT_S) -> None:
        super().__init__(cluster)
        self.time_limit_s = time_limit_s

    def answered(
        self, loads: Floats, load: Floats, found: Shares | None, bound: float, seconds: dict[str, float],
        shim: bool = True,
    ) -> ShardPlan:  # fmt: skip
        """Return the plan of HiGHS's shares, rounded by the thesis's shim if needed."""
        begun, status = time.perf_counter(), "feasible"
        if found is None:
            found, status, shim = self.standing(load), "kept_previous", True
        if shim:
            try:
                found = repair(self.cluster, load, *found, reduce=False)
            except NoRoomError:  # servers are too full for whole copies by HiGHS's shares
                found, status = repair(self.cluster, load, *self.standing(load), reduce=False), "kept_previous"
        seconds["shim"] = time.perf_counter() - begun
        return self.adopt(plan_of(self.cluster, loads, *found, bound=bound, status=status, seconds=seconds))


class Exact(HighsBase):
    """The MILP by HiGHS to a gap of 5%, started from copter's plan on the existing copies.

    Parameters
    ----------
    cluster, time_limit_s
    gap : float
    """

    def __init__(self, cluster: ShardCluster, time_limit_s: float = LIMIT_S, gap: float = GAP) -> None:
        super().__init__(cluster, time_limit_s)
        self.gap = gap

    def plan(self, loads: ArrayLike, deadline_s: float | None = None) -> ShardPlan:
        """Solve the round's mixed-integer program (SH1) by HiGHS; without an answer, keep the present copies."""
        started = time.perf_counter()
        checked, load = self.scaled(loads)
        limit = self.time_limit_s if deadline_s is None else deadline_s
        found, bound = solve_whole(self.cluster, load, True, limit, self.gap, self.start(load))
        seconds = {"edit": 0.0, "solve": time.perf_counter() - started}
        return self.answered(checked, load, found, bound, seconds, shim=False)

    def start(self, load: Floats) -> Shares:
        """Return HiGHS's starting plan, from the relaxation."""
        relaxed, _ = solve_whole(self.cluster, load, False, self.time_limit_s)
        if relaxed is not None:
            with suppress(NoRoomError):
                return repair(self.cluster, load, *relaxed)
        return repair(self.cluster, load, *self.standing(load))


class LpRelaxed(HighsBase):
    """The relaxation by HiGHS from its last basis, then the thesis's shim.

    Parameters
    ----------
    cluster, time_limit_s
    """

    def __init__(self, cluster: ShardCluster, time_limit_s: float = LIMIT_S) -> None:
        super().__init__(cluster, time_limit_s)
        self.relaxation = Relaxation()

    def plan(self, loads: ArrayLike, deadline_s: float | None = None) -> ShardPlan:
        """Solve the round's relaxation (SH2) by HiGHS; returns the plan that the thesis's shim makes of it."""
        started = time.perf_counter()
        checked, load = self.scaled(loads)
        limit = self.time_limit_s if deadline_s is None else deadline_s
        found, bound = self.relaxation.solve(self.cluster, load, limit)
        return self.answered(checked, load, found, bound, {"edit": 0.0, "solve": time.perf_counter() - started})


class PopShards(HighsBase):
    """POP-k: k blocks of servers and k parts of the shards with similar load, each a mixed-integer program (SH14).

    Parameters
    ----------
    cluster, time_limit_s
    parts : int
    seed : int
        Seed of the order in which shards are assigned.

    Attributes
    ----------
    sequential_s : float
        Time of the last round's parts, summed; the reported time is that of the longest part.
    """

    def __init__(self, cluster: ShardCluster, parts: int, time_limit_s: float = LIMIT_S, seed: int = 0) -> None:
        super().__init__(cluster, time_limit_s)
        if not 1 <= parts <= cluster.n_servers:
            raise ShardError(f"POP with {parts} parts of {cluster.n_servers} servers: give at least one server a part")
        self.parts, self.rng = parts, np.random.default_rng(seed)
        self.sequential_s = 0.0

    def plan(self, loads: ArrayLike, deadline_s: float | None = None) -> ShardPlan:
        """Return the combined plans of all parts."""
        started = time.perf_counter()
        checked, load = self.scaled(loads)
        cluster = self.cluster
        blocks = np.array_split(np.flatnonzero(cluster.is_up), self.parts)
        entries: list[Shares] = []
        seconds = []
        for servers, (shards, weight) in zip(blocks, self.split(load, blocks), strict=True):
            begun = time.perf_counter()
            try:
                part = ShardCluster(
                    cluster.size[shards], cluster.memory[servers], cluster.holds[np.ix_(shards, servers)], cluster.band,
                    1, cluster.cost,
                )  # fmt: skip
            except ShardError:  # a part's shards do not fit into the memory of its servers
                return self.answered(checked, load, None, np.nan, {"edit": 0.0, "solve": time.perf_counter() - started})
            own = load[shards] * weight
            mean = float(own.sum()) / len(servers)
            found, _ = solve_whole(part, own / mean, True, self.time_limit_s if deadline_s is None else deadline_s)
            if found is None:
                base = ShardBase(part)
                found = base.standing(own / mean)
            seconds.append(time.perf_counter() - begun)
            entries.append((shards[found[0]], servers[found[1]], found[2] * weight[found[0]]))
        self.sequential_s = sum(seconds)
        shard, server, share = (np.concatenate([entry[i] for entry in entries]) for i in range(3))
        rest = max(0.0, time.perf_counter() - started - self.sequential_s)
        spent = {"edit": rest, "solve": max(seconds)}
        every = with_homes(cluster, shard, server, share)
        return self.answered(checked, load, every, np.nan, spent, shim=False)

    def split(self, load: Floats, blocks: list[Ints]) -> list[tuple[Ints, Floats]]:
        """Return (shards, share of each shard's load) for every part: existing copies first, then the rest."""
        budget = float(load.sum()) / self.parts
        left = np.ones(len(load))
        found: list[dict[int, float]] = [{} for _ in blocks]
        room = [budget] * len(blocks)

        def give(part: int, shard: int) -> None:
            most = left[shard] if load[shard] <= 0.0 else min(left[shard], room[part] / load[shard])
            if most > 1e-9:
                found[part][shard] = found[part].get(shard, 0.0) + most
                left[shard] -= most
                room[part] -= most * load[shard]

        for part, servers in enumerate(blocks):
            own = np.flatnonzero(self.cluster.holds[:, servers].any(axis=1) & (left > 1e-9))
            for shard in own[np.argsort(load[own], kind="stable")].tolist():
                give(part, shard)
        for shard in self.rng.permutation(len(load)).tolist():
            for part in sorted(range(len(blocks)), key=lambda part: -room[part]):
                if left[shard] <= 1e-9:
                    break
                give(part, shard)
        return [
            (np.array(sorted(own), dtype=np.int64), np.array([own[shard] for shard in sorted(own)])) for own in found
        ]
