"""Thesis 3.5.6: Sia's time-sharing penalty on a spike of 240 jobs in 6 hours, paper and measured.

python benchmarks/tables/time_sharing.py [--workloads 3] [--burst 100] [--restart-s 30] [--keep FILE] [--json]

The thesis's Spike-240 is not public: 240 jobs in 6 hours, twice the rate of newTrace (whose busiest hour has 100), with
a burst in the half hour from 2.5 h on after which the jobs "vastly exceed" the GPUs. The shortest stretch of a public
newTrace workload with 240 jobs stands for it, 100 of them moved into that half hour (--burst) and the others spread
evenly over the rest. As in the thesis the figures are of the burst's jobs; those of all jobs are given too.
Figures are means over the workloads, with the least and the most. A start takes as long as the public simulator has
it (25 to 250 s by application), or --restart-s seconds: the thesis has "an average of 30 seconds". The semantics are
the public simulator's.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import loads
import numpy as np
from runs import RunStore, Setting, data_directory, jobs_of, mean, run_name, show, sia_policy, simulate
from spreads import mean_and_range, ratio_and_range

from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.applications import ALL_APPLICATIONS
from copter_frontends.policies.sia import TimeSharing
from copter_frontends.vocabulary import Job, configurations_of
from copter_frontends.vocabulary.named_clusters import cluster_from

CLUSTER = "sia-het"
JOBS, BEFORE = 240, 0.43  # share of the jobs outside the burst that come before it: even over the hours outside
THESIS = {"none": 1.0, "180": 0.86, "300": 0.86 * 1.015}
"""Average JCT of the burst's jobs over that without the penalty."""


@dataclass(frozen=True)
class Spike:
    """Arrivals: so many jobs within each stretch of hours, spread over it as they are in the log.

    Attributes
    ----------
    jobs : tuple of int
        Submitted before the burst, in it, and after it.
    hours : tuple of float
        At which the burst begins and ends, and the last job comes.
    """

    jobs: tuple[int, int, int]
    hours: tuple[float, float, float] = (2.5, 3.0, 6.0)

    def __call__(self, jobs: Sequence[Job]) -> list[Job]:
        """The shortest stretch of the log with so many jobs, its times stretched piece by piece."""
        jobs = sorted(jobs, key=lambda job: job.submit_s)
        times, count = np.array([job.submit_s for job in jobs]), sum(self.jobs)
        if len(jobs) < count:
            raise SystemExit(f"the workload has {len(jobs)} jobs, {count} are needed")
        first = int((times[count - 1 :] - times[: len(times) - count + 1]).argmin())
        marks = first + np.concatenate(([0], np.cumsum(self.jobs)[:2], [count - 1]))
        moved = np.interp(times, times[marks], 3600.0 * np.array([0.0, *self.hours]))
        return [replace(jobs[i], submit_s=float(moved[i])) for i in range(first, first + count)]

    def burst(self, jobs: Sequence[Job]) -> set[str]:
        """Ids of the jobs that the burst submitted."""
        begin_s, end_s = (3600.0 * hour for hour in self.hours[:2])
        return {job.id for job in jobs if begin_s <= job.submit_s < end_s}


def model_of(restart_s: float | None) -> GoodputModel:
    """Of the cluster; every application's start takes that long, where it is given."""
    applications = dict(ALL_APPLICATIONS)
    if restart_s is not None:
        applications = {
            name: replace(known, restart_s=restart_s, policy_restart_s=restart_s)
            for name, known in applications.items()
        }
    return GoodputModel(configurations_of(cluster_from(CLUSTER)), applications)


