"""Judges the answers on a tape. ``program.py`` reads the tape and applies the edits; neither imports copter.

The program is min c'x (a maximisation has its signs turned), rows lower <= A x <= upper (those of resources, private
rows, and the sum of each request's columns), box low <= x <= high.

- Bound. Multipliers y of rows (zero where a row lacks the bound for their sign) prove c'x >= y'b + min over the box of
  (c - A'y)'x. It is evaluated outward (Neumaier and Shcherbina, 2004): d = c - A'y in floating point is wrong by at
  most g (|c| + |A|'|y|), g = n u / (1 - n u) with n operations, u = 2^-53 (Higham 2002, lemma 3.1); sums are exact
  (fsum). The answer's bound must not exceed this; if it does by less than 1e-9, rational numbers decide.
- Infeasible. The same with c = 0 must be above zero. Unbounded rounds are counted as unanswered.
- LP point. The objective is recomputed; an optimal one has rows, boxes and gap within the settings' tolerance.
- Plan. Each row, sum and box is checked in rational arithmetic; the objective is recomputed. Fractional numbers stand
  for decimals, so they may be off by half a unit in the last place (2^-53 of the sum of sizes), and no more.
  A bound from a search of all choices, better than that of the prices, is counted as not proven here.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain
from math import fsum, inf
from typing import Any

import numpy as np

from .program import FAULTS, Flat, Path, Program, U, Unusable, records
from .tree import is_proof, is_rejected

NEAR = 1e-9  # relative; a bound that misses by less is judged in rational arithmetic, which is a thousand times slower


def rational(array: Any) -> Any:
    """Return an array's finite numbers as fractions."""
    return np.array([Fraction(each) if abs(each) < inf else each for each in array.tolist()], object)


def added(at: Any, terms: Any, n: int) -> Any:
    """Return, for each of 0, ..., n - 1, the sum of the terms that belong to it."""
    if terms.dtype != object:
        return np.bincount(at, terms, n)
    total = np.full(n, Fraction(0), object)
    np.add.at(total, at, terms)
    return total


def spread(array: Any, first: Any, place: Any, which: Any, value: Any) -> Any:
    """Return `array` with values at columns or rows `which` of the requests `place`, each of which begins at first."""
    assert ((place >= 0) & (which >= 0) & (first[place] + which < first[place + 1])).all(), "a value is of no column"
    array[first[place] + which] = value
    return array


def planned(program: Program, flat: Flat, plan: Any) -> Any:
    """Return a plan's point: a whole request has one column at 1, or none; others have shares."""
    assert len(plan["column"]) == len(program.requests), "a plan has another number of requests"
    place = np.flatnonzero(plan["column"] >= 0)
    x = spread(np.zeros(flat.n), flat.first, place, plan["column"][place], 1.0)
    return spread(x, flat.first, *plan["share"])


def multipliers(program: Program, flat: Flat, told: Any) -> Any:
    """Return a multiplier of each row but the sums, from prices of resources and (request, 1 + private row, value)."""
    y = np.zeros(flat.own)
    y[list(program.row_of.values())] = told["prices"]
    if "own" not in told:
        return y
    place, row, value = (each[told["own"][1] > 0] for each in told["own"])
    return spread(y, flat.own_first, place, row - 1, value)


def of_sums(flat: Flat, gain: Any, low: Any, high: Any, bounds: Any) -> Any:
    """Return a multiplier of each sum: what the last unit gains, if the best columns fill it; zero if they do not."""
    start, best = added(flat.owner, low, len(flat.first) - 1), np.zeros(len(flat.first) - 1, gain.dtype)
    order = np.argsort(-gain, kind="stable")
    order = order[np.argsort(flat.owner[order], kind="stable")]
    for bound, worse in (bounds[1], np.maximum), (bounds[0], np.minimum):
        known = (abs(bound) < inf) & (abs(start) < inf) & (best == 0)
        need = np.where(known, np.maximum(bound - np.where(known, start, 0), 0), 0)
        filled = np.cumsum(np.concatenate(([0], np.minimum((high - low)[order], need[flat.owner]))))
        last = np.searchsorted(filled[1:], filled[flat.first[:-1]] + need)
        known &= last < flat.first[1:]
        best[known] = worse(gain[order][last[known]], 0)
    return -best


