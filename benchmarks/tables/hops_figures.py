"""Curves of the Hops paper: Figures 7b, 9, 11, 12, 14 and 15, and RAQLR (7); Figure 6 is hops_estimator.py's table.

python benchmarks/tables/hops_figures.py 9 [--cluster hops-64] [--jobs 120] [--seeds 3] [--json]

7b: error of the predicted throughput against the runs that the estimator has seen, where loading is unstable. 9:
distribution of JCT and latency ratio. 11: the cluster's throughput, round by round. 12: latency ratio and finish-time
fairness behind a queue by rho with lambda = 2 (4.4). 14: processor seconds of a plan and its gap, and of the paper's
program by HiGHS with a gap and without. 15: processor seconds of a plan against jobs and GPUs. raqlr: the queue's
recent latency ratio over time. curves: 9, 11 and raqlr of the same runs. Rows are means over seeds with the least and
the most; --json has the curves' points.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from figure_command import end_figure, figure_options, seeds_of, spread, whole
from hops_curves import MOST_WORK, Curves, head, row, run
from hops_plan_figures import figure_14, figure_15
from hops_predictions import figure_7b

from copter_frontends.policies.hops.latency_ratio import Priority
from copter_frontends.vocabulary.named_clusters import named_cluster

SCHEDULERS = ("hops", "sia", "gavel")
Found = dict[str, list[Curves]]  # by scheduler, a run a seed
FTF: Priority = "ftf"
PAPER = {
    "7b": "the gap between predicted and true throughput of jobs with unstable loading narrows as they run more often",
    "9": "64 GPUs: mean JCT 3.20 h (Sia 4.41, Gavel 5.92), largest latency ratio 0.37 (1.03, 1.31)",
    "11": "Hops keeps the cluster's throughput significantly above Sia's and Gavel's",
    "12": "lambda = 2, 512 GPUs: largest rho 2.15 (Sia 28.27, Gavel 32.01); Hops has far fewer jobs above 1",
    "14": "512 GPUs, Gurobi: gap 0.01: nearly all plans within 10 s, true gap below 0.005 in most; without much longer",
    "15": "steady from 1,000 jobs on; below 10 s up to 500 GPUs; gap 0.05: 6 s at 1,000 GPUs, 17 s at 1,500",
    "raqlr": "no figure: (7) is what the paper calls the system's busyness",
}
PAPER["curves"] = f"9: {PAPER['9']}; 11: {PAPER['11']}"


def by_scheduler(asked: argparse.Namespace) -> Found:
    """Every scheduler on every seed."""
    cluster = named_cluster(asked.cluster)
    return {name: [run(name, cluster, asked, seed) for seed in seeds_of(asked)] for name in SCHEDULERS}


def lead(found: Found, get: Callable[[Curves], float], of: str) -> None:
    """How many times the others' figure is the first one's, seed by seed."""
    first, *others = found
    for name in others:
        ratios = [get(mine) / get(best) for mine, best in zip(found[name], found[first], strict=True)]
        print(f"  {name}'s {of} over {first}'s, by seed: {spread(ratios)}")


def figure_9(asked: argparse.Namespace, known: Found | None = None) -> Any:
    """Distributions of JCT and latency ratio."""
    found = known or by_scheduler(asked)
    for title, get in (("JCT, h", lambda c: c.jct_h), ("latency ratio", lambda c: c.latency)):
        head(f"Figure 9, {title}")
        for name, curves in found.items():
            row(name, [get(curve) for curve in curves])
    lead(found, lambda c: float(np.mean(c.jct_h)), "mean JCT")
    lead(found, lambda c: max(c.latency), "largest latency ratio")
    return {name: [[sorted(c.jct_h), sorted(c.latency)] for c in curves] for name, curves in found.items()}


def figure_11(asked: argparse.Namespace, known: Found | None = None) -> Any:
    """Work done in each round over its length, in Titan XPs that would do as much: restarts and idle GPUs count."""
    found = known or by_scheduler(asked)
    print("\nFigure 11, cluster throughput in Titan XPs' worth, half hour by half hour (means over seeds)")
    for name, curves in found.items():
        many = max(len(curve.by_half_hour()) for curve in curves)
        each = [np.pad(curve.by_half_hour(), (0, many - len(curve.by_half_hour()))) for curve in curves]
        print(f"  {name:<8}" + " ".join(f"{value:6.1f}" for value in np.mean(each, axis=0)))
    print(f"\nFigure 11, mean until {MOST_WORK:.0%} of the work is done, by seed")
    for name, curves in found.items():
        print(f"  {name:<8}{spread([curve.busy for curve in curves])}")
    lead(found, lambda c: c.busy, "throughput")
    return {name: [[c.round_s, c.throughput] for c in curves] for name, curves in found.items()}


def figure_12(asked: argparse.Namespace) -> Any:
    """Finish-time fairness, Hops behind its queue by rho with lambda 2."""
    cluster, seeds = named_cluster(asked.cluster), seeds_of(asked)
    found = {
        "hops, rho, lambda 2": [run("hops", cluster, asked, seed, 2.0, FTF) for seed in seeds],
        "hops, latency ratio": [run("hops", cluster, asked, seed) for seed in seeds],
        "sia": [run("sia", cluster, asked, seed) for seed in seeds],
        "gavel": [run("gavel", cluster, asked, seed) for seed in seeds],
    }
    for title, get in (("finish-time fairness rho", lambda c: c.rho), ("latency ratio", lambda c: c.latency)):
        head(f"Figure 12, {title}")
        for name, curves in found.items():
            row(name, [get(curve) for curve in curves])
    for name, curves in found.items():
        above = [100.0 * float(np.mean(np.array(c.rho) > 1.0)) for c in curves]
        print(f"  {name}: {spread(above)}% of the jobs above 1")
    lead(found, lambda c: max(c.rho), "largest rho")
    return {name: [sorted(c.rho) for c in curves] for name, curves in found.items()}


def figure_raqlr(asked: argparse.Namespace, known: Found | None = None) -> Any:
    """RAQLR of the last hour, at the end of each hour."""
    cluster = named_cluster(asked.cluster)
    curves = known["hops"] if known else [run("hops", cluster, asked, seed) for seed in seeds_of(asked)]
    print("\nRAQLR (7) of Hops' queue, by the hour")
    by_hour = [{int(hour): value for hour, value in curve.raqlr} for curve in curves]
    for hour in range(1 + max(max(each, default=0) for each in by_hour)):
        found = [each[hour] for each in by_hour if hour in each]
        if found:
            print(f"  hour {hour + 1:<4}{spread(found)}   ({len(found)} of {len(curves)} seeds)")
    return [curve.raqlr for curve in curves]


def figure_curves(asked: argparse.Namespace) -> Any:
    """Figures 9 and 11 and RAQLR, of the same runs."""
    found = by_scheduler(asked)
    return {
        "9": figure_9(asked, found),
        "11": figure_11(asked, found),
        "raqlr": figure_raqlr(asked, found),
    }


FIGURES: dict[str, Callable[[argparse.Namespace], Any]] = {
    "7b": figure_7b,
    "9": figure_9,
    "11": figure_11,
    "12": figure_12,
    "14": figure_14,
    "15": figure_15,
    "raqlr": figure_raqlr,
    "curves": figure_curves,
}


def multiples(text: str) -> list[int]:
    """Whole numbers separated by commas."""
    return [whole(each) for each in text.split(",") if each]


def main() -> None:
    """Run one figure."""
    command = figure_options(__doc__, FIGURES)
    command.set_defaults(seeds=3)
    command.add_argument("--cluster", default="hops-64")
    command.add_argument("--jobs", type=whole, default=120)
    command.add_argument("--jobs-per-hour", type=float, default=60.0)
    command.add_argument("--scale", type=float, default=0.3, help="factor on all jobs' GPU-hours (default 0.3)")
    command.add_argument("--samples", type=int, default=5, help="14: plans a seed that HiGHS solves too (default 5)")
    command.add_argument("--limit", type=float, default=20.0, help="14: seconds of a branch and bound (default 20)")
    command.add_argument("--hours", type=float, default=3.0, help="15: simulated hours of a run (default 3)")
    command.add_argument("--times", type=multiples, default=[2, 4], help="15: times 64 GPUs (default 2,4)")
    asked = command.parse_args()
    end_figure(asked, FIGURES[asked.figure](asked), PAPER)


if __name__ == "__main__":
    main()
