"""Chronus's simulation beside one in which a restart costs more than the plan believes (Fig. 10, without Kubernetes).

The paper's prototype differs from its simulation by what preemption really costs. Here Chronus plans with 30 seconds a
restart, and restarts take that long, or two or four times as long. Jobs as in section 5.5: H_MIX2's classes, fewer than
16 GPUs, 5 to 180 minutes, submitted over ten hours; G[n]/T[m] is a cluster of n GPUs and m jobs an hour. The paper's
own n and m are in a picture.

python benchmarks/tables/chronus_prototype.py
"""

from __future__ import annotations

from collections.abc import Iterator

import loads
import numpy as np
from chronus_runs import RESTART_S, Outcome, finish, make_policy, options, run, show, spread, sweep

from copter_frontends.policies.chronus.spread_costs import SPREAD_COST
from copter_frontends.policy_kit.deadlines import draw_reward
from copter_frontends.vocabulary import Cluster, Job
from copter_papers.chronus.workload import HELIOS_SIZES, Workload, table_source

HOURS = 10.0
MINUTES = (5.0, 180.0)
MOST_GPUS = 16
SETTINGS = "64/12,64/24,128/24,128/48"
FACTORS = (1.0, 2.0, 4.0)
PAPER = [
    "wDMR: the gap between simulation and prototype is small",
    "mean JCT: the gap is larger where the cluster is small, since few GPUs are left for best effort",
]


def sampled(hourly: int, seed: int) -> Workload:
    """Jobs of section 5.5."""
    rng, names = np.random.default_rng(seed), sorted(SPREAD_COST)
    sizes = {gpus: share for gpus, share in HELIOS_SIZES.items() if gpus < MOST_GPUS}
    share = np.array(list(sizes.values())) / sum(sizes.values())
    count = round(hourly * HOURS)
    submit_s = np.sort(rng.uniform(0.0, HOURS * 3600.0, count))
    jobs, rewards = [], {}
    for number, at_s in enumerate(submit_s.tolist()):
        duration_s, gpus = 60.0 * float(rng.uniform(*MINUTES)), int(rng.choice(list(sizes), p=share))
        job = Job(f"job-{number:04d}", str(rng.choice(names)), at_s, duration_s * gpus, requested_gpus=gpus)
        jobs.append(job)
        reward = draw_reward(duration_s, "mix2", rng)
        if reward is not None:
            rewards[job.id] = reward
    return Workload(tuple(jobs), rewards)


def main() -> None:
    """Run Chronus in every setting, at every cost of a restart."""
    command = options(__doc__, "chronus")
    command.add_argument("--settings", default=SETTINGS, help="n/m: GPUs and jobs an hour")
    asked = command.parse_args()
    settings = [tuple(int(part) for part in each.split("/")) for each in asked.settings.split(",")]

    def runs(seed: int) -> Iterator[tuple[str, Outcome]]:
        for gpus, hourly in settings:
            cluster, work = Cluster.of({"v100": (gpus // 8, 8)}), sampled(hourly, seed)
            believed = table_source(cluster, RESTART_S)
            for factor in FACTORS:
                source = table_source(cluster, factor * RESTART_S)
                policy = make_policy("chronus", cluster, source, work, believed=believed)
                with loads.labelled(f"T{hourly}"):
                    found = run("chronus", cluster, work, policy, source)
                yield f"G{gpus}/T{hourly}, {factor * RESTART_S:g} s", found

    found = sweep(asked, "restarts dearer than believed", runs)
    show("restarts dearer than believed", found, PAPER)
    print(f"\n{'over the simulation that is as believed':<42}{'wDMR, points':>24}{'mean JCT, all jobs':>24}")
    for gpus, hourly in settings:
        plain = found[f"G{gpus}/T{hourly}, {RESTART_S:g} s"]
        for factor in FACTORS[1:]:
            dear = found[f"G{gpus}/T{hourly}, {factor * RESTART_S:g} s"]
            points = [100 * (a.miss_rate - b.miss_rate) for a, b in zip(dear, plain, strict=True)]
            ratio = [a.jct_of(a.jct_s) / b.jct_of(b.jct_s) for a, b in zip(dear, plain, strict=True)]
            print(f"{f'G{gpus}/T{hourly}, {factor * RESTART_S:g} s':<42}{spread(points):>24}{spread(ratio, 3):>24}")
    finish(asked, {"prototype": found})


if __name__ == "__main__":
    main()
