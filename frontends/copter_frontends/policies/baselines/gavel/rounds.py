"""Gavel's round mechanism: from shares of time to the jobs that run next (docs/papers/baselines.md, B9-B11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STARVED = 1e9  # priority, relative to its share, of a job that has had no time on a type, so that it comes first


class RoundMechanism:
    """The time that each job has had on each GPU type, and the resulting priorities.

    Parameters
    ----------
    types : sequence of str
        GPU types in the order in which they are filled.
    round_s : float
        Length of a round; clocks start at half of it.
    """

    def __init__(self, types: Iterable[str], round_s: float) -> None:
        self.types = tuple(types)
        self._column = {kind: k for k, kind in enumerate(self.types)}
        self._first_s = round_s / 2.0
        self.share: dict[str, Floats] = {}
        self.time_s: dict[str, Floats] = {}
        self.deficit_s: dict[str, Floats] = {}
        self._received_s: dict[str, Floats] = {}
        self._since_reset_s: dict[str, float] = {}

    def add(self, job_id: str) -> None:
        """Start a job's clocks; its share is zero until the next :meth:`set_shares`."""
        self.share[job_id] = np.zeros(len(self.types))
        self.time_s[job_id] = np.full(len(self.types), self._first_s)
        self.deficit_s[job_id] = np.zeros(len(self.types))
        self._received_s[job_id] = np.zeros(len(self.types))
        self._since_reset_s[job_id] = 0.0

    def remove(self, job_id: str) -> None:
        """Delete a job."""
        for table in (self.share, self.time_s, self.deficit_s, self._received_s):
            del table[job_id]
        del self._since_reset_s[job_id]

    def resume(self, job_id: str, by_type: Mapping[str, float]) -> None:
        """Set the seconds that a job has had on each type since the last reset."""
        for kind, seconds in by_type.items():
            if kind in self._column:
                self.time_s[job_id][self._column[kind]] = self._first_s + seconds
                self._received_s[job_id][self._column[kind]] = seconds

    def pass_time(self, elapsed_s: float, ran: Mapping[str, str]) -> None:
        """Count time during which the jobs of `ran` had GPUs of a type."""
        for job_id in self.share:
            self._since_reset_s[job_id] += elapsed_s
        for job_id, kind in ran.items():
            self.time_s[job_id][self._column[kind]] += elapsed_s
            self._received_s[job_id][self._column[kind]] += elapsed_s

    def reset(self) -> None:
        """Add the time that jobs were owed to their deficits and restart the clocks (B11)."""
        for job_id, share in self.share.items():
            self.deficit_s[job_id] += share * self._since_reset_s[job_id] - self._received_s[job_id]
            self._received_s[job_id][:] = 0.0
            self._since_reset_s[job_id] = 0.0
            self.time_s[job_id][:] = self._first_s

    def set_shares(self, shares: Mapping[str, Floats]) -> None:
        """Set new shares of time, (types,) per job; missing jobs get zero."""
        for job_id in self.share:
            self.share[job_id] = shares.get(job_id, np.zeros(len(self.types)))

    def priorities(self) -> dict[str, Floats]:
        """Return x_mj / f_mj, where f_mj is the job's part of the type's clocks, by job, (types,) (B9)."""
        if not self.share:
            return {}
        total = np.sum(list(self.time_s.values()), axis=0)
        result = {}
        for job_id, share in self.share.items():
            part = np.divide(self.time_s[job_id], total, out=np.zeros_like(total), where=total > 0)
            result[job_id] = np.where(part > 0, share / np.where(part > 0, part, 1.0), share * STARVED)
        return result

    def select(
        self, room: Mapping[str, int], gpus: Mapping[str, int], runs: Mapping[str, Floats], one_queue: bool = False
    ) -> dict[str, tuple[str, int]]:
        """Choose the jobs of a round by (priority, deficit, share), highest first (B10).

        Parameters
        ----------
        room : mapping of GPU type to int
            Available GPUs of each type.
        gpus : mapping of job id to int
            Requested GPUs of the candidate jobs, in the order that breaks ties.
        runs : mapping of job id to (types,)
            Positive for the types on which a job can run.
        one_queue : bool
            Whether to use one queue of all (job, type) pairs, instead of one type after another.
        """
        priority = self.priorities()
        rank = {job_id: at for at, job_id in enumerate(gpus)}

        def key(job_id: str, k: int) -> tuple[float, float, float, int, int]:
            deficit, share = self.deficit_s[job_id][k], self.share[job_id][k]
            return (-float(priority[job_id][k]), -float(deficit), -float(share), rank[job_id], k)

        pairs = [(job_id, k) for k in range(len(self.types)) for job_id in gpus if runs[job_id][k] > 0]
        if one_queue:
            pairs.sort(key=lambda pair: key(*pair))
        else:
            pairs.sort(key=lambda pair: (pair[1], *key(*pair)))
        left, chosen = dict(room), {}
        for job_id, k in pairs:
            kind = self.types[k]
            if job_id not in chosen and gpus[job_id] <= left[kind]:
                left[kind] -= gpus[job_id]
                chosen[job_id] = (kind, gpus[job_id])
        return chosen
