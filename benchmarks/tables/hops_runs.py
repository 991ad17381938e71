"""What the tables of the Hops paper share: the schedulers, a run of one, and its figures next to the paper's."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import loads
import numpy as np
from figure_command import spread, whole
from hops_queued import QueuedGavel, QueuedSia
from hops_sia import SiaOnSets

from copter_frontends.policies.baselines.gavel import GavelPolicy
from copter_frontends.policies.hops import (
    HopsPolicy,
    ModelledThroughputs,
    ProfilingQueue,
    RequirementSet,
    ThroughputEstimator,
)
from copter_frontends.policies.hops.profiling import profile_by_gpu
from copter_frontends.policy_kit import GoodputThroughputs, Throughputs
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.alone import GoodputAloneTimes
from copter_frontends.simulator.fairness import finish_time_fairness, fragmentation_gpus, latency_ratios
from copter_frontends.simulator.table_source import TableSource
from copter_frontends.vocabulary import Cluster, Job, Plan, SchedulingPolicy
from copter_papers.hops.workload import RESTART_S, hops_jobs

PROFILED_ITERATIONS = 50  # the paper's 10 to 50 on every GPU type, where profiling takes time and GPUs
FIGURES = ("makespan_h", "jct_h", "wait_h", "max_lr", "fragments", "max_ftf")
SCHEDULERS = "hops,hops-told,sia,sia-told,sia-queued,gavel,gavel-told,gavel-queued"
"""By what they see at first: means over the servers of a GPU type (Hops then learns), or the simulator's own rates.

hops-profiling, hops-profiling-each: the first job of each application, or every job, is profiled before it joins (the
others have their profiles for nothing). sia-queued, gavel-queued: behind Hops's queue (hops_queued.py).
"""
TOLD = {
    "hops": ("", "told", "profiling", "profiling-each"),
    "sia": ("", "told", "queued"),
    "gavel": ("", "told", "queued"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of one scheduler: hours, ratios, GPUs, every job's latency ratio, GPU-hours of profiling and of jobs.

    Rounds' seconds are the processor's.
    """

    name: str
    makespan_h: float
    jct_h: float
    wait_h: float
    max_lr: float
    fragments: float
    max_ftf: float
    round_p99_s: float
    latency: np.ndarray  # type: ignore[type-arg]
    profiling_h: float = 0.0
    held_h: float = 0.0
    round_mean_s: float = 0.0


class TypeBlind:
    """Throughputs as a scheduler sees them that knows GPU types and not their servers: the mean over like GPUs."""

    def __init__(self, known: Throughputs, cluster: Cluster) -> None:
        self._known = known
        gpu = {kind: kind.partition("-")[0] for kind in cluster.types}
        self._alike = {kind: [o for o in gpu if gpu[o] == gpu[kind]] for kind in gpu}
        self._share = {kind: cluster.capacity(kind) for kind in gpu}

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """Mean over the servers of a GPU type, weighted by their GPUs."""
        kinds = self._alike[gpu_type]
        total = sum(self._share[kind] for kind in kinds)
        return sum(self._share[kind] * self._known.rate(job, kind, gpus, progress) for kind in kinds) / total

    def work(self, job: Job) -> float:
        """As it is."""
        return self._known.work(job)


class Timed:
    """A policy whose processor time is kept, plan by plan: the clock's would tell of other work on the machine too."""

    def __init__(self, policy: Any) -> None:
        self._policy, self._since, self.plan_s = policy, 0.0, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def _timed(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        begun = time.process_time()
        try:
            return call(*arguments, **named)
        finally:
            self._since += time.process_time() - begun

    def add_job(self, job: Job) -> None:
        """An edit."""
        self._timed(self._policy.add_job, job)

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """An edit."""
        self._timed(self._policy.update_job, job_id, **what_changed)

    def remove_job(self, job_id: str) -> None:
        """An edit."""
        self._timed(self._policy.remove_job, job_id)

    def plan(self, now_s: float, deadline_s: float) -> Plan:
        """A plan; its seconds and those of the edits since the last one are kept."""
        plan: Plan = self._timed(self._policy.plan, now_s, deadline_s)
        self.plan_s.append(self._since)
        self._since = 0.0
        return plan


def make_policy(
    name: str,
    cluster: Cluster,
    source: TableSource,
    sets: Mapping[str, RequirementSet],
    **how: Any,
) -> SchedulingPolicy:
    """A scheduler of the paper's comparison; Hops with the options of its policy."""
    kind, _, told = name.partition("-")
    if told not in TOLD.get(kind, ()):
        raise SystemExit(f"unknown scheduler {name!r}: {SCHEDULERS},hops-profiling,hops-profiling-each")
    if told.startswith("profiling"):
        estimator, truth = ThroughputEstimator(), {app: facts.parts for app, facts in source.applications.items()}
        behind = HopsPolicy(cluster, estimator, **how)
        each = told.endswith("each")
        return _OnSets(ProfilingQueue(behind, estimator, truth, PROFILED_ITERATIONS, each, RESTART_S), sets)
    if kind == "hops":
        known = ModelledThroughputs(cluster, source) if told else learning(cluster, source)
        return _OnSets(HopsPolicy(cluster, known, **how), sets)
    true = GoodputThroughputs(cluster, source)
    rates = true if told == "told" else TypeBlind(true, cluster)
    if told == "queued":
        queued = {"sia": QueuedSia, "gavel": partial(QueuedGavel, objective="max_min_fairness")}[kind]
        return queued(cluster, rates, sets=sets)
    return SiaOnSets(cluster, rates, sets) if kind == "sia" else GavelPolicy(cluster, rates, "max_min_fairness")


def learning(cluster: Cluster, source: TableSource, seed: int = 0) -> ThroughputEstimator:
    """Hops' estimator with a profile by GPU, in which servers are blurred as for the others; the rest it sees."""
    estimator = ThroughputEstimator()
    gpus = {kind: cluster.capacity(kind) for kind in cluster.types}
    profile_by_gpu(estimator, {name: facts.parts for name, facts in source.applications.items()}, gpus, seed)
    return estimator


class _OnSets:
    """A Hops policy whose jobs come with their requirement sets (a SchedulingPolicy)."""

    def __init__(self, policy: HopsPolicy | ProfilingQueue, sets: Mapping[str, RequirementSet]) -> None:
        self._policy, self._sets = policy, sets

    def add_job(self, job: Job) -> None:
        """With its set."""
        self._policy.add_job(job, self._sets[job.id])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)


