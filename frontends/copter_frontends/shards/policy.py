"""copter's balance of a round: a warm LP solve, then the shim."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from copter import Settings
from copter_frontends.shards.bounds import copies_bound
from copter_frontends.shards.cluster import Floats, Ints, ShardCluster, summed
from copter_frontends.shards.errors import NoRoomError
from copter_frontends.shards.formulation import ShardFormulation, Shares
from copter_frontends.shards.plan import ShardPlan, plan_of
from copter_frontends.shards.shim import moved_between, repair
from copter_frontends.shards.swaps import swapped

# With more servers, no program is solved while the shim's plan is in the band, because the program's basis is dense.
MOST_SERVERS = 1000

SWAPS_S = 10.0
"""Seconds of swaps where servers are too full for the program's copies, in a round without a deadline."""


class ShardBase:
    """Base of all schemes: the cluster with the copies of the last plan.

    Parameters
    ----------
    cluster : ShardCluster
    """

    def __init__(self, cluster: ShardCluster) -> None:
        self.cluster = cluster
        self.shares: Floats | None = None

    def remove_server(self, server: int) -> None:
        """Remove a server; its copies are lost.

        Raises
        ------
        UnknownServerError
            If there is no such server, or it has already been removed.
        ShardError
            If the required copies do not fit on the remaining servers.
        """
        self.cluster = self.cluster.without_server(server)

    def add_server(self, server: int) -> None:
        """Bring back a removed server, without copies.

        Raises
        ------
        UnknownServerError
            If there is no such server, or it has not been removed.
        """
        self.cluster = self.cluster.with_server(server)

    def scaled(self, loads: ArrayLike) -> tuple[Floats, Floats]:
        """Return (loads, loads in units of a server's mean load); raises ShardError if a load is negative, infinite or
        too large.
        """
        checked = self.cluster.checked_loads(loads)
        mean = float(checked.sum()) / int(self.cluster.is_up.sum())
        return checked, checked / mean if mean > 0.0 else checked

    def adopt(self, plan: ShardPlan) -> ShardPlan:
        """Make the plan's copies and shares the current state; returns the plan."""
        share = np.zeros(self.cluster.holds.shape, dtype=np.float64)
        share[plan.shard, plan.server] = plan.share
        self.shares = share
        self.cluster = self.cluster.with_holds(plan.holds)
        return plan

    def standing(self, load: Floats) -> Shares:
        """Return (shard, server, share) of the existing copies, with load moved between them towards the band.

        A shard that has lost all its copies gets one on the server with the most free memory.
        """
        cluster = self.cluster
        shard, server = np.nonzero(cluster.holds)
        share = 1.0 / np.bincount(shard, minlength=cluster.n_shards)[shard]
        if self.shares is not None:
            known, total = self.shares[shard, server], np.zeros(cluster.n_shards)
            np.add.at(total, shard, known)
            usable = total[shard] > 0.0
            share = np.where(usable, np.divide(known, total[shard], out=share.copy(), where=usable), share)
        return moved_between(cluster, load, *with_homes(cluster, shard, server, share))


def with_homes(cluster: ShardCluster, shard: Ints, server: Ints, share: Floats) -> Shares:
    """Add an entry for every shard without a copy, on the server with most free memory."""
    lost = np.setdiff1d(np.arange(cluster.n_shards), shard)
    used = summed(server, cluster.size[shard], cluster.n_servers)
    room = np.where(cluster.is_up, cluster.memory - used, -np.inf)
    homes = []
    for each in lost.tolist():
        home = int(np.argmax(room))
        room[home] -= cluster.size[each]
        homes.append(home)
    return (
        np.concatenate((shard, lost)).astype(np.int64),
        np.concatenate((server, homes)).astype(np.int64),
        np.concatenate((share, np.ones(len(lost)))),
    )


class CopterShards(ShardBase):
    """Balances shards by the linear program SH2, kept in a session, and the shim (SH8, SH9).

    Parameters
    ----------
    cluster : ShardCluster
    settings : Settings, optional
    keep_idle : bool
        Whether to keep copies that serve no load while there is memory for them. They cost nothing and save movements
        later; the published benchmarks drop them.
    """

    def __init__(self, cluster: ShardCluster, settings: Settings | None = None, keep_idle: bool = False) -> None:
        super().__init__(cluster)
        self.formulation = ShardFormulation(cluster, settings)
        self.keep_idle = keep_idle

    def plan(self, loads: ArrayLike, deadline_s: float | None = None) -> ShardPlan:
        """Return a plan for the round's loads.

        Raises
        ------
        ShardError
            If a load is NaN, infinite or negative; the state is then unchanged.
        """
        started = time.perf_counter()
        checked, load = self.scaled(loads)
        cluster = self.cluster
        needed = copies_bound(cluster, load)
        standing = self.standing(load)
        alone = cluster.n_servers > MOST_SERVERS  # without a program, only the shim makes and removes copies
        found = repair(cluster, load, *standing, reduce=alone, idle=self.keep_idle)
        seconds = {"edit": time.perf_counter() - started, "solve": 0.0, "shim": 0.0}
        kept = plan_of(cluster, checked, *found, bound=needed, status="kept_previous", seconds=seconds)
        if kept.in_band and kept.cost <= needed:
            return self.adopt(replace(kept, status="optimal"))
        if alone and kept.in_band:
            return self.adopt(replace(kept, status="feasible"))
        return self.adopt(self._solved(checked, load, standing, kept, started, deadline_s))

    def _solved(
        self, loads: Floats, load: Floats, standing: Shares, kept: ShardPlan, started: float, deadline_s: float | None
    ) -> ShardPlan:
        """Return the program's plan, or the kept one if that is better."""
        cluster, spent = self.cluster, time.perf_counter() - started
        left = None if deadline_s is None else deadline_s - spent
        if left is not None and left <= 0.0:
            return kept
        relaxed = self.formulation.solve(cluster, load, standing, left)
        begun = time.perf_counter()
        try:
            found = repair(cluster, load, relaxed.shard, relaxed.server, relaxed.share, idle=self.keep_idle)
        except NoRoomError:  # servers are too full for whole copies by the program's shares, but the kept copies fit
            found = kept.shard, kept.server, kept.share
        bound = max(kept.bound, relaxed.bound if np.isfinite(relaxed.bound) else 0.0)
        if cluster.cost == "unit":
            bound = float(np.ceil(bound - 1e-6))
        plan = plan_of(cluster, loads, *found, bound=bound, columns=relaxed.columns)
        if not plan.in_band and len(kept.shard) == cluster.n_shards:  # no room for more copies
            ends = started + (SWAPS_S if deadline_s is None else deadline_s)
            home = swapped(cluster, load, kept.server[np.argsort(kept.shard)], ends)
            whole = np.arange(len(home)), home, np.ones(len(home))
            swaps = plan_of(cluster, loads, *whole, bound=bound, columns=relaxed.columns)
            plan = max(plan, swaps, key=merit)
        seconds = {
            "edit": relaxed.edit_s + spent, "solve": relaxed.solve_s, "shim": time.perf_counter() - begun
        }  # fmt: skip
        return replace(max(plan, kept, key=merit), bound=bound, seconds=seconds)


def merit(plan: ShardPlan) -> tuple[bool, float, float]:
    """Return what makes one plan better than another: the band, else the smallest imbalance, and then the cost."""
    return plan.in_band, 0.0 if plan.in_band else -plan.imbalance, -plan.cost
