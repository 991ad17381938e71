"""What the curves of the Hops paper need of a run, job by job and round by round, and how they are printed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import loads
import numpy as np
from hops_runs import Timed, make_policy, say

from copter_frontends.policies.hops.latency_ratio import Priority
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.alone import GoodputAloneTimes
from copter_frontends.simulator.fairness import finish_time_fairness, latency_ratios
from copter_frontends.simulator.round_record import RoundRecord
from copter_frontends.simulator.table_source import TableSource
from copter_frontends.vocabulary import Cluster, Job
from copter_papers.hops.workload import REFERENCE_TYPE, hops_jobs, iteration_source

PERCENTILES = (10, 25, 50, 75, 90, 99, 100)
MOST_WORK = 0.8
OnPlan = Callable[[RoundRecord, Any, float], object]  # the round, the policy, and the plan's processor seconds


@dataclass(slots=True)
class Curves:
    """What the figures need of a run: by job, and by round.

    Attributes
    ----------
    jct_h, latency, rho : list of float
        Of each job that ended.
    round_s : float
    throughput : list of float
        Work done in each round, in GPUs of the reference type that would do as much.
    plan_s, gap : list of float
        Processor seconds of the plan and of the edits before it, and its gap, of each round with jobs.
    raqlr : list of (hour, ratio)
    """

    jct_h: list[float]
    latency: list[float]
    rho: list[float]
    round_s: float
    throughput: list[float]
    plan_s: list[float]
    gap: list[float]
    raqlr: list[tuple[float, float]] = field(default_factory=list)

    @property
    def busy(self) -> float:
        """Mean throughput until most of the work is done, before the last jobs leave GPUs idle."""
        done = np.cumsum(self.throughput)
        return float(done[at := int(np.searchsorted(done, MOST_WORK * done[-1]))] / (at + 1))

    def by_half_hour(self) -> list[float]:
        """Mean throughput of each half hour."""
        many = max(1, round(1800.0 / self.round_s))
        return [float(np.mean(self.throughput[at : at + many])) for at in range(0, len(self.throughput), many)]


def reference_gpu_s(jobs: Sequence[Job], source: TableSource) -> dict[str, float]:
    """Seconds that one GPU of the reference type would take for each job."""
    result = {}
    for job in jobs:
        facts: Any = source.applications[job.application]
        work = job.work_samples or facts.work_samples
        result[job.id] = work / facts.parts[REFERENCE_TYPE].throughput(1, 1)
    return result


def run(
    name: str,
    cluster: Cluster,
    asked: argparse.Namespace,
    seed: int,
    fairness: float = 1.0,
    priority: Priority = "lr",
    hours: float | None = None,
    on_plan: OnPlan | None = None,
) -> Curves:
    """Simulate until the last job ends, or for so many hours."""
    say(f"{name}, {cluster.gpus} GPUs, {asked.jobs} jobs, seed {seed} ...")
    source = iteration_source(cluster)
    jobs, sets = hops_jobs(asked.jobs, asked.jobs_per_hour, seed, asked.scale)
    policy = Timed(make_policy(name, cluster, source, sets, fairness=fairness, priority=priority))
    work_s = reference_gpu_s(jobs, source)
    loads.note(cluster, jobs, source)
    simulation = Simulation(cluster, jobs, policy, source, policy.round_s)
    raqlr: list[tuple[float, float]] = []
    done = np.zeros(len(jobs))
    throughput: list[float] = []

    def note(record: RoundRecord) -> None:
        nonlocal done
        columns = simulation.result().jobs
        amount = np.array([work_s[job] for job in columns["id"].tolist()])
        now = amount * columns["progress"].astype(float)
        throughput.append(float((now - done).sum() / simulation.round_s))
        done = now
        if name.startswith("hops"):
            value = policy.standings.queue.recent_ratio(record.now_s)
            if value is not None:
                raqlr.append((record.now_s / 3600.0, value))
            if on_plan is not None:
                on_plan(record, policy, policy.plan_s[-1])

    result = simulation.run(on_round=note, hours=hours)
    if result.skipped:
        raise SystemExit(f"{name} refused {len(result.skipped)} jobs: {result.skipped[0]}")
    alone = GoodputAloneTimes(source)
    jct_s = result.jobs["jct_s"].astype(float)
    busy = [(record, plan_s) for record, plan_s in zip(result.rounds, policy.plan_s, strict=True) if record.active_jobs]
    return Curves(
        jct_h=(jct_s[np.isfinite(jct_s)] / 3600.0).tolist(),
        latency=latency_ratios(result, jobs, alone).values.tolist(),
        rho=finish_time_fairness(result, jobs, alone)["thesis"].values.tolist(),
        round_s=simulation.round_s,
        throughput=throughput,
        plan_s=[plan_s for _, plan_s in busy],
        gap=[record.gap for record, _ in busy if np.isfinite(record.gap)],
        raqlr=raqlr,
    )


def row(title: str, each: Sequence[Sequence[float]]) -> None:
    """Percentiles of a figure: their means over seeds, then least and most of the median and of the largest."""
    found = np.array([np.percentile(values, PERCENTILES) for values in each])
    ends = [f"{found[:, at].min():.3g} to {found[:, at].max():.3g}" for at in (PERCENTILES.index(50), -1)]
    shown = f"   {ends[0]:<24}{ends[1]}" if len(each) > 1 else ""
    print(f"  {title:<24}" + "".join(f"{value:>9.3g}" for value in found.mean(axis=0)) + shown)


def head(title: str) -> None:
    """The percentiles' names."""
    names = "".join(f"{f'p{p}':>9}" for p in PERCENTILES)
    print(f"\n{title}\n  {'':<24}{names}   {'p50, by seed':<24}max, by seed")
