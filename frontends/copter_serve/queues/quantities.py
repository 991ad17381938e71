"""Reads Kubernetes quantities such as "500m", "16Gi" and 8."""

from __future__ import annotations

import math
import re
from typing import Any

from copter_serve.queues.errors import QueueError

FACTORS = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
FORM = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)(n|u|m|k|[KMGTPE]i|[MGTPE]|)$")


def quantity(where: str, value: Any) -> float:
    """Return a quantity as a number; QueueError, with its place, if it is invalid or negative."""
    found = FORM.match(value.strip()) if isinstance(value, str) and len(value) < 64 else None
    if found is not None:
        number = float(found[1]) * FACTORS[found[2]]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    else:
        raise QueueError(f"{where}: {value!r} is not a quantity, as 4, 500m or 16Gi are")
    if not 0.0 <= number < math.inf:
        raise QueueError(f"{where}: {value!r} must be a number of 0 or more")
    return number
