"""Curves of the Hops paper: Figures 7b, 9, 11, 12, 14 and 15, and RAQLR (7); Figure 6 is hops_estimator.py's table.

python benchmarks/tables/hops_figures.py 9 [--cluster hops-64] [--jobs 120] [--seeds 2] [--json]

7b: predicted and true throughput where loading is unstable. 9: distribution of JCT and latency ratio. 11: the
cluster's throughput over time. 12: latency ratio and finish-time fairness behind a queue by rho with lambda = 2
(4.4). 14: seconds of a plan, and its gap. 15: seconds of a plan against jobs and GPUs. raqlr: the queue's recent
latency ratio over time. Rows are means over seeds with the least and the most; --json has the curves' points.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from figure_command import end_figure, figure_options, whole
from hops_runs import make_policy, say

from copter_frontends.clusters import named_cluster
from copter_frontends.hops.data_loading import fit_loading
from copter_frontends.hops.latency_ratio import Priority
from copter_frontends.hops.workload import hops_jobs, iteration_source
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.alone import GoodputAloneTimes
from copter_frontends.simulator.fairness import finish_time_fairness, latency_ratios
from copter_frontends.vocabulary import Cluster

PERCENTILES = (10, 25, 50, 75, 90, 99, 100)
SCHEDULERS = ("hops", "sia", "gavel")
FTF: Priority = "ftf"
PAPER = {
    "7b": "predictions follow the true throughput of jobs with unstable loading",
    "9": "64 GPUs: mean JCT 3.20 h (Sia 4.41, Gavel 5.92), largest latency ratio 0.37 (1.03, 1.31)",
    "11": "Hops keeps the cluster's throughput above Sia's and Gavel's until the queue is empty",
    "12": "lambda = 2, 512 GPUs: largest rho 2.15 (Sia 28.27, Gavel 32.01)",
    "14": "gap 0.01: nearly all plans of 512 GPUs within 10 s, true gap below 0.005 in most",
    "15": "steady from 1,000 jobs on; gap 0.05: 6 s at 1,000 GPUs, 17 s at 1,500",
    "raqlr": "no figure: (7) is what the paper calls the system's busyness",
}


@dataclass(frozen=True, slots=True)
class Curves:
    """What the figures need of a run: by job, and by round."""

    jct_h: list[float]
    latency: list[float]
    rho: list[float]
    hours: list[float]
    samples: list[float]
    plan_s: list[float]
    gap: list[float]
    raqlr: list[tuple[float, float]]


def run(
    name: str, cluster: Cluster, asked: argparse.Namespace, seed: int, fairness: float = 1.0, priority: Priority = "lr"
) -> Curves:
    """Simulate until the last job ends."""
    say(f"{name}, {cluster.gpus} GPUs, {asked.jobs} jobs, seed {seed} ...")
    source = iteration_source(cluster)
    jobs, sets = hops_jobs(asked.jobs, asked.jobs_per_hour, seed, asked.scale)
    policy = make_policy(name, cluster, source, sets, fairness, priority)
    work = {job.id: job.work_samples or source.applications[job.application].work_samples for job in jobs}
    simulation = Simulation(cluster, jobs, policy, source, policy.round_s)
    raqlr: list[tuple[float, float]] = []

    def note(record: Any) -> None:
        queue = getattr(getattr(policy, "standings", None), "queue", None)
        value = None if queue is None else queue.recent_ratio(record.now_s)
        if value is not None:
            raqlr.append((record.now_s / 3600.0, value))

    result = simulation.run(on_round=note if name.startswith("hops") else None)
    alone = GoodputAloneTimes(source)
    spans = [(span.begin_s, span.end_s, span.job) for span in result.spans]
    held: dict[str, float] = {}
    for begin_s, end_s, job in spans:
        held[job] = held.get(job, 0.0) + end_s - begin_s
    hours = np.arange(0.0, max(end_s for _, end_s, _ in spans), 3600.0)
    # A job's samples spread over the time that it had GPUs, in units of its own work.
    done = [
        sum(max(0.0, min(end, h + 3600.0) - max(begin, h)) / held[job] for begin, end, job in spans if work[job] > 0)
        for h in hours
    ]
    busy = [record for record in result.rounds if record.active_jobs]
    return Curves(
        jct_h=(result.jobs["jct_s"].astype(float) / 3600.0).tolist(),
        latency=latency_ratios(result, jobs, alone).values.tolist(),
        rho=finish_time_fairness(result, jobs, alone)["thesis"].values.tolist(),
        hours=(hours / 3600.0).tolist(),
        samples=done,
        plan_s=[record.round_s for record in busy],
        gap=[record.gap for record in busy if np.isfinite(record.gap)],
        raqlr=raqlr,
    )


def row(title: str, each: list[list[float]]) -> None:
    """Percentiles of a figure: their means over seeds, then least and most of the largest."""
    found = np.array([np.percentile(values, PERCENTILES) for values in each])
    ends = f"{found[:, -1].min():.3g} to {found[:, -1].max():.3g}" if len(each) > 1 else ""
    print(f"  {title:<24}" + "".join(f"{value:>9.3g}" for value in found.mean(axis=0)) + f"   {ends}")


def head(title: str) -> None:
    """The percentiles' names."""
    print(f"\n{title}\n  {'':<24}" + "".join(f"{f'p{p}':>9}" for p in PERCENTILES) + "   max, by seed")


def by_scheduler(asked: argparse.Namespace) -> dict[str, list[Curves]]:
    """Every scheduler on every seed."""
    cluster = named_cluster(asked.cluster)
    return {name: [run(name, cluster, asked, seed) for seed in range(asked.seeds)] for name in SCHEDULERS}


