"""What moves the Hadar paper's ratios: one assumption changed at a time, static and continuous (Figures 3, 5 and 6).

    python benchmarks/tables/hadar_reasons.py --jobs 120 --scale 0.5 --seeds 5

A row is the others over Hadar, mean over seeds with the least and the most. The paper says neither the rate of arrivals
nor the jobs, nor how many jobs n are in finish-time fairness's "1/n of the cluster".
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from figure_command import spread
from hadar_runs import Outcome, finish, make_policy, options, outcome_of, say

from copter_frontends.policies.baselines import FifoPolicy
from copter_frontends.policies.baselines.gavel import GavelPolicy
from copter_frontends.policy_kit import GoodputThroughputs
from copter_frontends.simulator.table_source import TableSource
from copter_frontends.vocabulary import Cluster, Job, SchedulingPolicy
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hadar.workload import hadar_jobs, table_source

OTHERS = ("gavel", "tiresias", "yarn")
Make = Callable[[Cluster, TableSource], SchedulingPolicy]


def own_type(cluster: Cluster, source: TableSource) -> SchedulingPolicy:
    """YARN-CS with a queue a GPU type: a user asks for one type, drawn by the job's name, whatever its speed."""
    kinds = list(cluster.types)

    def runs(job: Job, gpu_type: str, gpus: int = 1) -> bool:
        return gpu_type == kinds[zlib.crc32(job.id.encode()) % len(kinds)]

    return FifoPolicy(cluster, backfill=False, can_run=runs)


def least_attained(cluster: Cluster, source: TableSource) -> SchedulingPolicy:
    """Gavel by its own default objective."""
    return GavelPolicy(cluster, GoodputThroughputs(cluster, source), "max_min_fairness")


@dataclass(frozen=True)
class Case:
    """One assumption.

    Attributes
    ----------
    name : str
    jobs, scale : float
        Factors on the number of jobs and on their GPU-hours.
    draw : mapping
        Further options of the workload.
    restart_s : float
    makes : mapping of scheduler to callable
        How a scheduler is made, if not as in the other tables.
    """

    name: str
    jobs: float = 1.0
    scale: float = 1.0
    draw: Mapping[str, Any] = field(default_factory=dict)
    restart_s: float = 10.0
    makes: Mapping[str, Make] = field(default_factory=dict)


CASES = (
    Case("as assumed"),
    Case("GPUs a job as in Microsoft's trace", draw={"sizes": "philly"}),
    Case("half as many jobs", jobs=0.5),
    Case("twice as many jobs", jobs=2.0),
    Case("jobs twice as long", scale=2.0),
    Case("a start costs 60 s", restart_s=60.0),
    Case("Gavel by least attained service", makes={"gavel": least_attained}),
    Case("YARN-CS: a job asks for one type", makes={"yarn": own_type}),
)
ONE_TYPE = CASES[-1]
RATES = (0.5, 0.7, 0.9, 1.1)
"""Arrivals, over the jobs an hour at which the cluster is full."""
FLOOD = 30.0
"""The same of the paper's 480 jobs in seven hours."""
PAPER_JCT = "paper: static 1.8, 2.5, 7; continuous 1.5, 2.3, 5"
PAPER_FTF = "paper: fairness 1.5, 1.8; makespan 1.5, 2"
READINGS: Mapping[str, Callable[[Outcome], float]] = {
    "fairness, mean, n all jobs": lambda o: float(o.ftf.mean()),
    "fairness, median, n all jobs": lambda o: float(np.median(o.ftf)),
    "fairness, mean, n jobs in the cluster": lambda o: float(o.ftf_present.mean()),
    "fairness, median, n jobs in the cluster": lambda o: float(np.median(o.ftf_present)),
}


