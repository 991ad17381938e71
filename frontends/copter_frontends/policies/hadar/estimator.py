"""Estimates of throughputs that are neither given nor measured, from known ones (H16)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import SettingsError
from copter_frontends.policies.hadar.job_book import Floats, JobBook
from copter_frontends.policy_kit import Throughputs
from copter_frontends.vocabulary import Job

SWEEPS = 10  # sweeps of the alternating fit of jobs' and types' factors (H16)
UNKNOWN_S = 3600.0  # assumed seconds of a job with unknown rates on an ordinary type


@dataclass(frozen=True, slots=True)
class ThroughputEstimator:
    """The model log X_j^r = a_j + b_r fitted to known rates; an optimism factor makes untried types attractive (H16).

    Parameters
    ----------
    optimism : float
        At least 1. Types on which a job has not run are assumed this much faster than the fit, so that types near the
        best known one are tried, and so measured, in the job's first rounds.
    """

    optimism: float = 1.1

    def __post_init__(self) -> None:
        if not 1.0 <= self.optimism < np.inf:
            raise SettingsError(f"optimism is {self.optimism}, must be finite and >= 1")

    def complete(self, book: JobBook) -> None:
        """Fill in estimates for unknown rates; does nothing if all are known."""
        if bool(book.known.all()):
            return
        seen = book.known & (book.rates > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            per_gpu = np.log(np.where(seen, book.rates, 1.0) / book.gpus[:, None])
        speed = self._type_speeds(per_gpu, seen)
        counted = seen.sum(axis=1)
        own = np.where(seen, per_gpu - speed, 0.0).sum(axis=1) / np.maximum(counted, 1)
        blank = counted == 0
        own[blank] = np.log(np.maximum(book.total[blank], 1e-300) / (UNKNOWN_S * book.gpus[blank]))
        guess = self.optimism * book.gpus[:, None] * np.exp(own[:, None] + speed)
        book.rates[~book.known] = guess[~book.known]

    @staticmethod
    def _type_speeds(per_gpu: Floats, seen: NDArray[np.bool_]) -> Floats:
        """Return b_r with mean zero over the types; zero for a type without observations."""
        speed = np.zeros(per_gpu.shape[1])
        for _ in range(SWEEPS):
            own = np.where(seen, per_gpu - speed, 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
            # a job seen on one type only says nothing about other types
            several = seen & (seen.sum(axis=1) > 1)[:, None]
            count = several.sum(axis=0)
            result = np.where(several, per_gpu - own[:, None], 0.0).sum(axis=0) / np.maximum(count, 1)
            speed = np.where(count > 0, result, 0.0)
        return np.asarray(speed)


class Unmeasured:
    """Throughputs that a policy does not know beforehand: NaN except on the types given by the user.

    Parameters
    ----------
    source : Throughputs
        Source of the jobs' work, and of rates on the types in `given`.
    given : collection of str
        Types whose rates are known beforehand.
    """

    learns = True  # the policy learns from observed rates

    def __init__(self, source: Throughputs, given: tuple[str, ...] = ()) -> None:
        self.source, self.given = source, frozenset(given)

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """Return units per second, or NaN if not measured yet."""
        return self.source.rate(job, gpu_type, gpus, progress) if gpu_type in self.given else float("nan")

    def work(self, job: Job) -> float:
        """Return all of a job's work."""
        return self.source.work(job)
