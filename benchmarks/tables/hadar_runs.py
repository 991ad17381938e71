"""What the tables of the Hadar paper share: the schedulers, a run of one, and its figures next to the paper's."""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import loads
import numpy as np
from figure_command import spread, whole

from copter_frontends.policies.baselines import FifoPolicy
from copter_frontends.policies.baselines.gavel import GavelPolicy
from copter_frontends.policies.baselines.tiresias import TiresiasPolicy
from copter_frontends.policies.hadar import AverageJct, HadarPolicy, OnlineRule, Unmeasured, utility_named
from copter_frontends.policy_kit import GoodputThroughputs, RunsWith, Throughputs
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.fairness import mean_contention
from copter_frontends.simulator.table_source import TableSource
from copter_frontends.vocabulary import Cluster, Job, SchedulingPolicy
from copter_papers.hadar.workload import GPU_SHARES

ROUND_S = 360.0
MODES: Mapping[str, Mapping[str, Any]] = {
    "hadar": {},
    "hadar-online": {"mode": "online"},
    "hadar-printed": {"mode": "online", "rule": OnlineRule(prices="printed")},
    "hadar-horizon": {"mode": "horizon"},
    "hadar-posted": {"mode": "lp_posted"},
    "hadar-free": {"restart_s": 0.0},
}
"""By the LP; the paper's online algorithm, with our prices and (6) to (8) as printed; the LP with posted prices; the LP
in whose plans restarts cost nothing."""
BLUR = 0.3  # standard deviation of the logarithm


class FollowingGavel(GavelPolicy):
    """Gavel that is told of progress: its makespan and fairness look at what is left, as Hadar does."""

    follows = True


class Blurred:
    """Throughputs as a user might guess them: the true ones, each application's on each type times a random factor."""

    def __init__(self, source: Throughputs, learns: bool) -> None:
        self.source, self.learns = source, learns

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """Units per second, times a factor that is log-normal."""
        seed = zlib.crc32(f"{job.application} {gpu_type}".encode())
        return self.source.rate(job, gpu_type, gpus, progress) * float(np.random.default_rng(seed).lognormal(0.0, BLUR))

    def work(self, job: Job) -> float:
        """All of a job's work."""
        return self.source.work(job)


TOLD: Mapping[str, Callable[[Throughputs], Throughputs]] = {
    "hadar-measured": Unmeasured,
    "hadar-blurred": lambda source: Blurred(source, True),
    "hadar-misled": lambda source: Blurred(source, False),
}
"""What Hadar is told of rates where that is not all: nothing, but it measures each type in a job's first rounds (H16);
blurred ones, with what jobs are then seen to do, and without. `gavel-misled` is told the blurred ones too."""
SCHEDULERS = (*MODES, *TOLD, "gavel", "gavel-misled", "tiresias", "yarn")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of one scheduler; times in hours, one entry a job in the arrays.

    Finish-time fairness has n all jobs, or those in the cluster beside the job on average.
    """

    name: str
    jct_h: np.ndarray  # type: ignore[type-arg]
    ftf: np.ndarray  # type: ignore[type-arg]
    ftf_present: np.ndarray  # type: ignore[type-arg]
    makespan_h: float
    utilisation: float
    changed_share: float
    round_p99_s: float
    skipped: int


def make_policy(
    name: str, objective: str, cluster: Cluster, source: TableSource, round_s: float = ROUND_S, power: float = 1.0
) -> SchedulingPolicy:
    """A scheduler of the paper's comparison, for an objective: jct, makespan or ftf."""
    rates = GoodputThroughputs(cluster, source)
    if name in MODES or name in TOLD:
        told = TOLD.get(name, lambda source: source)(rates)
        return HadarPolicy(
            cluster,
            told,
            utility=AverageJct(power=power) if objective == "jct" else utility_named(objective),
            round_s=round_s,
            spread_cost=next(iter(source.applications.values())).spread_cost,
            **{
                "restart_s": {each.name: each.restart_s for each in source.applications.values()},
                **MODES.get(name, {}),
            },
        )
    if name in ("gavel", "gavel-misled"):
        chosen = {"jct": "max_sum_throughput", "makespan": "makespan", "ftf": "finish_time_fairness"}[objective]
        known = rates if name == "gavel" else Blurred(rates, False)
        return FollowingGavel(cluster, known, chosen, round_s=round_s)
    if name == "tiresias":
        return TiresiasPolicy(cluster, round_s=round_s, can_run=RunsWith(rates))
    if name == "yarn":
        return FifoPolicy(cluster, backfill=False, can_run=RunsWith(rates))
    raise SystemExit(f"unknown scheduler {name!r}: {', '.join(SCHEDULERS)}")


def run(
    name: str,
    objective: str,
    cluster: Cluster,
    source: TableSource,
    jobs: Sequence[Job],
    round_s: float = ROUND_S,
    power: float = 1.0,
) -> Outcome:
    """Simulate until the last job ends."""
    policy = make_policy(name, objective, cluster, source, round_s, power)
    return outcome_of(name, policy, cluster, source, jobs, round_s)


