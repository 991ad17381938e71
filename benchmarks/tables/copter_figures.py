"""Thesis Figures 4.1, 4.2 and 4.5: the paper's claim and what is measured, over seeds.

    python benchmarks/tables/copter_figures.py 4.1 [--gpus 1792] [--hours 1] [--parts 4,8,16,32] [--seeds 2]

4.1: runtime against quality of copter, LP* and POP-k. 4.2: how far the linear program's optimum moves from round to
round, and what a round costs for it (the path length). 4.5: the distribution of the seconds of a solve. Times are of
edits, solve and shim; POP's is its slowest part's. For 4.6 see docs/measured.md.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import copter_table_4_1 as table_4_1
import loads
import numpy as np
from figure_command import Figures, end_figure, figure_options, names_of, seeds_of, spread
from numpy.typing import NDArray
from runs import RunStore, show

from copter import Settings
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.policies.sia.relaxed_solution import RelaxedSolution
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.workload import make_workload
from copter_frontends.vocabulary import configurations_of
from copter_frontends.vocabulary.named_clusters import scaled_cluster

PAPER = {
    "4.1": "POP-32 keeps the deadline with poor plans, POP-4 has better ones and often misses it; copter has both",
    "4.2": "fewer than 0.01% of the variables change their value, a few per cent are added or removed",
    "4.5": "copter's slowest solve is 2 to 3 times its 90th percentile, POP's 30 times",
}
CHANGED = 1e-6  # a value that moves by more has changed
WARM_UP = 3  # rounds that are left out
FloatArray = NDArray[np.float64]
Point = dict[Hashable, dict[int, float]]


class Moves(SiaPolicy):
    """Sia, and how far the optimum of its linear program moves from round to round."""

    last: Point
    moved: list[dict[str, float]]

    def solve(self, deadline_s: float) -> RelaxedSolution:
        """Solve, and compare with the last optimum."""
        solution = super().solve(deadline_s)
        point: Point = {
            request: {c: v for c, v in zip(columns.tolist(), values.tolist(), strict=True) if v > CHANGED}
            for request, columns, values in solution.by_request()
        }
        last = getattr(self, "last", {})
        if last:
            self.moved.append(compared(last, point, self.formulation.model.n_columns))
        else:
            self.moved = []
        self.last = point
        return solution


def compared(before: Point, after: Point, variables: int) -> dict[str, float]:
    """Values that changed of requests that stay, as a share of all variables, and the distance in the 1-norm."""
    changed, distance = 0, 0.0
    stay = before.keys() & after.keys()
    for request in stay:
        old, new = before[request], after[request]
        for column in old.keys() | new.keys():
            step = abs(old.get(column, 0.0) - new.get(column, 0.0))
            changed += step > CHANGED
            distance += step
    return {
        "changed": changed / max(variables, 1),
        "distance": distance,
        "arrived_or_left": len(before.keys() ^ after.keys()) / max(len(before.keys() | after.keys()), 1),
    }


def path_of(asked: argparse.Namespace, seed: int) -> Figures:
    """Every round's move and cost."""
    cluster = scaled_cluster(asked.gpus)
    workload = make_workload(None, None, asked.hours, asked.gpus, seed, "full")
    policy = Moves(cluster, mode="full", settings=Settings(threads=1))
    model = GoodputModel(configurations_of(cluster))
    loads.note(cluster, workload.jobs, model)
    simulation = Simulation(cluster, workload.jobs, policy, model, 60.0, seed, deadline_s=math.inf)
    result = simulation.run(hours=asked.hours)
    cost = [sum(r.timings.get(stage, 0.0) for stage in ("edit", "solve", "shim")) for r in result.rounds]
    return {"moved": policy.moved, "cost_s": cost[-len(policy.moved) :]}


def figure_4_2(asked: argparse.Namespace, store: RunStore) -> Figures:
    """Path length: moves by quartile of the distance, with what a round costs."""
    seeds: list[FloatArray] = []
    for seed in seeds_of(asked):
        name = f"path of {asked.gpus} GPUs, {asked.hours:g} h, seed {seed}"
        found = store.figures(name, partial(path_of, asked, seed))
        pairs = list(zip(found["moved"], found["cost_s"], strict=True))[WARM_UP:]
        seeds.append(np.array([(m["distance"], m["changed"], m["arrived_or_left"], cost) for m, cost in pairs]))
    quarters = [by_quarter(rounds) for rounds in seeds]
    rows = []
    for at, title in enumerate(("least", "second", "third", "most")):
        distance, changed, churn, cost = np.array([each[at] for each in quarters]).T.tolist()
        percents = [[100.0 * value for value in values] for values in (changed, churn)]
        cells = [spread(distance), *(spread(each, "%") for each in percents), spread([1e3 * value for value in cost])]
        rows.append([title, *cells])
    heads = ["quarter of rounds", "distance (1-norm)", "variables changed", "jobs come and gone", "cost ms"]
    count = sum(len(rounds) for rounds in seeds)
    show(f"Figure 4.2: {asked.gpus:,} GPUs, {count} rounds, {asked.seeds} seeds", heads, rows)
    correlation = [float(np.corrcoef(rounds[:, 0], rounds[:, 3])[0, 1]) for rounds in seeds]
    changed = [100.0 * float(rounds[:, 1].mean()) for rounds in seeds]
    print(f"Correlation of distance and cost: {spread(correlation)}; change of the variables: {spread(changed, '%')}.")
    return {"rounds": [rounds.tolist() for rounds in seeds], "correlation": correlation}


