"""Utilities: the worth of finishing a job at a given time (the paper's U_j, section III-A; docs/papers/hadar.md, H2).

Every utility is a nonnegative, nonincreasing function of the completion time. It may also depend on the job's state: so
makespan and finish-time fairness, which are not sums over jobs, get their weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import SettingsError

Floats = NDArray[np.float64]

HORIZON_S = float("inf")  # H of AverageJct in seconds (H2); infinite: linear in the completion time
SAMPLED_S = np.geomspace(1.0, 1e8, 65)  # completion times in seconds at which a user's utility is checked (H2)


@dataclass(frozen=True, slots=True)
class JobStates:
    """Facts about jobs for utilities, in arrays (n, 1) that broadcast with completion times (n, types).

    Attributes
    ----------
    total : iterations of the whole job.
    gpus : GPUs of the job.
    age_s : seconds since submission.
    remaining_s : seconds of the remaining work on the fastest type.
    isolated_s : seconds of the whole job on 1/n of the cluster, where n is the number of jobs.
    """

    total: Floats
    gpus: Floats
    age_s: Floats
    remaining_s: Floats
    isolated_s: Floats


class Utility(Protocol):
    """The utility U_j(f_j - a_j): the worth of a job that arrived at a_j and completes at f_j (H2)."""

    def __call__(self, completion_s: Floats, jobs: JobStates) -> Floats:
        """Return the worth of completion times in seconds after submission, (n, types); >= 0 and never increasing
        in time.
        """


@dataclass(frozen=True, slots=True)
class EffectiveThroughput:
    """E_j N_j / (f_j - a_j): iterations per second over the job's lifetime, the paper's own example.

    Parameters
    ----------
    normalised : bool
        Whether to divide by the job's rate on its fastest type, so that jobs with short iterations do not count more.
    """

    normalised: bool = False

    def __call__(self, completion_s: Floats, jobs: JobStates) -> Floats:
        work = jobs.isolated_s if self.normalised else jobs.total
        return np.asarray(work / np.maximum(completion_s, 1e-9))


@dataclass(frozen=True, slots=True)
class AverageJct:
    """The utility 1 / (1 + t / H), linear in t for t much smaller than H (min sum (f_j - a_j) / J).

    Parameters
    ----------
    horizon_s : float
        H. For infinite H, the default, every job is worth 1 on completion, that is 1 / T per round: shortest remaining
        time first.
    power : float
        p; completion is worth tau^(1 - p), where tau is the least remaining time in hours. With p below 1 long jobs get
        more of the fast GPUs, which is better if few jobs wait; 0 is total normalised progress.
    """

    horizon_s: float = HORIZON_S
    power: float = 1.0

    def __call__(self, completion_s: Floats, jobs: JobStates) -> Floats:
        worth = (np.maximum(jobs.remaining_s, 1.0) / 3600.0) ** (1.0 - self.power)
        return np.asarray(worth / (1.0 + completion_s / self.horizon_s))


@dataclass(frozen=True, slots=True)
class Makespan:
    """Worth W tau^(1 + p) on completion, where tau is the least remaining time: long jobs first (min max f_j).

    Parameters
    ----------
    power : float
        p: how much more a GPU-second of a job with much remaining work counts; 0 is total normalised throughput.
    """

    power: float = 1.0
    horizon_s: float = HORIZON_S

    def __call__(self, completion_s: Floats, jobs: JobStates) -> Floats:
        longest = max(float(jobs.remaining_s.max(initial=0.0)), 1e-9)
        urgency = (jobs.remaining_s / longest) ** self.power
        worth = jobs.gpus * jobs.remaining_s * urgency
        return np.asarray(worth / (1.0 + completion_s / self.horizon_s))


@dataclass(frozen=True, slots=True)
class FinishTimeFairness:
    """The utility rho^p / t_isolated with rho = (age + least rest) / t_isolated: late jobs come first.

    p = 0 minimises the sum of the jobs' ratios; the larger p is, the more the largest ratio dominates (min max (f_j -
    a_j) / (f_j^isolated - a_j)).
    """

    power: float = 1.0
    horizon_s: float = HORIZON_S

    def __call__(self, completion_s: Floats, jobs: JobStates) -> Floats:
        isolated = np.maximum(jobs.isolated_s, 1e-9)
        ratio = (jobs.age_s + jobs.remaining_s) / isolated
        return np.asarray(ratio**self.power / isolated / (1.0 + completion_s / self.horizon_s))


@dataclass(frozen=True, slots=True)
class CompletionUtility:
    """A user-defined utility: any function of the completion time, the same for all jobs.

    Parameters
    ----------
    function : callable
        Function of an array of seconds from submission to completion; returns their worths in the same shape.

    Raises
    ------
    SettingsError
        If the function is negative, increasing or not finite somewhere between 1 and 10^8 seconds.
    """

    function: Callable[[Floats], Floats]

    def __post_init__(self) -> None:
        worth = np.asarray(self.function(SAMPLED_S), dtype=np.float64)
        if worth.shape != SAMPLED_S.shape or not bool(np.isfinite(worth).all()):
            raise SettingsError("the utility must give one finite number for every completion time")
        if bool(np.any(worth < 0)):
            at = int(np.argmin(worth))
            raise SettingsError(
                f"the utility is {worth[at]:g} for a completion time of {SAMPLED_S[at]:g} s; it must be >= 0 everywhere"
            )
        rises = np.flatnonzero(np.diff(worth) > 1e-12 * (1 + np.abs(worth[:-1])))
        if len(rises):
            at = int(rises[0])
            raise SettingsError(
                f"the utility rises from {worth[at]:g} to {worth[at + 1]:g} between completion times of "
                f"{SAMPLED_S[at]:g} and {SAMPLED_S[at + 1]:g} s; finishing later must not be worth more"
            )

    def __call__(self, completion_s: Floats, jobs: JobStates) -> Floats:
        return np.asarray(self.function(completion_s), dtype=np.float64)


UTILITIES: dict[str, Callable[[], Utility]] = {
    "throughput": EffectiveThroughput,
    "jct": AverageJct,
    "makespan": Makespan,
    "ftf": FinishTimeFairness,
}
"""The paper's objectives by name."""


def utility_named(name: str) -> Utility:
    """Return one of the paper's objectives; raises SettingsError for another name."""
    try:
        return UTILITIES[name]()
    except KeyError:
        raise SettingsError(f"unknown utility {name!r}; there are {', '.join(UTILITIES)}") from None


def positive(name: str, value: float) -> float:
    """Return the value; raises SettingsError unless it is finite and positive."""
    if not (isfinite(value) and value > 0):
        raise SettingsError(f"{name} is {value}, must be finite and > 0")
    return value
