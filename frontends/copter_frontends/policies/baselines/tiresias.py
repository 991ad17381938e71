"""Tiresias: discretised two-dimensional least attained service (Gu et al., NSDI '19; papers/baselines.md, B14-B15)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite

from copter.runtime.errors import SettingsError
from copter_frontends.policies.baselines.priority import PriorityPolicy
from copter_frontends.policy_kit import CanRun
from copter_frontends.vocabulary import Cluster, Job

TWO_QUEUES_GPU_S = (16 * 3600.0,)
"""Threshold of the two-queue variant in AdaptDL's port, in GPU-seconds."""

THREE_QUEUES_GPU_S = (3250.0, 7200.0)
"""Thresholds of the public simulator's three queues, in GPU-seconds."""


class TiresiasPolicy(PriorityPolicy):
    """Queues by attained service in GPU-seconds, first come first served within each; speeds are not used.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    thresholds_gpu_s : sequence of float
        A job moves to the next queue when its GPU-seconds reach a threshold; one threshold makes two queues.
    promote_knob : float
        A job that has waited this many times as long as it has run returns to the first queue, with its service reset;
        0: never.
    round_s : float
    can_run : callable, optional
        See :class:`.RoundPolicy`.

    Raises
    ------
    SettingsError
        If the thresholds do not increase, or the knob is negative.
    """

    def __init__(
        self,
        cluster: Cluster,
        thresholds_gpu_s: Sequence[float] = TWO_QUEUES_GPU_S,
        promote_knob: float = 0.0,
        round_s: float = 60.0,
        can_run: CanRun | None = None,
    ) -> None:
        super().__init__(cluster, round_s, can_run)
        self.thresholds_gpu_s = tuple(thresholds_gpu_s)
        if any(limit <= 0 for limit in self.thresholds_gpu_s) or any(
            after <= before for before, after in pairwise(self.thresholds_gpu_s)
        ):
            raise SettingsError(f"thresholds_gpu_s is {self.thresholds_gpu_s}; they must be > 0 and increase")
        if not (isfinite(promote_knob) and promote_knob >= 0):
            raise SettingsError(f"promote_knob is {promote_knob}, must be finite and >= 0")
        self.promote_knob = promote_knob
        self._queue_of: dict[str, int] = {}

    def add_job(self, job: Job) -> None:
        """Queue a job in the first queue. Errors as in :meth:`.RoundPolicy.add_job`."""
        super().add_job(job)
        self._queue_of[job.id] = 0

    def remove_job(self, job_id: str) -> None:
        """Forget a job and free its GPUs; raises UnknownJobError for an unknown id."""
        super().remove_job(job_id)
        del self._queue_of[job_id]

    def queue_of(self, job_id: str) -> int:
        """Return the number of a job's queue at the last plan; 0 is the first."""
        self.job(job_id)
        return self._queue_of[job_id]

    def ranking(self, now_s: float) -> list[str]:
        """Move jobs between the queues, then list them queue by queue."""
        for job_id, had in self.service.items():
            waited = job_id not in self.held and had.executed_s > 0 and self.promote_knob > 0
            if waited and had.waiting_s >= self.promote_knob * had.executed_s:
                had.executed_s = had.gpu_s = had.waiting_s = 0.0
            self._queue_of[job_id] = sum(had.gpu_s >= limit for limit in self.thresholds_gpu_s)
        return sorted(self.queue(), key=self._queue_of.__getitem__)