def figures(path: Path, spike: Spike, sharing: TimeSharing | None, restart_s: float | None) -> dict[str, Any]:
    """One run: average JCT of the burst's jobs and of all, hours before a first start, and restarts."""
    setting, model = Setting("sia", CLUSTER, path, change=spike), model_of(restart_s)
    result = simulate(setting, sia_policy(setting, model, sharing=sharing), model)
    chosen = np.isin(result.jobs["id"].astype(str), sorted(spike.burst(jobs_of(setting))))
    summary = result.summary()
    wait_s = result.jobs["first_start_s"].astype(float) - result.jobs["submit_s"].astype(float)
    return {
        "avg_jct_h": summary["avg_jct_h"],
        "burst_jobs": int(chosen.sum()),
        "burst_jct_h": float(result.jobs["jct_s"].astype(float)[chosen].mean() / 3600.0),
        "burst_wait_min": float(wait_s[chosen].mean() / 60.0),
        "restarts_per_job": summary["restarts_per_job"],
        "makespan_h": summary["makespan_h"],
    }


def over(found: Sequence[dict[str, Any]], base: Sequence[dict[str, Any]]) -> str:
    """The burst's JCT over that without a penalty, with the spread of the workloads."""
    return ratio_and_range([run["burst_jct_h"] for run in found], [run["burst_jct_h"] for run in base])


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--workloads", type=int, default=3, help="newTrace workloads to average over (default 3)")
    made.add_argument("--burst", type=int, default=100, help=f"of the {JOBS} jobs (default 100)")
    made.add_argument("--restart-s", type=float, help="seconds that every start takes")
    made.add_argument("--window-s", default="180,300", help="tau, seconds (default 180,300)")
    made.add_argument("--weight", type=float, help="of a whole window without service (S6; default: copter's)")
    made.add_argument("--penalty", choices=["ours", "published"], default="ours", help="S6, or as the thesis has it")
    made.add_argument("--keep", metavar="FILE", help="keep the figures of each run here, and do not run it again")
    made.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run without the penalty and with it, and print both."""
    options = parser()
    asked = options.parse_args(arguments)
    if not 2 <= asked.burst <= JOBS - 4:
        options.error(f"--burst {asked.burst}: must be 2 to {JOBS - 4}")
    before = round(BEFORE * (JOBS - asked.burst))
    spike = Spike((before, asked.burst, JOBS - asked.burst - before))
    store = RunStore(asked.keep)
    rows: dict[str, list[dict[str, Any]]] = {}
    paths = sorted((data_directory() / "traces" / "sia" / "newtrace").glob("workload-*.csv"))[: asked.workloads]
    for row in ("none", *asked.window_s.split(",")):
        given: dict[str, Any] = {} if asked.weight is None else {"weight": asked.weight}
        if asked.penalty == "published":
            given["published"] = True
        sharing = None if row == "none" else TimeSharing(float(row), **given)
        found = []
        for path in paths:
            start = "" if asked.restart_s is None else f", starts of {asked.restart_s:g} s"
            weight = "" if sharing is None else f", weight {sharing.weight:g}" + ", published" * sharing.published
            name = run_name(Setting("sia", CLUSTER, path), f"spike {spike.jobs}, tau {row}{weight}{start}")
            found.append(store.figures(name, lambda p=path, s=sharing: figures(p, spike, s, asked.restart_s)))  # type: ignore[misc]
        rows[row] = found
    table = [
        [
            row,
            *(mean_and_range([run[name] for run in found]) for name in found[0]),
            f"{THESIS.get(row, float('nan')):.2f} / {over(found, rows['none'])}",
        ]
        for row, found in rows.items()
    ]
    starts = "as measured" if asked.restart_s is None else f"{asked.restart_s:g} s"
    title = f"Thesis 3.5.6: {JOBS} jobs, {asked.burst} of them in half an hour, {len(paths)} workloads, starts {starts}"
    show(title, ["tau s", *rows["none"][0], "burst JCT ratio, paper / here"], table)
    loads.say()
    if asked.json:
        means = {row: {name: mean(found, name) for name in found[0]} for row, found in rows.items()}
        print(json.dumps({"rows": means, "each": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
