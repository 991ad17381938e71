"""Step rewards for completion by a deadline (papers/chronus.md, C1), and deadline-miss rates (C23)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite

from copter_frontends.vocabulary import InvalidJobError, Job

HIGHEST, LOWEST = 100.0, 1.0  # range of a reward (section 3.3.1)
TRACE_VALUE = 10.0  # largest reward in the artifact's traces (10 to 2); the paper has 100 to 20
SOFT_FACTORS, SOFT_VALUES = (1.0, 1.1, 1.2, 1.5), (100.0, 80.0, 50.0, 20.0)
"""Deadlines of a soft job, in multiples of the first one, and their rewards (section 4.1)."""


@dataclass(frozen=True, slots=True)
class StepReward:
    """The reward of a job as a decreasing step function of its completion time.

    Parameters
    ----------
    steps : tuple of (float, float)
        Deadlines in seconds after submission, ascending, and the reward for ending by each, descending.
    floor : float
        Reward for ending after the last deadline.

    Raises
    ------
    InvalidJobError
        If there is no step, the times do not ascend, or the rewards rise.
    """

    steps: tuple[tuple[float, float], ...]
    floor: float = LOWEST

    def __post_init__(self) -> None:
        over_s, least = 0.0, inf
        for time_s, value in self.steps:
            if not (over_s < time_s < inf and -inf < value <= least and value < inf):
                break
            over_s, least = time_s, value
        else:
            if 0 <= self.floor < least < inf:
                return
        self._refuse()

    def _refuse(self) -> None:
        """Raise InvalidJobError with what is wrong."""
        if not self.steps:
            raise InvalidJobError("a reward has no deadline; leave the reward out for a best-effort job")
        for time_s, value in self.steps:
            if not (isfinite(time_s) and time_s > 0 and isfinite(value)):
                raise InvalidJobError(
                    f"a deadline {time_s} s after submission with reward {value}: both must be finite, the time > 0"
                )
        for (early_s, more), (late_s, less) in pairwise(self.steps):
            if late_s <= early_s:
                raise InvalidJobError(f"the deadline after {early_s:g} s is {late_s:g} s: list them in ascending order")
            if less > more:
                raise InvalidJobError(
                    f"the reward rises from {more:g} at {early_s:g} s to {less:g} at {late_s:g} s: it may only fall"
                )
        if not 0 <= self.floor < self.steps[-1][1]:
            raise InvalidJobError(
                f"the floor is {self.floor}, must be >= 0 and below the last deadline's reward {self.steps[-1][1]:g}"
            )

    @classmethod
    def strict(cls, deadline_s: float, value: float = HIGHEST) -> StepReward:
        """Return the reward function of one deadline: full value up to it, zero after it."""
        return cls(((deadline_s, value),))

    @classmethod
    def soft(cls, deadline_s: float) -> StepReward:
        """Return the paper's four steps: 100, 80, 50 and 20 at 1, 1.1, 1.2 and 1.5 times the first deadline."""
        return cls(tuple((deadline_s * f, value) for f, value in zip(SOFT_FACTORS, SOFT_VALUES, strict=True)))

    @classmethod
    def listed(cls, steps: Iterable[tuple[float, float]]) -> StepReward:
        """Return the reward function of a trace's own deadlines; if all values are at most 10, as in the artifact, they
        are multiplied by ten.
        """
        steps = tuple(steps)
        scale = TRACE_VALUE if max((value for _, value in steps), default=0.0) <= HIGHEST / TRACE_VALUE else 1.0
        return cls(tuple((time_s, value * scale) for time_s, value in steps))

    @property
    def last_s(self) -> float:
        """The last deadline, in seconds after submission."""
        return self.steps[-1][0]

    def at(self, jct_s: float) -> float:
        """Return the reward of a completion time, in seconds after submission; one millisecond late still counts as
        in time.
        """
        return next((value for time_s, value in self.steps if jct_s <= time_s + 1e-3), self.floor)


Rewards = Mapping[str, StepReward] | Callable[[Job], StepReward | None]
"""Source of rewards: a mapping by job id, or a function of a job. A job without a reward is best effort."""

NO_REWARDS: Mapping[str, StepReward] = {}


def reward_for(source: Rewards, job: Job) -> StepReward | None:
    """Return a job's reward; None for best effort."""
    return source.get(job.id) if isinstance(source, Mapping) else source(job)


def rewards_for(source: Rewards, jobs: Sequence[Job]) -> list[StepReward | None]:
    """Return the reward of each job, in one call of a source that has `of_jobs`."""
    of_jobs = getattr(source, "of_jobs", None)
    if of_jobs is not None:
        return list(of_jobs(jobs))
    return [reward_for(source, job) for job in jobs]


def weighted_miss_rate(rewards: Iterable[float], highest: float = HIGHEST, lowest: float = LOWEST) -> float:
    """Return the weighted miss rate (C23): one minus the mean of (reward - lowest) / (highest - lowest); 0 without
    jobs.

    The paper's equation (9) is the hit rate; its text and its figures use the miss rate.
    """
    hits = [(reward - lowest) / (highest - lowest) for reward in rewards]
    return 1.0 - sum(hits) / len(hits) if hits else 0.0
