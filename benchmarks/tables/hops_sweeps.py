"""Sweeps of the Hops paper: lambda, the arrival rate (Figure 13), and what other queues starve (section 4.5).

python benchmarks/tables/hops_sweeps.py --sweep fairness
python benchmarks/tables/hops_sweeps.py --sweep arrivals
python benchmarks/tables/hops_sweeps.py --sweep priorities

``--seeds`` averages over so many traces, with the least and the most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hops_runs import Outcome, finish, options, run, seeded, show

from copter_frontends.clusters import named_cluster
from copter_frontends.hops.latency_ratio import Priority
from copter_frontends.hops.workload import iteration_source

LAMBDAS = (0.0, 0.5, 1.0, 2.0, 4.0)
RATES = (30.0, 60.0, 120.0, 300.0, 600.0, 1200.0)
QUEUES: tuple[Priority, ...] = ("lr", "las", "sjf", "srtf", "ftf")


def runs(asked: Any, name: str, **how: Any) -> list[Outcome]:
    """One scheduler on every seed's jobs."""
    cluster = named_cluster(asked.cluster)
    source = iteration_source(cluster)
    return [run(name, cluster, source, jobs, sets, **how) for jobs, sets in seeded(asked)]


def fairness(asked: Any) -> list[Any]:
    """lambda from throughput alone to almost the queue's order."""
    rows = []
    for power in LAMBDAS:
        rows += show(f"lambda = {power}", [runs(asked, "hops", fairness=power)])
    return rows


def arrivals(asked: Any) -> list[Any]:
    """All three schedulers as arrivals become denser: the paper finds that Hops' lead in JCT grows."""
    rows = []
    for rate in RATES:
        asked.jobs_per_hour = rate
        outcomes = [runs(asked, name) for name in ("hops", "sia", "gavel")]
        rows += [{"jobs_per_hour": rate, **row} for row in show(f"{rate:.0f} jobs an hour", outcomes)]
    return rows


def priorities(asked: Any) -> list[Any]:
    """The same scheduler behind other queues: the paper has latency ratios above 80 for LAS, SJF and SRTF, 3 for LR."""
    rows = []
    for queue in QUEUES:
        found = runs(asked, "hops", priority=queue)
        rows += [{"queue": queue, **row} for row in show(f"queue: {queue}", [found])]
        at = np.percentile(np.concatenate([each.latency for each in found]), (50, 90, 99, 100))
        print("  latency ratio p50, p90, p99, max: " + ", ".join(f"{value:.2f}" for value in at))
    return rows


SWEEPS: dict[str, Callable[[Any], list[Any]]] = {
    "fairness": fairness,
    "arrivals": arrivals,
    "priorities": priorities,
}


def main() -> None:
    """Run one sweep."""
    command = options(__doc__, 500, 100.0)
    command.add_argument("--sweep", choices=list(SWEEPS), default="fairness")
    command.add_argument("--cluster", default="hops-512")
    asked = command.parse_args()
    finish(asked, {asked.sweep: SWEEPS[asked.sweep](asked)})


if __name__ == "__main__":
    main()
