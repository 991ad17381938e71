"""Speedups that jobs have learned from their own runs, ignoring GPU types (docs/papers/baselines.md, B32)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.goodput.learned import learned_goodput
from copter_frontends.goodput.profiled import ProfiledApplication, ProfiledSteps, profile_of
from copter_frontends.vocabulary import Job

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class LearnedSpeedups:
    """Goodput by number of GPUs, on one node and on several, learned from the jobs' hints.

    Parameters
    ----------
    profiles : mapping of str to ProfiledApplication
        Only batch limits are used: those of the first type in `order` count for all types.
    order : tuple of GPU type
        If hints differ by type, those of the first type in this order count for all types; other types come last.
    growth : int or None
        A job's maximum is this many times the most GPUs that it has had (1 at first); None: no limit.
    """

    def __init__(
        self, profiles: Mapping[str, ProfiledApplication], order: tuple[str, ...] = (), growth: int | None = 2
    ) -> None:
        self._profiles, self._order, self._growth = profiles, order, growth

    def table(self, job: Job, hints: TrainingHints | None, gpus: int, base: int) -> Floats:
        """Return speedups over `base` GPUs on one node, (3, gpus + 1): on no node, one, or several; linear without
        hints.
        """
        result = np.zeros((3, gpus + 1))
        counts = np.arange(1, gpus + 1)
        if hints is None:
            result[1:, 1:] = counts / base
            return result
        ends = np.ones(1, dtype=np.int64)
        nodes = np.concatenate([np.ones_like(counts), np.full_like(counts, 2), ends])
        goodput = self._goodput(job, hints, nodes, np.concatenate([counts, counts, base * ends]))
        if goodput[-1] > 0:
            result[1:, 1:] = goodput[:-1].reshape(2, gpus) / goodput[-1]
        return result

    def most(self, job: Job, hints: TrainingHints | None) -> int:
        """Return a job's next maximum of GPUs: by the growth limit, and by its largest batch over the smallest
        local one.
        """
        known = self._profiles[job.application]
        room = known.max_batch_size // self._limits(known).min_local
        if self._growth is None:
            return room
        had = 0 if hints is None else max(hints.max_gpus.values(), default=0)
        return min(max(self._growth * had, 1), room)

    def runs(self, job: Job, gpu_type: str, gpus: int = 1) -> bool:
        """Whether a job can run on a GPU type; raises InvalidJobError without a profile.

        Hybrid-parallel jobs cannot, because Pollux scales by single GPUs.
        """
        known = profile_of(self._profiles, job)
        return gpu_type in known.steps and known.application.pipeline is None

    def _limits(self, known: ProfiledApplication) -> ProfiledSteps:
        return known.steps[next(kind for kind in (*self._order, *known.steps) if kind in known.steps)]

    def _goodput(self, job: Job, hints: TrainingHints, nodes: Ints, gpus: Ints) -> Floats:
        known = self._profiles[job.application]
        speaker = next(kind for kind in (*self._order, *hints.parameters) if kind in hints.parameters)
        return learned_goodput(
            job, known, self._limits(known), hints.parameters[speaker], hints.noise_scale, nodes, gpus
        )
