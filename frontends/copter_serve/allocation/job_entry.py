"""A job in the allocation policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter_frontends.vocabulary import Job
from copter_serve.allocation.rates import Option

Floats = NDArray[np.float64]

NEVER = -1.0  # worth of an option with more GPUs than the cluster has


@dataclass(slots=True)
class JobEntry:
    """One job.

    Attributes
    ----------
    job : Job
    weight : float
    options : tuple of (GPU type, GPUs)
        Options of the job, one for each column of its request.
    speedup : ndarray of float64, shape (options,)
        Rate of each option divided by the smallest rate.
    """

    job: Job
    weight: float
    options: tuple[Option, ...]
    speedup: Floats

    @classmethod
    def of(cls, job: Job, weight: float, options: dict[Option, float]) -> JobEntry:
        """Make the entry of a job that has options."""
        rates = np.array(list(options.values()))
        return cls(job, weight, tuple(options), rates / rates.min())

    def worth(self, capacity: dict[str, int], held: Option | None, penalty: float) -> Floats:
        """Return the objective coefficient of every option: weight times speed-up, reduced for options that need a
        restart.

        Parameters
        ----------
        capacity : dict of GPU type to int
        held : (GPU type, GPUs) or None
            The job's current allocation.
        penalty : float
            Share of its worth that every other option than `held` loses.
        """
        full = self.weight * self.speedup
        worth = (1.0 - penalty) * full
        if held is not None and held in self.options:
            kept = self.options.index(held)
            worth[kept] = full[kept]
        fits = np.array([gpus <= capacity.get(kind, 0) for kind, gpus in self.options])
        return np.where(fits, worth, NEVER)
