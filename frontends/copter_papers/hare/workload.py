"""Random jobs from a seed: the paper's mix of the eight models, and general ones for tests and large instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from copter_frontends.policies.hare.instance import HareInstance
from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.models import FAMILIES, MODELS, REFERENCE_GBPS
from copter_frontends.vocabulary import InvalidJobError

TESTBED: dict[str, int] = {"v100": 8, "t4": 4, "k80": 1, "m60": 2}
"""The paper's 15 GPUs."""


def _equal() -> dict[str, float]:
    return dict.fromkeys(FAMILIES, 0.25)


@dataclass(frozen=True, slots=True)
class PaperWorkload:
    """The jobs of the paper's section 7.1; unspecified details are assumed (docs/papers/hare.md).

    Parameters
    ----------
    jobs : int
    gpu_types : tuple of str
        Types on which the jobs have times.
    shares : mapping of family to float
        Share of each family in the jobs; by default a quarter each.
    gbps : float
        Network speed in Gbit/s.
    batch : float
        Batch size relative to the default. The work in samples is fixed, so that a larger batch means fewer rounds.
    median_min : float
        Median duration in minutes of a job by itself, with a V100 for each task of a round.
    task_shares : tuple of float
        Shares of jobs with 1, 2, 4 and 8 tasks per round.
    arrival_window_s : float
        Jobs arrive as a Poisson process within this many seconds; zero for all at the start.
    """

    jobs: int
    gpu_types: tuple[str, ...] = ("v100", "t4", "k80", "m60")
    shares: Mapping[str, float] = field(default_factory=_equal)
    gbps: float = REFERENCE_GBPS
    batch: float = 1.0
    median_min: float = 4.0
    task_shares: tuple[float, float, float, float] = (0.3, 0.3, 0.25, 0.15)
    arrival_window_s: float = 600.0

    def make(self, seed: int) -> list[HareJob]:
        """Draw the jobs; a seed gives the same jobs for every network speed and batch size."""
        if set(self.shares) - set(FAMILIES) or abs(sum(self.shares.values()) - 1.0) > 1e-9:
            raise InvalidJobError(f"shares {dict(self.shares)} must be of {', '.join(FAMILIES)} and sum to 1")
        rng = np.random.default_rng(seed)
        families = rng.choice(list(self.shares), self.jobs, p=list(self.shares.values()))
        arrivals = np.sort(rng.uniform(0.0, self.arrival_window_s, self.jobs))
        return [
            self._job(k, str(family), float(at), rng)
            for k, (family, at) in enumerate(zip(families, arrivals, strict=True))
        ]

    def _job(self, index: int, family: str, arrival_s: float, rng: np.random.Generator) -> HareJob:
        model = MODELS[str(rng.choice(FAMILIES[family]))]
        tasks = int(rng.choice([1, 2, 4, 8], p=self.task_shares))
        heavy = 2.0 if family == "nlp" else 0.6 if family == "rec" else 1.0
        alone_s = 60.0 * self.median_min * heavy * float(rng.lognormal(0.0, 0.8))
        rounds = max(1, round(alone_s / (model.v100_s + model.sync_s()) / self.batch))
        sync = model.sync_s(self.gbps)
        return HareJob(
            id=f"job-{index}",
            rounds=rounds,
            tasks=tasks,
            train_s={kind: model.train_s(kind, self.batch) for kind in self.gpu_types},
            sync_s=dict.fromkeys(self.gpu_types, sync),
            weight=float(rng.integers(1, 6)),
            arrival_s=arrival_s,
            model=model.name,
        )


def random_instance(
    jobs: int, gpus: Mapping[str, int], seed: int, arrival_window_s: float = 3600.0, first: int = 0
) -> HareInstance:
    """Return random jobs of 10^3 to 10^5 rounds with 1 to 32 tasks, on types that differ up to eightfold in speed."""
    rng = np.random.default_rng(seed)
    return HareInstance.of(random_jobs(jobs, tuple(gpus), rng, arrival_window_s, first), gpus)


def random_jobs(
    jobs: int, gpu_types: tuple[str, ...], rng: np.random.Generator, arrival_window_s: float = 3600.0, first: int = 0
) -> list[HareJob]:
    """Draw random jobs; 30% arrive within the window, the others at the start."""
    speed = np.linspace(1.0, 8.0, len(gpu_types)) if len(gpu_types) > 1 else np.ones(1)
    result = []
    for k in range(first, first + jobs):
        base = 0.2 * float(rng.lognormal(0.0, 0.5))
        train = {kind: float(base / s ** rng.uniform(0.4, 1.0)) for kind, s in zip(gpu_types, speed, strict=True)}
        result.append(
            HareJob(
                id=f"job-{k}",
                rounds=int(10 ** rng.uniform(3, 5)),
                tasks=int(2 ** rng.integers(0, 6)),
                train_s=train,
                sync_s={kind: 0.1 * seconds for kind, seconds in train.items()},
                weight=float(rng.integers(1, 6)),
                arrival_s=float(rng.uniform(0, arrival_window_s)) if rng.random() < 0.3 else 0.0,
            )
        )
    return result
