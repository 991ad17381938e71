"""What the tables of the Chronus paper share: workloads, schedulers, a run of one, and its figures."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from copter_frontends.baselines.edf import EdfPolicy
from copter_frontends.baselines.genie import GeniePolicy
from copter_frontends.baselines.themis import ThemisPolicy
from copter_frontends.baselines.three_sigma import ThreeSigmaPolicy
from copter_frontends.baselines.tiresias import THREE_QUEUES_GPU_S, TiresiasPolicy
from copter_frontends.baselines.yarn_quota import YarnQuotaPolicy
from copter_frontends.chronus import ChronusPolicy, weighted_miss_rate
from copter_frontends.chronus.local_search import LocalSearch, NodeSpeeds
from copter_frontends.chronus.reporting import ReportingSimulation
from copter_frontends.chronus.spread_costs import SPREAD_COST
from copter_frontends.chronus.workload import Workload, synthetic_workload, trace_workload
from copter_frontends.policy_kit import GoodputThroughputs, RunsWith
from copter_frontends.simulator.table_source import TableSource
from copter_frontends.traces import read_trace
from copter_frontends.vocabulary import Cluster, SchedulingPolicy

ROUND_S, RESTART_S = 300.0, 30.0
SCHEDULERS = "chronus,edf,3sigma,genie,yarn,tiresias,themis"  # and genie-preempts


@dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of one run; `miss_rate` is wDMR (C20), `jct_h` the mean over best-effort jobs."""

    name: str
    miss_rate: float
    jct_h: float
    promised: int
    broken: int
    missed_promises: int
    ended: int
    seconds: float
    jct_s: Mapping[str, float] = field(default_factory=dict, repr=False)

    def jct_of(self, jobs: Collection[str]) -> float:
        """Mean completion time of some jobs that ended, seconds."""
        own = [value for job, value in self.jct_s.items() if job in jobs]
        return float(np.mean(own)) if own else float("nan")


def make_policy(
    name: str, cluster: Cluster, source: TableSource, work: Workload, believed: TableSource | None = None, **knobs: Any
) -> SchedulingPolicy:
    """A scheduler of the paper's comparison; `believed` is what it thinks of speeds, where that is not the truth."""
    rates = GoodputThroughputs(cluster, believed or source)
    if name == "chronus":
        style = knobs.pop("style", "local_search")
        placement = LocalSearch(NodeSpeeds(SPREAD_COST), style)
        return ChronusPolicy(cluster, rates, work.rewards, restart_s=RESTART_S, placement=placement, **knobs)
    if name == "edf":
        return EdfPolicy(cluster, work.rewards, ROUND_S, RunsWith(rates))
    if name == "3sigma":
        return ThreeSigmaPolicy(cluster, rates, work.rewards, round_s=ROUND_S)
    if name in ("genie", "genie-preempts"):
        return GeniePolicy(cluster, rates, work.rewards, ROUND_S, RESTART_S, preempts=name == "genie-preempts")
    if name == "yarn":
        share = len(work.rewards) / max(len(work.jobs), 1)
        return YarnQuotaPolicy(cluster, work.rewards, share, ROUND_S, RunsWith(rates))
    if name == "tiresias":
        return TiresiasPolicy(cluster, THREE_QUEUES_GPU_S, round_s=ROUND_S, can_run=RunsWith(rates))
    if name == "themis":
        return ThemisPolicy(cluster, rates, round_s=ROUND_S)
    raise SystemExit(f"unknown scheduler {name!r}; there are {SCHEDULERS}")


def run(name: str, cluster: Cluster, work: Workload, policy: SchedulingPolicy, source: TableSource) -> Outcome:
    """Simulate until the last job ends."""
    begun = time.perf_counter()
    result = ReportingSimulation(cluster, work.jobs, policy, source, ROUND_S).run()
    jct = dict(zip(result.jobs["id"].tolist(), result.jobs["jct_s"].tolist(), strict=True))
    ended = {job: value for job, value in jct.items() if np.isfinite(value)}
    free = [value for job, value in ended.items() if job not in work.rewards]
    notices = policy.notices if isinstance(policy, ChronusPolicy) else []
    promised = {notice.job_id: notice.step for notice in notices if notice.step >= 0}
    demoted = {notice.job_id for notice in notices if notice.standing.value == "demoted"}
    late = [
        job
        for job, step in promised.items()
        if job not in demoted and ended.get(job, np.inf) > work.rewards[job].steps[step][0] + 1.0
    ]
    found = Outcome(
        name,
        weighted_miss_rate(work.miss_values(ended)),
        float(np.mean(free)) / 3600.0 if free else float("nan"),
        len(promised),
        len(demoted),
        len(late),
        len(ended),
        time.perf_counter() - begun,
        ended,
    )
    say(f"{name}: wDMR {100 * found.miss_rate:.1f}%, best-effort JCT {found.jct_h:.2f} h, {found.seconds:.0f} s")
    return found


