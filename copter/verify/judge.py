"""Judges the answers on a tape. ``program.py`` reads the tape and applies the edits; neither imports copter.

The program is min c'x (a maximisation has its signs turned), rows lower <= A x <= upper (those of resources, and each
request's own: the sum of its columns and its private rows), box low <= x <= high.

- Bound. Multipliers y of rows (zero where a row lacks the bound for their sign) prove c'x >= y'b + min over the box of
  (c - A'y)'x. It is evaluated outward (Neumaier and Shcherbina, 2004): d = c - A'y in floating point is wrong by at
  most g (|c| + |A|'|y|), g = n u / (1 - n u) with n operations, u = 2^-53 (Higham 2002, lemma 3.1); sums are exact
  (fsum). The answer's bound must not exceed this; if it does, rational numbers decide.
- Infeasible. The same with c = 0 must be above zero. Unbounded rounds are counted as unanswered.
- Concave worths. Slopes make them linear: docs/method/concave_worth.md, W12, and ``worths.py``.
- LP point. The objective is recomputed; an optimal one has rows, boxes and gap within the settings' tolerance.
- Plan. Each row, sum and box is checked in rational arithmetic; the objective is recomputed. Fractional numbers stand
  for decimals, so they may be off by half a unit in the last place (2^-53 of the sum of sizes), and no more.
  A bound from a search of all choices, better than that of the prices, is counted as not proven here.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, pairwise
from math import inf
from typing import Any

import numpy as np

from .bounds import U, added, attempts, rational
from .program import FAULTS, Flat, Path, Program, Unusable, records
from .worths import add_slopes, is_concave, point_worth

NEAR = 1e-9  # relative difference between an objective and what its point is worth


def spread(array: Any, first: Any, place: Any, which: Any, value: Any) -> Any:
    """Return `array` with values at columns or rows `which` of the requests `place`, each of which begins at first."""
    assert ((place >= 0) & (which >= 0) & (first[place] + which < first[place + 1])).all(), "a value is of no column"
    array[first[place] + which] = value
    return array


def planned(flat: Flat, plan: Any) -> Any:
    """Return a plan's point: a whole request has one column at 1, or none; others have shares."""
    place = np.flatnonzero(plan["column"] >= 0)
    x = spread(np.zeros(flat.n), flat.first, place, plan["column"][place], 1.0)
    return spread(x, flat.first, *plan["share"])


def multipliers(program: Program, flat: Flat, told: Any) -> Any:
    """Return a multiplier of each row, from prices of resources and (request, its own row, value)."""
    y = np.zeros(len(flat.row_low))
    y[list(program.row_of.values())] = told["prices"]
    return spread(y, flat.own_first, *told["own"]) if "own" in told else y


def point_faults(program: Program, flat: Flat, x: Any, told: float, tolerances: Any = None) -> Iterator[str]:
    """Yield the faults of an LP's point, within the tolerances (F8), or of a plan, in rational numbers."""
    columns, at = np.flatnonzero(x), np.flatnonzero(x[flat.column])
    worth = float(sum((rational(flat.cost[columns]) * rational(x[columns])).tolist()))
    worth = program.sign * worth + program.offset + (point_worth(program, flat, x) if is_concave(program) else 0.0)
    if not abs(worth - told) <= NEAR * (1 + abs(told)):
        yield f"objective {told!r}, its point is worth {worth!r}"
    row, a, b, m = flat.row[at], flat.value[at], x[flat.column[at]], len(flat.row_low)
    number: Any = np.asarray if tolerances is not None or are_whole(a, b, flat.row_low, flat.row_high) else rational
    terms, low, high = number(a) * number(b), number(flat.row_low), number(flat.row_high)
    total = added(row, terms, m)
    off = np.maximum(np.maximum(low - total, total - high), 0)
    out = np.maximum(np.maximum(flat.low - x, x - flat.high), 0)
    if tolerances is not None:
        both, sides = np.append(off, out), np.append(flat.row_low, flat.row_high)
        norm, most = np.linalg.norm(both) / (1 + np.linalg.norm(sides[abs(sides) < inf])), both.max(initial=0.0)
        if not (norm <= tolerances[0] and most <= tolerances[1]):
            yield f"the point violates its rows by {norm:.3g} ({most:.3g} at most)"
        return
    decimal = np.bincount(row, (a % 1 > 0) | (b % 1 > 0), m) > 0
    spare = (added(row, abs(terms), m) + abs(np.clip(total, low, high))) * Fraction(U) * decimal
    resources, names = {row: name for name, row in program.row_of.items()}, list(program.requests)
    for row in np.flatnonzero((off > 0) & (off > spare)).tolist():
        k = np.searchsorted(flat.own_first, row, side="right") - 1
        who = f"resource {resources[row]!r}" if k < 0 else f"request {names[k]!r}"
        yield f"{who} is used beyond its bounds" if k < 0 else f"{who} does not keep to its rows"
    integer = np.array([request["integer"][0] for request in program.requests.values()], bool)[flat.owner]
    for j in np.flatnonzero((out > 0) | (integer & (x % 1 != 0))).tolist():
        yield f"request {names[flat.owner[j]]!r} has a column that is not whole or out of its bounds"


