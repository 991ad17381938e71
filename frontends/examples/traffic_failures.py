"""A backbone with link failures: quick flows after each cut, the optimum shortly after, and routers' weights.

    python frontends/examples/traffic_failures.py                      # a random network of 40 nodes, no data needed
    python frontends/examples/traffic_failures.py --network backbone.graphml --failures 10

After every cut the plan is computed twice: with a time limit of 50 ms, and without. Both plans are exactly feasible,
and the gap of the first is certified.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from copter_frontends.traffic import TrafficFormulation, router_splits
from copter_frontends.traffic.workload import TrafficOptions, make_workload

DEADLINE_S = 0.05


def main() -> None:
    """Cut links one after the other, and restore them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="random-40")
    parser.add_argument("--scale", type=float, default=150.0)
    parser.add_argument("--failures", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    workload = make_workload(TrafficOptions(asked.network, scale=asked.scale, rounds=1, seed=asked.seed))
    network, rng = workload.network, np.random.default_rng(asked.seed)
    form = TrafficFormulation(workload.paths, workload.first)
    plan = form.plan()
    print(f"{network.name}: {network.n_nodes} nodes, {network.n_arcs} arcs, {workload.paths.n_paths:,} paths")
    print(f"all links up: {plan.total:,.0f} of {workload.first.sum():,.0f} served")
    for _ in range(asked.failures):
        arc = int(network.links[int(rng.integers(len(network.links)))][0])
        ends = network.nodes[network.source[arc]], network.nodes[network.target[arc]]
        form.fail_link(*ends)
        started = time.perf_counter()
        first = form.plan(DEADLINE_S)
        first_s = time.perf_counter() - started
        best = form.plan()
        splits = router_splits(form.paths, best.flows, form.capacity)
        print(
            f"cut {ends[0]}-{ends[1]}: {first.total:,.0f} within {first_s * 1e3:.0f} ms (gap {first.gap:.1e}), optimum "
            f"{best.total:,.0f}, by routers with {splits.buckets} buckets {splits.flows.sum():,.0f}"
        )
        form.repair_link(*ends)


if __name__ == "__main__":
    main()
