"""Expected value of leases for future jobs, used as a price for large jobs at admission (chronus.md, C6)."""

from __future__ import annotations

from math import log2

import numpy as np

from copter_frontends.policies.chronus.options import Floats, Ints

MEMORY_S = 4 * 3600.0  # seconds in which an arrival's weight in the expected demand falls to 1/e
LEAST, STEPS_PER_OCTAVE, BINS = 2.0**-16, 2, 64  # rewards per GPU-lease are counted from 2^-16 to 2^16, in half octaves
# assumed before any arrivals: demand as a share of the GPUs, and its reward per GPU-lease
PRIOR_SHARE, PRIOR_WORTH = 0.15, 30.0
TO_SCALE = 3.0**0.5 / np.pi  # scale of a logistic distribution divided by its standard deviation


class ExpectedDemand:
    """Demand of the SLO jobs of the last hours, by GPU type and by reward per GPU-lease.

    Parameters
    ----------
    kinds : int
        Number of GPU types.
    lease_s : float
    """

    def __init__(self, kinds: int, lease_s: float) -> None:
        self.lease_s = lease_s
        self._gpus, self._squares, self._value = (np.zeros((kinds, BINS)) for _ in range(3))
        self._since_s: float | None = None
        self._last_s = 0.0

    def note(self, kind: int, gpus: int, leases: int, value: float, now_s: float) -> None:
        """Record the arrival of a job that needs `leases` leases of a type and has this value."""
        if self._since_s is None:
            self._since_s = self._last_s = now_s
        past_s = max(now_s - self._last_s, 0.0)
        if past_s > 0:
            for each in (self._gpus, self._squares, self._value):
                each *= np.exp(-past_s / MEMORY_S)
            self._last_s = now_s
        at = self._bin(value / (gpus * leases))
        self._gpus[kind, at] += gpus * leases
        self._squares[kind, at] += gpus * gpus * leases
        self._value[kind, at] += value

    def displaced(self, kind: int, gpus: int, value: float, free: Ints, now_s: float, capacity: int) -> float:
        """Return the expected loss of reward of future jobs if a job takes GPUs in leases with `free` GPUs, (leases,).

        Only jobs with a larger reward per GPU-lease than this job count. Before any arrivals, a demand for a share of
        the `capacity` GPUs of the type is assumed; its weight decreases with time.
        """
        density = value / (gpus * max(len(free), 1))
        better = self._bin(density) + 1
        leases = MEMORY_S / self.lease_s
        age_s = 0.0 if self._since_s is None else max(now_s - self._since_s, 0.0)
        prior = PRIOR_SHARE * capacity * leases * np.exp(-age_s / MEMORY_S) if density < PRIOR_WORTH else 0.0
        taken = self._gpus[kind, better:].sum() + prior
        earned = self._value[kind, better:].sum() + PRIOR_WORTH * prior
        if not taken > 0:
            return 0.0
        mean, variance = taken / leases, (self._squares[kind, better:].sum() + prior) / leases
        scale = TO_SCALE * np.sqrt(variance)
        lost = _over(mean - free + gpus, scale) - _over(mean - free, scale)
        return float(lost.sum() * earned / taken)

    @staticmethod
    def _bin(density: float) -> int:
        return int(min(log2(max(density, LEAST) / LEAST) * STEPS_PER_OCTAVE, BINS - 1))


def _over(mean_over: Floats, scale: float) -> Floats:
    """Return the mean of the positive part of a logistic variable with this mean and scale."""
    return np.asarray(scale * np.logaddexp(0.0, mean_over / scale))