def are_whole(a: Any, b: Any, low: Any, high: Any) -> bool:
    """Whether floats add up a times b and compare it with sides exactly: all are whole, and no sum comes near 2^53."""
    given = a, b, low[abs(low) < inf], high[abs(high) < inf]
    most = abs(a * b).sum() + max(abs(each).max(initial=0.0) for each in given)
    return bool(most < 0.5 / U) and all((each % 1 == 0).all() for each in given)


def bound_faults(program: Program, flat: Flat, bound: float, y: Any, slopes: Any = None) -> Iterator[str]:
    """Yield a fault if a bound is better than its multipliers prove: first outward, then, if needed, exactly.

    `slopes` are those of requests with concave worths (``worths.py``).
    """
    added = Fraction(0)
    if is_concave(program):
        flat = Flat(program)
        added = inf if slopes is None else add_slopes(program, flat, slopes)
        if added == inf:
            yield f"bound {bound!r}, its slopes prove nothing"
            return
    told, lowest = program.sign * (Fraction(bound) - Fraction(program.offset) - added), -inf
    if not any(told <= (lowest := max(lowest, each)) for each in attempts(flat, y)):
        yield f"bound {bound!r}, its prices prove {float(program.sign * lowest + program.offset)!r}"


@np.errstate(all="ignore")
def judged(program: Program, mark: Any, plan: Any) -> tuple[list[str], list[str]]:
    """Check a round; return (checks made, faults)."""
    answer, settings, flat, faults, checked = mark["answer"], mark["settings"], Flat(program), [], ["point"]
    told = answer.get("ray") if answer["status"] == "primal_infeasible" else answer
    if answer["status"] == "dual_infeasible" or told is None or "prices" not in told:
        return [], []
    y = multipliers(program, flat, told)
    if told is not answer:
        return ["ray"], [] if any(each > 0 for each in attempts(flat, y, False)) else ["the ray proves nothing"]
    if answer["certified"]:
        checked.append("bound")
        faults += bound_faults(program, flat, answer["bound"], program.sign * y, answer.get("slopes"))
    part = np.append(answer["x"], np.ones(len(answer["place"]) - len(answer["x"])))  # values left out are 1
    x = spread(flat.low.copy(), flat.first, answer["place"], answer["column"], part)
    optimal = answer["status"] == "optimal"
    tolerances = (settings["tolerance"], settings["absolute_tolerance"]) if optimal else (inf, inf)
    faults += point_faults(program, flat, x, answer["objective"], tolerances)
    gap = abs(answer["objective"] - answer["bound"]) / (1 + abs(answer["objective"]) + abs(answer["bound"]))
    if not gap <= tolerances[0]:
        faults.append(f"called optimal with a gap of {gap:.3g}")
    if plan is not None and "column" in plan:
        checked += ["plan"] if plan.get("searched") is None else ["plan", "bound of a search, not proven"]
        faults += point_faults(program, flat, planned(flat, plan), plan["objective"])
        if plan["certified"] and not (answer["certified"] and plan["bound"] == answer["bound"]):
            faults += bound_faults(program, flat, plan["bound"], program.sign * y)
    return checked, faults


def verify(path: Path) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield (round, checks made, faults) for each round of a tape, and "cut short ..." for a torn tape.

    Raises Unusable if the tape cannot be read or an edit cannot be applied.
    """
    programs = {}
    for (kind, stream, number, value), after in pairwise(chain(records(path), [(b"ENDS", -1, 0, None)])):
        try:
            if kind == b"TORN":
                yield number, [value], []
            elif kind == b"BASE":
                programs[stream] = Program(value["model"])
            elif kind == b"ROUN":
                for what, edits in value[:-1]:
                    for edit in edits if what == "edit" else ():
                        programs[stream].do(*edit)
                plan = after[3] if after[:2] == (b"PLAN", stream) else None
                yield number, *judged(programs[stream], value[-1], plan)
        except FAULTS as error:
            lacks = f"it lacks {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
            raise Unusable(f"round {number} cannot be read: {lacks}") from error
