"""What the tables of the Chronus paper share: workloads, schedulers, a run of one, and its figures."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import loads
import numpy as np

from copter_frontends.policies.baselines.themis import ThemisPolicy
from copter_frontends.policies.baselines.tiresias import THREE_QUEUES_GPU_S, TiresiasPolicy
from copter_frontends.policies.baselines.yarn_quota import YarnQuotaPolicy
from copter_frontends.policies.chronus import ChronusPolicy, weighted_miss_rate
from copter_frontends.policies.chronus.local_search import LocalSearch, NodeSpeeds
from copter_frontends.policies.chronus.spread_costs import SPREAD_COST
from copter_frontends.policy_kit import GoodputThroughputs, RunsWith
from copter_frontends.policy_kit.deadlines import StepReward
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.table_source import TableSource
from copter_frontends.simulator.traces import read_trace
from copter_frontends.vocabulary import Cluster, SchedulingPolicy
from copter_papers.chronus.workload import (
    HELIOS,
    Workload,
    helios_workload,
    synthetic_workload,
    trace_workload,
)
from copter_papers.opponents.edf import EdfPolicy
from copter_papers.opponents.genie import GeniePolicy
from copter_papers.opponents.three_sigma import ThreeSigmaPolicy

Rewards = Mapping[str, StepReward]

ROUND_S, RESTART_S = 300.0, 30.0
SCHEDULERS = "chronus,edf,3sigma,genie,yarn,tiresias,themis"  # and genie-preempts


@dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of one run.

    `miss_rate` is wDMR (C23), `rejected_miss_rate` that of the SLO jobs without a promise; `jct_h` the mean over
    best-effort jobs.
    """

    name: str
    miss_rate: float
    jct_h: float
    promised: int
    broken: int
    missed_promises: int
    ended: int
    seconds: float
    rejected: int = 0
    rejected_miss_rate: float = float("nan")
    jct_s: Mapping[str, float] = field(default_factory=dict, repr=False)

    def jct_of(self, jobs: Collection[str]) -> float:
        """Mean completion time of some jobs that ended, seconds."""
        own = [value for job, value in self.jct_s.items() if job in jobs]
        return float(np.mean(own)) if own else float("nan")


class FollowingThemis(ThemisPolicy):
    """Themis where a table's rates have one phase: it asks for progress, which is not told of otherwise."""

    follows = True


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
        return EdfPolicy(cluster, rates, work.rewards, ROUND_S)
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
        return FollowingThemis(cluster, rates, round_s=ROUND_S)
    raise SystemExit(f"unknown scheduler {name!r}; there are {SCHEDULERS}")


def run(
    name: str,
    cluster: Cluster,
    work: Workload,
    policy: SchedulingPolicy,
    source: TableSource,
    believed: Rewards | None = None,
) -> Outcome:
    """Simulate until the last job ends; `believed` are the rewards that the policy was given, where not the work's."""
    told = work.rewards if believed is None else believed
    begun = time.perf_counter()
    loads.note(cluster, work.jobs, source)
    result = Simulation(cluster, work.jobs, policy, source, ROUND_S).run()
    jct = dict(zip(result.jobs["id"].tolist(), result.jobs["jct_s"].tolist(), strict=True))
    ended = {job: value for job, value in jct.items() if np.isfinite(value)}
    free = [value for job, value in ended.items() if job not in work.rewards]
    notices = policy.notices if isinstance(policy, ChronusPolicy) else []
    promised = {notice.job_id: notice.step for notice in notices if notice.step >= 0}
    demoted = {notice.job_id for notice in notices if notice.standing.value == "demoted"}
    late = [
        job
        for job, step in promised.items()
        if job not in demoted and ended.get(job, np.inf) > told[job].steps[step][0] + 1.0
    ]
    rejected = Workload((), {job: reward for job, reward in work.rewards.items() if job not in promised})
    found = Outcome(
        name,
        weighted_miss_rate(work.miss_values(ended)),
        float(np.mean(free)) / 3600.0 if free else float("nan"),
        len(promised),
        len(demoted),
        len(late),
        len(ended),
        time.perf_counter() - begun,
        len(rejected.rewards),
        weighted_miss_rate(rejected.miss_values(ended)) if rejected.rewards else float("nan"),
        ended,
    )
    say(f"{name}: wDMR {100 * found.miss_rate:.1f}%, best-effort JCT {found.jct_h:.2f} h, {found.seconds:.0f} s")
    return found


def sweep(
    asked: argparse.Namespace, title: str, runs: Callable[[int], Iterable[tuple[str, Outcome]]]
) -> dict[str, list[Outcome]]:
    """Run all settings with every seed: the outcomes by setting.

    Parameters
    ----------
    asked : argparse.Namespace
    title : str
    runs : callable
        Given a seed, the settings' names and outcomes, one after the other.
    """
    rows: dict[str, list[Outcome]] = {}
    for seed in range(asked.seed, asked.seed + asked.seeds):
        say(f"{title}, seed {seed} ...")
        with loads.labelled(title):
            for name, found in runs(seed):
                rows.setdefault(name, []).append(found)
    return rows


