"""Curves of the Hadar paper: Figures 3, 4, 7, 8 and 10 and Table IV, the paper's claim beside what is measured.

python benchmarks/tables/hadar_figures.py 3 [--jobs 120] [--scale 0.25] [--seeds 2] [--schedulers hadar,gavel]

3: share of the jobs completed over time. 4: GPU utilisation and how often a job's GPUs change. 7: seconds of a plan
from 32 jobs on, the cluster growing with them. 8: least, average and largest JCT against the rate of arrivals. 10:
utilisation of the 8 GPUs of the prototype. IV: what restarts cost by model, each with its own. Means over seeds, with
the spread.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import loads
import numpy as np
from figure_command import Figures, end_figure, figure_options, names_of, seeds_of, spread, whole
from hadar_runs import ROUND_S, SCHEDULERS, Outcome, add_sizes, make_policy, run, say
from hadar_table3 import COUNTS, source_of, ten_jobs
from hadar_watch import Watched

from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Cluster, Job
from copter_frontends.vocabulary.named_clusters import NAMED_CLUSTERS, named_cluster
from copter_papers.hadar.workload import RESTART_S, hadar_jobs, table_source

PAPER = {
    "3": "static, average JCT: Gavel 1.8, Tiresias 2.5, YARN-CS 7 times Hadar's; medians 2.1, 3, 15 times",
    "4": "YARN-CS the highest, Hadar like it, Gavel and Tiresias lower; GPUs change in 30% of an average job's rounds",
    "7": "like Gavel's; a round of 2,000 jobs in less than 7 minutes",
    "8": "Hadar's range from least to largest JCT is the tightest, Tiresias's the widest, growing with the rate",
    "10": "Hadar's utilisation is above Gavel's and Tiresias's",
    "IV": "a round of 6 minutes, with reallocation and without, as in the first two columns",
}
FIGURE_3 = {"hadar": (1.0, 1.0), "gavel": (1.8, 2.1), "tiresias": (2.5, 3.0), "yarn": (7.0, 15.0)}
TABLE_4 = {
    "resnet50": (2.1, 0.33),
    "resnet18": (1.29, 0.21),
    "lstm": (2.01, 0.87),
    "cyclegan": (0.68, 0.13),
    "transformer": (0.71, 0.17),
}
SHARES = (10, 25, 50, 75, 90, 100)
CROWDS = (32, 128, 512, 2048)
RATES = (0.5, 1.0, 1.5, 2.0)


def drawn(asked: argparse.Namespace, seed: int, **arrivals: Any) -> list[Job]:
    """A seed's jobs."""
    return hadar_jobs(asked.jobs, **arrivals, seed=seed, scale=asked.scale, sizes=asked.sizes)


def outcomes(asked: argparse.Namespace, **arrivals: Any) -> dict[str, list[Outcome]]:
    """Every scheduler on every seed's jobs, on the paper's 60 GPUs."""
    cluster = named_cluster("hadar-60")
    source = table_source(cluster, spread_cost=asked.spread_cost)
    found: dict[str, list[Outcome]] = {name: [] for name in asked.schedulers}
    for seed in seeds_of(asked):
        jobs = drawn(asked, seed, **arrivals)
        for name in asked.schedulers:
            say(f"{name}, seed {seed} ...")
            found[name].append(run(name, "jct", cluster, source, jobs))
    return found


def figure_3(asked: argparse.Namespace) -> Figures:
    """Hours after which a share of the jobs has completed, all having come at the beginning."""
    found = outcomes(asked, arrivals="static")
    print(f"\nFigure 3, static, {asked.jobs} jobs: hours until a share of the jobs has completed")
    columns = ("average, h", "average x", "paper", "median x", "paper")
    heads = "".join(f"{column:<{8 if column == 'paper' else 24}}" for column in columns)
    print(f"  {'':<16}" + "".join(f"{f'{share}%':>9}" for share in SHARES) + f"   {heads.rstrip()}")
    first = next(iter(found.values()))
    for name, runs in found.items():
        at = np.mean([np.percentile(o.jct_h, SHARES) for o in runs], axis=0)
        cells = [f"{spread([float(o.jct_h.mean()) for o in runs]):<24}"]
        for figure, paper in zip((np.mean, np.median), FIGURE_3.get(name, (None, None)), strict=True):
            ratio = [float(figure(mine.jct_h) / figure(base.jct_h)) for mine, base in zip(runs, first, strict=True)]
            cells += [f"{spread(ratio):<24}", f"{'-' if paper is None else paper:<8}"]
        print(f"  {name:<16}" + "".join(f"{value:>9.2f}" for value in at) + f"   {''.join(cells).rstrip()}")
    return {name: [sorted(o.jct_h.tolist()) for o in runs] for name, runs in found.items()}


def utilised(title: str, found: dict[str, list[Outcome]]) -> Figures:
    """Utilisation while jobs wait, and the share of a running job's rounds that change its GPUs."""
    print(f"\n{title}\n  {'':<16}{'utilisation':<28}rounds that change")
    for name, runs in found.items():
        used, changed = [o.utilisation for o in runs], [o.changed_share for o in runs]
        print(f"  {name:<16}{spread(used):<28}{spread(changed)}")
    return {name: [[o.utilisation, o.changed_share] for o in runs] for name, runs in found.items()}


