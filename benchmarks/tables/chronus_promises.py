"""Promises kept in ten simulated days at a density of 80 to 160%, with and without node failures.

Without failures none may be broken; with them only those that no plan could have kept, which the linear (or integer)
program of the promises proves at every cycle that breaks one.

python benchmarks/tables/chronus_promises.py                # 24 GPUs, ten days, three seeds
python benchmarks/tables/chronus_promises.py --nodes 2 --seeds 1 --densities 0.8,1.6 --failures yes
"""

from __future__ import annotations

import loads
import numpy as np
from chronus_runs import RESTART_S, ROUND_S, finish, options, say

from copter_frontends.policies.chronus import ChronusPolicy, LeaseGrid, Standing
from copter_frontends.policy_kit import GoodputThroughputs
from copter_frontends.simulator import Simulation, random_failures
from copter_frontends.vocabulary import Cluster
from copter_papers.chronus.audited_selector import AuditedSelector
from copter_papers.chronus.workload import synthetic_workload, table_source, with_density

NODES, LEASE_S = 3, 1200.0  # nodes of 8 GPUs, unless others are asked for
MEAN_GPU_H = 3.2  # GPU hours of a job in the mean


def promises(days: float, density: float, seed: int, failures: bool, nodes: int = NODES) -> tuple[int, int, int, int]:
    """(promised, late, demoted, of these forced) of one simulation."""
    cluster = Cluster.of({"v100": (nodes, 8)})
    full = synthetic_workload(round(days * 24 * nodes * 8 / MEAN_GPU_H), days * 24.0, seed=seed)
    work, source = with_density(full, density, seed), table_source(cluster)
    selector = AuditedSelector(LeaseGrid(LEASE_S, RESTART_S))
    policy = ChronusPolicy(cluster, GoodputThroughputs(cluster, source), work.rewards, selector=selector)
    events = random_failures(cluster, 24.0 * days, 96.0, 3.0, seed) if failures else []
    with loads.labelled(f"density {density:g}"):
        loads.note(cluster, work.jobs, source)
    result = Simulation(cluster, work.jobs, policy, source, ROUND_S, events=events).run()
    jct_s = dict(zip(result.jobs["id"].tolist(), result.jobs["jct_s"].tolist(), strict=True))
    told = [notice for notice in policy.notices if notice.standing is Standing.GUARANTEED]
    demoted = {notice.job_id for notice in policy.notices if notice.standing is Standing.DEMOTED}
    late = sum(
        not jct_s[n.job_id] <= work.rewards[n.job_id].steps[n.step][0] + 1e-3 for n in told if n.job_id not in demoted
    )
    return len(told), late, len(demoted), sum(broken.forced for broken in selector.audit)


def main() -> None:
    """Every density and seed, with failures and without."""
    command = options(__doc__)
    command.add_argument("--densities", default="0.8,1.0,1.2,1.4,1.6")
    command.add_argument("--failures", choices=("no", "yes", "both"), default="both", help="of nodes (default: both)")
    command.set_defaults(days=10.0, nodes=NODES)
    asked = command.parse_args()
    print(f"{'density':>8} {'failures':>9} {'promised':>9} {'late':>6} {'demoted':>8} {'forced':>7}")
    for failures in {"no": (False,), "yes": (True,)}.get(asked.failures, (False, True)):
        for density in (float(each) for each in asked.densities.split(",")):
            found = []
            for seed in range(asked.seed, asked.seed + asked.seeds):
                found.append(promises(asked.days, density, seed, failures, asked.nodes))
                say(f"density {density:g}, failures {failures}, seed {seed}: {found[-1]}")
            promised, late, demoted, forced = np.sum(found, axis=0).tolist()
            print(
                f"{density:>8g} {'yes' if failures else 'no':>9} {promised:>9} {late:>6} {demoted:>8} {forced:>7}",
                flush=True,
            )
    finish(asked, {})


if __name__ == "__main__":
    main()
