"""How far schedules are from the bound: both rules of assignment, and the order of the paper's own relaxation (9).

python benchmarks/tables/hare_ratio.py
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from hare_runs import mixed

from copter_frontends.policies.hare import Chunks, HareInstance, HareScheduler, RelaxationSolution
from copter_frontends.policies.hare.shim import Rule, schedule_in_order
from copter_papers.hare.paper_relaxation import paper_order, shares_of
from copter_papers.hare.workload import TESTBED, PaperWorkload, random_instance

RULES: tuple[Rule, ...] = ("earliest_finish", "paper")


def cases(seed: int) -> dict[str, HareInstance]:
    """Instances by name."""
    return {
        "testbed, 40 jobs": HareInstance.of(PaperWorkload(40).make(seed), TESTBED),
        "160 GPUs, 200 jobs": HareInstance.of(PaperWorkload(200).make(seed), mixed(160)),
        "160 V100s, 200 jobs": HareInstance.of(PaperWorkload(200).make(seed), {"v100": 160}),
        "16 GPUs, 30 jobs": random_instance(30, {"a": 6, "b": 5, "c": 5}, seed),
        "1,000 GPUs, 200 jobs": random_instance(200, dict.fromkeys("abcdefg", 143), seed),
    }


def by_paper_order(instance: HareInstance, relaxation: RelaxationSolution, max_tasks: int) -> float:
    """Ratio of the schedule in the order of the paper's own relaxation, tasks going where they finish first."""
    chunks = Chunks.of(instance, max_tasks)
    order = paper_order(instance, chunks, shares_of(instance, relaxation.gpu_seconds))
    return schedule_in_order(instance, chunks, order).objective / relaxation.bound


def main() -> None:
    """Parse, run, print."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    command.add_argument("--seeds", type=int, default=3)
    command.add_argument("--growth", type=float, default=1.25)
    command.add_argument("--max-tasks", type=int, default=1_000_000)
    command.add_argument("--paper-tasks", type=int, default=20_000, help="tasks of the paper's program, at most")
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    arguments = command.parse_args()
    found: dict[str, dict[str, list[float]]] = {}
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        for name, instance in cases(seed).items():
            for rule in RULES:
                made = HareScheduler(arguments.growth, rule, arguments.max_tasks).schedule(instance)
                found.setdefault(name, {}).setdefault(rule, []).append(made.ratio)
            theirs = by_paper_order(instance, made.relaxation, arguments.paper_tasks)
            found[name].setdefault("order of (9)", []).append(theirs)
    print(f"{'sum w C over bound':>22} " + " ".join(f"{rule:>24}" for rule in (*RULES, "order of (9)")))
    for name, row in found.items():
        cells = " ".join(f"mean {np.mean(v):8.2f} max {np.max(v):7.2f}" for v in row.values())
        print(f"{name:>22} {cells}")
    if arguments.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
