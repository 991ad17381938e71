"""Hops' rounds on 10,000 and 25,000 GPUs: seconds of each stage, certified gaps, HiGHS for comparison.

    python frontends/examples/hops_at_scale.py                        # 1,250 and 3,125 servers of 8
    python frontends/examples/hops_at_scale.py --gpus 10000 --rounds 10 --highs

There are seven GPU types, servers up to 12% faster or slower than their type, requirement sets of up to eight sizes
from 1 to 16 GPUs, and 2,000 or 5,000 jobs in the service window. Every round the whole cluster is planned again: queue,
window, LP, whole placements on single servers. Between rounds some jobs end and others arrive.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Hashable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from copter import Settings
from copter_frontends.policies.hops import (
    DataLoading,
    HopsPolicy,
    IterationTimes,
    Links,
    LoadingState,
    RequirementSet,
    ThroughputEstimator,
)
from copter_frontends.policy_kit.highs_comparison import HighsComparison
from copter_frontends.vocabulary import Job, Plan
from copter_frontends.vocabulary.named_clusters import SCALED_TYPES, scaled_cluster

SPEEDS = dict(zip(SCALED_TYPES, (1.0, 3.0, 2.0, 6.0, 10.0, 4.0, 0.7), strict=True))  # relative to a T4, roughly
SERVER_SPEEDS = (0.88, 1.0, 1.12)
JOBS_PER_GPU = 0.25  # jobs in the queue per GPU; the window has fewer
MOST_GPUS, MOST_SIZES = 16, 8
WARM_UP = 1


class Speeds:
    """Speeds of jobs, linear in GPUs except for losses by communication within and between servers
    (PlacedThroughputs).
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.version = seed, 0
        self.traits: dict[str, tuple[dict[str, float], float, float]] = {}

    def add(self, name: str, rng: np.random.Generator) -> None:
        """Draw a job's speeds by type, and its losses within and between servers."""
        by_type = {kind: speed * rng.uniform(0.5, 1.5) for kind, speed in SPEEDS.items()}
        self.traits[name] = (by_type, rng.uniform(0.0, 0.2), rng.choice([rng.uniform(0.05, 0.3), rng.uniform(0.6, 2)]))

    def key(self, job: Job) -> Hashable:
        """Return the job's id, because no two jobs share their speeds."""
        return job.id

    def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: Sequence[str]) -> float:
        """Return the samples per second."""
        by_type, ring, network = self.traits[job.id]
        slower = 1.0 + (network if nodes > 1 else ring * (gpus - 1) / gpus)
        return by_type[gpu_type] * gpus / slower * self.server_speed(gpu_type, servers[0])

    def work(self, job: Job) -> float:
        """Return the number of samples of a job."""
        assert job.work_samples is not None
        return job.work_samples

    def server_speed(self, gpu_type: str, server: str) -> float:
        """Return one of three relative speeds, by the server's number."""
        return SERVER_SPEEDS[(int(server.rsplit("-", 1)[1]) + self.seed) % 3]


