"""Thesis 4.3: what it costs to bring a round's program up to date, by edits and by every way of building it anew.

    python benchmarks/tables/copter_building.py [--gpus 10000] [--hours 0.5] [--every 5] [--seeds 1]

Sia's day is recorded and played again, so that edits are the model's alone and not the policy's goodputs. In every k-th
round the program that was solved is built again from the jobs' columns: as a new copter model, as SciPy's arrays,
through CVXPY with one matrix, and through CVXPY as Sia's published code writes it (a variable for every job and
configuration, products with dense matrices). Each builder ends where its solver could begin. "round" is building and
copter's warm solve over edits and that solve; "solved cold" has HiGHS's solve from nothing after the building, which is
what a program without memory needs.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import cvxpy as cp
import loads
import numpy as np
import scipy.sparse as sp
from figure_command import Figures, end_figure, spread, whole
from numpy.typing import NDArray
from runs import show

import copter
from copter import LinearProgram, Settings
from copter.highs.lp import highs_lp, silent_highs
from copter.session.playback import Playback, solved
from copter.storage.tape.watching import recorded
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.workload import make_workload
from copter_frontends.vocabulary import configurations_of
from copter_frontends.vocabulary.named_clusters import scaled_cluster

PAPER = {
    "building": "edits make a round 3.5 times faster than building it anew; building the model takes up to 30 times "
    "as long as editing it"
}
WARM_UP = 3  # rounds that are left out
LIMIT_S = 120.0  # of HiGHS's cold solve
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Jobs:
    """What a scheduler has in hand: capacities (rows,), and by job its values, its rows and its GPUs, by column."""

    capacity: Floats
    values: list[Floats]
    rows: list[NDArray[np.int64]]
    gpus: list[Floats]

    @classmethod
    def of(cls, lp: LinearProgram) -> Jobs:
        """Jobs of a program whose columns use one resource each, and whose last rows are the jobs' sums."""
        first = int(np.flatnonzero(np.asarray(lp.row_upper) != 1.0).max()) + 1
        matrix = sp.csc_array(lp.A)
        if not (np.diff(matrix.indptr) == 2).all():
            raise SystemExit("a column uses more than one resource: Sia's programs do not")
        row, coefficient = matrix.indices.reshape(-1, 2), matrix.data.reshape(-1, 2)
        order = np.argsort(row, axis=1)
        row = np.take_along_axis(row, order, axis=1).astype(np.int64)
        coefficient = np.take_along_axis(coefficient, order, axis=1)
        starts = np.flatnonzero(np.diff(row[:, 1], prepend=-1))
        cut = starts[1:]
        return cls(
            np.asarray(lp.row_upper[:first]),
            np.split(np.asarray(lp.c), cut),
            np.split(row[:, 0], cut),
            np.split(coefficient[:, 0], cut),
        )


def copter_model(jobs: Jobs) -> copter.Session:
    """A new model, request by request, and a session that could solve it."""
    model = copter.Model("max")
    for row, capacity in enumerate(jobs.capacity.tolist()):
        model.add_resource(row, capacity)
    everything = list(range(len(jobs.capacity)))
    for at, (value, rows, gpus) in enumerate(zip(jobs.values, jobs.rows, jobs.gpus, strict=True)):
        usage = np.zeros((len(everything), len(value)))
        usage[rows, np.arange(len(value))] = gpus
        model.add_request(at, value, sp.csc_array(usage), resources=everything, integer=True)
    return copter.Session(model)


def scipy_arrays(jobs: Jobs) -> tuple[Floats, sp.csc_array, Floats]:
    """Costs to minimise, matrix and right-hand side, built from all jobs at once."""
    n, m = np.array([len(each) for each in jobs.values]), len(jobs.capacity)
    columns = np.arange(n.sum())
    row = np.concatenate([*jobs.rows, m + np.repeat(np.arange(len(n)), n)])
    data = np.concatenate([*jobs.gpus, np.ones(len(columns))])
    matrix = sp.csc_array((data, (row, np.tile(columns, 2))), shape=(m + len(n), len(columns)))
    return -np.concatenate(jobs.values), matrix, np.concatenate([jobs.capacity, np.ones(len(n))])


def one_matrix(jobs: Jobs) -> cp.Problem:
    """CVXPY with one sparse matrix."""
    cost, matrix, upper = scipy_arrays(jobs)
    x = cp.Variable(len(cost), nonneg=True)
    return cp.Problem(cp.Minimize(cost @ x), [matrix @ x <= upper])


