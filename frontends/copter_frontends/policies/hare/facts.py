"""Checks of the data about jobs given to policies, so that errors are raised at once and not in a later plan."""

from __future__ import annotations

import math
from collections.abc import Mapping

from copter.runtime.errors import InvalidDataError


def checked_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return a copy of weights w_n by job id; raises InvalidDataError unless all are finite and positive."""
    for job_id, weight in (weights or {}).items():
        if not (math.isfinite(weight) and weight > 0):
            raise InvalidDataError(f"job {job_id!r}: its weight is {weight}, must be finite and > 0")
    return dict(weights or {})
