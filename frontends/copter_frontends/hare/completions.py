"""Completion times of a schedule's jobs, by which all schedules are judged."""

from __future__ import annotations

from copter_frontends.hare.instance import Floats, HareInstance


class Completions:
    """Base of schedules, which have an `instance` and the times `completion_s` (N,) at which its jobs complete."""

    __slots__ = ()
    instance: HareInstance
    completion_s: Floats

    @property
    def objective(self) -> float:
        """Sum of w_n C_n."""
        return self.instance.objective(self.completion_s)

    @property
    def makespan_s(self) -> float:
        """When the last job completes."""
        return float(self.completion_s.max(initial=0.0))