def figure_4(asked: argparse.Namespace) -> Figures:
    """Utilisation of the 60 GPUs."""
    return utilised("Figure 4", outcomes(asked, arrivals="static"))


def figure_7(asked: argparse.Namespace) -> Figures:
    """Seconds of a plan: 32 jobs on 8 nodes of each type, and so on in proportion."""
    print(
        f"\nFigure 7: seconds of a plan, {asked.rounds} rounds\n  {'jobs':>8}{'GPUs':>8}   {'':<12}{'median':<28}most"
    )
    found: Figures = {}
    for jobs in CROWDS:
        nodes = max(1, jobs * 5 // 480)
        cluster = Cluster.of({kind: (nodes, size) for kind, (_, size) in NAMED_CLUSTERS["hadar-60"].items()})
        source = table_source(cluster, spread_cost=asked.spread_cost)
        for name in asked.schedulers:
            seconds: list[list[float]] = []
            for seed in seeds_of(asked):
                every = hadar_jobs(jobs, "static", seed=seed)
                loads.note(cluster, every, source)
                policy = make_policy(name, "jct", cluster, source)
                result = Simulation(cluster, every, policy, source, ROUND_S).run(rounds=asked.rounds)
                seconds.append([record.round_s for record in result.rounds])
            found[f"{name} {jobs}"] = seconds
            median = spread([float(np.median(each)) for each in seconds])
            print(f"  {jobs:>8,}{cluster.gpus:>8,}   {name:<12}{median:<28} {max(map(max, seconds)):.3g}")
    return found


def figure_8(asked: argparse.Namespace) -> Figures:
    """Least, average and largest JCT against the rate of arrivals."""
    found: Figures = {}
    print(f"\nFigure 8, continuous, {asked.jobs} jobs: h\n  {'jobs an hour':>14}  scheduler    least, average, most")
    for rate in RATES:
        per_hour = rate / asked.scale  # shorter jobs come as much closer together
        with loads.labelled(f"{per_hour:.3g} jobs an hour"):
            by_name = outcomes(asked, arrivals="continuous", jobs_per_hour=per_hour)
        for name, runs in by_name.items():
            figures = [[float(f(o.jct_h)) for o in runs] for f in (np.min, np.mean, np.max)]
            found[f"{name} {rate}"] = figures
            print(f"  {per_hour:>14.3g}  {name:<12}" + "   ".join(spread(values) for values in figures))
    return found


def figure_10(asked: argparse.Namespace) -> Figures:
    """Utilisation of the prototype's 8 GPUs."""
    cluster = Cluster.of({kind: (count, 1) for kind, count in COUNTS.items()})
    source = source_of(cluster, asked.spread_cost)
    found = {
        name: [run(name, "jct", cluster, source, ten_jobs(seed, asked.scale)) for seed in seeds_of(asked)]
        for name in asked.schedulers
    }
    return utilised("Figure 10, 8 GPUs, ten jobs", found)


def table_4(asked: argparse.Namespace) -> Figures:
    """What restarts take of the rounds in which jobs of a model run, by what the jobs got done in them."""
    cluster = named_cluster("hadar-60")
    source = table_source(cluster, RESTART_S, asked.spread_cost)
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for seed in seeds_of(asked):
        policy = make_policy("hadar", "jct", cluster, source)
        assert isinstance(policy, HadarPolicy)
        watched, jobs = Watched(policy), drawn(asked, seed, arrivals="static")
        loads.note(cluster, jobs, source)
        Simulation(cluster, jobs, watched, source, ROUND_S).run()  # type: ignore[arg-type]
        for name, shares in watched.lost_shares().items():
            with_change, without = TABLE_4[name]
            expected = shares[3] * with_change + (1.0 - shares[3]) * without
            found[name].append((*(100.0 * share for share in shares), expected))
    columns = ("GPUs changed", "not changed", "all rounds", "rounds that change", "paper's % at that share")
    print(f"\nTable IV, {asked.jobs} jobs: % of a round that is lost; the paper's first")
    print(f"  {'':<13}{'with':>6}{'without':>9}   " + "".join(f"{column:<26}" for column in columns).rstrip())
    for name, (with_change, without) in TABLE_4.items():
        cells = [spread([each[i] for each in found[name]]) if found[name] else "-" for i in range(len(columns))]
        print(f"  {name:<13}{with_change:>6.2f}{without:>9.2f}   " + "".join(f"{cell:<26}" for cell in cells).rstrip())
    return dict(found)


FIGURES: dict[str, Callable[[argparse.Namespace], Figures]] = {
    "3": figure_3,
    "4": figure_4,
    "7": figure_7,
    "8": figure_8,
    "10": figure_10,
    "IV": table_4,
}


def main() -> None:
    """Run one figure."""
    command = figure_options(__doc__, FIGURES)
    command.add_argument("--jobs", type=whole, default=120, help="(the paper: 480)")
    command.add_argument("--scale", type=float, default=0.25, help="factor on all jobs' GPU-hours (default 0.25)")
    command.add_argument("--rounds", type=whole, default=3, help="of 7 (default 3)")
    command.add_argument("--spread-cost", type=float, default=0.05, help="speed lost on more nodes than needed")
    command.add_argument("--schedulers", type=names_of(SCHEDULERS), default="hadar,gavel,tiresias,yarn")
    add_sizes(command)
    asked = command.parse_args()
    end_figure(asked, FIGURES[asked.figure](asked), PAPER)


if __name__ == "__main__":
    main()
