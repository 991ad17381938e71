"""Expected value of leases for future jobs, used as a price for large jobs at admission (chronus.md, C6)."""

from __future__ import annotations

import numpy as np

from copter_frontends.policies.chronus.options import Floats, Ints
from copter_frontends.vocabulary.compilation import compiled

MEMORY_S = 4 * 3600.0  # seconds in which an arrival's weight in the expected demand falls to 1/e
LEAST, STEPS_PER_OCTAVE, BINS = 2.0**-16, 2, 64  # rewards per GPU-lease are counted from 2^-16 to 2^16, in half octaves
# assumed before any arrivals: demand as a share of the GPUs, and its reward per GPU-lease
PRIOR_SHARE, PRIOR_WORTH = 0.15, 30.0
TO_SCALE = 3.0**0.5 / np.pi  # scale of a logistic distribution divided by its standard deviation


@compiled
def _bin(density: float) -> int:
    return min(int(np.log2(max(density, LEAST) / LEAST) * STEPS_PER_OCTAVE), BINS - 1)


@compiled
def _over(mean_over: float, scale: float) -> float:
    """Return the mean of the positive part of a logistic variable with this mean and scale."""
    mean: float = scale * np.logaddexp(0.0, mean_over / scale)
    return mean


@compiled
def note_demand(seen: Floats, fade: Floats, kind: int, gpus: int, leases: int, value: float) -> None:
    """Record a job in `seen`, (3, kinds, bins), which first fades by `fade[0]`; `fade` becomes (1, 1)."""
    if fade[0] < 1.0:
        seen *= fade[0]
    fade[0], fade[1] = 1.0, 1.0
    at = _bin(value / (gpus * leases))
    seen[0, kind, at] += gpus * leases
    seen[1, kind, at] += gpus * gpus * leases
    seen[2, kind, at] += value


@compiled
def reward_lost(
    seen: Floats, age_s: float, lease_s: float, capacity: int, kind: int, gpus: int, value: float, free: Ints
) -> float:
    """Return :meth:`ExpectedDemand.displaced`, `age_s` seconds after the first job in `seen`."""
    density = value / (gpus * max(free.shape[0], 1))
    better, leases = _bin(density) + 1, MEMORY_S / lease_s
    prior = PRIOR_SHARE * capacity * leases * np.exp(-age_s / MEMORY_S) if density < PRIOR_WORTH else 0.0
    taken = seen[0, kind, better:].sum() + prior
    if not taken > 0:
        return 0.0
    earned = seen[2, kind, better:].sum() + PRIOR_WORTH * prior
    mean, scale = taken / leases, TO_SCALE * np.sqrt((seen[1, kind, better:].sum() + prior) / leases)
    lost, more, had = 0.0, 0.0, -1
    for each in free:
        if each != had:  # many leases have as many free GPUs as the next
            more, had = _over(mean - each + gpus, scale) - _over(mean - each, scale), each
        lost += more
    worth: float = lost * earned / taken
    return worth


class ExpectedDemand:
    """Demand of the SLO jobs of the last hours, by GPU type and by reward per GPU-lease.

    Parameters
    ----------
    kinds : int
        Number of GPU types.
    lease_s : float

    Attributes
    ----------
    seen : float64 array (3, kinds, bins)
        GPU-leases of these jobs, their squared GPUs times leases, and their rewards, as they were at the last arrival.
    """

    def __init__(self, kinds: int, lease_s: float) -> None:
        self.lease_s = lease_s
        self.seen: Floats = np.zeros((3, kinds, BINS))
        self._since_s: float | None = None
        self._last_s = 0.0

    def age_s(self, now_s: float) -> float:
        """Return the seconds since the first job."""
        return 0.0 if self._since_s is None else max(now_s - self._since_s, 0.0)

    def fading(self, now_s: float) -> Floats:
        """Return by what :attr:`seen` fades until now, and zero: the argument of :func:`note_demand`."""
        past_s = 0.0 if self._since_s is None else max(now_s - self._last_s, 0.0)
        return np.array([np.exp(-past_s / MEMORY_S), 0.0])

    def recorded(self, now_s: float, fade: Floats) -> None:
        """Keep the time if jobs have been recorded."""
        if fade[1]:
            self._since_s = now_s if self._since_s is None else self._since_s
            self._last_s = max(now_s, self._last_s)

    def note(self, kind: int, gpus: int, leases: int, value: float, now_s: float) -> None:
        """Record the arrival of a job that needs `leases` leases of a type and has this value."""
        fade = self.fading(now_s)
        note_demand(self.seen, fade, kind, gpus, leases, value)
        self.recorded(now_s, fade)

    def displaced(self, kind: int, gpus: int, value: float, free: Ints, now_s: float, capacity: int) -> float:
        """Return the expected loss of reward of future jobs if a job takes GPUs in leases with `free` GPUs, (leases,).

        Only jobs with a larger reward per GPU-lease than this job count. Before any arrivals, a demand for a share of
        the `capacity` GPUs of the type is assumed; its weight decreases with time.
        """
        return float(reward_lost(self.seen, self.age_s(now_s), self.lease_s, capacity, kind, gpus, value, free))