class Day:
    """Jobs that arrive at a policy and leave it; the policy knows their speeds or learns them from observations."""

    def __init__(self, gpus: int, seed: int, threads: int, queue: int | None = None, learn: bool = False) -> None:
        self.rng, self.speeds = np.random.default_rng(seed), Speeds(seed)
        self.estimator = ThroughputEstimator(by_application=False) if learn else None
        self.policy = HopsPolicy(
            scaled_cluster(gpus),
            self.estimator or self.speeds,
            round_s=300.0,
            full_round_s=300.0,
            settings=Settings(threads=threads),
        )
        self.observe_s: list[float] = []  # seconds in which the policy records all running jobs' speeds, by round
        self.now_s, self.made = 3600.0, 0
        for _ in range(queue or round(JOBS_PER_GPU * gpus)):
            self.arrive(self.rng.uniform(0.0, 3600.0))

    def arrive(self, submit_s: float) -> None:
        """Add a job."""
        rng, name = self.rng, f"job-{self.made}"
        self.made += 1
        count = int(rng.integers(1, MOST_SIZES + 1))
        least = int(rng.choice([1, 2, 4, 8], p=[0.3, 0.3, 0.25, 0.15]))
        others = np.arange(least + 1, MOST_GPUS + 1)
        sizes = rng.choice(others, min(count - 1, len(others)), replace=False)
        self.speeds.add(name, rng)
        work = float(3600.0 * 10.0 ** rng.uniform(0.0, 2.0) * 3.0)
        job = Job(name, "any", submit_s, work_samples=work)
        if self.estimator is not None:
            self.estimator.profile(job, self.profile(job))
        self.policy.add_job(job, RequirementSet.of(sorted({least, *sizes.tolist()})))

    def profile(self, job: Job) -> dict[str, IterationTimes]:
        """Return the profile of a job from runs on one GPU of each type, which do not show the network's effect."""
        steady = LoadingState(0.0, 0.0)
        loading = DataLoading(steady, steady, 1.0)
        by_type = self.speeds.traits[job.id][0]
        return {
            kind: IterationTimes(0.3 / speed, 0.6 / speed, 0.1 / speed, loading, 0.0, 1.0, Links(1.0, 1.0))
            for kind, speed in by_type.items()
        }

    def observe(self) -> None:
        """Report every running job's speed to the policy, with 2% noise."""
        if self.estimator is None:
            return
        begun = perf_counter()
        for name, held in self.policy.held.items():
            nodes, job = [node for node, _ in held.nodes], self.policy.jobs[name]
            rate = min(self.speeds.rate(job, held.gpu_type, held.gpus, len(nodes), (node,)) for node in nodes)
            self.policy.update_job(name, observed=rate * max(self.rng.normal(1.0, 0.02), 0.5))
        self.observe_s.append(perf_counter() - begun)

    def round(self, churn: float = 0.02) -> Plan:
        """Do one round: ends, arrivals, a plan."""
        names = list(self.policy.jobs)
        running = [name for name in names if name in self.policy.held]
        for name in self.rng.choice(running, round(churn * len(running)), replace=False).tolist() if running else ():
            self.policy.remove_job(name)
            self.arrive(self.now_s)
        self.observe()
        plan = self.policy.plan(self.now_s)
        self.now_s += self.policy.round_s
        return plan


def run(
    gpus: int, rounds: int, seed: int, highs: bool, threads: int, queue: int | None = None, learn: bool = False
) -> dict[str, Any]:
    """Simulate some rounds and return their figures."""
    day = Day(gpus, seed, threads, queue, learn)
    first = day.round()
    comparison = HighsComparison(day.policy, every=1, skip=0) if highs else None
    plans = [first, *(day.round() for _ in range(rounds + WARM_UP - 1))]
    counted = plans[WARM_UP:]
    stages = ("edit", "solve", "shim", "place")
    times = {stage: np.array([plan.timings[stage] for plan in counted]) for stage in stages}
    total = np.sum(list(times.values()), axis=0)
    result: dict[str, Any] = {
        "gpus": gpus,
        "servers": len(day.policy.groups.ids),
        "queue": len(day.policy.jobs),
        "window": len(day.policy.formulation.wishes),
        "running": len(counted[-1].allocations),
        "rows": len(day.policy.formulation.rows),
        "variables": day.policy.variables,
        "first_round_s": sum(first.timings[stage] for stage in stages),
        "round_s": {"p50": float(np.median(total)), "max": float(total.max())},
        **{f"{stage}_p50_s": float(np.median(times[stage])) for stage in stages},
        "gap": {"p50": float(np.median([p.gap for p in counted])), "max": max(p.gap for p in plans)},
        "fractional_jobs_max": max(p.fractional_jobs for p in plans),
        "used": sum(a.gpus for a in counted[-1].allocations.values()) / gpus,
    }
    if learn:
        result["observe_p50_s"] = float(np.median(day.observe_s[WARM_UP:]))
        result["groups"] = len(day.policy.groups)
    if comparison is not None:
        result["highs"] = comparison.summary()
    return result


def main() -> None:
    """Run the requested sizes and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, action="append", help="size of the cluster (default 10000 and 25000)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--queue", type=int, help="jobs in the queue (default: a quarter of the GPUs)")
    parser.add_argument("--threads", type=int, default=0, help="0: all processors")
    parser.add_argument("--learn", action="store_true", help="the policy learns speeds from what jobs are seen to do")
    parser.add_argument("--highs", action="store_true", help="solve the same relaxations with warm HiGHS too")
    asked = parser.parse_args()
    for gpus in asked.gpus or [10_000, 25_000]:
        print(json.dumps(run(gpus, asked.rounds, asked.seed, asked.highs, asked.threads, asked.queue, asked.learn)))


if __name__ == "__main__":
    main()
