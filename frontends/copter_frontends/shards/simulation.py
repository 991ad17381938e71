"""Simulation of rounds of loads with one scheme: moved copies, imbalance, certified gap, time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from copter_frontends.shards.cluster import Floats
from copter_frontends.shards.plan import ShardPlan, ShardScheme


@dataclass(frozen=True, slots=True)
class ShardRound:
    """One round's figures; loads are in mean loads of a server."""

    movements: int
    moved_size: float
    cost: float
    bound: float
    gap: float
    imbalance: float
    in_band: bool
    over_memory: int
    copies: int
    status: str
    edit_s: float
    solve_s: float
    shim_s: float
    round_s: float
    columns: int


@dataclass(slots=True)
class ShardResult:
    """A scheme's rounds.

    Attributes
    ----------
    scheme : str
    shards, servers : int
    warmup : int
        Number of first rounds that are left out of the figures.
    """

    scheme: str
    shards: int
    servers: int
    warmup: int = 0
    rounds: list[ShardRound] = field(default_factory=list)
    last: ShardPlan | None = None
    last_loads: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def counted(self) -> list[ShardRound]:
        """Rounds after the warm-up, from which the figures are computed."""
        return self.rounds[self.warmup :] or self.rounds

    def summary(self) -> dict[str, Any]:
        """Return the object that ``copter simulate shards --json`` prints."""
        rounds = self.counted

        def spread(name: str) -> dict[str, float]:
            values = np.array([getattr(each, name) for each in rounds], dtype=np.float64)
            return {
                "p50": float(np.median(values)),
                "p99": float(np.percentile(values, 99)),
                "max": float(values.max()),
            }

        gaps = [each.gap for each in rounds if np.isfinite(each.gap)]
        return {
            "scheme": self.scheme,
            "shards": self.shards,
            "servers": self.servers,
            "rounds": len(self.rounds),
            "warmup_rounds": self.warmup,
            "movements": float(np.mean([each.movements for each in rounds])),
            "moved_size": float(np.mean([each.moved_size for each in rounds])),
            "imbalance": float(np.mean([each.imbalance for each in rounds])),
            "imbalance_max": max(each.imbalance for each in rounds),
            "out_of_band_rounds": sum(not each.in_band for each in rounds),
            "over_memory_max": max(each.over_memory for each in rounds),
            "copies": float(np.mean([each.copies for each in rounds])),
            "round_s": spread("round_s"),
            "edit_s": spread("edit_s"),
            "solve_s": spread("solve_s"),
            "shim_s": spread("shim_s"),
            "gap": {"p50": float(np.median(gaps)), "max": float(max(gaps))} if gaps else None,
        }


def simulate_shards(
    name: str,
    scheme: ShardScheme,
    loads: Iterable[Floats],
    warmup: int = 0,
    deadline_s: float | None = None,
    lost: Mapping[int, int] | None = None,
    back: Mapping[int, int] | None = None,
) -> ShardResult:
    """Simulate rounds of loads with a scheme.

    Parameters
    ----------
    name : str
    scheme : ShardScheme
    loads : iterable of ndarray (shards,)
    warmup : int
    deadline_s : float, optional
    lost, back : mapping of round to server, optional
        Servers that fail, or come back, before a round.
    """
    result = ShardResult(name, scheme.cluster.n_shards, scheme.cluster.n_servers, warmup)
    for at, load in enumerate(loads):
        if lost and at in lost:
            scheme.remove_server(lost[at])
        if back and at in back:
            scheme.add_server(back[at])
        started = time.perf_counter()
        plan = scheme.plan(load, deadline_s)
        spent = time.perf_counter() - started
        cluster, seconds = scheme.cluster, plan.seconds
        used = cluster.size @ plan.holds
        result.rounds.append(
            ShardRound(
                plan.movements,
                plan.moved_size,
                plan.cost,
                plan.bound,
                plan.gap,
                plan.imbalance,
                plan.in_band,
                int((used > cluster.memory * (1.0 + 1e-9)).sum()),
                len(plan.shard),
                plan.status,
                seconds.get("edit", 0.0),
                seconds.get("solve", 0.0),
                seconds.get("shim", 0.0),
                spent if not name.startswith("pop") else sum(seconds.values()),
                plan.columns,
            )
        )
        result.last, result.last_loads = plan, load
    return result
