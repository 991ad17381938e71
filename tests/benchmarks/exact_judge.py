"""The judge's slow twin for tiny programs: F7 to F11 of docs/method/formulation.md in fractions, term by term."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isinf
from typing import Any


@dataclass(frozen=True)
class Exact:
    """Exact figures of a point."""

    objective: Fraction
    bound: Fraction
    certified: bool
    violation: Fraction
    dual_violation: Fraction


def exact_judgement(program: Any, x: Any, y: Any) -> Exact:
    """Objective, bound (F7) and largest violations (F11) of x and y."""
    sign = 1 if program.sense == "min" else -1
    dense = [[Fraction(v) for v in row] for row in program.A.toarray().tolist()]
    cost = [sign * Fraction(v) for v in program.c.tolist()]
    point = [Fraction(v) for v in x.tolist()]
    given = [sign * Fraction(v) for v in y.tolist()]
    rows = list(zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True))
    boxes = list(zip(program.col_lower.tolist(), program.col_upper.tolist(), strict=True))
    price = [p if supported(p, *side) else Fraction(0) for p, side in zip(given, rows, strict=True)]
    activity = [sum((a * v for a, v in zip(row, point, strict=True)), Fraction(0)) for row in dense]
    reduced = [
        c - sum((row[j] * p for row, p in zip(dense, price, strict=True)), Fraction(0)) for j, c in enumerate(cost)
    ]
    wrong = [d if not supported(d, *box) else Fraction(0) for d, box in zip(reduced, boxes, strict=True)]
    bound = sum((least(p, *side) for p, side in zip(price, rows, strict=True)), Fraction(0))
    bound += sum((least(d - w, *box) for d, w, box in zip(reduced, wrong, boxes, strict=True)), Fraction(0))
    places = [*zip(activity, rows, strict=True), *zip(point, boxes, strict=True)]
    clipped = [abs(g - p) for g, p in zip(given, price, strict=True)]
    return Exact(
        objective=sign * sum((c * v for c, v in zip(cost, point, strict=True)), Fraction(0)) + Fraction(program.offset),
        bound=sign * bound + Fraction(program.offset),
        certified=not any(wrong),
        violation=max((outside(value, *side) for value, side in places), default=Fraction(0)),
        dual_violation=max([*clipped, *map(abs, wrong)], default=Fraction(0)),
    )


def supported(value: Fraction, lower: float, upper: float) -> bool:
    """Whether the bound that a multiplier of this sign stands for is finite."""
    return not ((value > 0 and lower == -inf) or (value < 0 and upper == inf))


def least(value: Fraction, lower: float, upper: float) -> Fraction:
    """min of value * t over lower <= t <= upper."""
    return Fraction(0) if value == 0 else value * Fraction(lower if value > 0 else upper)


def outside(value: Fraction, lower: float, upper: float) -> Fraction:
    """How far a value is outside its bounds."""
    below = Fraction(0) if isinf(lower) else Fraction(lower) - value
    above = Fraction(0) if isinf(upper) else value - Fraction(upper)
    return max(below, above, Fraction(0))