def options(text: str | None, schedulers: str = SCHEDULERS) -> argparse.ArgumentParser:
    """The command line that all tables have."""
    command = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument(
        "--trace",
        default="chronus_philly",
        help="a trace file, 'chronus_philly', 'synthetic' or 'helios' (made up too)",
    )
    command.add_argument("--nodes", type=int, help="nodes of 8 GPUs (default: the paper's, 120, and 96 for helios)")
    command.add_argument("--share", type=float, default=1.0, help="take this share of nodes and of jobs (default 1)")
    command.add_argument("--days", type=float, default=14.0, help="days of the trace (default 14)")
    command.add_argument("--own-deadlines", action="store_true", help="the trace's own deadlines, not the paper's")
    command.add_argument("--hostile", type=float, default=None, help="share of synthetic jobs of odd sizes")
    command.add_argument("--schedulers", default=schedulers)
    command.add_argument("--seed", type=int, default=0, help="the first seed")
    command.add_argument("--seeds", type=int, default=3, help="so many seeds: means, least and largest (default 3)")
    command.add_argument("--json", help="write the figures here too")
    return command


def nodes_of(asked: argparse.Namespace) -> int:
    """Nodes, as many as asked for."""
    whole = asked.nodes or (HELIOS.nodes if asked.trace == "helios" else 120)
    return max(round(whole * asked.share), 1)


def cluster_of(asked: argparse.Namespace) -> Cluster:
    """Nodes of 8 GPUs, as many as asked for."""
    return Cluster.of({"v100": (nodes_of(asked), 8)})


def workload_of(asked: argparse.Namespace, mix: str, seed: int) -> Workload:
    """The trace's jobs, thinned as asked for; classes, deadlines and thinning are the seed's."""
    if asked.trace == "synthetic":
        count = round(2200 * asked.days * nodes_of(asked) / 120)
        return synthetic_workload(count, 24.0 * asked.days, mix, 2.4, seed, asked.hostile or 0.05)
    if asked.trace == "helios":
        return helios_workload(nodes_of(asked), asked.days, mix, seed, asked.hostile or 0.05)
    name = "SLO" if mix == "slo" else "MIX2"
    folder = os.path.join(os.environ.get("COPTER_DATA", "../shared/data"), "traces", "chronus_philly")
    path = os.path.join(folder, f"trace_job_Philly_{name}.csv.gz") if asked.trace == "chronus_philly" else asked.trace
    work = trace_workload(read_trace(path), mix, asked.own_deadlines, seed)
    rng = np.random.default_rng(seed)
    kept = rng.random(len(work.jobs)) < asked.share
    start_s = work.jobs[0].submit_s
    until_s = start_s + 86400.0 * asked.days
    most = nodes_of(asked) * 8
    jobs = tuple(
        job
        for job, keep in zip(work.jobs, kept.tolist(), strict=True)
        if keep and job.submit_s < until_s and job.requested_gpus <= most
    )
    return Workload(jobs, {job.id: work.rewards[job.id] for job in jobs if job.id in work.rewards})


def say(text: str) -> None:
    """Say how far a table is, on the error stream."""
    print(text, file=sys.stderr, flush=True)


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Mean (least to largest) of the seeds' figures; the mean alone of one seed."""
    known = np.array([value for value in values if np.isfinite(value)])
    if not len(known):
        return "-"
    mean = f"{known.mean():.{digits}f}"
    return mean if len(known) < 2 else f"{mean} ({known.min():.{digits}f} to {known.max():.{digits}f})"


def show(title: str, rows: Mapping[str, Sequence[Outcome]], paper: Sequence[str] = (), rejected: bool = False) -> None:
    """Print a table: one line a setting, means and ranges over seeds; then what the paper says."""
    seeds = max(len(found) for found in rows.values())
    print(f"\n{title}; mean (least to largest) of {seeds} seeds")
    print(
        f"{'':<26}{'wDMR %':>24}{'BE JCT h':>24}{'promised':>10}{'demoted':>9}{'late':>6}{'ended':>8}{'s':>8}"
        + (f"{'rejected':>10}{'their wDMR %':>24}" if rejected else "")
    )
    for name, found in rows.items():
        counts = [
            np.mean([getattr(o, slot) for o in found]) for slot in ("promised", "broken", "missed_promises", "ended")
        ]
        print(
            f"{name:<26}{spread([100 * o.miss_rate for o in found]):>24}{spread([o.jct_h for o in found], 2):>24}"
            f"{counts[0]:>10.0f}{counts[1]:>9.1f}{counts[2]:>6.1f}{counts[3]:>8.0f}"
            f"{np.mean([o.seconds for o in found]):>8.1f}"
            + (
                f"{np.mean([o.rejected for o in found]):>10.0f}"
                f"{spread([100 * o.rejected_miss_rate for o in found]):>24}"
                if rejected
                else ""
            )
        )
    for line in paper:
        print(f"paper: {line}")
    sys.stdout.flush()


def finish(asked: argparse.Namespace, tables: Mapping[str, Mapping[str, Sequence[Outcome]]]) -> None:
    """Print the workloads' load, and write the figures to a file where one is asked for."""
    loads.say()
    if asked.json:
        slots = [slot for slot in Outcome.__slots__ if slot != "jct_s"]
        rows = {
            table: {name: [{slot: getattr(o, slot) for slot in slots} for o in found] for name, found in each.items()}
            for table, each in tables.items()
        }
        with open(asked.json, "w") as file:
            json.dump(rows, file, indent=1)
