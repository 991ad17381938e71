"""Shard load balancing for elastic databases (thesis chapter 5; docs/method/shards.md)."""

from copter_frontends.shards.cluster import ShardCluster
from copter_frontends.shards.errors import NoRoomError, ShardError, UnknownServerError
from copter_frontends.shards.files import read_column, read_rows
from copter_frontends.shards.formulation import ShardFormulation
from copter_frontends.shards.loads import SEQUENCES, dede_loads, load_rounds, zipf_loads
from copter_frontends.shards.plan import ShardPlan, ShardScheme
from copter_frontends.shards.policy import CopterShards
from copter_frontends.shards.schemes import make_scheme
from copter_frontends.shards.shim import repair
from copter_frontends.shards.simulation import ShardResult, simulate_shards

__all__ = [
    "SEQUENCES",
    "CopterShards",
    "NoRoomError",
    "ShardCluster",
    "ShardError",
    "ShardFormulation",
    "ShardPlan",
    "ShardResult",
    "ShardScheme",
    "UnknownServerError",
    "dede_loads",
    "load_rounds",
    "make_scheme",
    "read_column",
    "read_rows",
    "repair",
    "simulate_shards",
    "zipf_loads",
]
