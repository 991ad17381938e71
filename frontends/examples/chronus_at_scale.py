"""Chronus at 10,000 and 25,000 GPUs: cycles of the lease LP, admission of one job, and the gap.

python frontends/examples/chronus_at_scale.py --gpus 10000
python frontends/examples/chronus_at_scale.py --gpus 25000

With HiGHS for comparison: copter simulate chronus --gpus 10000 --rounds 12 --tape FILE,
then copter replay FILE --peers highs
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from copter_frontends.policies.chronus import ChronusPolicy, StepReward
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job

JOBS_PER_GPU = 0.5
LEASES, LEASE_S = 24, 1200.0
SIZES, SHARES = (1, 2, 4, 8, 16, 32), (0.3, 0.15, 0.15, 0.2, 0.12, 0.08)
APPLICATION = "training"


class Arrivals:
    """SLO jobs that end within the 24 leases ahead, one in three strict, the others soft."""

    def __init__(self, seed: int) -> None:
        self.rng, self.count = np.random.default_rng(seed), 0

    def next(self, now_s: float) -> tuple[Job, StepReward]:
        """Return a new job, submitted now."""
        rng, job_id = self.rng, f"job-{self.count:06d}"
        self.count += 1
        hours = rng.uniform(0.3, 0.5 * LEASES * LEASE_S / 3600.0)
        job = Job(
            job_id, APPLICATION, now_s, work_samples=hours * 3600.0, requested_gpus=int(rng.choice(SIZES, p=SHARES))
        )
        first_s = min(hours * 3600.0 * rng.uniform(1.2, 2.0), LEASES * LEASE_S / 1.5)
        first_s = max(first_s, hours * 3600.0 * 1.2)
        return job, StepReward.strict(first_s) if rng.random() < 1 / 3 else StepReward.soft(first_s)


def run(gpus: int, cycles: int, seed: int, admissions: int) -> dict[str, Any]:
    """Simulate cycles: jobs progress, end, and are replaced; some are admitted, and leave, within each lease."""
    cluster = Cluster.of({"a100": (gpus // 8, 8)})
    policy = ChronusPolicy(cluster, ThroughputTable({APPLICATION: {"a100": 1.0}}))
    arrivals, work = Arrivals(seed), {}
    rows: list[dict[str, float]] = []
    for cycle in range(cycles):
        now_s = cycle * LEASE_S
        while len(policy.jobs) < JOBS_PER_GPU * gpus:
            job, reward = arrivals.next(now_s)
            policy.set_reward(job.id, reward)
            policy.add_job(job)
            work[job.id] = job.work_samples
        processor, begun = time.process_time(), time.perf_counter()
        plan = policy.plan(now_s)
        cycle_s, processor = time.perf_counter() - begun, time.process_time() - processor
        result = policy.last_cycle
        assert result is not None
        row = {
            "cycle_s": cycle_s,
            "processor_s": processor,
            **{f"{k}_s": v for k, v in plan.timings.items()},
            "reward": plan.objective,
        }
        row |= {"bound": plan.bound, "gap": (plan.bound - plan.objective) / max(plan.bound, 1e-9)}
        row |= {"jobs": float(len(policy.jobs)), "passes": float(result.solution.passes if result.solution else 0)}
        answers = admit(policy, arrivals, now_s, admissions)
        row |= {"admit_s": float(np.median(answers)), "admit_p99_s": float(np.quantile(answers, 0.99))}
        rows.append(row)
        text = "  ".join(f"{k} {v:.4g}" for k, v in row.items())
        print(f"cycle {cycle}: {text}")
        get_on(policy, work)
    return {"gpus": gpus, "cycles": rows}


def admit(policy: ChronusPolicy, arrivals: Arrivals, now_s: float, count: int) -> list[float]:
    """Return the processor seconds to answer one more job, including moves of other jobs' leases."""
    times = []
    for _ in range(count):
        job, reward = arrivals.next(now_s)
        policy.set_reward(job.id, reward)
        begun = time.process_time()
        policy.add_job(job)
        times.append(time.process_time() - begun)
        policy.remove_job(job.id)
    return times


def get_on(policy: ChronusPolicy, work: dict[str, Any]) -> None:
    """End a lease: jobs with GPUs progress; jobs that are done or have no promise leave."""
    for job_id in list(policy.jobs):
        if job_id in policy.held:
            done = (LEASE_S - policy.grid.restart_s) / work[job_id] + policy.service[job_id].progress
            if done >= 1.0 - 1e-9:
                policy.remove_job(job_id)
                continue
            policy.update_job(job_id, progress=done)
        if job_id not in policy.book.records:
            policy.remove_job(job_id)


def main() -> None:
    """Run the cycles and print the medians."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--gpus", type=int, default=10_000)
    command.add_argument("--cycles", type=int, default=6)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--admissions", type=int, default=30, help="jobs that are admitted in each lease")
    command.add_argument("--json", help="write the figures here too")
    asked = command.parse_args()
    result = run(asked.gpus, asked.cycles, asked.seed, asked.admissions)
    later = result["cycles"][1:] or result["cycles"]
    shown = ("cycle_s", "processor_s", "admit_s", "admit_p99_s", "gap")
    medians = {name: float(np.median([row[name] for row in later])) for name in shown}
    print("medians after the first cycle: " + "  ".join(f"{k} {v:.4g}" for k, v in medians.items()))
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump({**result, "medians": medians}, file, indent=1)


if __name__ == "__main__":
    main()
