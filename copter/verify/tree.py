"""Judges a proof for a mixed-integer program: a tree of branchings whose leaves have prices or rays.

It imports nothing of copter. The file is JSON, numbers as hexadecimal doubles: the program (min or max c'x + offset,
rows, columns), a point, a bound, and nodes. A branching splits the values of a whole column into those up to k and
values from k + 1 on; the first node has the program's bounds. In rational arithmetic, for the minimisation:

- a leaf with prices y proves c'x >= y'b + min over the leaf's box of (c - A'y)'x; where all costs are whole numbers of
  whole columns, the next whole number;
- a leaf with a ray is empty if the same with c = 0 is above zero;
- the bound must not exceed the bound of any leaf, so no point of the program is better;
- the point's whole columns are whole and its columns within their bounds; its rows hold to 1e-6 of 1 + |side|, and the
  file's line of output says so if they do not hold exactly (see ``judge.py`` for decimals).
"""

import json
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, inf
from typing import Any

from .program import Path, Unusable
from .vipr import verify_vipr

FORMAT = "copter-proof 1"
NEAR = Fraction(1, 10**6)  # largest violation of a row by a point, in units of 1 + |side|


class Problem:
    """A program in rational numbers, minimised; a missing bound is None."""

    def __init__(self, told: Any) -> None:
        self.sign = {"min": 1, "max": -1}[told["sense"]]
        self.cost = [self.sign * rational(each) for each in told["cost"]]
        self.offset = self.sign * rational(told["offset"])
        self.rows = [(side(low), side(high)) for low, high in told["rows"]]
        self.box = [(side(low), side(high)) for low, high in told["columns"]]
        self.whole = [bool(each) for each in told["whole"]]
        if not len(self.cost) == len(self.box) == len(self.whole):
            raise ValueError("costs, bounds and kinds of columns are of different numbers")
        self.columns: list[list[tuple[int, Fraction]]] = [[] for _ in self.cost]
        for row, column, value in told["entries"]:
            if not (0 <= row < len(self.rows) and 0 <= column < len(self.cost)):
                raise ValueError(f"entry ({row}, {column}) is outside the matrix")
            self.columns[column].append((row, rational(value)))
        self.steps = all(
            c == 0 or (c.denominator == 1 and whole) for c, whole in zip(self.cost, self.whole, strict=True)
        )

    def least(self, prices: Any, box: Any, with_costs: bool) -> Fraction | None:
        """Return what prices prove about c'x over a box, or about zero; None if they prove nothing."""
        if len(prices) != len(self.rows):
            raise ValueError(f"{len(prices)} prices of {len(self.rows)} rows")
        sign = self.sign if with_costs else 1
        y = [sign * rational(each) for each in prices]
        total = Fraction(0)
        for i, (low, high) in enumerate(self.rows):
            at = low if y[i] > 0 else high
            if at is None:
                y[i] = Fraction(0)
            elif y[i]:
                total += y[i] * at
        for cost, column, (low, high) in zip(self.cost, self.columns, box, strict=True):
            rate = (cost if with_costs else 0) - sum((value * y[row] for row, value in column), Fraction(0))
            at = low if rate > 0 else high
            if rate and at is None:
                return None
            total += rate * at if rate else 0
        return Fraction(ceil(total)) if with_costs and self.steps else total

    def value(self, x: list[Fraction]) -> Fraction:
        """Return a point's objective, without the offset."""
        return sum((c * v for c, v in zip(self.cost, x, strict=True)), Fraction(0))

    def point_faults(self, x: list[Fraction]) -> tuple[list[str], bool]:
        """Return (faults of a point, whether its rows hold exactly)."""
        faults, exact, use = [], True, [Fraction(0)] * len(self.rows)
        if len(x) != len(self.box):
            return [f"the point has {len(x)} columns of {len(self.box)}"], False
        for j, ((low, high), whole) in enumerate(zip(self.box, self.whole, strict=True)):
            if whole and x[j].denominator != 1:
                faults.append(f"column {j} is not whole")
            if (low is not None and x[j] < low) or (high is not None and x[j] > high):
                faults.append(f"column {j} is out of its bounds")
            for row, value in self.columns[j]:
                use[row] += value * x[j]
        for i, (low, high) in enumerate(self.rows):
            below = Fraction(0) if low is None else low - use[i]
            above = Fraction(0) if high is None else use[i] - high
            at, over = (low, below) if below > above else (high, above)
            if over > 0:
                exact = False
                if over > NEAR * (1 + abs(at or Fraction(0))):
                    faults.append(f"row {i} does not hold")
        return faults, exact