def as_published(jobs: Jobs) -> cp.Problem:
    """CVXPY as Sia's published code has it: a dense matrix of jobs and configurations, a row for every GPU type."""
    pairs = np.column_stack([np.concatenate(jobs.rows), np.concatenate(jobs.gpus)])
    configurations, place = np.unique(pairs, axis=0, return_inverse=True)
    owner = np.repeat(np.arange(len(jobs.values)), [len(each) for each in jobs.values])
    value, there = np.zeros((len(jobs.values), len(configurations))), np.zeros((len(jobs.values), len(configurations)))
    value[owner, place.ravel()], there[owner, place.ravel()] = np.concatenate(jobs.values), 1.0
    x = cp.Variable(value.shape, nonneg=True)
    rules = [cp.sum(x, axis=1) <= 1, x <= there]
    for row, capacity in enumerate(jobs.capacity):
        gpus = np.where(configurations[:, 0] == row, configurations[:, 1], 0.0)
        rules.append(cp.sum(x @ gpus) <= capacity)
    return cp.Problem(cp.Maximize(cp.sum(cp.multiply(value, x))), rules)


BUILDERS: dict[str, Callable[[Jobs], object]] = {
    "a new copter model": copter_model,
    "SciPy's arrays": scipy_arrays,
    "CVXPY, one matrix": lambda jobs: one_matrix(jobs).get_problem_data(cp.HIGHS),
    "CVXPY, as Sia's published code": lambda jobs: as_published(jobs).get_problem_data(cp.HIGHS),
}


def cold_s(lp: LinearProgram) -> float:
    """Seconds of HiGHS from nothing, by its interior-point method and crossover."""
    solver = silent_highs()
    for option, value in (("solver", "ipm"), ("threads", 1), ("time_limit", LIMIT_S)):
        solver.setOptionValue(option, value)
    solver.passModel(highs_lp(lp))
    began = time.perf_counter()
    solver.run()
    return time.perf_counter() - began


def record(asked: argparse.Namespace, seed: int, tape: Path) -> None:
    """Simulate Sia's day and keep the edits of its rounds."""
    cluster = scaled_cluster(asked.gpus)
    workload = make_workload(None, None, asked.hours, asked.gpus, seed, "full")
    policy = SiaPolicy(cluster, mode="full", settings=Settings(threads=1))
    model = GoodputModel(configurations_of(cluster))
    loads.note(cluster, workload.jobs, model)
    simulation = Simulation(cluster, workload.jobs, policy, model, 60.0, seed, deadline_s=math.inf)
    with recorded(str(tape)):
        simulation.run(hours=asked.hours)


def run(asked: argparse.Namespace, seed: int) -> dict[str, list[float]]:
    """Seconds of every way, by round that was looked at."""
    seconds: dict[str, list[float]] = {name: [] for name in ("edit", "solve", *BUILDERS, "cold", "columns")}
    with tempfile.TemporaryDirectory() as folder:
        record(asked, seed, Path(folder) / "day.tape")
        for played in Playback(str(Path(folder) / "day.tape"), {"threads": 1}):
            solution, _, _ = solved(played, math.inf)
            if played.number < WARM_UP or (played.number - WARM_UP) % asked.every:
                continue
            lp = played.session.model.to_linear_program()
            jobs = Jobs.of(lp)
            for name, build in BUILDERS.items():
                began = time.perf_counter()
                build(jobs)
                seconds[name].append(time.perf_counter() - began)
            found = {"edit": played.edit_s, "solve": solution.solve_time_s, "cold": cold_s(lp), "columns": len(lp.c)}
            for name, value in found.items():
                seconds[name].append(float(value))
    return seconds


def main(arguments: list[str] | None = None) -> None:
    """See the module's docstring."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--gpus", type=whole, default=10_000)
    command.add_argument("--hours", type=float, default=0.5)
    command.add_argument("--every", type=whole, default=5, help="rounds from one that is built anew to the next")
    command.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    command.add_argument("--seeds", type=whole, default=1)
    command.add_argument("--json", action="store_true", help="the medians as one object, the last line")
    asked = command.parse_args(arguments)
    found: list[Figures] = [
        {name: float(np.median(values)) for name, values in run(asked, seed).items()}
        for seed in range(asked.seed, asked.seed + asked.seeds)
    ]
    rows = []
    for name in ("edit", *BUILDERS):
        over = [each[name] / each["edit"] for each in found]
        whole_round = [(each[name] + each["solve"]) / (each["edit"] + each["solve"]) for each in found]
        cold = [(each[name] + each["cold"]) / (each["edit"] + each["solve"]) for each in found]
        ms = [1e3 * each[name] for each in found]
        rows.append(["copter's edits" if name == "edit" else name, *map(spread, (ms, over, whole_round, cold))])
    columns = np.mean([each["columns"] for each in found])
    title = f"Building a round's program: {asked.gpus:,} GPUs, {columns:,.0f} columns, {asked.seeds} seeds, medians"
    show(title, ["way", "ms", "over edits", "round", "solved cold"], rows)
    end_figure(argparse.Namespace(figure="building", json=asked.json), found, PAPER)


if __name__ == "__main__":
    main()
