"""Whether the relaxation's order of jobs is better than the order by work over weight, and how fine a grid that takes.

All tasks are placed by earliest finish (HR19), in the order of the relaxation's middles (HR18) on a coarse and on a
fine grid, and in the order by work and weight alone (HR26). The sum of weighted completion times from arrival on is
divided by that of the last.

python benchmarks/tables/hare_order.py
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping

import numpy as np
from hare_runs import mixed, spread, weighted_h

from copter_frontends.policies.hare import HareInstance, TimeGrid
from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.formulation import sufficient_horizon_s
from copter_frontends.policies.hare.instance import Floats
from copter_frontends.policies.hare.shim import middle_order, schedule_in_order
from copter_frontends.policies.hare.solver import RelaxationSolver
from copter_frontends.policies.hare.task_policy import smith_means
from copter_papers.hare.workload import TESTBED, PaperWorkload

GROWTHS = (1.5, 1.15)
MAX_TASKS = 20_000
CASES: dict[str, tuple[PaperWorkload, Mapping[str, int]]] = {
    "20 jobs, 4 GPUs of two types": (PaperWorkload(20, arrival_window_s=0.0), {"v100": 2, "t4": 2}),
    "20 jobs, 15 GPUs of four types": (PaperWorkload(20, arrival_window_s=0.0), TESTBED),
    "40 jobs, 15 GPUs of four types": (PaperWorkload(40, arrival_window_s=0.0), TESTBED),
    "40 jobs that arrive in turn, 15 GPUs": (PaperWorkload(40), TESTBED),
    "60 jobs, 60 GPUs of four types": (PaperWorkload(60, arrival_window_s=0.0), mixed(60)),
}
WON = 1e-3  # an order wins if it is better by more than this share


def ratios(workload: PaperWorkload, gpus: Mapping[str, int], seed: int) -> list[float]:
    """Weighted completion times in the relaxation's order on each grid, over those in the order by work and weight;
    then the latter over the best bound.
    """
    instance = HareInstance.of(workload.make(seed), gpus)
    chunks, horizon = Chunks.of(instance, MAX_TASKS), 1.1 * sufficient_horizon_s(instance)

    def value(mean: Floats) -> float:
        return weighted_h(
            instance, schedule_in_order(instance, chunks, middle_order(instance, chunks, mean)).completion_s
        )

    plain = value(smith_means(instance, instance.least_round_s(), instance.arrival_s))
    found, bounds = [], []
    for growth in GROWTHS:
        solution = RelaxationSolver().solve(instance, TimeGrid.geometric(0.0, horizon, growth))
        found.append(value(solution.latest_mean_s) / plain)
        bounds.append((solution.bound - float(instance.weight @ instance.arrival_s)) / 3600.0)
    return [*found, plain / max(bounds)]


def main() -> None:
    """Parse, run, print."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    command.add_argument("--seeds", type=int, default=10)
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    arguments = command.parse_args()
    if arguments.seeds < 1:
        command.error("seeds must be >= 1")
    table: dict[str, list[list[float]]] = {}
    heads = [f"grid {growth}: order/rule, wins" for growth in GROWTHS]
    print(f"{'':>38} " + " ".join(f"{head:>32}" for head in heads) + f" {'rule over bound':>18}")
    for label, (workload, gpus) in CASES.items():
        rows = table[label] = [
            ratios(workload, gpus, seed) for seed in range(arguments.seed, arguments.seed + arguments.seeds)
        ]
        cells = []
        for at in range(len(GROWTHS)):
            each = [row[at] for row in rows]
            cells.append(f"{spread(each, '.3f')}, {sum(one < 1 - WON for one in each)} of {len(each)}")
        print(
            f"{label:>38} "
            + " ".join(f"{cell:>32}" for cell in cells)
            + f" {np.mean([row[-1] for row in rows]):>18.2f}"
        )
    if arguments.json:
        print(json.dumps({"growths": GROWTHS, "cases": table}))


if __name__ == "__main__":
    main()
