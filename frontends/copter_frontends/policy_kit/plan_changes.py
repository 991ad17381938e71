"""What changes from one plan to the next: which jobs start, stop and move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from copter_frontends.vocabulary import Allocation


@dataclass(frozen=True, slots=True)
class PlanChanges:
    """Ids of jobs, sorted.

    Attributes
    ----------
    start, stop, move : tuple of str
        Jobs that get GPUs and had none, that had some and get none, and whose type, number or nodes change.
    """

    start: tuple[str, ...]
    stop: tuple[str, ...]
    move: tuple[str, ...]


def plan_changes(before: Mapping[str, Allocation], now: Mapping[str, Allocation]) -> PlanChanges:
    """Compare two plans' allocations by job id."""
    return PlanChanges(
        start=tuple(sorted(job_id for job_id in now if job_id not in before)),
        stop=tuple(sorted(job_id for job_id in before if job_id not in now)),
        move=tuple(sorted(job_id for job_id, held in now.items() if job_id in before and before[job_id] != held)),
    )
