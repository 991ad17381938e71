"""What a policy may expose beside the protocol: what it wants to be told, and what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Counts(Protocol):
    """Counts of what was edited (:class:`~copter_frontends.policy_kit.EditLog`)."""

    def summary(self) -> dict[str, Any]:
        """Return means over all solves."""


class Exposed:
    """What a policy exposes, by attributes of these names; a policy without one has the value named here.

    Parameters
    ----------
    policy : object
        Any :class:`~copter_frontends.vocabulary.SchedulingPolicy`, or one that stands before another.
    """

    def __init__(self, policy: object) -> None:
        self._policy = policy

    @property
    def learns(self) -> bool:
        """Whether it wants ``observed``, the rates of running jobs, before each plan; False."""
        return bool(getattr(self._policy, "learns", False))

    @property
    def learns_loading(self) -> bool:
        """Whether it also wants some ``loads`` and ``waits`` of each job; False."""
        return bool(getattr(self._policy, "learns_loading", False))

    @property
    def follows(self) -> bool:
        """Whether it wants the progress of all running jobs each round, not only where something changed; False."""
        return bool(getattr(self._policy, "follows", False))

    @property
    def variables(self) -> int:
        """Columns of its programs; 0."""
        return int(getattr(self._policy, "variables", 0))

    @property
    def programs_solved(self) -> int | None:
        """Linear programs that it has solved so far; None, if it does not count them."""
        found: int | None = getattr(self._policy, "programs_solved", None)
        return found

    @property
    def programs_needless(self) -> int:
        """Plans so far that it has proven good enough without a linear program; 0."""
        return int(getattr(self._policy, "programs_needless", 0))

    @property
    def edit_log(self) -> Counts | None:
        """How much of its programs was edited; None."""
        found: Counts | None = getattr(self._policy, "edit_log", None)
        return found

    @property
    def figures(self) -> Mapping[str, float]:
        """Further figures of the whole run; none."""
        found: Mapping[str, float] = getattr(self._policy, "figures", {})
        return found