def outcome_of(
    name: str,
    policy: SchedulingPolicy,
    cluster: Cluster,
    source: TableSource,
    jobs: Sequence[Job],
    round_s: float = ROUND_S,
) -> Outcome:
    """Simulate a policy until the last job ends."""
    loads.note(cluster, jobs, source)
    result = Simulation(cluster, jobs, policy, source, round_s).run()
    summary = result.summary()
    table = result.jobs
    jct_s = table["jct_s"].astype(float)
    of = {job.id: job for job in jobs}
    isolated = np.array([isolated_s(of[str(each)], cluster, source, len(jobs)) for each in table["id"]])
    beside = zip(table["id"].tolist(), mean_contention(result).tolist(), strict=True)
    present = np.array([isolated_s(of[str(each)], cluster, source, number) for each, number in beside])
    busy = sum(record.running_jobs for record in result.rounds)
    changed = sum(record.moved + record.started for record in result.rounds)
    return Outcome(
        name=name,
        jct_h=jct_s / 3600.0,
        ftf=jct_s / isolated,
        ftf_present=jct_s / present,
        makespan_h=float(summary["makespan_h"]),
        utilisation=used_share(result.rounds),
        changed_share=changed / max(busy, 1),
        round_p99_s=float(summary["round_s"]["p99"]),
        skipped=len(result.skipped),
    )


def used_share(rounds: Sequence[object]) -> float:
    """GPUs in use over those that there are, up to the round after which fewer jobs than GPUs are left to run."""
    crowded = [r for r in rounds if r.active_jobs > r.running_jobs] or list(rounds)  # type: ignore[attr-defined]
    return float(np.mean([r.utilisation for r in crowded]))  # type: ignore[attr-defined]


def isolated_s(job: Job, cluster: Cluster, source: TableSource, jobs: float) -> float:
    """Seconds that a job takes on 1/n of the cluster, n the number of jobs (section IV-A)."""
    total = cluster.gpus
    rates = source.applications[job.application].per_gpu
    average = sum(rates.get(kind, 0.0) * cluster.capacity(kind) for kind in cluster.types) / total
    gpus = min(job.requested_gpus, total / jobs) if jobs else job.requested_gpus
    assert job.work_samples is not None
    return job.work_samples / (average * max(gpus, 1e-9))


def compare(
    title: str,
    outcomes: Sequence[Sequence[Outcome]],
    figure: Callable[[Outcome], float],
    paper: Mapping[str, float],
    unit: str = "h",
) -> list[dict[str, object]]:
    """Print one figure of every scheduler, as a multiple of the first one's, next to the paper's multiple.

    A scheduler has an outcome a seed; figures and multiples of the same seed's first scheduler are means over them,
    with the least and the most.
    """
    base = [figure(each) for each in outcomes[0]]
    rows: list[dict[str, object]] = []
    print(f"\n{title}")
    print(f"  {'scheduler':<16}{unit:<28}{'measured x':<28}paper x")
    for runs in outcomes:
        name, values = runs[0].name, [figure(each) for each in runs]
        over = [value / first for value, first in zip(values, base, strict=True)]
        said = paper.get(name)
        print(f"  {name:<16}{spread(values):<28}{spread(over):<28}{'-' if said is None else f'{said:.2f}'}")
        rows.append({"scheduler": name, "values": values, "measured": over, "paper": said})
    return rows


def over_seeds(
    asked: argparse.Namespace, draw: Callable[[int], Sequence[Job]], run_of: Callable[[str, Sequence[Job]], Outcome]
) -> list[list[Outcome]]:
    """Every scheduler's outcomes on the jobs of every seed."""
    drawn = [draw(asked.seed + each) for each in range(asked.seeds)]
    found = []
    for name in asked.schedulers.split(","):
        say(f"{name} ...")
        found.append([run_of(name, jobs) for jobs in drawn])
    return found


def options(about: str | None, schedulers: str, sizes: bool = False) -> argparse.ArgumentParser:
    """The command line that the tables share; `sizes` for those that let the jobs' numbers of GPUs be chosen."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=480)
    parser.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    parser.add_argument("--seeds", type=whole, default=1, help="how many, each with jobs of its own (default 1)")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on all jobs' GPU-hours (default 1)")
    parser.add_argument("--spread-cost", type=float, default=0.05, help="speed lost on more nodes than needed")
    parser.add_argument("--schedulers", default=schedulers)
    if sizes:
        add_sizes(parser)
    parser.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    return parser


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """The option for the jobs' numbers of GPUs."""
    parser.add_argument("--sizes", choices=list(GPU_SHARES), default="gavel", help="whose GPUs per job (default gavel)")


def say(text: str) -> None:
    """A line of progress on stderr."""
    print(text, file=sys.stderr, flush=True)


def finish(asked: argparse.Namespace, tables: Mapping[str, object]) -> None:
    """Print the workloads' load, and the tables as JSON if asked to."""
    loads.say()
    if asked.json:
        print(json.dumps({"options": vars(asked), **tables}))
