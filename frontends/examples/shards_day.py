"""Shards through a day of changing loads and a lost server: copies moved, imbalance, time of each round.

python frontends/examples/shards_day.py
python frontends/examples/shards_day.py --shards 2048 --servers 256 --rounds 50 --replicas 2
"""

from __future__ import annotations

import argparse

from copter_frontends.shards import CopterShards, ShardCluster, load_rounds, simulate_shards


def main() -> None:
    """Run the rounds; half way through a server is lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=512)
    parser.add_argument("--servers", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--replicas", type=int, default=1)
    asked = parser.parse_args()
    cluster = ShardCluster.round_robin(
        asked.shards, asked.servers, memory=16.0 * asked.replicas, replicas=asked.replicas
    )
    middle = asked.rounds // 2
    loads = load_rounds(asked.shards, asked.rounds, "stateful")
    result = simulate_shards("copter", CopterShards(cluster, keep_idle=True), loads, lost={middle: 0})
    for at, each in enumerate(result.rounds):
        lost = "  server 0 is lost" if at == middle else ""
        print(
            f"round {at:3d}: {each.movements:4d} moved (at least {each.bound:.0f}), imbalance {each.imbalance:.1%}, "
            f"{each.round_s * 1e3:.0f} ms{lost}"
        )


if __name__ == "__main__":
    main()
