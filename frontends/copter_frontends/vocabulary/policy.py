"""The interface of all scheduling policies, the papers' and the baselines'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from copter_frontends.vocabulary.job import Job
from copter_frontends.vocabulary.plan import Allocation, Plan

FACTS = frozenset({"progress", "restarts", "hints"})
"""What every policy may be told of a job; a policy without a use for one accepts it."""


@runtime_checkable
class SchedulingPolicy(Protocol):
    """A scheduler that receives changes and is asked for one plan per round.

    Every plan is feasible, deterministic for a seed, never worse than keeping the previous one, and in time.
    """

    round_s: float

    def add_job(self, job: Job) -> None:
        """Add a job. Raises DuplicateJobError for a known id, InvalidJobError if it fits nowhere."""

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Report changes of a job: ``progress`` (fraction, 0 to 1), ``restarts`` (count), ``hints`` (TrainingHints).

        UnknownJobError if the id is not known, TypeError for a fact that neither these nor the policy's own are.
        """

    def remove_job(self, job_id: str) -> None:
        """Forget a job (finished or cancelled). UnknownJobError if the id is not known."""

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a type, as whole nodes (named, or with ids made up)."""

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Remove `count` GPUs of a type, as whole nodes; jobs on them are re-planned."""

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Pin a job to exactly this allocation (checkpoint-restore under way); None ends the pin."""

    def plan(self, now_s: float, deadline_s: float = ...) -> Plan:
        """Decide the round that starts at `now_s`, within `deadline_s` seconds of wall-clock time."""


@runtime_checkable
class ToldAtOnce(Protocol):
    """A policy that accepts updates of many jobs in one call."""

    def update_jobs(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Call :meth:`SchedulingPolicy.update_job` for each job of {job id: changes}; errors as there."""


@runtime_checkable
class JoinedAtOnce(Protocol):
    """A policy to which many jobs are added, and from which many are removed, in one call."""

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Call :meth:`SchedulingPolicy.add_job` for each job; on an error, as there, none is added."""

    def remove_jobs(self, job_ids: Sequence[str]) -> None:
        """Call :meth:`SchedulingPolicy.remove_job` for each job; UnknownJobError as there, and then none is removed."""
