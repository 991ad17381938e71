"""DeDe on shards: servers and shards alternate (Xu et al., OSDI 2025; SH15).

Every server i has shares R_i of the shards, every shard j shares Z_j of itself on the servers, and ADMM makes the two
agree; u are the multipliers of R = Z, all scaled by rho.

- A server minimises sum_j (1 - T_ij) [R_ij > 0] + rho / 2 |R_i - Z_i + u_i|^2 with a penalty of a load outside the
  band, for at most 16 of the 48 shards of which it shall have most.
- A shard minimises |Z_j - R_j - u_j|^2 + (sum_i Z_ij - 1 + w_j)^2 over Z_j >= 0.

As published (illinois-nsai/dede, its example of load balancing): rho 10 for loads of which the largest is 100, 100
steps before the first round, 10 in every other.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from copter_frontends.shards.cluster import Floats, ShardCluster
from copter_frontends.shards.errors import NoRoomError
from copter_frontends.shards.plan import ShardPlan, plan_of
from copter_frontends.shards.policy import ShardBase, with_homes
from copter_frontends.shards.shim import repair

RHO, LARGEST = 10.0, 100.0
FIRST_STEPS, STEPS = 100, 10
SEARCHED, MOST_COPIES = 48, 16
HALVINGS = 50
VANISHING = 1e-6
"""Smaller shares count as zero, as published."""


class DeDeShards(ShardBase):
    """DeDe at its published setting, each half step to convergence, started from the last round; then the shim.

    Parameters
    ----------
    cluster : ShardCluster
    rho : float
        Penalty, for loads of which the largest is 100.
    first_steps, steps : int
        ADMM steps in the first round and in the others.
    """

    def __init__(
        self, cluster: ShardCluster, rho: float = RHO, first_steps: int = FIRST_STEPS, steps: int = STEPS
    ) -> None:
        super().__init__(cluster)
        self.rho, self.first_steps, self.steps = rho, first_steps, steps
        self.agreed = cluster.holds.T / np.maximum(cluster.holds.sum(axis=1), 1)  # Z, (servers, shards)
        self.multiplier = np.zeros_like(self.agreed)
        self.over, self.under = np.zeros(cluster.n_servers), np.zeros(cluster.n_servers)
        self.whole = np.zeros(cluster.n_shards)
        self.begun = False

    def plan(self, loads: ArrayLike, deadline_s: float | None = None) -> ShardPlan:
        """Return the plan after the steps that fit before the deadline."""
        started = time.perf_counter()
        checked, load = self.scaled(loads)
        largest = float(load.max(initial=0.0))
        unit = LARGEST / largest if largest > 0.0 else 1.0
        ends = np.inf if deadline_s is None else started + deadline_s
        given = self.agreed
        for _ in range(self.steps if self.begun else self.first_steps):
            given = self._step(unit * load, unit)
            if time.perf_counter() >= ends:
                break
        self.begun = True
        seconds = {"edit": 0.0, "solve": time.perf_counter() - started}
        kept = given.T > VANISHING
        shard, server = np.nonzero(kept)
        share = given.T[kept]
        share = share / np.bincount(shard, share, self.cluster.n_shards)[shard]
        lost = np.setdiff1d(np.arange(self.cluster.n_shards), shard)
        if len(lost):  # shards that no server wants stay where they are
            at, on, part = self.standing(load)
            old = np.isin(at, lost)
            shard, server, share = (
                np.concatenate(both) for both in ((shard, at[old]), (server, on[old]), (share, part[old]))
            )
        status = "feasible"
        try:
            found = repair(self.cluster, load, *with_homes(self.cluster, shard, server, share), reduce=False)
        except NoRoomError:
            found, status = repair(self.cluster, load, *self.standing(load), reduce=False), "kept_previous"
        seconds["shim"] = time.perf_counter() - started - seconds["solve"]
        return self.adopt(plan_of(self.cluster, checked, *found, status=status, seconds=seconds))

    def _step(self, load: Floats, mean: float) -> Floats:
        """Do one ADMM step with servers first; return their shares, (servers, shards)."""
        cluster = self.cluster
        low, high = (1.0 - cluster.band) * mean, (1.0 + cluster.band) * mean
        target = self.agreed - self.multiplier
        target[~cluster.is_up] = 0.0
        cost = cluster.new_copy[None, :] * ~cluster.holds.T
        given = servers_step(target, self.agreed, load, cost / self.rho, high - self.over, low - self.under)
        given[~cluster.is_up] = 0.0
        total = given @ load
        self.over = np.maximum(self.over + total - high, 0.0)
        self.under = np.minimum(self.under + total - low, 0.0)
        wanted = given + self.multiplier
        self.agreed = shards_step(wanted, self.whole)
        self.whole += self.agreed.sum(axis=0) - 1.0
        self.multiplier = wanted - self.agreed
        return given


def servers_step(
    target: Floats, agreed: Floats, load: Floats, cost: Floats, high: Floats, low: Floats, most: int = MOST_COPIES
) -> Floats:
    """Return the shares that every server wants, (servers, shards).

    A server minimises sum_j cost_j [R_j > 0] + 1/2 |R - target|^2 + 1/2 max(l'R - high, 0)^2 + 1/2 max(low - l'R, 0)^2
    over at most `most` shards, of those 48 of which it shall have most. Given the penalty's slope y, every shard
    decides by itself; y is found by bisection.

    Parameters
    ----------
    target, agreed, cost : ndarray (servers, shards)
    load : ndarray (shards,)
    high, low : ndarray (servers,)
    """
    rows = np.arange(len(target))[:, None]
    chosen = np.argsort(-agreed, axis=1, kind="stable")[:, :SEARCHED]
    wanted, price, weight = target[rows, chosen], cost[rows, chosen], load[chosen]

    def shares(slope: Floats) -> Floats:
        share = np.clip(wanted - slope[:, None] * weight, 0.0, 1.0)
        gain = 0.5 * wanted**2 - 0.5 * (share - wanted) ** 2 - slope[:, None] * weight * share - price
        share = np.where(gain > 0.0, share, 0.0)
        if share.shape[1] > most:
            worst = np.argsort(np.where(share > 0.0, -gain, np.inf), axis=1, kind="stable")[:, most:]
            share[rows, worst] = 0.0
        return share

    def slope_at(share: Floats) -> Floats:
        total = (share * weight).sum(axis=1)
        outside: Floats = np.maximum(total - high, 0.0) - np.maximum(low - total, 0.0)
        return outside

    up = np.maximum(slope_at(np.ones_like(wanted)), 0.0) + 1.0
    down = np.minimum(slope_at(np.zeros_like(wanted)), 0.0) - 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (up + down)
        above = middle >= slope_at(shares(middle))
        up, down = np.where(above, middle, up), np.where(above, down, middle)
    result = np.zeros_like(target)
    result[rows, chosen] = shares(up)
    return result


def shards_step(wanted: Floats, whole: Floats) -> Floats:
    """Return the shares Z >= 0 that minimise |Z - wanted|^2 + (sum Z - 1 + whole)^2 for every shard (column)."""
    ordered = -np.sort(-wanted, axis=0)
    counts = np.arange(1, len(wanted) + 1)[:, None]
    level = (np.cumsum(ordered, axis=0) - 1.0 + whole) / (counts + 1.0)
    used = (ordered > level).sum(axis=0)
    at = np.where(used > 0, level[np.maximum(used - 1, 0), np.arange(wanted.shape[1])], whole - 1.0)
    shares: Floats = np.maximum(wanted - at, 0.0)
    return shares
