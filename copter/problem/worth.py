"""Concave worths: what a request's total is worth where worth is not linear (docs/method/concave_worth.md).

A worth is a concave function u of the total z = rates'x >= 0 that a request gets. `Model.add_request(..., worth=,
rates=)` adds u(z) to the objective of a maximisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from math import log as logarithm

import numpy as np
from numpy.typing import ArrayLike, NDArray

from copter.runtime.errors import InvalidDataError

LOG, POWER, PIECES, QUADRATIC = "log", "power", "pieces", "quadratic"
Floats = NDArray[np.float64]
LARGEST = 1e100  # of a weight, a floor or a point: their products stay far below the largest number


@dataclass(frozen=True, slots=True)
class Worth:
    """A concave function of a total z >= 0; :func:`log`, :func:`power` and the others make it.

    Attributes
    ----------
    kind : {"log", "power", "pieces", "quadratic"}
    numbers : tuple of float
        (weight, floor); (alpha, weight, floor); (worth at zero, then slope and length of each piece, the last piece
        without a length, because it goes on); (slope at zero, curvature).
    """

    kind: str
    numbers: tuple[float, ...]

    @property
    def finite_at_zero(self) -> bool:
        """Whether a total of zero has a finite worth."""
        return self(0.0) > -inf

    def __call__(self, total: float) -> float:
        """Return the worth of a total, -inf where it has none.

        Examples
        --------
        >>> import copter
        >>> copter.worth.power(2.0)(4.0)
        -0.25
        """
        z, numbers = float(total), self.numbers
        if z < 0.0:
            return -inf
        if self.kind == LOG:
            weight, floor = numbers
            return weight * logarithm(z + floor) if z + floor > 0.0 else -inf
        if self.kind == POWER:
            alpha, weight, floor = numbers
            if z + floor == 0.0:
                return 0.0 if alpha < 1.0 else -inf
            return float(weight * (z + floor) ** (1.0 - alpha) / (1.0 - alpha))
        if self.kind == QUADRATIC:
            slope, curvature = numbers
            return slope * z - 0.5 * curvature * z * z
        worth, left = numbers[0], z
        for slope, length in zip(numbers[1::2], (*numbers[2::2], inf), strict=True):
            worth += slope * min(left, length)
            left -= length
            if left <= 0.0:
                break
        return worth


def log(weight: float = 1.0, floor: float = 0.0) -> Worth:
    """Return weight * log(floor + z): proportional fairness.

    Parameters
    ----------
    weight : float
        Above zero.
    floor : float
        At least zero, in the units of z: what the request has already, or a small total at which a request with nothing
        counts. With a floor of zero, nothing is worth -inf, so every solution serves the request.

    Raises
    ------
    InvalidDataError

    Examples
    --------
    >>> import copter
    >>> copter.worth.log(weight=2.0)(1.0)
    0.0
    """
    return Worth(LOG, (_above_zero("weight", weight), _at_least_zero("floor", floor)))


def power(alpha: float, weight: float = 1.0, floor: float = 0.0) -> Worth:
    """Return weight * (floor + z)**(1 - alpha) / (1 - alpha): alpha-fairness (Mo and Walrand, 2000).

    Parameters
    ----------
    alpha : float
        At least zero: 0 is the plain sum, 1 :func:`log`, 2 the least potential delay.
    weight, floor : float
        See :func:`log`; from alpha = 1 on, nothing is worth -inf without a floor.

    Raises
    ------
    InvalidDataError
        Also for an alpha above 20, where the powers of ordinary totals leave the range of numbers.
    """
    exponent = _number("alpha", alpha)
    if not 0.0 <= exponent <= MOST_ALPHA:
        raise InvalidDataError(
            f"alpha is {alpha!r}, must be between 0 and {MOST_ALPHA:g}: larger values are max-min fairness"
        )
    factor, least = _above_zero("weight", weight), _at_least_zero("floor", floor)
    if exponent == 1.0:
        return Worth(LOG, (factor, least))
    if exponent == 0.0:
        return Worth(PIECES, (factor * least, factor))
    return Worth(POWER, (exponent, factor, least))


def piecewise(points: ArrayLike | Sequence[tuple[float, float]]) -> Worth:
    """Return the worth that joins points (z, worth) by straight lines; the last one goes on.

    Parameters
    ----------
    points : array_like (k, 2), k >= 2
        Totals ascending from 0, slopes descending.

    Raises
    ------
    InvalidDataError
        For points that are not concave, naming the place.

    Examples
    --------
    >>> import copter
    >>> tariff = copter.worth.piecewise([(0, 0), (10, 30), (20, 40)])
    >>> tariff(15.0), tariff(30.0)
    (35.0, 50.0)
    """
    try:
        table = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidDataError(f"points are {points!r}, must be pairs of a total and its worth") from None
    if table.ndim != 2 or table.shape[1] != 2 or len(table) < 2:
        raise InvalidDataError(f"points have shape {table.shape}, must be (k, 2) with at least two points")
    if not bool((np.abs(table) <= LARGEST).all()):
        raise InvalidDataError("points must be finite numbers")
    if table[0, 0] != 0.0:
        raise InvalidDataError(f"the first point is at {table[0, 0]:g}, must be at a total of 0")
    steps, rises = np.diff(table.T)
    for at in np.flatnonzero(steps <= 0.0)[:1].tolist():
        raise InvalidDataError(f"point {at + 1} is at {table[at + 1, 0]:g}, must lie beyond {table[at, 0]:g}")
    return _of_pieces(table[0, 1], rises / steps, steps[:-1])


def minimum(lines: ArrayLike | Sequence[tuple[float, float]]) -> Worth:
    """Return the least of lines, each (slope, value at zero).

    Raises
    ------
    InvalidDataError

    Examples
    --------
    >>> import copter
    >>> quota = copter.worth.minimum([(3.0, 0.0), (1.0, 20.0)])
    >>> quota(5.0), quota(20.0)
    (15.0, 40.0)
    """
    try:
        table = np.asarray(lines, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidDataError(f"lines are {lines!r}, must be pairs of a slope and a value at zero") from None
    if table.ndim != 2 or table.shape[1] != 2 or not len(table) or not bool((np.abs(table) <= LARGEST).all()):
        raise InvalidDataError("lines must be pairs of finite numbers, (k, 2), at least one")
    order = np.lexsort((-table[:, 0], table[:, 1]))
    slope, value = table[order[0]]
    start, at, slopes, lengths = value, 0.0, [slope], list[float]()
    while True:  # along the least line, to where another one falls below it
        later = table[table[:, 0] < slope]
        if not len(later):
            return _of_pieces(start, np.array(slopes), np.array(lengths))
        crossing = (later[:, 1] - value) / (slope - later[:, 0])
        first = float(crossing.min())
        slope, value = min(later[crossing == first].tolist())
        lengths.append(first - at)
        slopes.append(slope)
        at = first


def saturating(slope: float, most: float) -> Worth:
    """Return min(slope * z, most).

    Raises
    ------
    InvalidDataError
    """
    factor, limit = _above_zero("slope", slope), _above_zero("most", most)
    return Worth(PIECES, (0.0, factor, limit / factor, 0.0))


def quadratic(slope: float, curvature: float) -> Worth:
    """Return slope * z - curvature * z**2 / 2.

    Raises
    ------
    InvalidDataError
        For a curvature of zero or below.
    """
    return Worth(QUADRATIC, (_number("slope", slope), _above_zero("curvature", curvature)))


def _of_pieces(start: float, slopes: Floats, lengths: Floats) -> Worth:
    """Return the worth of straight pieces, without those of no length; equal slopes become one piece."""
    rise = np.flatnonzero(np.diff(slopes) > 1e-12 * np.abs(slopes[1:]))
    if len(rise):
        at = int(rise[0])
        raise InvalidDataError(
            f"the points are not concave: the slope rises from {slopes[at]:g} to {slopes[at + 1]:g} at point {at + 1}"
        )
    numbers, slope, length = [float(start)], float(slopes[0]), 0.0
    for step, after in zip(lengths.tolist(), slopes[1:].tolist(), strict=True):
        length += step
        if after < slope and length > 0.0:
            numbers += [slope, length]
            length = 0.0
        slope = min(slope, after)
    return Worth(PIECES, (*numbers, slope))


def _number(what: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidDataError(f"{what} is {value!r}, must be a number") from None
    if not abs(number) <= LARGEST:
        raise InvalidDataError(f"{what} is {value!r}, must be a finite number")
    return number


def _above_zero(what: str, value: float) -> float:
    number = _number(what, value)
    if not number >= 1.0 / LARGEST:
        raise InvalidDataError(f"{what} is {value!r}, must be above zero")
    return number


def _at_least_zero(what: str, value: float) -> float:
    number = _number(what, value)
    if number < 0.0:
        raise InvalidDataError(f"{what} is {value!r}, must be zero or above")
    return number


MOST_ALPHA = 20.0  # (1e-15)**-19 is about 1e285
