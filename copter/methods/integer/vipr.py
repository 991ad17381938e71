"""A proof's tree as a certificate of the format VIPR 1.1, in rational numbers (github.com/scipopt/vipr)."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

from copter.verify.tree import Problem, rational

SUFFIX = ".vipr"
Terms = dict[int, Fraction]


class Lines:
    """The lines of a certificate under construction, for a minimisation without constant.

    Parameters
    ----------
    problem : Problem
    bound : Fraction
        Lower bound on c'x that every leaf proves.
    """

    def __init__(self, problem: Problem, bound: Fraction) -> None:
        self.problem, self.bound = problem, bound
        self.given: list[str] = []
        self.derived: list[str] = []
        self.cost = {j: c for j, c in enumerate(problem.cost) if c}
        self.rows: dict[tuple[int, int], int] = {}  # (row, sense) -> index of the constraint
        self.sides: dict[tuple[int, int], int] = {}  # (column, sense) -> index of the constraint
        terms: list[Terms] = [{} for _ in problem.rows]
        for j, column in enumerate(problem.columns):
            for row, value in column:
                terms[row][j] = terms[row].get(j, Fraction(0)) + value
        for i, (low, high) in enumerate(problem.rows):
            self._sides(self.rows, i, low, high, terms[i], "r")
        for j, (low, high) in enumerate(problem.box):
            self._sides(self.sides, j, low, high, {j: Fraction(1)}, "b")

    def _sides(
        self, places: dict[tuple[int, int], int], at: int, low: Fraction | None, high: Fraction | None, terms: Terms,
        kind: str,
    ) -> None:  # fmt: skip
        for sense, side in ((1, low), (-1, high)):
            if side is not None:
                places[at, sense] = len(self.given)
                self.given.append(f"{kind}{at}{'GL'[sense < 0]} {'GL'[sense < 0]} {side} {summed(terms)}")

    def derive(self, sense: str, right: Fraction, terms: Terms, reason: str) -> int:
        """Add a derived constraint; returns its index. viprchk accepts a bound only from a constraint that says OBJ."""
        at, left = len(self.given) + len(self.derived), "OBJ" if terms == self.cost else summed(terms)
        self.derived.append(f"d{at} {sense} {right} {left} {{ {reason} }} -1")
        return at

    def combination(self, right: Fraction, terms: Terms, factors: dict[int, Fraction]) -> int:
        """Add a linear combination of constraints with sense "at least"; returns its index."""
        kept = {at: value for at, value in factors.items() if value}
        return self.derive("G", right, terms, f"lin {summed(kept)}")

    def leaf(self, node: Any, box: Any, sides: dict[tuple[int, int], int]) -> int:
        """Add the constraint that a leaf proves, a bound or emptiness; returns its index."""
        for j, (low, high) in enumerate(box):
            if low is not None and high is not None and low > high:
                return self.combination(low - high, {}, {sides[j, 1]: Fraction(1), sides[j, -1]: Fraction(-1)})
        problem, with_costs = self.problem, "ray" not in node
        sign = problem.sign if with_costs else 1
        y = [sign * rational(each) for each in node["prices" if with_costs else "ray"]]
        factors: dict[int, Fraction] = {}
        total = Fraction(0)
        for i, (low, high) in enumerate(problem.rows):
            at = low if y[i] > 0 else high
            if at is None or not y[i]:
                y[i] = Fraction(0)
                continue
            total += y[i] * at
            factors[self.rows[i, 1 if y[i] > 0 else -1]] = y[i]
        for j, (low, high) in enumerate(box):
            rate = (problem.cost[j] if with_costs else 0) - sum(
                (v * y[row] for row, v in problem.columns[j]), Fraction(0)
            )
            if rate:
                side = low if rate > 0 else high
                total += rate * side
                place = sides[j, 1 if rate > 0 else -1]
                factors[place] = factors.get(place, Fraction(0)) + rate
        if not with_costs:
            return self.combination(total, {}, factors)
        found = self.combination(total, self.cost, factors)
        if problem.steps and total.denominator != 1:
            found = self.derive("G", Fraction(ceil(total)), self.cost, f"rnd 1 {found} 1")
        return found

    def tree(self, nodes: Any) -> int:
        """Add the constraints of the tree, children first; returns the index of the root's."""
        waiting: list[tuple[str, int, Any, Any, tuple[int, int]]] = [
            ("enter", 0, tuple(self.problem.box), dict(self.sides), (0, 0))
        ]
        found: list[int] = []
        while waiting:
            doing, at, box, sides, assumed = waiting.pop()
            node = nodes[at]
            if doing == "leave":
                up, down = found.pop(), found.pop()
                found.append(self.derive("G", self.bound, self.cost, f"uns {down} {assumed[0]} {up} {assumed[1]}"))
            elif "column" not in node:
                found.append(self.leaf(node, box, sides))
            else:
                j, k = node["column"], Fraction(node["at"])
                low, high = box[j]
                below = self.derive("L", k, {j: Fraction(1)}, "asm")
                above = self.derive("G", k + 1, {j: Fraction(1)}, "asm")
                parts = []
                for side, sense, place in ((k, -1, below), (k + 1, 1, above)):
                    old = high if sense < 0 else low
                    tighter = old is None or (side < old if sense < 0 else side > old)
                    new = side if tighter else old
                    bounds = (low, new) if sense < 0 else (new, high)
                    known = {**sides, (j, sense): place} if tighter else sides
                    parts.append(((*box[:j], bounds, *box[j + 1 :]), known))
                waiting.append(("leave", at, None, None, (below, above)))
                waiting.append(("enter", node["up"], *parts[1], (0, 0)))
                waiting.append(("enter", node["down"], *parts[0], (0, 0)))
        return found[0]


def summed(terms: dict[int, Fraction]) -> str:
    """Return a sparse sum of constraints."""
    return " ".join([str(len(terms)), *(f"{j} {value}" for j, value in sorted(terms.items()))])


def certificate(told: Any) -> str:
    """Return the text of a certificate, made from a proof in the form of its file.

    The program is written as a minimisation without its constant. The point must satisfy all rows exactly.
    """
    problem = Problem(told)
    x = [rational(each) for each in told["x"]]
    value = problem.value(x)
    bound = min(problem.sign * rational(told["bound"]) - problem.offset, value)
    lines = Lines(problem, bound)
    root = lines.tree(told["nodes"])
    lines.derive("G", bound, lines.cost, f"lin 1 {root} 1")
    whole = [str(j) for j, each in enumerate(problem.whole) if each]
    return "\n".join([
        "VER 1.1",
        f"VAR {len(x)}",
        *(f"x{j}" for j in range(len(x))),
        f"INT {len(whole)}",
        " ".join(whole),
        "OBJ min",
        summed(lines.cost),
        f"CON {len(lines.given)} {len(lines.sides)}",
        *lines.given,
        f"RTP range {bound} {value}",
        "SOL 1",
        f"best {summed({j: v for j, v in enumerate(x) if v})}",
        f"DER {len(lines.derived)}",
        *lines.derived,
        "",
    ])  # fmt: skip
