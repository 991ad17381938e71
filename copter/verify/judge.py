"""Judges the answers on a tape. ``program.py`` reads the tape and applies the edits; neither imports copter.

For min c'x (a maximisation has its signs turned), rows lower <= A x <= upper (private rows among them), and requests r
whose columns obey their bounds (the box) and least <= sum x_r <= limit:

- Bound. Multipliers y of rows (zero where a row lacks the bound for their sign) prove c'x >= y'b + sum_r
  min over box and sum of (c_r - A_r'y)'x. It is rounded in the safe direction (Neumaier and Shcherbina, 2004): d = c -
  A'y in floating point is wrong by at most g (|c| + |A|'|y|), g = n u / (1 - n u) with n operations, u = 2^-53 (Higham
  2002, lemma 3.1); sums are exact (fsum). The answer's bound must not exceed this; if it does by less than 1e-9, the
  same is evaluated in rational numbers.
- Infeasible. The same with c = 0 must be above zero. Unbounded rounds are counted as unanswered.
- LP point. The objective is recomputed; an optimal one has rows, boxes and gap within the settings' tolerance.
- Plan. Each row, sum and box is checked in rational arithmetic; the objective is recomputed. Fractional numbers stand
  for decimals, so they may be off by half a unit in the last place (2^-53 of the sum of sizes), and no more.
  A bound from a search of all choices, better than that of the prices, is counted as not proven here.
"""

import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain
from math import fsum, inf
from typing import Any

import numpy as np

from .program import FAULTS, Flat, Path, Program, U, Unusable, records
from .tree import is_proof, is_rejected

# a bound that misses by less than this relative amount is judged in rational arithmetic, a thousand times slower
NEAR = 1e-9
NONE = np.zeros(0, int), np.zeros(0, int), np.zeros(0)


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


def spread(array: Any, first: Any, triples: Any) -> Any:
    """Return `array` with values set at (request, its column or row); `first` has the first entry of each request."""
    place, which, value = triples
    at = first[place] + which
    assert ((place >= 0) & (which >= 0) & (at < first[place + 1])).all(), "a value is of no column"
    array[at] = value
    return array


def multipliers(program: Program, flat: Flat, prices: Any, own: Any) -> Any:
    """Return one multiplier for each row, from prices of resources and (request, 1 + its private row, value)."""
    y, rows = np.zeros(len(flat.row_low)), own[1] > 0
    y[list(program.row_of.values())] = prices
    return spread(y, flat.own_first, (own[0][rows], own[1][rows] - 1, own[2][rows]))


@np.errstate(all="ignore")  # with NaN the proof fails anyway
def proven(flat: Flat, y: Any, with_costs: bool = True, exact: bool = False) -> Any:
    """Return the lower bound on the minimum that row multipliers prove: rounded down or, if exact, rational."""
    given = y, flat.cost * with_costs, flat.value, flat.low, flat.high, flat.limit, flat.least
    y, cost, value, low, high, limit, least = map(rational, given) if exact else given
    side = np.where(y > 0, flat.row_low, flat.row_high)
    kept = (abs(side) < inf) & (abs(y) < inf)
    y, side = np.where(kept, y, 0), np.where(kept, side, 0.0)
    paid, used, owner, error = y * (rational(side) if exact else side), value * y[flat.row], flat.owner, 0
    gain = added(flat.column, used, len(cost)) - cost
    if not exact:
        size = np.bincount(flat.column, abs(used), len(cost)) + abs(cost)
        operations = np.bincount(flat.column, minlength=len(cost)) + 8.0
        error = operations * U / (1 - operations * U) * size * (1 + 8 * U)
    # The price of each sum: the reduced cost of the last unit when columns are filled from the best on.
    best, start, price = gain + error, added(owner, low, len(limit)), np.zeros(len(limit), y.dtype)
    order = sorted(range(len(best)), key=lambda j: (owner[j], -best[j])) if exact else np.lexsort((-best, owner))
    for bound, worse in (limit, np.maximum), (least, np.minimum):
        need = bound - start
        known = (abs(need) < inf) & (price == 0)
        filled = np.cumsum(np.minimum((high - low)[order], np.where(known, np.maximum(need, 0), 0)[owner]))
        before = np.concatenate(([0], filled))[flat.first[:-1]]
        short = filled - before[owner] < (need - (0 if exact else 1e-11 * (1 + abs(need))))[owner]
        last = flat.first[:-1] + np.bincount(owner, short, len(limit)).astype(int)
        known &= last < flat.first[1:]
        price[known] = worse(best[order][last[known]], 0)
    sums = np.where(price == 0, 0, price * np.where(price > 0, limit, least))
    net, error = gain - price[owner], error + (0 if exact else 2 * U * (abs(gain) + abs(price)[owner]))
    most = [np.where(at < 0, -net, net) + error for at in (low, high)]
    most = [np.where((at == 0) | (rate == 0), 0, rate * abs(at)) for rate, at in zip(most, (low, high), strict=True)]
    terms = np.concatenate((paid, -sums, -np.maximum(*most)))
    if not (abs(terms) < inf).all():
        return -inf
    return sum(terms.tolist()) if exact else fsum(terms.tolist()) - 4 * U * fsum(abs(terms).tolist()) - 1e-300