@np.errstate(all="ignore")  # with NaN the proof fails anyway
def proven(flat: Flat, y: Any, with_costs: bool = True, exact: bool = False) -> Any:
    """Return the lower bound on the minimum that row multipliers prove: rounded down or, if exact, rational."""
    given = y, flat.cost * with_costs, flat.value, flat.low, flat.high, flat.row_low, flat.row_high
    y, cost, value, low, high, *rows = map(rational, given) if exact else given
    side = np.where(y > 0, rows[0][: flat.own], rows[1][: flat.own])
    y = np.where((abs(side) < inf) & (abs(y) < inf), y, 0)
    used, error = value * y[flat.row], 0
    rate = cost - added(flat.column, used, flat.n)
    if not exact:
        n = np.bincount(flat.column, minlength=flat.n) + 8.0
        size = np.bincount(flat.column, abs(used), flat.n) + abs(cost)
        error = n * U / (1 - n * U) * size * (1 + 8 * U)
    price = of_sums(flat, error - rate, low, high, [each[flat.own :] for each in rows])
    error, rate = error + (not exact) * 2 * U * (abs(rate) + abs(price)[flat.owner]), rate - price[flat.owner]
    y = np.concatenate((y, price))
    paid = np.where(y == 0, 0, y * np.where(y > 0, *rows))
    most = [np.where(at < 0, rate, -rate) + error for at in (low, high)]
    most = [np.where((at == 0) | (each == 0), 0, each * abs(at)) for each, at in zip(most, (low, high), strict=True)]
    terms = np.concatenate((paid, -np.maximum(*most)))
    if not (abs(terms) < inf).all():
        return -inf
    return sum(terms.tolist()) if exact else fsum(terms.tolist()) - 4 * U * fsum(abs(terms).tolist()) - 1e-300


def point_faults(program: Program, flat: Flat, x: Any, told: float, settings: Any = None) -> Iterator[str]:
    """Yield the faults of an LP's point, within the settings' tolerance (F8), or of a plan, in rational numbers."""
    number: Any = rational if settings is None else np.asarray
    columns, entries = np.flatnonzero(x), np.flatnonzero(x[flat.column])
    value = float(sum((rational(flat.cost[columns]) * rational(x[columns])).tolist()))
    if not abs(program.sign * value + program.offset - told) <= NEAR * (1 + abs(told)):
        yield f"objective {told!r}, its point is worth {program.sign * value + program.offset!r}"
    at = np.concatenate((flat.row[entries], flat.own + flat.owner[columns]))
    a, b = np.append(flat.value[entries], np.ones(len(columns))), x[np.append(flat.column[entries], columns)]
    terms, m = number(a) * number(b), len(flat.row_low)
    total, size, decimal = added(at, terms, m), added(at, abs(terms), m), np.bincount(at, (a % 1 > 0) | (b % 1 > 0), m)
    low, high = number(flat.row_low), number(flat.row_high)
    off = np.maximum(np.maximum(low - total, total - high), 0)
    out = np.maximum(np.maximum(flat.low - x, x - flat.high), 0)
    if settings is not None:
        both, sides = np.append(off, out).astype(float), np.append(flat.row_low, flat.row_high)
        norm, most = np.linalg.norm(both) / (1 + np.linalg.norm(sides[abs(sides) < inf])), both.max(initial=0.0)
        if not (norm <= settings["tolerance"] and most <= settings["absolute_tolerance"]):
            yield f"the point violates its rows by {norm:.3g} ({most:.3g} at most)"
        return
    spare = (size + abs(np.where(total < low, low, high))) * Fraction(U)
    resources, names = {row: name for name, row in program.row_of.items()}, list(program.requests)
    for row in np.flatnonzero((off > 0) & ((decimal == 0) | (off > spare))).tolist():
        k = row - flat.own if row >= flat.own else np.searchsorted(flat.own_first, row, side="right") - 1
        who = f"resource {resources[row]!r}" if row in resources else f"request {names[k]!r}"
        yield f"{who} is used beyond its bounds" if row in resources else f"{who} does not keep to its rows"
    integer = np.array([request["integer"][0] for request in program.requests.values()], bool)[flat.owner]
    for j in np.flatnonzero((out > 0) | (integer & (x % 1 != 0))).tolist():
        yield f"request {names[flat.owner[j]]!r} has a column that is not whole or out of its bounds"


