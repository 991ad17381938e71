"""Hadar's rounds on 10,000 and 25,000 GPUs of seven types: seconds of each stage, certified gaps, HiGHS for comparison.

    python frontends/examples/hadar_at_scale.py                        # both sizes, 2,000 and 5,000 jobs
    python frontends/examples/hadar_at_scale.py --gpus 10000 --rounds 50 --highs

Every round some jobs end and others arrive, running jobs progress and waiting jobs age, so that every value in the
linear program is new. A round consists of edits, LP, whole bundles, and servers.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from copter_frontends.policies.hadar import AverageJct, EffectiveThroughput, HadarPolicy
from copter_frontends.policy_kit.highs_comparison import HighsComparison
from copter_frontends.vocabulary import Job, Plan
from copter_frontends.vocabulary.named_clusters import SCALED_TYPES, scaled_cluster

SPEEDS = dict(zip(SCALED_TYPES, (1.0, 3.0, 2.0, 6.0, 10.0, 4.0, 0.7), strict=True))  # relative to a T4, roughly
SIZES, SIZE_SHARES = (1, 2, 4, 8, 16, 32), (0.35, 0.15, 0.2, 0.15, 0.1, 0.05)
JOBS_PER_GPU, CHURN = 0.2, 0.01
WARM_UP = 3


class Day:
    """Jobs that arrive at a policy and leave it, and their progress."""

    def __init__(self, gpus: int, seed: int, utility: str, threads: int) -> None:
        from copter import Settings

        self.rng = np.random.default_rng(seed)
        self.rates: dict[str, dict[str, float]] = {}
        self.iterations: dict[str, float] = {}
        chosen = AverageJct() if utility == "jct" else EffectiveThroughput(normalised=True)
        self.policy = HadarPolicy(scaled_cluster(gpus), self, utility=chosen, settings=Settings(threads=threads))
        self.progress: dict[str, float] = {}
        self.now_s, self.made = 0.0, 0
        for _ in range(round(JOBS_PER_GPU * gpus)):
            self.arrive()

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """Return the iterations per second; the policy uses this day as its source of throughputs."""
        return self.rates[job.id][gpu_type]

    def work(self, job: Job) -> float:
        """Return the number of iterations of a job."""
        return self.iterations[job.id]

    def arrive(self) -> None:
        """Add a job: gangs of 1 to 32 GPUs, 10 minutes to 17 hours on an average type."""
        rng, name = self.rng, f"job-{self.made}"
        self.made += 1
        gpus = int(rng.choice(SIZES, p=SIZE_SHARES))
        self.rates[name] = {kind: gpus * speed * rng.uniform(0.5, 1.5) for kind, speed in SPEEDS.items()}
        self.iterations[name] = float(600.0 * 10.0 ** rng.uniform(0.0, 2.0) * gpus * 3.0)
        self.progress[name] = 0.0
        self.policy.add_job(Job(name, "any", self.now_s, work_samples=self.iterations[name], requested_gpus=gpus))

    def leave(self, name: str) -> None:
        """End a job."""
        self.policy.remove_job(name)
        del self.rates[name], self.iterations[name], self.progress[name]

    def round(self) -> Plan:
        """Do one round: ends, arrivals, a plan, and progress."""
        ended = [name for name, done in self.progress.items() if done >= 1.0]
        others = max(round(CHURN * len(self.progress)) - len(ended), 0)
        alive = [name for name in self.progress if self.progress[name] < 1.0]
        for name in [*ended, *self.rng.choice(alive, others, replace=False).tolist()]:
            self.leave(name)
        for _ in range(len(ended) + others):
            self.arrive()
        plan = self.policy.plan(self.now_s)
        round_s, restart_s = self.policy.round_s, self.policy.restart_s
        changed = {*plan.start, *plan.move}
        for name, allocation in plan.allocations.items():
            seconds = round_s - (restart_s if name in changed else 0.0)
            rate = min(self.rates[name][kind] for kind in allocation.by_type)
            self.progress[name] = min(self.progress[name] + seconds * rate / self.iterations[name], 1.0)
            self.policy.update_job(name, progress=self.progress[name])
        self.now_s += round_s
        return plan


def run(gpus: int, rounds: int, seed: int, utility: str, highs: bool, threads: int) -> dict[str, Any]:
    """Simulate some rounds and return their figures."""
    day = Day(gpus, seed, utility, threads)
    comparison = HighsComparison(day.policy, every=1, skip=1) if highs else None
    plans = [day.round() for _ in range(rounds + WARM_UP)]
    counted = plans[WARM_UP:]
    stages = ("edit", "solve", "shim", "place")
    times = {stage: np.array([plan.timings[stage] for plan in counted]) for stage in stages}
    total = sum(times.values())
    assert isinstance(total, np.ndarray)
    mixed = [sum(bool(a.mixture) for a in plan.allocations.values()) for plan in counted]
    result: dict[str, Any] = {
        "gpus": gpus,
        "jobs": len(day.progress),
        "running": len(counted[-1].allocations),
        "variables": day.policy.variables,
        "round_s": {"p50": float(np.median(total)), "p99": float(np.percentile(total, 99)), "max": float(total.max())},
        **{f"{stage}_p50_s": float(np.median(times[stage])) for stage in stages},
        "gap": {"p50": float(np.median([p.gap for p in counted])), "max": max(p.gap for p in counted)},
        "fractional_jobs_max": max(p.fractional_jobs for p in counted),
        "mixed_jobs_p50": float(np.median(mixed)),
        "used": sum(a.gpus for a in counted[-1].allocations.values()) / gpus,
    }
    if comparison is not None:
        result["highs"] = comparison.summary()
    return result


def main() -> None:
    """Run the requested sizes and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, action="append", help="size of the cluster (default 10000 and 25000)")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--utility", choices=["jct", "throughput"], default="jct")
    parser.add_argument("--threads", type=int, default=0, help="0: all processors")
    parser.add_argument("--highs", action="store_true", help="solve the same programs with warm HiGHS too")
    asked = parser.parse_args()
    for gpus in asked.gpus or [10_000, 25_000]:
        print(json.dumps(run(gpus, asked.rounds, asked.seed, asked.utility, asked.highs, asked.threads)))


if __name__ == "__main__":
    main()