def run(
    name: str,
    cluster: Cluster,
    source: TableSource,
    jobs: Sequence[Job],
    sets: Mapping[str, RequirementSet],
    **how: Any,
) -> Outcome:
    """Simulate until the last job ends; `how` is of Hops's policy."""
    say(f"{name} ...")
    policy = Timed(make_policy(name, cluster, source, sets, **how))
    loads.note(cluster, jobs, source)
    result = Simulation(cluster, jobs, policy, source, policy.round_s).run()
    if result.skipped:
        raise SystemExit(f"{name} refused {len(result.skipped)} jobs: {result.skipped[0]}")
    summary, alone = result.summary(), GoodputAloneTimes(source)
    probing = getattr(policy, "probing", [0] * len(result.rounds))  # held by nobody's job, but not idle
    rounds = [
        replace(each, gpus_used={**each.gpus_used, "profiling": gpus})
        for each, gpus in zip(result.rounds, probing, strict=True)
    ]
    latency = latency_ratios(result, jobs, alone)
    fairness_ratio = finish_time_fairness(result, jobs, alone)["thesis"].worst
    return Outcome(
        name=name,
        makespan_h=float(summary["makespan_h"]),
        jct_h=float(summary["avg_jct_h"]),
        wait_h=float(result.jobs["queue_s"].astype(float).mean() / 3600.0),
        max_lr=float(latency.worst or 0.0),
        fragments=float(fragmentation_gpus(rounds) or 0.0),
        max_ftf=float(fairness_ratio or 0.0),
        round_p99_s=float(np.percentile(policy.plan_s, 99)),
        latency=latency.values,
        profiling_h=sum(probing) * policy.round_s / 3600.0,
        round_mean_s=float(np.mean(policy.plan_s)),
        held_h=float(result.jobs["gpu_seconds"].astype(float).sum()) / 3600.0,
    )


def show(
    title: str, outcomes: Sequence[Sequence[Outcome]], paper: Mapping[str, Sequence[float]] | None = None
) -> list[Any]:
    """Print all figures of every scheduler, an outcome a seed: their mean, least and most, and the paper's below."""

    def each(value: float) -> str:
        return "-" if np.isnan(value) else f"{value:.2f}"

    print(f"\n{title}\n  {'':<20}" + "".join(f"{name:<26}" for name in FIGURES).rstrip())
    rows = []
    for runs in outcomes:
        name = runs[0].name
        values = {figure: [float(getattr(run, figure)) for run in runs] for figure in FIGURES}
        print(f"  {name:<20}" + "".join(f"{spread(found):<26}" for found in values.values()).rstrip())
        said = (paper or {}).get(name)
        if said is not None:
            print(f"  {'(paper)':<20}" + "".join(f"{each(value):<26}" for value in said).rstrip())
        if any(run.profiling_h for run in runs):
            took, share = [run.profiling_h for run in runs], [100 * run.profiling_h / run.held_h for run in runs]
            print(f"  {name}: profiling took {spread(took)} GPU-hours, {spread(share)}% of what jobs had")
        rows.append({"scheduler": name, **values, "round_p99_s": [run.round_p99_s for run in runs], "paper": said})
    return rows


def over_seeds(asked: argparse.Namespace, cluster: Cluster, source: TableSource) -> list[list[Outcome]]:
    """Every scheduler's outcomes on the jobs of every seed."""
    drawn = seeded(asked)
    return [[run(name, cluster, source, jobs, sets) for jobs, sets in drawn] for name in asked.schedulers.split(",")]


def seeded(asked: argparse.Namespace) -> list[tuple[list[Job], dict[str, RequirementSet]]]:
    """The jobs of every seed, with their requirement sets."""
    seeds = range(asked.seed, asked.seed + asked.seeds)
    return [hops_jobs(asked.jobs, asked.jobs_per_hour, seed, asked.scale) for seed in seeds]


def options(about: str | None, jobs: int, jobs_per_hour: float) -> argparse.ArgumentParser:
    """The command line that the tables share."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=jobs)
    parser.add_argument("--jobs-per-hour", type=float, default=jobs_per_hour)
    parser.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    parser.add_argument("--seeds", type=whole, default=3, help="how many, each with jobs of its own (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on all jobs' GPU-hours (default 1)")
    parser.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    return parser


def compared(about: str | None, jobs: int, jobs_per_hour: float) -> argparse.ArgumentParser:
    """The command line of a table that compares schedulers over seeds."""
    parser = options(about, jobs, jobs_per_hour)
    parser.add_argument("--schedulers", default=SCHEDULERS)
    return parser


def say(text: str) -> None:
    """A line of progress on stderr."""
    print(text, file=sys.stderr, flush=True)


def finish(asked: argparse.Namespace, tables: Mapping[str, object]) -> None:
    """Print the workloads' load, and the tables as JSON if asked to."""
    loads.say()
    if asked.json:
        print(json.dumps({"options": vars(asked), **tables}))
