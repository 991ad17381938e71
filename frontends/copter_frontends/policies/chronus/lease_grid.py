"""Leases by absolute number: lease k is the time from k T_l to (k + 1) T_l (docs/papers/chronus.md, C3)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, isfinite

import numpy as np

from copter.runtime.errors import SettingsError
from copter_frontends.policies.chronus.options import Floats, Ints
from copter_frontends.vocabulary import InvalidJobError

SAME_S = 1e-3  # seconds: times that differ by less are equal


@dataclass(frozen=True, slots=True)
class LeaseGrid:
    """The time grid of the leases.

    Parameters
    ----------
    lease_s : float
        Length of an SLO lease.
    restart_s : float
        Seconds of each lease that a job may lose to a restart; promises allow for it.

    Raises
    ------
    SettingsError
        If the lease is not longer than the restart.
    """

    lease_s: float = 1200.0
    restart_s: float = 30.0

    def __post_init__(self) -> None:
        if not (isfinite(self.lease_s) and 0 <= self.restart_s < self.lease_s):
            raise SettingsError(
                f"lease_s is {self.lease_s} and restart_s {self.restart_s}: a lease must be longer than a restart"
            )

    def require_longer(self, job_id: str, restart_s: float) -> None:
        """Raise InvalidJobError for a job whose start takes a whole lease."""
        if restart_s >= self.lease_s:
            raise InvalidJobError(
                f"job {job_id!r}: a start takes the job {restart_s:g} s, a lease is {self.lease_s:g} s: it would never "
                "train; take longer leases (lease_s, --lease-s), or no deadline for it"
            )

    def lease_at(self, now_s: float) -> int:
        """Return the number of the lease that runs at a time."""
        return floor((now_s + SAME_S) / self.lease_s)

    def begins(self, now_s: float) -> bool:
        """Return whether a lease begins exactly at this time."""
        return abs(now_s - self.lease_at(now_s) * self.lease_s) <= SAME_S

    def ended_by(self, time_s: float) -> int:
        """Return the number of leases, from lease 0, that have ended by a time: DL of (C3)."""
        return floor((time_s + SAME_S) / self.lease_s)

    def ended_by_all(self, times_s: Floats) -> Ints:
        """Do :meth:`ended_by` for many times."""
        return np.floor((times_s + SAME_S) / self.lease_s).astype(np.int64)

    def over(self, left_s: float) -> bool:
        """Return whether the remaining work is zero, up to rounding."""
        return left_s <= SAME_S

    def needed_by(self, left_s: Floats, restart_s: Floats | float | None = None, least: int = 1) -> Ints:
        """Do :meth:`needed` for many jobs with individual restart times; at least `least` leases."""
        train_s = self.lease_s - (self.restart_s if restart_s is None else restart_s)
        return np.maximum(np.ceil((left_s - SAME_S) / train_s), float(least)).astype(np.int64)

    def ends_by(self, deadline_s: Floats, left_s: Floats, need: Ints, restart_s: Floats | float) -> Ints:
        """Return the number of leases, from lease 0, by whose end jobs with `need` leases meet a deadline (C3).

        These are the leases that have ended by the deadline. The lease that contains the deadline counts too if a
        restart and the work left for the job's last lease fit before the deadline.
        """
        over = self.ended_by_all(deadline_s)
        last_s = left_s - (need - 1) * (self.lease_s - restart_s) + restart_s
        return np.asarray(over + (last_s <= deadline_s - over * self.lease_s))

    def needed(self, left_s: float) -> int:
        """Return the number of leases that this work needs, with a restart in each: RL of (C3); at least one."""
        return max(ceil((left_s - SAME_S) / (self.lease_s - self.restart_s)), 1)