def bound_faults(program: Program, flat: Flat, bound: float, y: Any) -> Iterator[str]:
    """Yield a fault if a bound is better than its multipliers prove: first outward, then, if needed, exactly."""
    told = program.sign * (Fraction(bound) - Fraction(program.offset))
    for exact in False, True:
        lowest = proven(flat, y, exact=exact)
        if lowest != -inf and told <= Fraction(lowest):
            return
        if lowest != -inf and told - Fraction(lowest) > (abs(told) + 1) * Fraction(NEAR):
            break
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
        return ["ray"], [] if proven(flat, y, with_costs=False) > 0 else ["the ray proves nothing"]
    if answer["certified"]:
        checked.append("bound")
        faults += bound_faults(program, flat, answer["bound"], program.sign * y)
    part = np.append(answer["x"], np.ones(len(answer["place"]) - len(answer["x"])))  # values left out are 1
    x = spread(flat.low.copy(), flat.first, answer["place"], answer["column"], part)
    optimal = answer["status"] == "optimal"
    endless = {"tolerance": inf, "absolute_tolerance": inf}
    faults += point_faults(program, flat, x, answer["objective"], settings if optimal else endless)
    gap = abs(answer["objective"] - answer["bound"]) / (1 + abs(answer["objective"]) + abs(answer["bound"]))
    if optimal and not gap <= settings["tolerance"]:
        faults.append(f"called optimal with a gap of {gap:.3g}")
    if plan is not None and "column" in plan:
        checked += ["plan"] if plan.get("searched") is None else ["plan", "bound of a search, not proven"]
        faults += point_faults(program, flat, planned(program, flat, plan), plan["objective"])
        if plan["certified"] and not (answer["certified"] and plan["bound"] == answer["bound"]):
            faults += bound_faults(program, flat, plan["bound"], program.sign * y)
    return checked, faults


def verify(path: Path) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield (round, checks made, faults) for each round of a tape, and "cut short ..." for a torn tape.

    Raises Unusable if the tape cannot be read or an edit cannot be applied.
    """
    programs, waiting = {}, None
    for kind, stream, number, value in chain(records(path), [(b"ENDS", None, None, None)]):
        at = number  # the round that an error message names
        try:
            if waiting is not None:
                before, at, mark = waiting
                yield at, *judged(programs[before], mark, value if (kind, stream) == (b"PLAN", before) else None)
                waiting, at = None, number
            if kind == b"TORN":
                yield number, [value], []
            elif kind == b"BASE":
                programs[stream] = Program(value["model"])
            elif kind == b"ROUN":
                for what, edits in value[:-1]:
                    for edit in edits if what == "edit" else ():
                        programs[stream].do(*edit)
                waiting = stream, number, value[-1]
        except FAULTS as error:
            raise Unusable(f"round {at}: {type(error).__name__}: {error}") from error


def main(paths: Sequence[Path]) -> int:
    """Verify tapes and proofs; exit code 0 if all is accepted, 1 if a round is rejected, 2 for an unusable file."""
    wrong = 0
    for path in paths:
        counts = Counter(rounds=0, accepted=0, rejected=0)
        try:
            if is_proof(path):
                wrong += is_rejected(path)
                continue
            for number, checked, faults in verify(path):
                if checked and checked[0].startswith("cut short"):
                    print(f"{path}: {checked[0]}: the rounds before it are judged", file=sys.stderr)
                    continue
                counts.update(("rounds", "rejected" if faults else "accepted" if checked else "unanswered", *checked))
                for fault in faults:
                    print(f"{path}: round {number} is rejected: {fault}")
        except (Unusable, OSError, MemoryError) as error:
            print(f"{path}: {error or 'there is not enough memory'}", file=sys.stderr)
            return 2
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count or what == "rejected")
        print(f"{path}: {told}")
        wrong += counts["rejected"]
    return 1 if wrong else 0
