"""Checks certificates in the format VIPR 1.1 (github.com/scipopt/vipr) for integer programs, in rational numbers.

It imports nothing of copter. A certificate holds the program in rational numbers, points, and derived constraints, each
with its reason: an assumption (``asm``), a combination of earlier constraints (``lin``), the same rounded (``rnd``),
or two constraints under assumptions that cover all whole numbers (``uns``); ``sol`` is the objective of the best
point. The claim to prove (``RTP``) is that there is no point, or a range for the optimum.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import Any

from .program import Path, Unusable

SENSES = {"L": -1, "E": 0, "G": 1}
VERSIONS = ("1.0", "1.1")


@dataclass
class Constraint:
    """A linear constraint, with the places of the assumptions under which it holds."""

    sense: int
    right: Fraction
    terms: dict[int, Fraction]
    under: frozenset[int] = frozenset()

    def is_absurd(self) -> bool:
        """Return whether no point can satisfy the constraint."""
        if self.terms:
            return False
        return {1: self.right > 0, -1: self.right < 0, 0: self.right != 0}[self.sense]

    def implies(self, other: "Constraint") -> bool:
        """Return whether each point that satisfies this constraint satisfies the other, judged by right sides alone."""
        if self.is_absurd():
            return True
        if self.terms != other.terms:
            return False
        if other.sense == 0:
            return self.sense == 0 and self.right == other.right
        return self.sense in (0, other.sense) and other.sense * (self.right - other.right) >= 0


@dataclass
class Certificate:
    """The contents of a certificate, as far as it has been read."""

    whole: set[int] = field(default_factory=set)
    objective: dict[int, Fraction] = field(default_factory=dict)
    minimised: bool = True
    constraints: list[Constraint] = field(default_factory=list)
    best: Fraction | None = None


class Words:
    """The words of a file, one by one, without comments."""

    def __init__(self, text: str) -> None:
        self.waiting = iter(word for line in text.splitlines() for word in line.split("%", 1)[0].split())

    def next(self) -> str:
        """Return the next word; raises ValueError at the end of the file."""
        for word in self.waiting:
            return word
        raise ValueError("it is cut short")

    def expect(self, *words: str) -> None:
        """Read these words; raises ValueError if other words come."""
        for word in words:
            found = self.next()
            if found != word:
                raise ValueError(f"{found!r} is where {word!r} should be")

    def count(self) -> int:
        """Return the next word as a whole number >= 0."""
        word = self.next()
        if not word.isdigit():
            raise ValueError(f"{word!r} is no count")
        return int(word)

    def number(self) -> Fraction:
        """Return the next word as a rational number."""
        return Fraction(self.next())

    def terms(self, columns: int, objective: dict[int, Fraction]) -> dict[int, Fraction]:
        """Return a sparse sum; the word OBJ stands for the objective."""
        word = self.next()
        if word == "OBJ":
            return dict(objective)
        found: dict[int, Fraction] = {}
        for _ in range(int(word)):
            place, value = self.count(), self.number()
            if place >= columns or place in found:
                raise ValueError(f"column {place} is not there, or twice in one sum")
            if value:
                found[place] = value
        return found


def judged(words: Words) -> Iterator[str]:
    """Read and check a certificate; yield its faults, and raise ValueError if it is no certificate."""
    told = Certificate()
    words.expect("VER")
    if words.next() not in VERSIONS:
        raise ValueError("another version of the format")
    words.expect("VAR")
    columns = words.count()
    for _ in range(columns):
        words.next()
    words.expect("INT")
    told.whole = {words.count() for _ in range(words.count())}
    words.expect("OBJ")
    told.minimised = {"min": True, "max": False}[words.next()]
    told.objective = words.terms(columns, {})
    words.expect("CON")
    given, _ = words.count(), words.count()
    for _ in range(given):
        words.next()
        told.constraints.append(Constraint(SENSES[words.next()], words.number(), words.terms(columns, told.objective)))
    words.expect("RTP")
    wanted = words.next()
    low, high = (None, None) if wanted == "infeas" else (words.next(), words.next())
    words.expect("SOL")
    for _ in range(words.count()):
        name, point = words.next(), words.terms(columns, {})
        yield from point_faults(told, name, point)
        value = sum((c * point.get(j, Fraction(0)) for j, c in told.objective.items()), Fraction(0))
        better = told.best is None or (value < told.best if told.minimised else value > told.best)
        told.best = value if better else told.best
    words.expect("DER")
    for _ in range(words.count()):
        yield from derived(told, words, columns)
    yield from result_faults(told, wanted, low, high)


def point_faults(told: Certificate, name: str, point: dict[int, Fraction]) -> Iterator[str]:
    """Yield the faults of a point."""
    for j, value in point.items():
        if j in told.whole and value.denominator != 1:
            yield f"point {name}: column {j} is not whole"
    for at, each in enumerate(told.constraints):
        value = sum((c * point.get(j, Fraction(0)) for j, c in each.terms.items()), Fraction(0))
        if (each.sense >= 0 and value < each.right) or (each.sense <= 0 and value > each.right):
            yield f"point {name} breaks constraint {at}"


def derived(told: Certificate, words: Words, columns: int) -> Iterator[str]:
    """Read one derived constraint, and yield a fault if its reason does not imply it."""
    name = words.next()
    wanted = Constraint(SENSES[words.next()], words.number(), words.terms(columns, told.objective))
    words.expect("{")
    reason, at = words.next(), len(told.constraints)
    if reason == "asm":
        wanted.under = frozenset((at,))
    elif reason in ("lin", "rnd"):
        found = combined(told, words, wanted.sense)
        wanted.under = found.under
        if reason == "rnd":
            round_inward(told, found)
        if not found.implies(wanted):
            yield f"{name} does not follow from its {reason}"
    elif reason == "uns":
        first, left, second, right = (known(told, words.count()) for _ in range(4))
        wanted.under = (first[1].under - {left[0]}) | (second[1].under - {right[0]})
        if not (first[1].implies(wanted) and second[1].implies(wanted)):
            yield f"{name} does not follow from both of its sides"
        if not are_all(told, left[1], right[1]):
            yield f"{name} splits at what leaves something out"
    elif reason == "sol":
        side = -1 if told.minimised else 1
        if told.best is None or not Constraint(side, told.best, told.objective).implies(wanted):
            yield f"{name} is not what the best point shows"
    else:
        raise ValueError(f"{reason!r} is no reason that this judge knows")
    words.expect("}")
    int(words.next())  # last use of the constraint, which is not needed here
    told.constraints.append(wanted)


def known(told: Certificate, at: int) -> tuple[int, Constraint]:
    """Return an earlier constraint; raises ValueError if the index is not that of an earlier one."""
    if at >= len(told.constraints):
        raise ValueError(f"constraint {at} is not known yet")
    return at, told.constraints[at]


def combined(told: Certificate, words: Words, sense: int) -> Constraint:
    """Return a combination of constraints; its sense follows from its multipliers."""
    terms: dict[int, Fraction] = {}
    right, under, ways = Fraction(0), frozenset[int](), set()
    for _ in range(words.count()):
        (_, each), factor = known(told, words.count()), words.number()
        if not factor:
            continue
        under |= each.under
        right += factor * each.right
        if each.sense:
            ways.add(each.sense if factor > 0 else -each.sense)
        for j, value in each.terms.items():
            terms[j] = terms.get(j, Fraction(0)) + factor * value
    if len(ways) > 1:
        raise ValueError("a combination of constraints of both senses")
    kept = {j: value for j, value in terms.items() if value}
    return Constraint(next(iter(ways), sense if not kept and right == 0 else 0), right, kept, under)


def round_inward(told: Certificate, found: Constraint) -> None:
    """Round the right side of a constraint whose sum is a whole number at each point."""
    if any(j not in told.whole or value.denominator != 1 for j, value in found.terms.items()):
        raise ValueError("a sum is rounded that is not whole")
    if found.sense:
        found.right = Fraction(ceil(found.right) if found.sense > 0 else floor(found.right))


def are_all(told: Certificate, left: Constraint, right: Constraint) -> bool:
    """Return whether every point satisfies one of two constraints: sum <= k or sum >= k + 1 for a sum of whole
    numbers.
    """
    if left.terms != right.terms or {left.sense, right.sense} != {-1, 1}:
        return False
    low, high = (left, right) if left.sense < 0 else (right, left)
    whole = all(j in told.whole and value.denominator == 1 for j, value in left.terms.items())
    return whole and low.right.denominator == high.right.denominator == 1 and high.right - low.right <= 1


def result_faults(told: Certificate, wanted: str, low: str | None, high: str | None) -> Iterator[str]:
    """Yield the claims that were to be proven and are not."""
    shown = [each for each in told.constraints if not each.under]
    if wanted == "infeas":
        if not any(each.is_absurd() for each in shown):
            yield "that there is no point is not derived"
        return
    if wanted != "range":
        raise ValueError(f"{wanted!r} is nothing that is proven")
    dual, primal = (low, high) if told.minimised else (high, low)
    if dual not in ("-inf", "inf"):
        aim = Constraint(1 if told.minimised else -1, Fraction(str(dual)), told.objective)
        if not any(each.implies(aim) for each in shown):
            yield f"the bound {dual} is not derived"
    if primal not in ("-inf", "inf"):
        value = Fraction(str(primal))
        if told.best is None or (told.best > value if told.minimised else told.best < value):
            yield f"no point is as good as {primal}"


def verify_vipr(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Check a certificate; return (counts, faults). Raises Unusable if the file is no certificate."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return {"constraints": text.count("{")}, list(judged(Words(text)))
    except (ValueError, KeyError, TypeError, ZeroDivisionError, OverflowError) as error:
        raise Unusable(f"it is no certificate: {type(error).__name__}: {error}") from error
