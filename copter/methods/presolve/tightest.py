"""Selection of the tightest among many bounds on the same quantity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.methods.presolve.restoration import Floats, Indices
from copter.methods.presolve.tolerances import Tolerances, contradiction, margin


@dataclass(frozen=True, slots=True)
class Tightest:
    """Tightest bounds of k groups and the candidate each came from (-1: the group's own bound)."""

    lower: Floats
    upper: Floats
    lower_from: Indices
    upper_from: Indices

    @classmethod
    def of(cls, group: Indices, lower: Floats, upper: Floats, own_lower: Floats, own_upper: Floats) -> Tightest:
        """Intersect each group's own bounds with the bounds of its candidates."""
        best_lower, lower_from = _largest(group, lower, own_lower)
        negated, upper_from = _largest(group, -upper, -own_upper)
        return cls(best_lower, -negated, lower_from, upper_from)

    def judge(self, tolerances: Tolerances) -> tuple[int, NDArray[np.bool_]]:
        """Return (group with the largest contradiction or -1, mask of bounds that cross only by rounding)."""
        crossed = self.lower > self.upper
        lower, upper = np.where(crossed, self.lower, 0.0), np.where(crossed, self.upper, 0.0)
        gap, size = lower - upper, np.minimum(np.abs(lower), np.abs(upper))
        excess = gap - contradiction(tolerances, size)
        worst = int(excess.argmax())
        return (worst if excess[worst] > 0 else -1), gap <= margin(tolerances.rounding, size)

    def closed(self) -> tuple[Floats, Floats]:
        """Return the bounds, with bounds that cross by rounding made equal; a group's own bound takes precedence."""
        crossed = self.lower > self.upper
        lower = np.where(crossed & (self.lower_from >= 0), self.upper, self.lower)
        return lower, np.where(crossed & (self.lower_from < 0), self.lower, self.upper)


def _largest(group: Indices, value: Floats, own: Floats) -> tuple[Floats, Indices]:
    best = own.copy()
    np.maximum.at(best, group, value)
    source = np.full(len(own), -1)
    taken = np.flatnonzero((value == best[group]) & (value > own[group]))
    source[group[taken]] = taken
    return best, source


def active_side(dual: Floats, lower_from: Indices, upper_from: Indices) -> tuple[Indices, NDArray[np.bool_]]:
    """Return the source of the bound that a dual's sign selects, and whether it is a candidate's bound."""
    source = np.where(dual > 0, lower_from, np.where(dual < 0, upper_from, -1))
    return source, source >= 0
