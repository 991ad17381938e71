"""
Shards on servers
=================

A sharded database through changing loads: which server holds which shard, so that no server has more than its
share and as little as possible is moved. A server is lost in the middle.
"""

from copter_frontends.shards import CopterShards, ShardCluster, load_rounds, simulate_shards

cluster = ShardCluster.round_robin(96, 12, memory=16.0)
loads = load_rounds(96, 6, "stateful")
result = simulate_shards("copter", CopterShards(cluster, keep_idle=True), loads, lost={3: 0})
for at, each in enumerate(result.rounds):
    print(f"round {at}: {each.movements} moved (at least {each.bound:.0f}), imbalance {each.imbalance:.1%}")
