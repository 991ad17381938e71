"""Hare's figures 12 and 14 to 19: weighted JCT against the opponents, one quantity varied.

python benchmarks/tables/hare_weighted_jct.py --vary jobs
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from hare_runs import MIXED, TESTBED_MEDIAN_MIN, mixed, print_sweep, weighted_jct_h

from copter_papers.hare.workload import REFERENCE_GBPS, TESTBED, PaperWorkload

Rows = dict[str, dict[str, list[float]]]

GPUS, JOBS = 160, 200
PAPER = {
    "testbed": ["40 jobs on 15 GPUs: Hare 47.6% to 75.3% below the others (figure 12)"],
    "jobs": ["300 jobs on 160 GPUs: Hare 54.6% to 80.5% below; the gap grows with the jobs (figure 15)"],
    "gpus": ["200 jobs: all fall with more GPUs, Allox about 2x Hare, Gavel_FIFO the highest (figure 14)"],
    "heterogeneity": ["the gap grows with heterogeneity; on V100s alone Hare is about Sched_Homo (figure 16)"],
    "network": ["10 to 25 Gbps: Hare falls by 31.2% (figure 18)"],
    "batch": ["flat for all but Sched_Homo (figure 19)"],
    "mix": ["more NLP raises all, more recommendation lowers all, Hare is always lowest (figure 17)"],
}


def sweep(vary: str, seeds: range, online: bool = False, gbps: float = REFERENCE_GBPS) -> Rows:
    """Weighted JCT of every scheme for each value of what is varied."""
    base, cluster = PaperWorkload(JOBS, gbps=gbps), mixed(GPUS)

    def run(workload: PaperWorkload, gpus: dict[str, int]) -> dict[str, list[float]]:
        return weighted_jct_h(workload, gpus, seeds, online)

    if vary == "testbed":
        return {"15 GPUs": run(PaperWorkload(40, median_min=TESTBED_MEDIAN_MIN, gbps=gbps), TESTBED)}
    if vary == "jobs":
        return {f"{n} jobs": run(replace(base, jobs=n), cluster) for n in (100, 150, 200, 250, 300)}
    if vary == "gpus":
        return {f"{n} GPUs": run(base, mixed(n)) for n in (80, 120, 160, 200)}
    if vary == "heterogeneity":
        levels = {"low": ("v100",), "middle": ("v100", "k80"), "high": MIXED}
        return {label: run(base, mixed(GPUS, kinds)) for label, kinds in levels.items()}
    if vary == "network":
        return {f"{speed:g} Gbps": run(replace(base, gbps=speed), cluster) for speed in (10.0, 15.0, 20.0, 25.0)}
    if vary == "batch":
        return {f"{size:g} B0": run(replace(base, batch=size), cluster) for size in (0.5, 1.0, 2.0, 4.0)}
    shares = {"equal": dict.fromkeys(("cv", "nlp", "speech", "rec"), 0.25)}
    for family in ("cv", "nlp", "speech", "rec"):
        shares[f"{family} 0.55"] = {name: 0.55 if name == family else 0.15 for name in shares["equal"]}
    return {label: run(replace(base, shares=share), cluster) for label, share in shares.items()}


def main() -> None:
    """Parse, run, print."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--vary", choices=list(PAPER), default="jobs")
    command.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    command.add_argument("--seeds", type=int, default=3, help="so many workloads (default 3)")
    command.add_argument("--online", action="store_true", help="Hare without knowledge of arrivals too")
    command.add_argument("--gbps", type=float, default=REFERENCE_GBPS, help="network speed where it is not varied (25)")
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    arguments = command.parse_args()
    if arguments.seeds < 1:
        command.error("seeds must be >= 1")
    rows = sweep(
        arguments.vary, range(arguments.seed, arguments.seed + arguments.seeds), arguments.online, arguments.gbps
    )
    print_sweep(arguments.vary, rows, PAPER[arguments.vary])
    if arguments.json:
        print(json.dumps({"vary": arguments.vary, "weighted_jct_h": rows}))


if __name__ == "__main__":
    main()
