"""Stopping rules as pure functions."""

from __future__ import annotations

from copter.problem.residuals import Residuals
from copter.problem.solution import Status
from copter.runtime.settings import Settings


def status_of(
    residuals: Residuals, settings: Settings, passes: int, elapsed_s: float, interrupted: bool
) -> Status | None:
    """Return the status to end with, or None to continue."""
    if residuals.within(settings.tolerance, settings.absolute_tolerance):
        return Status.OPTIMAL
    if interrupted:
        return Status.INTERRUPTED
    if elapsed_s >= settings.time_limit_s:
        return Status.TIME_LIMIT
    if passes >= settings.internals.max_pricing_passes:
        return Status.ITERATION_LIMIT
    return None
