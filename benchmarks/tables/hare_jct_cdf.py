"""Hare's figure 13: the distribution of job completion times on the testbed's 15 GPUs.

python benchmarks/tables/hare_jct_cdf.py
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from hare_runs import NAMES, Floats, completions

from copter_frontends.hare.workload import TESTBED, PaperWorkload

JOBS = 40
MINUTES = (5, 10, 15, 20, 25, 30, 45, 60, 90)
PAPER_AT_25 = {"hare": 90.5, "sched_allox": 66.7, "sched_homo": 56.5}


def distribution(seeds: range, median_min: float) -> dict[str, Floats]:
    """JCT of all jobs in minutes, by scheme."""
    found: dict[str, list[Floats]] = {}
    for seed in seeds:
        instance, completion = completions(PaperWorkload(JOBS, median_min=median_min), TESTBED, seed)
        for name, each in completion.items():
            found.setdefault(name, []).append((each - instance.arrival_s) / 60.0)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def main() -> None:
    """Parse, run, print."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--seeds", type=int, default=5)
    command.add_argument(
        "--median-min", type=float, default=2.0, help="median minutes of a job alone on V100s (default 2)"
    )
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    arguments = command.parse_args()
    if arguments.seeds < 1 or arguments.median_min <= 0:
        command.error("seeds must be >= 1 and median-min > 0")
    jct = distribution(range(arguments.seeds), arguments.median_min)
    print(f"{'% of jobs within':>16} " + " ".join(f"{NAMES[name]:>12}" for name in jct))
    for minutes in MINUTES:
        print(f"{minutes:>12} min " + " ".join(f"{100 * np.mean(each <= minutes):12.1f}" for each in jct.values()))
    print("paper, 25 min:   " + ", ".join(f"{NAMES[name]} {value}" for name, value in PAPER_AT_25.items()))
    if arguments.json:
        shares = {name: {str(m): float(np.mean(each <= m)) for m in MINUTES} for name, each in jct.items()}
        print(json.dumps({"jobs": JOBS, "share_within_min": shares}))


if __name__ == "__main__":
    main()
