"""Sweeps of the Hops paper: lambda, arrivals (Figure 13), what other queues starve (4.5), how fragments are filled, and
what the paper does not say, changed one thing at a time.

python benchmarks/tables/hops_sweeps.py --sweep fairness
python benchmarks/tables/hops_sweeps.py --sweep arrivals [--rates 30,60,120]
python benchmarks/tables/hops_sweeps.py --sweep priorities [--queues lr,las]
python benchmarks/tables/hops_sweeps.py --sweep fragments --cluster hops-64 --jobs 120 --jobs-per-hour 60 --scale 0.3
python benchmarks/tables/hops_sweeps.py --sweep assumptions --cluster hops-64 --jobs 25 --jobs-per-hour 10 --seeds 10

``--seeds`` averages over so many traces, with the least and the most. In all of them Hops learns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import loads
import numpy as np
from figure_command import names_of, spread
from hops_runs import Outcome, finish, options, run, seeded, show

from copter_frontends.policies.hops import HopsShim, OfferRules
from copter_frontends.policies.hops.latency_ratio import Priority
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hops.workload import iteration_source

LAMBDAS = (0.0, 0.5, 1.0, 2.0, 4.0)
RATES = (30.0, 60.0, 120.0, 300.0, 600.0, 1200.0)
QUEUES: tuple[Priority, ...] = ("lr", "las", "sjf", "srtf", "ftf")
FILLS = {
    "greedy fill": HopsShim(),
    "dives 3": HopsShim(dives=3),
    "repeats 3": HopsShim(repeats=3),
    "dives and repeats": HopsShim(dives=3, repeats=3),
}
ASSUMED: dict[str, dict[str, Any]] = {
    "as assumed: a whole plan every 300 s": {},
    "a whole plan every 60 s": {"full_round_s": 60.0},
    "no bonus for what a job has": {"stay_bonus": 0.0},
    "every job may be on several servers": {"rules": OfferRules(threshold=100.0)},
}
PAPER = {
    "fairness": "lambda = 1; larger ones favour fairness, 0 throughput; no figures but for lambda = 2 (Figure 12)",
    "arrivals": "Hops's lead in JCT grows with the rate from 30 to 1,200 jobs an hour (Figure 13, without figures); at "
    "100 an hour 2.24 h (Sia 3.79, Gavel 4.04)",
    "priorities": "largest latency ratio 3 behind LR, many jobs above 80 behind LAS, SJF and SRTF (Figure 13)",
    "fragments": "plans by the program again as long as GPUs are idle; 0.15 fragments on 64 GPUs, 0.45 on 512",
    "assumptions": "no length of a round; 64 GPUs: waits of 0.95 h (Sia 1.47), 0.15 fragments; 512: 0.87 (1.68), 0.45",
}


def runs(asked: Any, name: str, **how: Any) -> list[Outcome]:
    """One scheduler on every seed's jobs."""
    cluster = named_cluster(asked.cluster)
    source = iteration_source(cluster)
    return [run(name, cluster, source, jobs, sets, **how) for jobs, sets in seeded(asked)]


def fairness(asked: Any) -> list[Any]:
    """lambda from throughput alone to almost the queue's order."""
    rows = []
    for power in LAMBDAS:
        found = show(f"lambda = {power}", [runs(asked, "hops", fairness=power)])
        rows += [{"lambda": power, **row} for row in found]
    return rows


def arrivals(asked: Any) -> list[Any]:
    """All three schedulers as arrivals become denser: the paper finds that Hops' lead in JCT grows."""
    rows = []
    for rate in asked.rates:
        asked.jobs_per_hour = rate
        with loads.labelled(f"{rate:g} jobs an hour"):
            outcomes = [runs(asked, name) for name in ("hops", "sia", "gavel")]
        rows += [{"jobs_per_hour": rate, **row} for row in show(f"{rate:.0f} jobs an hour", outcomes)]
    return rows


def priorities(asked: Any) -> list[Any]:
    """The same scheduler behind other queues: the paper has latency ratios above 80 for LAS, SJF and SRTF, 3 for LR."""
    rows = []
    for queue in asked.queues:
        found = runs(asked, "hops", priority=queue)
        rows += [{"queue": queue, **row} for row in show(f"queue: {queue}", [found])]
        at = zip(*(np.percentile(each.latency, (50, 90, 99)) for each in found), strict=True)
        print("  latency ratio p50, p90, p99: " + ", ".join(spread(values) for values in at))
    return rows


def fragments(asked: Any) -> list[Any]:
    """Idle GPUs filled greedily, by diving in the program, and by the program of a window made for them."""
    rows = []
    for title, shim in FILLS.items():
        found = runs(asked, "hops", shim=shim)
        rows += [{"fill": title, **row} for row in show(title, [found])]
        print(f"  processor seconds of a plan, p99: {spread([each.round_p99_s for each in found])}")
        print(f"  processor seconds of a plan, mean: {spread([each.round_mean_s for each in found])}")
    return rows


def assumptions(asked: Any) -> list[Any]:
    """Hops with one thing changed that the paper does not say, and Sia, which plans everything every 60 s."""
    rows = []
    for title, how in ASSUMED.items():
        rows += [{"assumed": title, **row} for row in show(title, [runs(asked, "hops", **how)])]
    return rows + show("beside them", [runs(asked, "sia")])


SWEEPS: dict[str, Callable[[Any], list[Any]]] = {
    "fairness": fairness,
    "arrivals": arrivals,
    "priorities": priorities,
    "fragments": fragments,
    "assumptions": assumptions,
}


def main() -> None:
    """Run one sweep."""
    command = options(__doc__, 500, 100.0)
    command.add_argument("--sweep", choices=list(SWEEPS), default="fairness")
    command.add_argument("--cluster", default="hops-512")
    command.add_argument("--rates", type=lambda text: [float(rate) for rate in text.split(",")], default=RATES)
    command.add_argument("--queues", type=names_of(QUEUES), default=QUEUES)
    asked = command.parse_args()
    found = SWEEPS[asked.sweep](asked)
    print(f"\nThe paper: {PAPER[asked.sweep]}.")
    finish(asked, {asked.sweep: found})


if __name__ == "__main__":
    main()
