"""Three ways to write one Hops round, and HiGHS's MILP with the paper's gaps against copter's plan (Figures 14, 15).

    python benchmarks/tables/hops_formulations.py                       # 512 GPUs: the paper's size
    python benchmarks/tables/hops_formulations.py --factor 20 --skip-servers --limit 60

The same window of jobs, all GPUs idle. "groups": types and sizes as columns, then servers (HP16), as in the policy.
"server prices": column generation with a row a server (HP18). "paper": every configuration on single servers as a
column, (11)-(13), through HiGHS's branch and bound. "groups_milp": HiGHS on the groups' program of the second
round, which gives sizes but no servers. Bounds hold for all placements; gaps are to the best of them.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from copter import LinearProgram, Settings
from copter_frontends.policies.hops import HopsPolicy, ModelledThroughputs
from copter_frontends.vocabulary import Cluster
from copter_frontends.vocabulary.named_clusters import NAMED_CLUSTERS
from copter_papers.hops.exact import placed_program
from copter_papers.hops.node_prices import NodePriceFormulation
from copter_papers.hops.workload import hops_jobs, iteration_source


def highs(program: LinearProgram, gap: float, limit_s: float) -> dict[str, Any]:
    """Seconds, value and bound of HiGHS's MILP."""
    begun = time.perf_counter()
    found = milp(
        -program.c,
        integrality=program.integrality,
        bounds=Bounds(program.col_lower, program.col_upper),
        constraints=LinearConstraint(program.A, program.row_lower, program.row_upper),
        options={"mip_rel_gap": gap, "time_limit": limit_s},
    )
    seconds = time.perf_counter() - begun
    value = None if found.x is None else -float(found.fun)
    bound = None if found.mip_dual_bound is None else -float(found.mip_dual_bound)
    return {"seconds": seconds, "value": value, "bound": bound, "columns": len(program.c), "rows": program.A.shape[0]}


def prepared(factor: int, seed: int) -> HopsPolicy:
    """A policy that has planned once, with jobs enough to fill its window and some waiting long."""
    cluster = Cluster.of({kind: (factor * n, size) for kind, (n, size) in NAMED_CLUSTERS["hops-512"].items()})
    source = iteration_source(cluster)
    policy = HopsPolicy(cluster, ModelledThroughputs(cluster, source), round_s=300.0, stay_bonus=0.0)
    jobs, sets = hops_jobs(170 * factor, 100.0 * factor, seed)
    for job in jobs:
        policy.add_job(job, sets[job.id])
    return policy


def measure(factor: int, seed: int, limit_s: float, servers: bool) -> dict[str, Any]:
    """All figures of one instance."""
    policy = prepared(factor, seed)
    begun = time.perf_counter()
    plan = policy.plan(7200.0)
    cold_s = time.perf_counter() - begun
    wishes, groups = policy.formulation.wishes, policy.groups
    assert policy.last_solution is not None
    begun = time.perf_counter()
    again = policy.plan(7500.0)
    warm_s = time.perf_counter() - begun
    found: dict[str, Any] = {
        "gpus": int(groups.size.sum()),
        "servers": len(groups.ids),
        "window": len(wishes),
        "groups": {
            "rows": len(policy.formulation.rows),
            "columns": policy.variables,
            "first_plan_s": cold_s,
            "next_plan_s": warm_s,
            "value": plan.objective,
            "bound": plan.bound,
            "gap": plan.gap,
            "next_gap": again.gap,
        },
    }
    program = policy.formulation.model.to_linear_program()
    found["groups_milp_gap_0.05"] = {**highs(program, 0.05, limit_s), "plan_value": again.objective}
    wishes = dict(_fresh(factor, seed))
    if servers:
        by_server = NodePriceFormulation(groups, Settings())
        by_server.set_free(groups.size)
        by_server.set_wishes(wishes)
        begun = time.perf_counter()
        made = by_server.solve(gap=1e-2)
        found["server_prices"] = {
            "seconds": time.perf_counter() - begun,
            "rounds": made.rounds,
            "columns": made.columns,
            "value": made.objective,
            "bound": made.bound,
        }
        program, _ = placed_program(wishes, groups, groups.size, slowdown=lambda *_: 1.0)
        for gap in (0.05, 0.01):
            found[f"paper_gap_{gap}"] = highs(program, gap, limit_s)
    return found


def _fresh(factor: int, seed: int) -> dict[str, Any]:
    """The wishes of the first plan."""
    policy = prepared(factor, seed)
    policy.plan(7200.0)
    return policy.formulation.wishes


def main() -> None:
    """Measure and print."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--factor", type=int, default=1, help="times the paper's 64 servers of 8 (default 1)")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--limit", type=float, default=120.0, help="seconds of each MILP")
    command.add_argument("--skip-servers", action="store_true", help="only the policy's own formulation")
    asked = command.parse_args()
    np.set_printoptions(precision=4)
    found = measure(asked.factor, asked.seed, asked.limit, not asked.skip_servers)
    for name, value in found.items():
        print(name, json.dumps(value))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
