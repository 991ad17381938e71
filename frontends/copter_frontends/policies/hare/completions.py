"""Measures of schedules that follow from the completion times of the jobs."""

from __future__ import annotations

from copter_frontends.policies.hare.instance import Floats, HareInstance


class Completions:
    """Base of schedules; they have an `instance` and the completion times `completion_s` (N,) of its jobs."""

    __slots__ = ()
    instance: HareInstance
    completion_s: Floats

    @property
    def objective(self) -> float:
        """Sum of w_n C_n."""
        return self.instance.objective(self.completion_s)

    @property
    def makespan_s(self) -> float:
        """Completion time of the last job."""
        return float(self.completion_s.max(initial=0.0))
