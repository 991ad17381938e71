"""Checks of what policies are told of jobs, so that what is wrong is said then and not in a later plan."""

from __future__ import annotations

import math
from collections.abc import Mapping

from copter.errors import InvalidDataError


def checked_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Weights w_n by job id, copied; InvalidDataError unless all are finite and above zero."""
    for job_id, weight in (weights or {}).items():
        if not (math.isfinite(weight) and weight > 0):
            raise InvalidDataError(f"job {job_id!r}: its weight is {weight}, must be finite and > 0")
    return dict(weights or {})
