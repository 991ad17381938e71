"""Hare's figures 12 and 13 under other assumptions than ours: which of them the paper's distances could come from.

The paper says neither whether a job may pass another that does not fit, nor how many tasks jobs have, nor how soon they
come. One assumption is changed at a time, on the testbed's 15 GPUs with 40 jobs.

python benchmarks/tables/hare_reasons.py
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from hare_runs import MAX_TASKS, NAMES, TESTBED_MEDIAN_MIN, below_others, spread, weighted_h

from copter_frontends.policies.hare import HareInstance, HareScheduler
from copter_papers.hare.job_level import run_jobs
from copter_papers.hare.opponents import OPPONENTS, homo_rule, srtf_rule
from copter_papers.hare.workload import TESTBED, PaperWorkload

JOBS = 40
BASE = PaperWorkload(JOBS, median_min=TESTBED_MEDIAN_MIN)
WORKLOADS = {
    "ours": BASE,
    "others wait for the first": BASE,
    "no job of one task": replace(BASE, task_shares=(0.0, 0.4, 0.35, 0.25)),
    "all jobs of 8 tasks": replace(BASE, task_shares=(0.0, 0.0, 0.0, 1.0)),
    "all there at the start": replace(BASE, arrival_window_s=0.0),
    "twice as long": replace(BASE, median_min=2.0 * TESTBED_MEDIAN_MIN),
    "they wait, and 8 tasks": replace(BASE, task_shares=(0.0, 0.0, 0.0, 1.0)),
}
PAPER_WITHIN = {"hare": 90.5, "sched_allox": 66.7, "sched_homo": 56.5}
PATIENT = ("others wait for the first", "they wait, and 8 tasks")  # SRTF and Sched_Homo pass no job


def schemes(workload: PaperWorkload, seed: int, patient: bool) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Of every scheme: weighted JCT in hours, and the share of jobs within 25 minutes in %."""
    instance = HareInstance.of(workload.make(seed), TESTBED)
    found = {"hare": HareScheduler(max_tasks=MAX_TASKS).schedule(instance).schedule.completion_s}
    found |= {name: scheme(instance).completion_s for name, scheme in OPPONENTS.items()}
    if patient:
        found["srtf"] = run_jobs(instance, srtf_rule(instance, backfill=False)).completion_s
        found["sched_homo"] = run_jobs(instance, homo_rule(instance, backfill=False)).completion_s
    within = {name: 100.0 * float(np.mean(each - instance.arrival_s <= 1500.0)) for name, each in found.items()}
    return {name: weighted_h(instance, each) for name, each in found.items()}, within


def main() -> None:
    """Parse, run, print."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    command.add_argument("--seeds", type=int, default=5)
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    arguments = command.parse_args()
    if arguments.seeds < 1:
        command.error("seeds must be >= 1")
    table: dict[str, dict[str, list[float]]] = {}
    within: dict[str, dict[str, list[float]]] = {}
    for label, workload in WORKLOADS.items():
        rows = [
            schemes(workload, seed, label in PATIENT)
            for seed in range(arguments.seed, arguments.seed + arguments.seeds)
        ]
        for each, part in ((table, 0), (within, 1)):
            each[label] = {name: [row[part][name] for row in rows] for name in rows[0][part]}
    print(f"{'how far Hare is below, %':>26} {'nearest (paper 47.6)':>26} {'furthest (paper 75.3)':>26}   nearest is")
    for label, row in table.items():
        near, far = ([100 * each for each in side] for side in zip(*below_others(row), strict=True))
        others = {name: sum(row[name]) for name in row if name != "hare"}
        print(f"{label:>26} {spread(near):>26} {spread(far):>26}   {NAMES[min(others, key=others.__getitem__)]}")
    print(f"\n{'% of jobs within 25 min':>26} " + " ".join(f"{NAMES[name]:>24}" for name in PAPER_WITHIN))
    for label, row in within.items():
        print(f"{label:>26} " + " ".join(f"{spread(row[name]):>24}" for name in PAPER_WITHIN))
    print(f"{'paper':>26} " + " ".join(f"{each:>24}" for each in PAPER_WITHIN.values()))
    if arguments.json:
        print(json.dumps({"weighted_jct_h": table, "within_25_min": within}))


if __name__ == "__main__":
    main()