def rational(text: Any) -> Fraction:
    """Return a finite double as an exact fraction."""
    return Fraction(float.fromhex(text))


def side(text: Any) -> Fraction | None:
    """Return a bound as a fraction; None for an infinite one."""
    value = float.fromhex(text)
    return None if abs(value) == inf else Fraction(value)


def leaves(problem: Problem, nodes: Any) -> Iterator[tuple[int, Any, Any]]:
    """Yield (number, node, box) of every leaf; raises ValueError unless the nodes form one tree."""
    waiting, seen = [(0, tuple(problem.box))], set()
    while waiting:
        at, box = waiting.pop()
        if type(at) is not int or not 0 <= at < len(nodes) or at in seen:
            raise ValueError(f"node {at!r} is not there, or twice in the tree")
        seen.add(at)
        node = nodes[at]
        if "column" not in node:
            yield at, node, box
            continue
        column, k = node["column"], node["at"]
        if type(column) is not int or type(k) is not int or not 0 <= column < len(box) or not problem.whole[column]:
            raise ValueError(f"node {at} does not branch at a whole number of a whole column")
        low, high = box[column]
        for which, bounds in (
            ("down", (low, Fraction(k) if high is None else min(high, Fraction(k)))),
            ("up", (Fraction(k + 1) if low is None else max(low, Fraction(k + 1)), high)),
        ):
            waiting.append((node[which], (*box[:column], bounds, *box[column + 1 :])))
    if len(seen) != len(nodes):
        raise ValueError(f"{len(nodes) - len(seen)} nodes are not in the tree")


def judge_proof(told: Any) -> tuple[dict[str, Any], list[str]]:
    """Check a proof; returns (counts, faults)."""
    problem, faults, count = Problem(told), [], 0
    bound = problem.sign * rational(told["bound"]) - problem.offset
    for at, node, box in leaves(problem, told["nodes"]):
        count += 1
        if any(low is not None and high is not None and low > high for low, high in box):
            continue  # no term
        if "ray" in node:
            value = problem.least(node["ray"], box, False)
            if value is None or value <= 0:
                faults.append(f"the ray of leaf {at} proves nothing")
            continue
        value = problem.least(node["prices"], box, True)
        if value is None or value < bound:
            proves = "nothing" if value is None else repr(float(value))
            faults.append(f"leaf {at} proves {proves}, the bound is {float(bound)!r}")
    x = [rational(each) for each in told["x"]]
    wrong, exact = problem.point_faults(x)
    faults += wrong
    gap = 0.0
    if not wrong:
        value = problem.value(x)
        told_value = problem.sign * rational(told["objective"]) - problem.offset
        if abs(value - told_value) > Fraction(1, 10**9) * (1 + abs(value)):
            faults.append(f"the objective is {float(told_value)!r}, its point is worth {float(value)!r}")
        gap = float(value - bound)
    return {"leaves": count, "gap": gap, "rows hold exactly": exact}, faults


def is_proof(path: Path) -> bool:
    """Return whether a file is a proof or a certificate rather than a tape."""
    with open(path, "rb") as file:
        front = file.read(4)
    return front[:1] in (b"{", b"%") or front == b"VER "


def verify_proof(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Check a proof file, or a certificate (``vipr.py``); raises Unusable if it is neither."""
    try:
        with open(path, "rb") as front:
            if front.read(1) != b"{":
                return verify_vipr(path)
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        if told.get("format") != FORMAT:
            raise ValueError(f"its format is {told.get('format')!r}, this judge reads {FORMAT!r}")
        return judge_proof(told)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, IndexError, RecursionError) as error:
        raise Unusable(f"it is no proof: {type(error).__name__}: {error}") from error


def is_rejected(path: Path) -> bool:
    """Check a proof file, print one line per fault and one for the result; return whether it is rejected."""
    found, faults = verify_proof(path)
    for fault in faults:
        print(f"{path}: the proof is rejected: {fault}")
    told = ", ".join(f"{name} {value}" for name, value in found.items())
    print(f"{path}: proof {'rejected' if faults else 'accepted'}, {told}")
    return bool(faults)
