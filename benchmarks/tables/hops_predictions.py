"""Predicted against true throughput as jobs with unstable loading run more often (Figure 7b of the Hops paper)."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from figure_command import seeds_of, spread

from copter_frontends.policies.hops import IterationTimes, LearnedLoading, ThroughputEstimator, profile_by_gpu
from copter_frontends.policies.hops.iteration_time import NOT_HIDDEN
from copter_frontends.vocabulary import Job
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hops.workload import MODELS, iteration_times

RUNS = (0, 1, 2, 5, 10, 20, 50, 100, 200)
PROFILED = 10  # iterations of the profiling run, the paper's fewest
RUN_ITERATIONS = 300  # a minute's
TOLD_LOADS = 20  # of these, as the simulator tells them
GPUS = (1, 2, 4)
WAYS = ("database", "with loading")


def placements(kinds: dict[str, list[str]]) -> list[tuple[str, dict[str, int]]]:
    """(type, {server: GPUs}) on the first two servers of every type: within one, and over two."""
    found = []
    for kind, servers in kinds.items():
        found += [(kind, {server: gpus}) for server in servers[:2] for gpus in GPUS]
        found += [(kind, dict.fromkeys(servers[:2], gpus)) for gpus in GPUS]
    return found


def measured(true: IterationTimes, gpus: int, nodes: int, rng: np.random.Generator) -> tuple[float, Any, Any]:
    """Samples per second of a run whose loads are drawn, and the loads and waits of some of its iterations."""
    loads, waits = true.loading.draw_with_waits(RUN_ITERATIONS, rng)
    communication = true.links.communication_s(true.parameters, gpus, nodes) if gpus > 1 else 0.0
    back = max(true.backward_s + NOT_HIDDEN * communication, communication) + true.update_s
    step = (np.maximum(loads, back) if true.pattern == 1 else loads + back) + true.forward_s
    step += waits if gpus > 1 else 0.0
    rate = gpus * true.batch_per_gpu * RUN_ITERATIONS / float(step.sum())
    return rate, loads[:TOLD_LOADS], waits[:TOLD_LOADS] if gpus > 1 else None


def narrowing(name: str, seed: int, loading: bool) -> list[float]:
    """Mean relative error over all placements after each number of runs, placements being drawn."""
    cluster = named_cluster("hops-64")
    kinds = {kind: [node.id for node in cluster.nodes_of(kind)] for kind in cluster.types}
    truth = {kind: iteration_times(MODELS[name], kind) for kind in kinds}
    estimator, job = ThroughputEstimator(), Job("j", name)
    learned = LearnedLoading(estimator)
    gpus = {kind: cluster.capacity(kind) for kind in kinds}
    profile_by_gpu(estimator, {name: truth}, gpus, seed, PROFILED)
    rng, among = np.random.default_rng(seed + 1000), placements(kinds)
    errors: list[float] = []
    for done in range(max(RUNS) + 1):
        if done in RUNS:
            each = []
            for kind, placed in among:
                true = truth[kind].throughput(sum(placed.values()), len(placed)) * sum(placed.values())
                each.append(abs(estimator.throughput(job, kind, placed) / true - 1.0))
            errors.append(float(np.mean(each)))
        kind, placed = among[int(rng.integers(len(among)))]
        rate, loads, waits = measured(truth[kind], sum(placed.values()), len(placed), rng)
        estimator.observe(job, kind, placed, rate)
        if loading:
            learned.observe(job, kind, loads.tolist(), None if waits is None else waits.tolist())
    return errors


def figure_7b(asked: argparse.Namespace) -> Any:
    """Error of predicted throughputs against the runs that the estimator has seen, with and without refits."""
    unsteady, found = [name for name, model in MODELS.items() if model.unsteady], {}
    for name in unsteady:
        for way in WAYS:
            seeds = seeds_of(asked)
            found[f"{name.partition('-')[0]}, {way}"] = [narrowing(name, seed, way == WAYS[1]) for seed in seeds]
    print(f"\nFigure 7b, error of the predicted throughput, %, after so many runs ({PROFILED} iterations profiled)")
    print(f"  {'runs':<6}" + "".join(f"{title:<26}" for title in found).rstrip())
    for at, runs in enumerate(RUNS):
        cells = [spread([100.0 * errors[at] for errors in each]) for each in found.values()]
        print(f"  {runs:<6}" + "".join(f"{cell:<26}" for cell in cells).rstrip())
    return {"runs": RUNS, "errors": found}
