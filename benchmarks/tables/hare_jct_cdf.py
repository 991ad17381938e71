"""Hare's figures 12 and 13 from the same runs: weighted JCT, and the distribution of JCT, on the testbed's 15 GPUs.

python benchmarks/tables/hare_jct_cdf.py
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from hare_runs import NAMES, TESTBED_MEDIAN_MIN, Floats, completions, print_sweep, spread, weighted_h

from copter_papers.hare.workload import TESTBED, PaperWorkload

JOBS = 40
MINUTES = (5, 10, 15, 20, 25, 30, 45, 60, 90)
PAPER_AT_25 = {"hare": 90.5, "sched_allox": 66.7, "sched_homo": 56.5}


def runs(seeds: range, median_min: float, online: bool) -> tuple[dict[str, list[Floats]], dict[str, list[float]]]:
    """(JCT of all jobs in minutes, weighted JCT in hours) by scheme, seed by seed."""
    minutes: dict[str, list[Floats]] = {}
    weighted: dict[str, list[float]] = {}
    for seed in seeds:
        instance, found = completions(PaperWorkload(JOBS, median_min=median_min), TESTBED, seed, online)
        for name, each in found.items():
            minutes.setdefault(name, []).append((each - instance.arrival_s) / 60.0)
            weighted.setdefault(name, []).append(weighted_h(instance, each))
    return minutes, weighted


def main() -> None:
    """Parse, run, print."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    command.add_argument("--seeds", type=int, default=5)
    command.add_argument(
        "--median-min", type=float, default=TESTBED_MEDIAN_MIN, help="median minutes of a job alone on V100s"
    )
    command.add_argument("--online", action="store_true", help="Hare without knowledge of arrivals too")
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    arguments = command.parse_args()
    if arguments.seeds < 1 or arguments.median_min <= 0:
        command.error("seeds must be >= 1 and median-min > 0")
    jct, weighted = runs(
        range(arguments.seed, arguments.seed + arguments.seeds), arguments.median_min, arguments.online
    )
    paper = ["40 jobs on 15 GPUs: Hare 47.6% to 75.3% below the others (figure 12)"]
    print_sweep("figure 12", {"15 GPUs": weighted}, paper)
    print(f"\n{'% of jobs within':>16} " + " ".join(f"{NAMES[name]:>24}" for name in jct))
    for minutes in MINUTES:
        shares = [[100 * float(np.mean(seed <= minutes)) for seed in each] for each in jct.values()]
        print(f"{minutes:>12} min " + " ".join(f"{spread(each):>24}" for each in shares))
    told = (f"{PAPER_AT_25[name]:.1f}" if name in PAPER_AT_25 else "-" for name in jct)
    print(f"{'paper, 25 min':>16} " + " ".join(f"{each:>24}" for each in told))
    if arguments.json:
        within = {
            name: {str(m): [float(np.mean(seed <= m)) for seed in each] for m in MINUTES} for name, each in jct.items()
        }
        print(json.dumps({"jobs": JOBS, "share_within_min": within, "weighted_jct_h": weighted}))


if __name__ == "__main__":
    main()