def point(flat: Flat, x: Any) -> tuple[float, float, float]:
    """Return (objective, violation relative to the bounds' norm, largest violation) of an LP's point (F8)."""
    rows = added(flat.row, flat.value * x[flat.column], len(flat.row_low)), flat.row_low, flat.row_high
    sums = added(flat.owner, x, len(flat.limit)), flat.least, flat.limit
    values, low, high = map(np.concatenate, zip((x, flat.low, flat.high), rows, sums, strict=True))
    off, sides = np.maximum(np.maximum(low - values, values - high), 0.0), np.concatenate((*rows[1:], *sums[1:]))
    norm = np.linalg.norm(sides[abs(sides) < inf])
    return fsum((flat.cost * x)[x != 0].tolist()), np.linalg.norm(off) / (1 + norm), off.max(initial=0.0)


def broken(at: Any, a: Any, b: Any, low: Any, high: Any) -> Any:
    """Return where the exact sum of a * b is outside its bounds; the module says which rounding is allowed."""
    terms = rational(a) * rational(b)
    total, size = added(at, terms, len(low)), added(at, abs(terms), len(low))
    decimal = np.bincount(at, (a % 1 != 0) | (b % 1 != 0), len(low)) > 0
    over = np.zeros(len(low), bool)
    for side, sign in (low, 1), (high, -1):
        spare = np.where(decimal, (size + abs(rational(side))) * Fraction(U), 0)
        over |= (sign * (rational(side) - total) > spare) & (abs(side) < inf)
    return np.flatnonzero(over)


def plan_faults(program: Program, flat: Flat, plan: Any) -> Iterator[str]:
    """Yield the faults of a plan: a whole request has one column at 1 or none, a continuous one its shares."""
    assert len(plan["column"]) == len(program.requests), "it has another number of requests"
    whole = np.flatnonzero(plan["column"] >= 0)
    x = spread(np.zeros(len(flat.cost)), flat.first, (whole, plan["column"][whole], 1.0))
    x = spread(x, flat.first, plan["share"])
    names, resources = list(program.requests), {row: name for name, row in program.row_of.items()}
    integer = np.array([request.integer for request in program.requests.values()], bool)
    for k in sorted({*flat.owner[integer[flat.owner] & (x % 1 != 0)].tolist()}):
        yield f"request {names[k]!r} must be whole"
    for k in sorted({*flat.owner[(x < flat.low) | (x > flat.high)].tolist()}):
        yield f"request {names[k]!r} has a column out of its bounds"
    used, entries = np.flatnonzero(x), np.flatnonzero(x[flat.column])
    ones = np.ones(len(used))
    for k in broken(flat.owner[used], x[used], ones, flat.least, flat.limit).tolist():
        yield f"request {names[k]!r} does not keep to its sum"
    values = flat.value[entries], x[flat.column[entries]]
    for row in broken(flat.row[entries], *values, flat.row_low, flat.row_high).tolist():
        own = names[np.searchsorted(flat.own_first, row, side="right") - 1] if row not in resources else ""
        yield (
            f"resource {resources[row]!r} is used beyond its bounds"
            if row in resources
            else (f"request {own!r} does not keep to its private rows")
        )
    value = float(sum((rational(flat.cost[used]) * rational(x[used])).tolist()))
    yield from objective_fault(program, value, plan["objective"])