def by_quarter(rounds: FloatArray) -> FloatArray:
    """Means of a seed's rounds by quarter of their distance (the first column), from the least to the most."""
    order = np.argsort(rounds[:, 0], kind="stable")
    return np.array([rounds[part].mean(axis=0) for part in np.array_split(order, 4)])


def runs_of(asked: argparse.Namespace, store: RunStore) -> dict[str, list[Figures]]:
    """Whole runs by copter, LP* and POP-k, by seed."""
    found: dict[str, list[Figures]] = {}
    names = [name for name in asked.policies if not name.startswith("pop")]
    parts = [(name, k) for name in asked.policies if name.startswith("pop") for k in asked.parts.split(",")]
    for seed in seeds_of(asked):
        workload = make_workload(None, None, asked.hours, asked.gpus, seed, "full")
        for name, k in [*((name, "") for name in names), *parts]:
            argv = ["--gpus", str(asked.gpus), "--hours", str(asked.hours), "--seed", str(seed), "--threads", "1"]
            options = table_4_1.parser().parse_args([*argv, *(["--parts", k] if k else [])])
            title = f"{name}-{k}" if k else name
            run = table_4_1.kept_name(name, options, seed, workload.source)
            made = store.figures(run, partial(table_4_1.run, name, options, workload.jobs, seed))
            found.setdefault(title, []).append(made)
    return found


def figure_4_1(asked: argparse.Namespace, store: RunStore) -> Figures:
    """Runtime and quality."""
    found = runs_of(asked, store)
    base = found.get("copter", next(iter(found.values())))
    rows = [
        [
            title,
            spread([1e3 * run["solve_p50_s"] for run in runs]),
            spread([1e3 * run["solve_p99_s"] for run in runs]),
            spread([run["avg_jct_h"] / first["avg_jct_h"] for run, first in zip(runs, base, strict=True)]),
            spread([run["makespan_h"] / first["makespan_h"] for run, first in zip(runs, base, strict=True)]),
        ]
        for title, runs in found.items()
    ]
    heads = ["", "solve p50 ms", "solve p99 ms", "JCT over copter's", "makespan over copter's"]
    show(f"Figure 4.1: {asked.gpus:,} GPUs, {asked.hours:g} h of arrivals, {asked.seeds} seeds", heads, rows)
    return found


def figure_4_5(asked: argparse.Namespace, store: RunStore) -> Figures:
    """Percentiles of the seconds of a solve."""
    found = runs_of(asked, store)
    rows = []
    for title, runs in found.items():
        percentiles = np.mean([run["solve_percentiles_s"] for run in runs], axis=0)
        ratio = spread([run["solve_max_over_p90"] for run in runs])
        rows.append([title, *(f"{1e3 * value:.3g}" for value in percentiles), ratio])
    heads: Sequence[str] = ["ms", *(f"p{d}" for d in table_4_1.DECILES), "max over p90"]
    show(f"Figure 4.5: {asked.gpus:,} GPUs, {asked.hours:g} h of arrivals, {asked.seeds} seeds", heads, rows)
    return found


FIGURES: dict[str, Callable[[argparse.Namespace, RunStore], Figures]] = {
    "4.1": figure_4_1,
    "4.2": figure_4_2,
    "4.5": figure_4_5,
}


def main(arguments: list[str] | None = None) -> None:
    """Run a figure and print it."""
    command = figure_options(__doc__, FIGURES)
    command.add_argument(
        "--gpus", type=int, default=1792, help="of seven types (default 1792: POP-32 has a node of each)"
    )
    command.add_argument("--hours", type=float, default=1.0, help="in which jobs arrive; of 4.2: simulated (default 1)")
    command.add_argument("--policies", type=names_of(table_4_1.NAMES), default="copter,lp-star,pop-copter")
    command.add_argument("--parts", default="4,8,16,32", help="of POP")
    command.add_argument("--keep", metavar="FILE", help="keep the figures of each run here, and do not run it again")
    asked = command.parse_args(arguments)
    end_figure(asked, FIGURES[asked.figure](asked, RunStore(asked.keep)), PAPER)


if __name__ == "__main__":
    main()
