"""Users' requirements: a finite set of GPU counts with a learning rate for each (HP1, HP2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import isfinite, sqrt
from typing import Literal

from copter_frontends.vocabulary import InvalidJobError, Job

MOST_STEPS = 8  # most sizes made from a minimum and a maximum, as in the paper
Rule = Literal["linear", "sqrt"]


@dataclass(frozen=True, slots=True)
class RequirementSet:
    """The set R = {R_1 < R_2 < ...} of GPU counts on which a job may run (HP1).

    Parameters
    ----------
    sizes : tuple of int
        Sizes, ascending, each >= 1.

    Raises
    ------
    InvalidJobError
        If the set is empty or unsorted, or has a size twice or below 1.
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        sizes = self.sizes
        if not sizes:
            raise InvalidJobError("the requirement set is empty: give at least one number of GPUs")
        wrong = [each for each in sizes if isinstance(each, bool) or not isinstance(each, int) or each < 1]
        if wrong:
            raise InvalidJobError(f"the requirement set {list(sizes)} holds {wrong[0]!r}: sizes are whole GPUs, >= 1")
        if any(after <= before for before, after in pairwise(sizes)):
            raise InvalidJobError(f"the requirement set {list(sizes)} must be ascending, each size once")

    @classmethod
    def of(cls, sizes: Iterable[int]) -> RequirementSet:
        """Return a set of the given sizes."""
        return cls(tuple(sizes))

    @classmethod
    def between(cls, smallest: int, largest: int, steps: int = MOST_STEPS) -> RequirementSet:
        """Return at most `steps` sizes at equal intervals, smallest and largest included (HP2).

        Raises
        ------
        InvalidJobError
            If smallest < 1, largest < smallest, or steps < 1 (or 1 where the two differ).
        """
        if smallest < 1 or largest < smallest:
            raise InvalidJobError(f"requirements from {smallest} to {largest} GPUs: need 1 <= smallest <= largest")
        if steps < 1 or (steps == 1 and smallest < largest):
            raise InvalidJobError(f"{steps} steps from {smallest} to {largest} GPUs: both ends need a step")
        if smallest == largest:
            return cls((smallest,))
        count = min(steps, largest - smallest + 1)
        return cls(tuple(sorted({smallest + round(i * (largest - smallest) / (count - 1)) for i in range(count)})))

    @property
    def smallest(self) -> int:
        """R_1, the smallest size."""
        return self.sizes[0]

    @property
    def mean(self) -> float:
        """R_avg of (9), the mean size."""
        return sum(self.sizes) / len(self.sizes)

    def check_within(self, job_id: str, gpus_by_type: Mapping[str, int]) -> None:
        """Raise InvalidJobError if a size exceeds the GPUs of the largest type."""
        most = max(gpus_by_type.values(), default=0)
        if self.sizes[-1] > most:
            there = ", ".join(f"{kind}: {gpus}" for kind, gpus in gpus_by_type.items())
            raise InvalidJobError(
                f"job {job_id!r}: its requirement of {self.sizes[-1]} GPUs is larger than any GPU type of the cluster "
                f"({there}); leave sizes above {most} out"
            )


def requirements_of(job: Job) -> RequirementSet:
    """Return a job's requirement set: its fixed GPUs, equal steps to its maximum, or only its request."""
    least, most = (job.gpus, job.gpus) if job.gpus is not None else (job.min_gpus, job.max_gpus)
    if most is None:
        least = most = max(job.requested_gpus, job.min_gpus)
    return _between(least, most)


@lru_cache(maxsize=4096)
def _between(least: int, most: int) -> RequirementSet:
    """Return :meth:`RequirementSet.between`, cached for jobs that ask for the same."""
    return RequirementSet.between(least, most)


@dataclass(frozen=True, slots=True)
class LearningRates:
    """The learning rate for each number of GPUs, because it must grow with the batch (section 2.2).

    Parameters
    ----------
    given : mapping of GPUs to learning rate
        At least one entry; other sizes follow from the nearest smaller given one (or the smallest) by `rule`.
    rule : {"linear", "sqrt"}
        Whether the rate is proportional to the GPUs or to their square root.

    Raises
    ------
    InvalidJobError
        If nothing is given, or a rate is not finite and positive.
    """

    given: Mapping[int, float]
    rule: Rule = "linear"

    def __post_init__(self) -> None:
        if not self.given:
            raise InvalidJobError("no learning rate is given: give the one of at least one number of GPUs")
        if self.rule not in ("linear", "sqrt"):
            raise InvalidJobError(f"the scaling rule is {self.rule!r}, must be 'linear' or 'sqrt'")
        for gpus, rate in self.given.items():
            if gpus < 1 or not (isfinite(rate) and rate > 0):
                raise InvalidJobError(f"learning rate {rate} at {gpus} GPUs: GPUs must be >= 1, rates finite and > 0")

    def at(self, gpus: int) -> float:
        """Return the learning rate for a number of GPUs."""
        if gpus in self.given:
            return self.given[gpus]
        below = [size for size in self.given if size < gpus]
        base = max(below) if below else min(self.given)
        ratio = gpus / base
        return self.given[base] * (ratio if self.rule == "linear" else sqrt(ratio))
