"""Residuals: the distance of a point from optimality (docs/method/formulation.md, F8-F11)."""

from __future__ import annotations

from dataclasses import dataclass


def relative_gap(objective: float, bound: float) -> float:
    """Return |P - D| / (1 + |P| + |D|), equation F10."""
    return abs(objective - bound) / (1.0 + abs(objective) + abs(bound))


def plan_gap(objective: float, bound: float) -> float:
    """Return |bound - objective| / |objective|, the gap of integer plans and points as HiGHS defines it.

    Zero if both are equal, infinite for an objective of zero with another bound, NaN without an objective.
    """
    if objective == bound:
        return 0.0
    return abs(bound - objective) / abs(objective) if objective != 0.0 else float("inf")


@dataclass(frozen=True, slots=True)
class Residuals:
    """Violations of optimality of a point of the original problem (docs/method/formulation.md, F8-F11).

    Attributes
    ----------
    primal, dual, gap : float
        Relative: ||row and bound violation|| / (1 + ||b||), ||reduced-cost violation|| / (1 + ||c||),
        |P - D| / (1 + |P| + |D|).
    primal_absolute, dual_absolute, gap_absolute : float
        Largest violation of a row or bound, largest violation of a reduced cost's sign, |P - D|.
    """

    primal: float
    dual: float
    gap: float
    primal_absolute: float
    dual_absolute: float
    gap_absolute: float

    def within(self, tolerance: float, absolute_tolerance: float) -> bool:
        """Whether the three relative and the absolute residuals are within tolerance; NaN is not."""
        relative = self.primal <= tolerance and self.dual <= tolerance and self.gap <= tolerance
        return relative and self.primal_absolute <= absolute_tolerance and self.dual_absolute <= absolute_tolerance
