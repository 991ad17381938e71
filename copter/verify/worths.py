"""Concave worths in rational numbers: upper bounds of conjugates, and values of totals. It imports nothing of copter.

A worth u of a total z = v'x is at most u*(s) + s z for every slope s, u*(s) the largest u(z) - s z. So a model with
worths is worth at most the sum of u*(s) and a linear program with costs c + s v, whose bound ``bounds.py`` proves.
Logarithms and powers are those of the module decimal, which rounds them correctly; each is taken outward.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import fsum, inf, log
from typing import Any

from .bounds import U
from .program import Flat, Program

DIGITS = 60
OUTWARD = Fraction(1, 10**40)  # relative; a chain of three operations of 60 digits is wrong by less


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def logarithm(number: Fraction) -> Fraction:
    """Return ln, rounded up by less than 1e-39 of itself and of one."""
    found = Fraction(decimal(number).ln())
    return found + (abs(found) + 1) * OUTWARD


def powered(base: Fraction, exponent: Fraction, up: bool) -> Fraction:
    """Return base**exponent, rounded up or down."""
    found = Fraction((decimal(base).ln() * decimal(exponent)).exp())
    return found * (1 + OUTWARD if up else 1 - OUTWARD)


def conjugate(kind: str, numbers: Any, slope: float, most: Any) -> Any:
    """Return an upper bound of u*(slope) over totals up to `most`; infinite if there is none."""
    s, given = Fraction(slope), [Fraction(each) for each in numbers]
    total: Any
    left: Any
    if kind == "pieces":
        total, left = given[0], most
        for at in range(1, len(given), 2):
            length: Any = min(given[at + 1], left) if at + 1 < len(given) else left
            gain: Any = max(given[at] - s, Fraction(0))
            total, left = total + gain * max(length, Fraction(0)), left - length
        return total
    if kind == "quadratic":
        rest: Any = max(given[0] - s, Fraction(0))
        return rest**2 / (2 * given[1])
    alpha, weight, floor = given if kind == "power" else (Fraction(1), *given)
    with localcontext() as context:
        context.prec = DIGITS
        steepest = inf if floor == 0 else weight / powered(floor, alpha, True)
        if s <= 0 or s >= steepest:
            return inf if s <= 0 else at_zero(alpha, weight, floor)
        if alpha == 1:
            return weight * (logarithm(weight / s) - 1) + s * floor
        scale, up = weight * alpha / (1 - alpha), alpha < 1
        return scale * powered(weight / s, (1 - alpha) / alpha, up) + s * floor


def at_zero(alpha: Fraction, weight: Fraction, floor: Fraction) -> Fraction:
    """Return an upper bound of the worth of nothing."""
    if alpha == 1:
        return weight * logarithm(floor)
    return weight / (1 - alpha) * powered(floor, 1 - alpha, alpha < 1)


def value(kind: str, numbers: Any, total: float) -> float:
    """Return u(total) in floating point."""
    if kind == "quadratic":
        return float(numbers[0] * total - 0.5 * numbers[1] * total * total)
    if kind == "pieces":
        worth = numbers[0]
        for at in range(1, len(numbers), 2):
            length = min(numbers[at + 1], total) if at + 1 < len(numbers) else total
            worth, total = worth + numbers[at] * length, total - length
        return float(worth)
    alpha, weight, floor = numbers if kind == "power" else (1.0, *numbers)
    base = total + floor
    if base <= 0:
        return 0.0 if alpha < 1 else -inf
    return float(weight * (log(base) if alpha == 1 else base ** (1 - alpha) / (1 - alpha)))


def point_worth(program: Program, flat: Flat, x: Any) -> float:
    """Return what the worths add to a point's linear objective."""
    found = []
    for at, request in enumerate(program.requests.values()):
        if "worth" in request:
            part = x[flat.first[at] : flat.first[at + 1]]
            kind, numbers = request["worth"]
            found.append(value(kind, numbers, fsum((part * request["rates"]).tolist())))
    return fsum(found)


def add_slopes(program: Program, flat: Flat, slopes: Any) -> Any:
    """Add the slopes' costs, rounded against the bound, to the program's; returns the sum of the conjugates.

    A slope that proves nothing is replaced by the one at zero.
    """
    constant: Any = Fraction(0)
    assert program.sign == -1.0, "a minimisation has worths"
    for at, (request, slope) in enumerate(zip(program.requests.values(), slopes.tolist(), strict=True)):
        if "worth" not in request:
            continue
        kind, numbers = request["worth"]
        part, rates = slice(flat.first[at], flat.first[at + 1]), request["rates"]
        assert (flat.low[part] >= 0).all(), "a request with a worth has columns below zero"
        assert (rates >= 0).all(), "a request with a worth has rates below zero"
        if kind in ("log", "power") and slope <= 0 < numbers[-1]:
            slope = numbers[-2] / numbers[-1] ** (1 if kind == "log" else numbers[0]) * (1 + 8 * U)
        most = Fraction(float(request["limit"][0])) * Fraction(float(rates.max()))
        found = conjugate(kind, numbers, slope, max(most, Fraction(0)))
        if found == inf:
            return inf
        constant += found
        added = slope * rates
        flat.cost[part] = flat.cost[part] - added - 4 * U * (abs(flat.cost[part]) + abs(added)) - 1e-300 * (added != 0)
    return constant


def is_concave(program: Program) -> bool:
    """Whether a request of the program has a worth."""
    return any("worth" in request for request in program.requests.values())
