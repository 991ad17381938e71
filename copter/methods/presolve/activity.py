"""Bounds on row activities that follow from column bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.methods.presolve.totals import totals

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Activity:
    """Least and largest activity of each row (equation P5): finite parts, and counts of infinite terms.

    Attributes
    ----------
    size : ndarray (m,)
        Sum of the absolute values of all finite terms, to which rounding errors are relative.
    """

    low_sum: Floats
    high_sum: Floats
    low_infinite: Floats
    high_infinite: Floats
    size: Floats

    @classmethod
    def of(cls, row: Indices, col: Indices, value: Floats, lower: Floats, upper: Floats, m: int) -> Activity:
        """Compute activity bounds of m rows from their entries."""
        at_lower, at_upper = value * lower[col], value * upper[col]
        low_term, high_term = np.minimum(at_lower, at_upper), np.maximum(at_lower, at_upper)
        low_open, high_open = np.isinf(low_term), np.isinf(high_term)
        low, high = np.where(low_open, 0.0, low_term), np.where(high_open, 0.0, high_term)
        return cls(
            totals(row, low, m),
            totals(row, high, m),
            totals(row, low_open, m),
            totals(row, high_open, m),
            totals(row, np.abs(low) + np.abs(high), m),
        )

    @property
    def low(self) -> Floats:
        """Least activity, (m,)."""
        return np.where(self.low_infinite > 0, -np.inf, self.low_sum)

    @property
    def high(self) -> Floats:
        """Largest activity, (m,)."""
        return np.where(self.high_infinite > 0, np.inf, self.high_sum)