def outcomes(
    case: Case, cluster: Cluster, drawn: Sequence[Sequence[Job]], objective: str, names: Sequence[str]
) -> dict[str, list[Outcome]]:
    """Every scheduler's outcomes on the jobs of every seed."""
    source = table_source(cluster, restart_s=case.restart_s, spread_cost=0.05)
    found: dict[str, list[Outcome]] = {}
    for name in names:
        say(f"{case.name}, {objective}: {name}")
        found[name] = []
        for jobs in drawn:
            made = case.makes.get(name)
            policy = made(cluster, source) if made else make_policy(name, objective, cluster, source)
            found[name].append(outcome_of(name, policy, cluster, source, jobs))
    return found


def over(found: Mapping[str, Sequence[Outcome]], figure: Callable[[Outcome], float]) -> list[str]:
    """The others over Hadar."""
    base = [figure(each) for each in found["hadar"]]
    others = (name for name in found if name != "hadar")
    return [spread([figure(each) / first for each, first in zip(found[name], base, strict=True)]) for name in others]


def line(name: str, cells: Sequence[str]) -> None:
    """A row."""
    print(f"  {name:<42}" + "".join(f"{cell:<24}" for cell in cells).rstrip(), flush=True)


def cases_of(text: str) -> list[Case]:
    """Some of the cases by their numbers from 0 on, separated by commas."""
    try:
        return [CASES[int(each)] for each in text.split(",")]
    except (ValueError, IndexError):
        raise argparse.ArgumentTypeError(f"{text!r} is not some of 0 to {len(CASES) - 1}") from None


def main() -> None:
    """Run the cases and print them."""
    command = options(__doc__, "")
    command.add_argument("--cases", type=cases_of, help="only these static ones, by number (default: all)")
    asked = command.parse_args()
    cluster = named_cluster("hadar-60")
    seeds = range(asked.seed, asked.seed + asked.seeds)

    def drawn(case: Case, **further: Any) -> list[list[Job]]:
        count = max(round(case.jobs * asked.jobs), 1)
        return [hadar_jobs(count, seed=s, scale=case.scale * asked.scale, **case.draw, **further) for s in seeds]

    tables: dict[str, Any] = {}
    print(f"\naverage JCT over Hadar's ({PAPER_JCT})")
    line("static", OTHERS)
    for case in asked.cases or CASES:
        found = outcomes(case, cluster, drawn(case), "jct", ("hadar", *OTHERS))
        tables[case.name] = over(found, lambda o: float(o.jct_h.mean()))
        line(case.name, tables[case.name])
        if case is CASES[0]:
            full = asked.jobs / float(np.mean([each.makespan_h for each in found["hadar"]]))
    if asked.cases:
        finish(asked, tables)
        return
    line(f"continuous; full at {full:.2f} jobs an hour", ())
    for rate, case in (*((rate, CASES[0]) for rate in RATES), (RATES[2], ONE_TYPE), (FLOOD, ONE_TYPE)):
        jobs = drawn(case, arrivals="continuous", jobs_per_hour=rate * full)
        name = f"{100 * rate:.0f}% of that" + ", YARN-CS: one type" * (case is ONE_TYPE)
        found = outcomes(case, cluster, jobs, "jct", ("hadar", *OTHERS))
        tables[name] = over(found, lambda o: float(o.jct_h.mean()))
        line(name, tables[name])
    print(f"\nstatic, each under that objective, over Hadar's ({PAPER_FTF})")
    line("", OTHERS[:2])
    fair = outcomes(CASES[0], cluster, drawn(CASES[0]), "ftf", ("hadar", *OTHERS[:2]))
    for name, figure in READINGS.items():
        tables[name] = over(fair, figure)
        line(name, tables[name])
    for case in (CASES[2], CASES[0], CASES[3], *CASES[5:7]):
        found = outcomes(case, cluster, drawn(case), "makespan", ("hadar", *OTHERS[:2]))
        tables[f"makespan, {case.name}"] = over(found, lambda o: o.makespan_h)
        line(f"makespan, {case.name}", tables[f"makespan, {case.name}"])
    finish(asked, tables)


if __name__ == "__main__":
    main()