def objective_fault(program: Program, value: float, told: float) -> Iterator[str]:
    """Yield a fault if an objective differs from its point's value by 1e-9 or more."""
    if not abs(program.sign * value + program.offset - told) <= 1e-9 * (1 + abs(told)):
        yield f"objective {told!r}, its point is worth {program.sign * value + program.offset!r}"


def bound_fault(program: Program, flat: Flat, bound: float, y: Any) -> Iterator[str]:
    """Yield a fault if a bound is better than its multipliers prove, in safely rounded and, if needed, in exact
    arithmetic.
    """
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
    answer, settings, faults, checked = mark["answer"], mark["settings"], [], []
    flat, m = Flat(program), len(program.row_of)
    if answer["status"] == "primal_infeasible":
        ray, own, at = answer["ray"], [], m
        for place, request in enumerate(program.requests.values()):
            at += request.limit < inf or request.least > -inf
            own += [(place, 1 + k, ray[at + k]) for k in range(request.template.n_own)]
            at += request.template.n_own
        y = multipliers(program, flat, ray[:m], [np.array(each) for each in zip(*own, strict=True)] or NONE)
        return ["ray"], [] if proven(flat, y, with_costs=False) > 0 else ["the ray proves nothing"]
    if answer.get("prices") is None or answer["status"] == "dual_infeasible":
        return checked, faults
    y = program.sign * multipliers(program, flat, answer["prices"], answer.get("own", NONE))
    if answer["certified"]:
        checked.append("bound")
        faults += bound_fault(program, flat, answer["bound"], y)
    x = spread(flat.low.copy(), flat.first, (answer["place"], answer["column"], answer["x"]))
    value, violation, most = point(flat, x)
    checked.append("point")
    faults += objective_fault(program, value, answer["objective"])
    gap = abs(answer["objective"] - answer["bound"]) / (1 + abs(answer["objective"]) + abs(answer["bound"]))
    if answer["status"] == "optimal":
        within = violation <= settings["tolerance"] and most <= settings["absolute_tolerance"]
        faults += [] if within else [f"the point violates its rows by {violation:.3g} ({most:.3g} at most)"]
        faults += [] if gap <= settings["tolerance"] else [f"called optimal with a gap of {gap:.3g}"]
    if plan is not None and "column" in plan:
        checked += ["plan"] if plan.get("searched") is None else ["plan", "bound of a search, not proven"]
        faults += plan_faults(program, flat, plan)
        if plan["certified"] and not (answer["certified"] and plan["bound"] == answer["bound"]):
            faults += bound_fault(program, flat, plan["bound"], y)
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
                before, at, program, mark = waiting
                plan = value if kind == b"PLAN" and stream == before else None
                checked, faults = judged(program, mark, plan)
                yield at, checked, faults
                waiting, at = None, number
            if kind == b"TORN":
                yield number, [str(value)], []
            elif kind == b"BASE":
                programs[stream] = Program(value["model"])
            elif kind == b"ENDS":
                programs.pop(stream, None)
            elif kind == b"ROUN":
                for what, operations in value[:-1]:
                    for operation in operations if what == "edit" else ():
                        programs[stream].do(*operation)
                waiting = stream, number, programs[stream], value[-1]
        except FAULTS as error:
            raise Unusable(f"round {at}: {type(error).__name__}: {error}") from error


def main(paths: Sequence[Path]) -> int:
    """Verify tapes and proofs; exit code 0 if all is accepted, 1 if a round is rejected, 2 for an unusable file."""
    wrong = 0
    for path in paths:
        counts = dict.fromkeys(("rounds", "accepted", "rejected", "bound", "point", "plan", "ray"), 0)
        try:
            if is_proof(path):
                wrong += is_rejected(path)
                continue
            for number, checked, faults in verify(path):
                if any(what.startswith("cut short") for what in checked):
                    print(f"{path}: {checked[0]}: the rounds before it are judged", file=sys.stderr)
                    continue
                for what in ("rounds", "rejected" if faults else "accepted" if checked else "unanswered", *checked):
                    counts[what] = counts.get(what, 0) + 1
                for fault in faults:
                    print(f"{path}: round {number} is rejected: {fault}")
        except (Unusable, OSError, MemoryError) as error:
            print(f"{path}: {error or 'there is not enough memory'}", file=sys.stderr)
            return 2
        print(
            f"{path}: " + ", ".join(f"{count} {what}" for what, count in counts.items() if count or what == "rejected")
        )
        wrong += counts["rejected"]
    return 1 if wrong else 0
