"""A reader's raw result, before checks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from copter_frontends.traffic.errors import NetworkError

UNITS = {"": 1.0, "bps": 1e-6, "kbps": 1e-3, "mbps": 1.0, "gbps": 1e3, "tbps": 1e6}
_CAPACITY = re.compile(r"^\s*([-+0-9.eE]+)\s*([A-Za-z]*)\s*$")


@dataclass(frozen=True, slots=True)
class RawLink:
    """A link by its ends' names; capacity is None if the file gives none."""

    source: str
    target: str
    capacity: float | None


@dataclass(slots=True)
class RawNetwork:
    """Node names in file order, links, and other facts."""

    directed: bool
    nodes: list[str] = field(default_factory=list)
    links: list[RawLink] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    position: dict[str, tuple[float, float]] = field(default_factory=dict)

    def label(self, name: str) -> str:
        """Return the name to show: the label if it is unique."""
        label = self.labels.get(name, name)
        return label if list(self.labels.values()).count(label) == 1 else name


def capacity_in_mbit(text: str) -> float:
    """Return a capacity with unit (``"1Gbps"``) in Mbit/s; a bare number unchanged.

    Raises
    ------
    NetworkError
    """
    found = _CAPACITY.match(text)
    unit = found.group(2).lower() if found else "?"
    try:
        value = float(found.group(1)) if found else float("nan")
    except ValueError:
        unit = "?"
    if unit not in UNITS:
        raise NetworkError(f"capacity {text!r} is not a number of {', '.join(list(UNITS)[1:])}")
    return value * UNITS[unit]
