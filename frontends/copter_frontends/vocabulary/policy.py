"""The interface of all scheduling policies, the papers' and the baselines'."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from copter_frontends.vocabulary.job import Job
from copter_frontends.vocabulary.plan import Allocation, Plan

FACTS = frozenset({"progress", "restarts", "hints"})
"""Facts about a job that every policy accepts, even if it does not use them."""


class Counts(Protocol):
    """Counts of what was edited (:class:`~copter_frontends.policy_kit.EditLog`)."""

    def summary(self) -> dict[str, Any]:
        """Return means over all solves."""


@runtime_checkable
class SchedulingPolicy(Protocol):
    """Interface of a scheduler, which receives changes and makes one plan per round.

    Every plan is feasible, deterministic for a seed, not worse than keeping the previous plan, and in time. A policy
    inherits from this class: it then has the defaults of what it wants to be told and of what it says of itself. A
    simulation gives them to a policy that has the methods only.
    """

    round_s: float

    @abstractmethod
    def add_job(self, job: Job) -> None:
        """Add a job. Raises DuplicateJobError for a known id, InvalidJobError if it fits nowhere."""

    @abstractmethod
    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Report changes of a job: ``progress`` (fraction, 0 to 1), ``restarts`` (count), ``hints`` (TrainingHints).

        Raises UnknownJobError for an unknown id, TypeError for a fact that is neither one of these nor one of the
        policy's own.
        """

    @abstractmethod
    def remove_job(self, job_id: str) -> None:
        """Forget a finished or cancelled job; raises UnknownJobError for an unknown id."""

    @abstractmethod
    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a type as whole nodes, with the given or generated ids."""

    @abstractmethod
    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Remove `count` GPUs of a type, as whole nodes; jobs on them are re-planned."""

    @abstractmethod
    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Pin a job to exactly this allocation (checkpoint-restore under way); None ends the pin."""

    @abstractmethod
    def plan(self, now_s: float, deadline_s: float = ...) -> Plan:
        """Decide the round that starts at `now_s`, within `deadline_s` seconds of wall-clock time."""

    # What the policy wants to be told.

    @property
    def learns(self) -> bool:
        """Whether it wants ``observed``, the rates of running jobs, before each plan; False."""
        return False

    @property
    def learns_loading(self) -> bool:
        """Whether it also wants some ``loads`` and ``waits`` of each job; False."""
        return False

    @property
    def follows(self) -> bool:
        """Whether it wants the progress of all running jobs each round, not only where something changed; False."""
        return False

    # What the policy says of itself.

    @property
    def variables(self) -> int:
        """Columns of its programs; 0."""
        return 0

    @property
    def programs_solved(self) -> int | None:
        """Linear programs that it has solved so far; None, if it does not count them."""
        return None

    @property
    def programs_needless(self) -> int:
        """Plans so far that it has proven good enough without a linear program; 0."""
        return 0

    @property
    def edit_log(self) -> Counts | None:
        """How much of its programs was edited; None."""
        return None

    @property
    def figures(self) -> Mapping[str, float]:
        """Further figures of the whole run; none."""
        return {}

    @property
    def waiting_bound(self) -> str:
        """Its bound on a job's wait, in words; none by default."""
        return "none: new jobs may always come first"

    @property
    def stops_jobs(self) -> bool:
        """Whether it stops running jobs for others; True."""
        return True


DEFAULTS = {name: value.fget for name, value in vars(SchedulingPolicy).items() if isinstance(value, property)}


def with_defaults(policy: SchedulingPolicy) -> SchedulingPolicy:
    """Return the policy, which gets the defaults of :class:`SchedulingPolicy` if it has its methods but not these.

    Raises TypeError if they cannot be set.
    """
    for name, default in DEFAULTS.items():
        if default is not None and not hasattr(policy, name):
            try:
                setattr(policy, name, default(policy))
            except AttributeError as error:
                kind = type(policy).__name__
                raise TypeError(f"{kind} has no `{name}`: let it inherit from SchedulingPolicy") from error
    return policy


@runtime_checkable
class ToldAtOnce(Protocol):
    """Interface of a policy that accepts updates of many jobs in one call."""

    def update_jobs(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Call :meth:`SchedulingPolicy.update_job` for each job of {job id: changes}; errors as there."""


@runtime_checkable
class FollowsAtOnce(Protocol):
    """Interface of a policy that is told the progress of many jobs, and nothing else of them, in one call."""

    def update_progress(self, progress: Mapping[str, float]) -> None:
        """Call :meth:`SchedulingPolicy.update_job` with the ``progress`` of each job; on an error none is taken in."""


@runtime_checkable
class JoinedAtOnce(Protocol):
    """A policy to which many jobs are added, and from which many are removed, in one call."""

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Call :meth:`SchedulingPolicy.add_job` for each job; on an error, as there, none is added."""

    def remove_jobs(self, job_ids: Sequence[str]) -> None:
        """Call :meth:`SchedulingPolicy.remove_job` for each job; UnknownJobError as there, and then none is removed."""


@runtime_checkable
class PinnedAtOnce(Protocol):
    """Interface of a policy that pins many jobs, and ends the pins of others, in one call."""

    def pin_jobs(self, pins: Mapping[str, Allocation | None]) -> None:
        """Call :meth:`SchedulingPolicy.pin` for one job after the other; errors as there."""


def at_once(policy: object, many: str, one: str) -> Callable[..., None] | None:
    """Return the policy's method `many` (such as ``add_jobs``), or None if `one` (``add_job``) must be called for each.

    A class that has its own `one`, and inherits `many` or passes it on by ``__getattr__``, wants each call: its `one`
    does something that `many` does not know of.
    """
    for each in type(policy).__mro__:
        if many in vars(each):
            return getattr(policy, many)  # type: ignore[no-any-return]
        if one in vars(each):
            return None
    return None


def tell_jobs(policy: SchedulingPolicy, told: Mapping[str, Mapping[str, Any]]) -> None:
    """Update many jobs, in one call of the policy if it has one (:class:`ToldAtOnce`)."""
    update_jobs = at_once(policy, "update_jobs", "update_job")
    if update_jobs is not None:
        update_jobs(told)
        return
    for job_id, facts in told.items():
        policy.update_job(job_id, **facts)


def progress_at_once(policy: SchedulingPolicy) -> Callable[..., None] | None:
    """Return the policy's ``update_progress``, or None if it wants updates as :func:`tell_jobs` gives them."""
    followed = at_once(policy, "update_progress", "update_job")
    return None if at_once(policy, "update_progress", "update_jobs") is None else followed


def tell_progress(policy: SchedulingPolicy, progress: Mapping[str, float]) -> None:
    """Update many jobs' progress, in one call of the policy if it has one (:class:`FollowsAtOnce`)."""
    update_progress = progress_at_once(policy)
    if update_progress is not None:
        update_progress(progress)
    else:
        tell_jobs(policy, {job_id: {"progress": share} for job_id, share in progress.items()})
