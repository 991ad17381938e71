"""Schemes by name, for the command line and the tables."""

from __future__ import annotations

import re

from copter import Settings
from copter_frontends.shards.cluster import ShardCluster
from copter_frontends.shards.dede import DeDeShards
from copter_frontends.shards.errors import ShardError
from copter_frontends.shards.greedy import EStore
from copter_frontends.shards.local_search import LocalSearch
from copter_frontends.shards.plan import ShardScheme
from copter_frontends.shards.policy import CopterShards

SCHEMES = ("copter", "copter-idle", "lp-relaxed", "exact", "local-search", "dede", "greedy")
"""Names of the schemes; pop-K, for any number K, is another one."""

_POP = re.compile(r"^pop-(\d+)$")


def check_scheme(name: str, cluster: ShardCluster) -> None:
    """Raise ShardError for an unknown scheme, one without HiGHS, or one for larger clusters."""
    part = _POP.match(name)
    if part is None and name not in SCHEMES:
        raise ShardError(f"unknown scheme {name!r}: {', '.join(SCHEMES)} or pop-K (pop-8, say)")
    if part is not None and not 1 <= int(part.group(1)) <= cluster.n_servers:
        raise ShardError(
            f"POP with {part.group(1)} parts of {cluster.n_servers} servers: give at least one server a part"
        )
    if part is not None or name in ("exact", "lp-relaxed"):
        try:
            from copter_frontends.shards import highs_shards  # noqa: F401  # needs highspy, an optional extra
        except ImportError as error:
            raise ShardError(f"{name} needs HiGHS: {error}; pip install highspy") from error


def make_scheme(
    name: str, cluster: ShardCluster, threads: int = 0, seed: int = 0, time_limit_s: float = 600.0
) -> ShardScheme:
    """Return the scheme of this name: one of SCHEMES or pop-K; raises ShardError if unknown."""
    check_scheme(name, cluster)
    if name in ("copter", "copter-idle"):
        return CopterShards(cluster, Settings(threads=threads), keep_idle=name.endswith("idle"))
    if name == "greedy":
        return EStore(cluster)
    if name == "dede":
        return DeDeShards(cluster)
    if name == "local-search":
        return LocalSearch(cluster, time_limit_s)
    from copter_frontends.shards import highs_shards  # needs highspy, an optional extra

    part = _POP.match(name)
    if part is not None:
        return highs_shards.PopShards(cluster, int(part.group(1)), time_limit_s, seed)
    return (highs_shards.Exact if name == "exact" else highs_shards.LpRelaxed)(cluster, time_limit_s)
