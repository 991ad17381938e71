"""Random deadlines for jobs without them, drawn as in the paper (docs/papers/chronus.md, C22)."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from copter_frontends.policy_kit import GIVEN, GoodputThroughputs, Throughputs, rates_at_start, requested_gpus
from copter_frontends.policy_kit.deadlines.rewards import StepReward
from copter_frontends.policy_kit.deadlines.seeded_draws import first_draws
from copter_frontends.vocabulary import Cluster, Job, TraceError

MIXES: Mapping[str, tuple[float, float, float]] = {
    "slo": (1.0, 0.0, 0.0),
    "mix1": (0.7, 0.0, 0.3),
    "mix2": (0.3, 0.6, 0.1),
}
"""Shares of strict, soft and best-effort jobs (Table 1)."""

UP_TO = {mix: np.cumsum(shares) / np.cumsum(shares)[-1] for mix, shares in MIXES.items()}  # cumulated shares

DEADLINES = (1.2, 2.0)  # range of the first deadline, in multiples of the job's duration; drawn uniformly


class DrawnRewards:
    """The class and the deadlines of every job, independent of the order in which jobs are asked for.

    Parameters
    ----------
    cluster : Cluster
    throughputs : Throughputs
        Speeds; a job's duration is the time of its work on its requested GPUs of the fastest type.
    mix : {"slo", "mix1", "mix2"}
        Shares of strict, soft and best-effort jobs (Table 1).
    seed : int
    least_s : float
        Shorter jobs are best effort: the paper's traces have no jobs shorter than a lease, 20 minutes.
    """

    def __init__(
        self, cluster: Cluster, throughputs: Throughputs, mix: str = "mix2", seed: int = 0, least_s: float = 1200.0
    ) -> None:
        if mix not in MIXES:
            raise TraceError(f"mix is {mix!r}, must be one of {', '.join(MIXES)}")
        self._types, self._throughputs, self._mix = tuple(cluster.types), throughputs, mix
        self._seed, self._least_s = seed, least_s

    def __call__(self, job: Job) -> StepReward | None:
        """Return a job's reward; None for best-effort jobs, short jobs, and jobs that run nowhere."""
        rate = max(rates_at_start(self._throughputs, job, self._types, requested_gpus(job)))
        if not rate > 0:
            return None
        duration_s = self._throughputs.work(job) / rate
        if duration_s < self._least_s:
            return None
        rng = np.random.default_rng([self._seed, zlib.crc32(job.id.encode())])
        return draw_reward(duration_s, self._mix, rng)

    def of_jobs(self, jobs: Sequence[Job]) -> list[StepReward | None]:
        """Return the reward of each job; as one after the other."""
        throughputs = self._throughputs
        alike = throughputs if isinstance(throughputs, GoodputThroughputs) else None
        work = [throughputs.work(job) for job in jobs] if alike is None else alike.work_of(jobs)
        best = dict[tuple[object, ...], float]()  # rates of jobs given equal
        result: list[StepReward | None] = [None] * len(jobs)
        lasting = list[tuple[int, float]]()
        for at, job in enumerate(jobs):
            key = None if alike is None or job.goodput is not None else GIVEN(job)
            rate = None if key is None else best.get(key)
            if rate is None:
                rate = max(rates_at_start(throughputs, job, self._types, requested_gpus(job)))
                if key is not None:
                    best[key] = rate
            if rate > 0:
                duration_s = work[at] / rate
                if duration_s >= self._least_s:
                    lasting.append((at, duration_s))
        names = np.array([zlib.crc32(jobs[at].id.encode()) for at, _ in lasting], dtype=np.uint64)
        chance, share = first_draws(self._seed, names)
        kinds = UP_TO[self._mix].searchsorted(chance, side="right").tolist()
        factors = (DEADLINES[0] + (DEADLINES[1] - DEADLINES[0]) * share).tolist()
        for (at, duration_s), kind, factor in zip(lasting, kinds, factors, strict=True):
            result[at] = _reward(kind, factor * duration_s)
        return result


def draw_reward(duration_s: float, mix: str, rng: np.random.Generator) -> StepReward | None:
    """Draw a class by the mix's shares and deadlines as in the paper; None for best effort."""
    kind = int(UP_TO[mix].searchsorted(rng.random(), side="right"))  # as `rng.choice(3, p=MIXES[mix])`
    factor = rng.uniform(*DEADLINES)
    return _reward(kind, factor * duration_s)


def _reward(kind: int, deadline_s: float) -> StepReward | None:
    if kind == 2:
        return None
    return StepReward.soft(deadline_s) if kind == 1 else StepReward.strict(deadline_s)
