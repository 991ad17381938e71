"""Rounds since the service began, in bounded memory: when it is full, neighbouring points are merged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_POINTS = 720  # most points; an even number, so that all can be merged in pairs
FIELDS = ("from_s", "to_s", "plans", "mean_round_s", "slowest_round_s", "used", "capacity", "waiting")


class RoundHistory:
    """Figures of a cluster's plans over time.

    At first each point is one plan. When there are :data:`MOST_POINTS`, neighbours are merged in pairs, and new points
    then hold twice as many plans. So memory is bounded and the whole time is covered.
    """

    def __init__(self) -> None:
        self.points: list[list[float]] = []
        self.plans_a_point = 1

    def take(self, header: Mapping[str, Any]) -> None:
        """Add a plan's figures."""
        at, round_s = float(header.get("computed_s") or 0.0), float(header.get("round_s") or 0.0)
        jobs = int(header.get("jobs") or 0) - int(header.get("running") or 0)
        used, capacity = (sum((header.get(name) or {}).values()) for name in ("used", "capacity"))
        point = [at, at, 1, round_s, round_s, used, capacity, jobs]
        if self.points and self.points[-1][2] < self.plans_a_point:
            self.points[-1] = merged(self.points[-1], point)
        else:
            self.points.append(point)
        if len(self.points) == MOST_POINTS and self.points[-1][2] == self.plans_a_point:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [merged(first, second) for first, second in pairs]
            self.plans_a_point *= 2

    def document(self) -> dict[str, Any]:
        """Return the points, oldest first, with the names of their fields."""
        return {"fields": list(FIELDS), "plans_a_point": self.plans_a_point, "points": self.points}


def merged(first: list[float], second: list[float]) -> list[float]:
    """Merge two points: first and last time, the slowest round, and means over plans of the other figures."""
    plans = first[2] + second[2]
    means = [(a * first[2] + b * second[2]) / plans for a, b in zip(first[3:], second[3:], strict=True)]
    return [first[0], second[1], plans, means[0], max(first[4], second[4]), *means[2:]]