def relabel(outcome: Outcome, name: str) -> Outcome:
    """The same figures under another name."""
    return replace(outcome, name=name)


def options(text: str | None, schedulers: str = SCHEDULERS) -> argparse.ArgumentParser:
    """The command line that all tables have."""
    command = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--trace", default="chronus_philly", help="a trace file, 'chronus_philly' or 'synthetic'")
    command.add_argument("--nodes", type=int, default=120, help="nodes of 8 GPUs (default 120)")
    command.add_argument("--share", type=float, default=1.0, help="take this share of nodes and of jobs (default 1)")
    command.add_argument("--days", type=float, default=14.0, help="days of the trace (default 14)")
    command.add_argument("--own-deadlines", action="store_true", help="the trace's own deadlines, not the paper's")
    command.add_argument("--hostile", type=float, default=None, help="share of synthetic jobs of odd sizes")
    command.add_argument("--schedulers", default=schedulers)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--json", help="write the figures here too")
    return command


def cluster_of(asked: argparse.Namespace) -> Cluster:
    """Nodes of 8 GPUs, as many as asked for."""
    return Cluster.of({"v100": (max(round(asked.nodes * asked.share), 1), 8)})


def workload_of(asked: argparse.Namespace, mix: str) -> Workload:
    """The trace's jobs, thinned as asked for."""
    if asked.trace == "synthetic":
        count = round(2200 * asked.days * asked.share * asked.nodes / 120)
        return synthetic_workload(count, 24.0 * asked.days, mix, 2.4, asked.seed, asked.hostile or 0.05)
    name = "SLO" if mix == "slo" else "MIX2"
    folder = os.path.join(os.environ.get("COPTER_DATA", "../shared/data"), "traces", "chronus_philly")
    path = os.path.join(folder, f"trace_job_Philly_{name}.csv.gz") if asked.trace == "chronus_philly" else asked.trace
    work = trace_workload(read_trace(path), mix, asked.own_deadlines, asked.seed)
    rng = np.random.default_rng(asked.seed)
    kept = rng.random(len(work.jobs)) < asked.share
    start_s = work.jobs[0].submit_s
    until_s = start_s + 86400.0 * asked.days
    most = max(round(asked.nodes * asked.share), 1) * 8
    jobs = tuple(
        job
        for job, keep in zip(work.jobs, kept.tolist(), strict=True)
        if keep and job.submit_s < until_s and job.requested_gpus <= most
    )
    return Workload(jobs, {job.id: work.rewards[job.id] for job in jobs if job.id in work.rewards})


def say(text: str) -> None:
    """Say how far a table is, on the error stream."""
    print(text, file=sys.stderr, flush=True)


def show(title: str, outcomes: Sequence[Outcome]) -> None:
    """Print a table: one line a run."""
    print(f"\n{title}")
    head = f"{'':<26}{'wDMR %':>8}{'BE JCT h':>10}{'promised':>10}{'demoted':>9}{'late':>6}{'ended':>8}{'s':>8}"
    print(head)
    for o in outcomes:
        print(
            f"{o.name:<26}{100 * o.miss_rate:>8.1f}{o.jct_h:>10.2f}{o.promised:>10}{o.broken:>9}"
            f"{o.missed_promises:>6}{o.ended:>8}{o.seconds:>8.1f}"
        )


def finish(asked: argparse.Namespace, tables: dict[str, Sequence[Outcome]]) -> None:
    """Write the figures to a file where one is asked for."""
    if asked.json:
        rows = {
            name: [{slot: getattr(o, slot) for slot in Outcome.__slots__ if slot != "jct_s"} for o in found]
            for name, found in tables.items()
        }
        with open(asked.json, "w") as file:
            json.dump(rows, file, indent=1)
