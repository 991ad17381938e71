"""Chunks of rounds, which keep the number of tasks small for long jobs (docs/papers/hare.md, HR17)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter_frontends.policies.hare.instance import HareInstance, Ints
from copter_frontends.vocabulary import InvalidJobError


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """The rounds of all jobs, divided into chunks of one or more rounds.

    Attributes
    ----------
    job, rounds : ndarray (B,) of int
        Job of each chunk and its number of rounds; the chunks of a job are contiguous and in order.
    first_round : ndarray (B,) of int
        Number of the job's rounds before the chunk.
    first : ndarray (N + 1,) of int
        Chunks of job n are ``first[n]`` to ``first[n + 1]``.
    """

    job: Ints
    rounds: Ints
    first_round: Ints
    first: Ints

    @classmethod
    def of(cls, instance: HareInstance, max_tasks: int = 1_000_000) -> Chunks:
        """Cut all jobs into chunks of about equal length, with at most `max_tasks` tasks in all.

        Raises
        ------
        InvalidJobError
            If single rounds of all jobs already have more tasks.
        """
        least = int(instance.tasks.sum())
        if least > max_tasks:
            raise InvalidJobError(f"one round of every job has {least} tasks, more than max_tasks = {max_tasks}")
        ell = instance.least_round_s()
        low, high = 0.0, float(np.max(instance.rounds * ell, initial=0.0))
        size = _size(instance, ell, low)
        if _tasks(instance, size) > max_tasks:
            for _ in range(60):
                middle = 0.5 * (low + high)
                if _tasks(instance, _size(instance, ell, middle)) > max_tasks:
                    low = middle
                else:
                    high = middle
            size = _size(instance, ell, high)
        return cls.cut(instance, size)

    @classmethod
    def cut(cls, instance: HareInstance, size: Ints) -> Chunks:
        """Cut job n into chunks of ``size[n]`` rounds; the last chunk has the rest."""
        count = -(-instance.rounds // size)
        first = np.concatenate(([0], np.cumsum(count))).astype(np.int64)
        job = np.repeat(np.arange(instance.n_jobs), count)
        before = (np.arange(len(job)) - first[job]) * size[job]
        return cls(job, np.minimum(size[job], instance.rounds[job] - before), before, first)

    @classmethod
    def growing(cls, instance: HareInstance, size: Ints, near: int) -> Chunks:
        """Cut job n into `near` chunks of ``size[n]`` rounds, then into chunks of doubling size.

        Long chunks suffice for later times, which are planned again before they come. The bound holds for chunks of any
        lengths (HR17).
        """
        steps = int(np.max(-(-instance.rounds // size), initial=1)).bit_length()
        unit = np.concatenate((np.arange(near + 1), near + 2 * (2 ** np.arange(1, steps + 1, dtype=np.int64) - 1)))
        ends = np.minimum(unit[None, :] * size[:, None], instance.rounds[:, None])
        job, k = np.nonzero(np.diff(ends, axis=1))
        before = ends[job, k]
        first = np.searchsorted(job, np.arange(instance.n_jobs + 1)).astype(np.int64)
        return cls(job.astype(np.int64), ends[job, k + 1] - before, before, first)

    def __len__(self) -> int:
        return len(self.job)


def _size(instance: HareInstance, ell: np.ndarray, chunk_s: float) -> Ints:
    """Return the rounds per chunk, at least one, that take at most `chunk_s` seconds at best."""
    size = np.maximum(np.floor(chunk_s / ell), 1).astype(np.int64)
    return np.minimum(size, instance.rounds)


def _tasks(instance: HareInstance, size: Ints) -> int:
    return int((-(-instance.rounds // size) * instance.tasks).sum())