def figure_9(asked: argparse.Namespace) -> Any:
    """Distributions of JCT and latency ratio."""
    found = by_scheduler(asked)
    for title, get in (("JCT, h", lambda c: c.jct_h), ("latency ratio", lambda c: c.latency)):
        head(f"Figure 9, {title}")
        for name, curves in found.items():
            row(name, [get(curve) for curve in curves])
    return {name: [[sorted(c.jct_h), sorted(c.latency)] for c in curves] for name, curves in found.items()}


def figure_11(asked: argparse.Namespace) -> Any:
    """Jobs' work done in each hour, in whole jobs."""
    found = by_scheduler(asked)
    print("\nFigure 11, jobs' worth of work done, hour by hour (first seed)")
    for name, curves in found.items():
        print(f"  {name:<8}" + " ".join(f"{value:6.1f}" for value in curves[0].samples))
    return {name: [[c.hours, c.samples] for c in curves] for name, curves in found.items()}


def figure_12(asked: argparse.Namespace) -> Any:
    """Finish-time fairness, Hops behind its queue by rho with lambda 2."""
    cluster, seeds = named_cluster(asked.cluster), range(asked.seeds)
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
        print(f"  {name}: {np.mean([np.mean(np.array(c.rho) > 1.0) for c in curves]):.1%} of the jobs above 1")
    return {name: [sorted(c.rho) for c in curves] for name, curves in found.items()}


def figure_14(asked: argparse.Namespace) -> Any:
    """Seconds and gap of Hops' plans."""
    cluster = named_cluster(asked.cluster)
    curves = [run("hops", cluster, asked, seed) for seed in range(asked.seeds)]
    head(f"Figure 14, {asked.cluster}")
    row("seconds of a plan", [curve.plan_s for curve in curves])
    row("certified gap, %", [[100.0 * gap for gap in curve.gap] for curve in curves])
    return [[curve.plan_s, curve.gap] for curve in curves]


def figure_15(asked: argparse.Namespace) -> Any:
    """Seconds of a plan against jobs, and against GPUs with as many jobs for each."""
    small, found = named_cluster("hops-64"), {}
    head("Figure 15, seconds of a plan")
    for count in (asked.jobs // 2, asked.jobs, 2 * asked.jobs):
        mine = argparse.Namespace(**{**vars(asked), "jobs": count})
        curves = [run("hops", small, mine, seed) for seed in range(asked.seeds)]
        found[f"{count} jobs"] = [curve.plan_s for curve in curves]
        row(f"64 GPUs, {count} jobs", found[f"{count} jobs"])
    for times in (2, 4):
        sizes = {kind: (times * len(small.nodes_of(kind)), small.type_of(kind).gpus_per_node) for kind in small.types}
        mine = argparse.Namespace(
            **{**vars(asked), "jobs": times * asked.jobs, "jobs_per_hour": times * asked.jobs_per_hour}
        )
        curves = [run("hops", Cluster.of(sizes), mine, seed) for seed in range(asked.seeds)]
        found[f"{64 * times} GPUs"] = [curve.plan_s for curve in curves]
        row(f"{64 * times} GPUs, {mine.jobs} jobs", found[f"{64 * times} GPUs"])
    return found


def figure_7b(asked: argparse.Namespace) -> Any:
    """Loads in two states: what 200 measured iterations predict, and the mean of many more."""
    print("\nFigure 7b, unstable loading: mean seconds of a load, predicted and true")
    found = []
    for share, slow in ((0.05, 0.4), (0.2, 0.4), (0.2, 1.5), (0.5, 0.8)):
        errors = []
        for seed in range(max(asked.seeds, 3)):
            rng = np.random.default_rng(seed)

            def loads(count: int, rng: np.random.Generator = rng, share: float = share, slow: float = slow) -> Any:
                slowly = rng.random(count) < share
                return np.maximum(
                    np.where(slowly, rng.normal(slow, 0.1 * slow, count), rng.normal(0.1, 0.01, count)), 0
                )

            fitted = fit_loading(loads(200))
            true = float(loads(200_000).mean())
            errors.append(abs(fitted.mean_s - true) / true)
        print(
            f"  {share:>4.0%} of loads of {slow:g} s, others 0.1: error {np.mean(errors):.1%}, most {max(errors):.1%}"
        )
        found.append([share, slow, errors])
    return found


def figure_raqlr(asked: argparse.Namespace) -> Any:
    """RAQLR of the last hour, at the end of each hour."""
    curves = [run("hops", named_cluster(asked.cluster), asked, seed) for seed in range(asked.seeds)]
    print("\nRAQLR (7) of Hops' queue, by the hour")
    for seed, curve in enumerate(curves):
        by_hour = {int(hour): value for hour, value in curve.raqlr}
        print(f"  seed {seed}: " + " ".join(f"{value:.2f}" for value in by_hour.values()))
    return [curve.raqlr for curve in curves]


FIGURES: dict[str, Callable[[argparse.Namespace], Any]] = {
    "7b": figure_7b,
    "9": figure_9,
    "11": figure_11,
    "12": figure_12,
    "14": figure_14,
    "15": figure_15,
    "raqlr": figure_raqlr,
}


def main() -> None:
    """Run one figure."""
    command = figure_options(__doc__, FIGURES)
    command.add_argument("--cluster", default="hops-64")
    command.add_argument("--jobs", type=whole, default=120)
    command.add_argument("--jobs-per-hour", type=float, default=60.0)
    command.add_argument("--scale", type=float, default=0.3, help="factor on all jobs' GPU-hours (default 0.3)")
    asked = command.parse_args()
    end_figure(asked, FIGURES[asked.figure](asked), PAPER)


if __name__ == "__main__":
    main()
