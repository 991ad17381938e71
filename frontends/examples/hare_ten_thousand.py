"""Hare on 10,000 GPUs: 2,000 jobs with a million tasks are planned, then planned again after 1% of the jobs change.

python frontends/examples/hare_ten_thousand.py [--gpus 25000]
"""

from __future__ import annotations

import argparse

import numpy as np

from copter_frontends.policies.hare import HareInstance, HareScheduler, faults
from copter_frontends.vocabulary.named_clusters import scaled_cluster
from copter_papers.hare.workload import random_jobs

JOBS_PER_GPU = 0.2


def main() -> None:
    """Plan, change 1% of the jobs, and plan again."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--gpus", type=int, default=10_000)
    command.add_argument("--rounds", type=int, default=3)
    arguments = command.parse_args()
    rng = np.random.default_rng(0)
    cluster = scaled_cluster(arguments.gpus)
    gpus = {kind: cluster.capacity(kind) for kind in cluster.types}
    count = max(2, round(JOBS_PER_GPU * arguments.gpus))
    jobs = random_jobs(count, tuple(gpus), rng)
    scheduler = HareScheduler()
    made = count
    for number in range(arguments.rounds + 1):
        result = scheduler.schedule(HareInstance.of(jobs, gpus))
        wrong = faults(result.schedule)
        print(
            f"plan {number}: {len(result.schedule.chunk):,} tasks, relaxation {result.timings_s['solve']:.2f} s "
            f"({result.relaxation.iterations} iterations, {'warm' if result.relaxation.warm else 'cold'}), "
            f"schedule {result.timings_s['schedule']:.2f} s, at most {result.ratio:.2f} times the optimum, "
            f"{wrong or 'feasible'}"
        )
        changed = max(1, count // 100)
        for place, job in zip(
            rng.choice(count, changed, replace=False), random_jobs(changed, tuple(gpus), rng, first=made), strict=True
        ):
            jobs[int(place)] = job
        made += changed


if __name__ == "__main__":
    main()
