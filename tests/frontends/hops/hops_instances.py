"""Small seeded instances of the Hops program."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from copter_frontends.policies.hops import DataLoading, IterationTimes, Links, LoadingState
from copter_frontends.policies.hops.formulation import Wish
from copter_frontends.policies.hops.offers import OfferRules
from copter_frontends.policies.hops.requirements import RequirementSet
from copter_frontends.policies.hops.server_groups import ServerGroups, group_servers
from copter_frontends.vocabulary import Job


class RandomSpeeds:
    """Speeds drawn from a job's name: types differ, servers of a type too, the network costs a job its share."""

    version = 0

    def __init__(self, seed: int = 0, slow_server: float = 1.0) -> None:
        self.seed, self.slow_server = seed, slow_server

    def key(self, job: Job) -> Hashable:
        """Every job is its own."""
        return job.id

    def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: Sequence[str]) -> float:
        """Samples per second."""
        rng = np.random.default_rng([self.seed, *job.id.encode(), len(gpu_type)])
        speed, ring, network = rng.uniform(1.0, 4.0), rng.uniform(0.0, 0.3), rng.choice([0.2, 1.5])
        slower = 1.0 + (network if nodes > 1 else ring * (gpus - 1) / gpus)
        return float(speed * gpus / slower * self.server_speed(gpu_type, servers[0]))

    def work(self, job: Job) -> float:
        """Samples."""
        return job.work_samples or 1e4

    def server_speed(self, gpu_type: str, server: str) -> float:
        """Every other server may be slower."""
        return self.slow_server if int(server.rsplit("-", 1)[1]) % 2 else 1.0


def small_groups(speeds: RandomSpeeds, counts: dict[str, tuple[int, int]]) -> ServerGroups:
    """Groups of {type: (servers, GPUs of each)}."""
    servers = {kind: (gpus, [f"{kind}-{i}" for i in range(n)]) for kind, (n, gpus) in counts.items()}
    return group_servers(servers, speeds.server_speed)


def small_wishes(jobs: int, groups: ServerGroups, speeds: RandomSpeeds, seed: int, most: int = 8) -> dict[str, Wish]:
    """Jobs with random requirement sets and weights."""
    rng, found = np.random.default_rng(seed), {}
    for i in range(jobs):
        job = Job(f"job-{i}", "any", work_samples=1e4)
        sizes = sorted(
            rng.choice(np.arange(1, most + 1), int(rng.integers(1, min(most, 3) + 1)), replace=False).tolist()
        )

        def rate(kind: str, gpus: int, nodes: int, servers: tuple[str, ...], job: Job = job) -> float:
            return speeds.rate(job, kind, gpus, nodes, servers)

        offers = OfferRules().make(job, RequirementSet.of(sizes), groups, rate)
        if offers is not None:
            found[job.id] = Wish(offers, float(rng.uniform(0.05, 1.0)))
    return found


def steady(per_gpu: float) -> IterationTimes:
    """A profile: so many samples per second of one GPU, however many there are."""
    state = LoadingState(0.0, 0.0)
    return IterationTimes(
        0.3 / per_gpu, 0.6 / per_gpu, 0.1 / per_gpu, DataLoading(state, state, 1.0), 0.0, 1.0, Links(1.0, 1.0)
    )
