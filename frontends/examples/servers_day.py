"""Virtual machines come and go on three types of servers, one type is lost for a while: what runs, and what is proven.

python frontends/examples/servers_day.py
python frontends/examples/servers_day.py --servers 1000 --rounds 40 --load 1.2
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from copter_frontends.placement.servers import CopterPlacement, generated, simulate_placement


def main() -> None:
    """Run the rounds; the first type is lost half way through, and back three rounds later."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--load", type=float, default=0.95)
    asked = parser.parse_args()
    workload = generated(asked.servers, asked.rounds, asked.load, churn=0.02)
    middle, lost = asked.rounds // 2, tuple(range(workload.types[0].count))
    workload.rounds[middle] = replace(workload.rounds[middle], lost=lost)
    if middle + 3 < asked.rounds:
        workload.rounds[middle + 3] = replace(workload.rounds[middle + 3], back=lost)
    scheme = CopterPlacement(workload.fleet())
    for at, each in enumerate(simulate_placement("copter", scheme, workload).rounds):
        event = f"  {len(lost)} servers are lost" if at == middle else ""
        print(
            f"round {at:3d}: {each.tasks_running:5d} run, {each.waiting:4d} wait, cores {each.used[0]:.1%} used, "
            f"gap {each.gap:.2%}, {each.round_s * 1e3:.1f} ms{event}"
        )


if __name__ == "__main__":
    main()
