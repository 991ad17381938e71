"""The judge of the answers on a tape. ``program.py`` reads the tape and does the edits; neither imports copter.

For min c'x (a maximisation has its signs turned), rows lower <= A x <= upper, and requests r with columns x_r in P_r:
box, least <= sum x_r <= limit, private rows B x_r:

- Bound. Prices y (of the sign that a bound of their row answers for, else zero) and multipliers u of private rows prove
  c'x >= y'b + sum_r [u'b_r + min over box and sum of (c_r - A_r'y - B_r'u)'x]. It is evaluated outward (Neumaier and
  Shcherbina, 2004): d = c - A'y - B'u in floating point is wrong by at most g (|c| + |A|'|y| + |B|'|u|), g =
  n u / (1 - n u) with n operations, u = 2^-53 (Higham 2002, lemma 3.1); sums are exact (fsum). The answer's bound must
  be no more; where it is, by less than 1e-9, the same is evaluated in rational numbers.
- Infeasible. The same with c = 0 must be above zero. Unbounded rounds are counted as unanswered.
- LP point. Objective recomputed; rows, boxes and gap within the settings' tolerance, if it is called optimal.
- Plan. Every row, sum and box in exact rational arithmetic; the objective recomputed. Figures that are not whole stand
  for decimals, so half a unit in the last place of each (2^-53 of the sum of sizes) is allowed to them, nothing else.
"""

import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain
from math import fsum, inf
from typing import Any

import numpy as np

from .program import FAULTS, Path, Program, U, Unusable, records
from .tree import is_proof, is_rejected

NEAR = 1e-9  # relative: a bound that misses by less is judged in rational arithmetic, which is a thousand times slower


def dense(places: Any, triples: Any, width: int, otherwise: Any = 0.0) -> Any:
    """Return a dense array of (place, column, value) triples, one row per place; `otherwise` elsewhere."""
    array, row = np.zeros((len(places), width)) + otherwise, np.full(int(triples[0].max(initial=0)) + 1, -1)
    row[places[places < len(row)]] = np.flatnonzero(places < len(row))
    at = row[triples[0]]
    assert min(triples[0].min(initial=0), triples[1].min(initial=0)) >= 0, "a place is below zero"
    array[at[at >= 0], triples[1][at >= 0]] = triples[2][at >= 0]
    return array


def proven(program: Program, prices: Any, own: Any, with_costs: bool = True) -> float:
    """Return a lower bound on the minimum, from prices of resources and multipliers of private rows, rounded down."""
    y, terms = np.zeros(len(program.low)), []
    y[list(program.row_of.values())] = prices
    side = np.where(y > 0, program.low, program.high)
    y[~np.isfinite(side) | ~np.isfinite(y)] = 0.0
    terms.append(y * np.where(y == 0, 0.0, side))
    for template, places, cost, low, high, limit, least, bounds in program.groups():
        n, used, size = template.n, template.value * y[template.row], with_costs * np.abs(cost)
        gain = np.bincount(template.column, used, n) - with_costs * cost
        size = size + np.bincount(template.column, np.abs(used), n)
        operations = np.bincount(template.column, minlength=n) + np.bincount(template.own_column, minlength=n) + 8.0
        if template.n_own:
            u = dense(places, own, template.n_own + 1)[:, 1:]
            side = np.where(u > 0, bounds[:, : template.n_own], bounds[:, template.n_own :])
            u[~np.isfinite(side) | ~np.isfinite(u)] = 0.0
            terms.append(u * np.where(u == 0, 0.0, side))
            cell, used = (
                template.own_column + n * np.arange(len(u))[:, None],
                template.own_value * u[:, template.own_row],
            )
            gain += np.bincount(cell.ravel(), used.ravel(), gain.size).reshape(gain.shape)
            size += np.bincount(cell.ravel(), np.abs(used).ravel(), gain.size).reshape(gain.shape)
        error = operations * U / (1.0 - operations * U) * size * (1.0 + 8 * U)
        # A price of the sum, so that its columns are worth no more: that of the last unit, filling from the best on.
        best, start, price = gain + error, low.sum(1), np.zeros(len(places))
        one = np.isfinite(limit) & (least <= start) & ((high - low) >= (limit - start)[:, None]).all(1)
        price[one] = np.maximum(best[one].max(1), 0.0)
        for k in np.flatnonzero(~one & (np.isfinite(limit) | np.isfinite(least))).tolist():
            order = np.argsort(-best[k], kind="stable")
            filled = np.cumsum((high - low)[k][order]) + start[k]
            last, first = (np.flatnonzero(filled >= each[k])[:1] for each in (limit, least))
            price[k] = max([*best[k][order[last]], 0.0]) if np.isfinite(limit[k]) else 0.0
            price[k] = min([*best[k][order[first]], 0.0]) if price[k] == 0.0 and np.isfinite(least[k]) else price[k]
        terms.append(-price * np.where(price == 0, 0.0, np.where(price > 0, limit, least)))
        net, error = gain - price[:, None], error + 2 * U * (np.abs(gain) + np.abs(price)[:, None])
        with np.errstate(invalid="ignore"):
            worst = [np.where(at == 0, 0.0, net * at + error * np.abs(at)) for at in (low, high)]
            worst[1] = np.where((high == inf) & (net + error <= 0), worst[0], worst[1])
        terms.append(-np.maximum(*worst))
    every = np.concatenate([np.ravel(each) for each in terms])
    if not np.isfinite(every).all():
        return -inf
    return fsum(every.tolist()) - 4 * U * fsum(np.abs(every).tolist()) - 1e-300


def proven_exactly(program: Program, prices: Any, own: Any, with_costs: bool = True) -> Any:
    """Return the bound of :func:`proven` in exact rational arithmetic, for bounds within its rounding error."""
    y, total = dict(zip(program.row_of.values(), map(Fraction, prices.tolist()), strict=True)), Fraction(0)
    for row, price in y.items():
        side = program.low[row] if price > 0 else program.high[row]
        y[row] = price if abs(side) < inf else Fraction(0)
        total += y[row] * Fraction(side) if y[row] else 0
    for template, places, cost, low, high, limit, least, bounds in program.groups():
        n_own, owns = template.n_own, dense(places, own, template.n_own + 1)[:, 1:]
        used = [Fraction(0)] * template.n
        for column, row, value in zip(template.column.tolist(), template.row.tolist(), template.value, strict=True):
            used[column] += Fraction(value) * y.get(row, 0)
        for k in range(len(places)):
            sides = np.where(owns[k] > 0, bounds[k, :n_own], bounds[k, n_own:])
            u = [Fraction(each) if abs(side) < inf else 0 for each, side in zip(owns[k], sides, strict=True)]
            total += sum(each * Fraction(side) for each, side in zip(u, sides, strict=True) if each)
            gain = [each - Fraction(with_costs * value) for each, value in zip(used, cost[k], strict=True)]
            for column, row, value in zip(template.own_column, template.own_row, template.own_value, strict=True):
                gain[column] += Fraction(value) * u[row]
            if (low[k] == -inf).any():  # a sum over such columns is not gone into: it proves nothing here
                worst = [(g, float(high[k, j] if g > 0 else low[k, j])) for j, g in enumerate(gain) if g]
                if min(limit[k], -least[k]) < inf or any(abs(at) == inf for _, at in worst):
                    return -inf
                total -= sum(g * Fraction(at) for g, at in worst)
                continue
            start = sum(map(Fraction, low[k]))
            room, need = (each if abs(each) == inf else Fraction(each) - start for each in (limit[k], least[k]))
            total -= sum(g * Fraction(at) for g, at in zip(gain, low[k], strict=True))
            for g, j in sorted(((g, j) for j, g in enumerate(gain)), reverse=True):
                wide = inf if high[k, j] == inf else Fraction(high[k, j]) - Fraction(low[k, j])
                part = min(wide, room if g > 0 else max(min(need, room), 0))
                if g and part == inf:
                    return -inf
                total, room, need = total - (g * part if g else 0), room - part, need - part
                if room <= 0 or (g <= 0 and need <= 0):
                    break
    return total


def point(program: Program, triples: Any) -> tuple[float, float, float]:
    """Return (objective, relative violation, largest violation) of an LP's point (F8)."""
    use, off, size, total = np.zeros(len(program.low)), [], [], [np.zeros(0)]
    between = lambda value, low, high: off.append(np.maximum(np.maximum(low - value, value - high), 0.0))  # noqa: E731
    for template, places, cost, low, high, limit, least, bounds in program.groups():
        x, n_own = dense(places, triples, template.n, low), template.n_own
        cells = template.own_row + n_own * np.arange(len(places))[:, None]
        own = np.bincount(cells.ravel(), (x[:, template.own_column] * template.own_value).ravel(), len(places) * n_own)
        use += np.bincount(template.row, template.value * x.sum(0)[template.column], len(use))
        for value, lower, upper in (
            (x.sum(1), least, limit),
            (own, bounds[:, :n_own].ravel(), bounds[:, n_own:].ravel()),
        ):
            between(value, lower, upper)
            size += [lower[np.isfinite(lower)], upper[np.isfinite(upper)]]
        between(x.ravel(), low.ravel(), high.ravel())
        total.append((cost * x)[x != 0.0])
    rows = list(program.row_of.values())
    lower, upper = np.array(program.low)[rows], np.array(program.high)[rows]
    between(use[rows], lower, upper)
    norm = np.linalg.norm(np.concatenate([*size, lower[np.isfinite(lower)], upper[np.isfinite(upper)]]))
    off = np.concatenate(off)
    return fsum(np.concatenate(total).tolist()), np.linalg.norm(off) / (1 + norm), off.max(initial=0.0)


def holds(terms: Any, low: float, high: float) -> bool:
    """Whether low <= sum of products <= high, exactly; the module's docstring states the allowance for decimals."""
    total, size = (sum(f(Fraction(a)) * f(Fraction(b)) for a, b in terms) for f in (Fraction, abs))
    whole = all(float(a).is_integer() and float(b).is_integer() for a, b in terms)
    spare = [0 if whole or abs(bound) == inf else Fraction(U) * (size + abs(Fraction(bound))) for bound in (low, high)]
    return (low == -inf or total >= Fraction(low) - spare[0]) and (high == inf or total <= Fraction(high) + spare[1])


def plan_faults(program: Program, plan: Any) -> Iterator[str]:
    """Yield the faults of a plan, in which an integer request has one column at 1 or none, a continuous one shares."""
    whole = np.flatnonzero(plan["column"] >= 0)
    ones = whole, plan["column"][whole], np.ones(len(whole))
    triples = [np.concatenate(each) for each in zip(ones, plan["share"], strict=True)]
    assert len(plan["column"]) == len(program.requests), "it has another number of requests"
    rows, names, costs = {row: [] for row in program.row_of.values()}, list(program.requests), []
    for template, places, cost, low, high, limit, least, bounds in program.groups():
        x = dense(places, triples, template.n)
        for k, place in enumerate(places.tolist()):
            used, name, own = np.flatnonzero(x[k]).tolist(), names[place], [[] for _ in range(template.n_own)]
            costs += [Fraction(cost[k, j]) * Fraction(x[k, j]) for j in used]
            if program.requests[name].integer and not all(float(x[k, j]).is_integer() for j in used):
                yield f"request {name!r} must be whole"
            for j in used:
                for e in range(*np.searchsorted(template.column, [j, j + 1])):
                    rows[template.row[e]].append((template.value[e], x[k, j]))
                for e in range(*np.searchsorted(template.own_column, [j, j + 1])):
                    own[template.own_row[e]].append((template.own_value[e], x[k, j]))
            if (x[k] < low[k]).any() or (x[k] > high[k]).any():
                yield f"request {name!r} has a column out of its bounds"
            sides = np.reshape(bounds[k], (2, -1)).T.tolist()
            if not all(
                map(holds, [[(x[k, j], 1.0) for j in used], *own], *zip((least[k], limit[k]), *sides, strict=True))
            ):
                yield f"request {name!r} does not keep to its sum or private rows"
    for name, row in program.row_of.items():
        if not holds(rows[row], program.low[row], program.high[row]):
            yield f"resource {name!r} is used beyond its bounds"
    yield from objective_fault(program, float(sum(costs)), plan["objective"])


def objective_fault(program: Program, value: float, told: float) -> Iterator[str]:
    """Yield a fault if an objective differs from its point's value by 1e-9 or more."""
    if not abs(program.sign * value + program.offset - told) <= 1e-9 * (1 + abs(told)):
        yield f"objective {told!r}, its point is worth {program.sign * value + program.offset!r}"


def bound_fault(program: Program, bound: float, prices: Any, own: Any) -> Iterator[str]:
    """Yield a fault if a bound is better than its prices prove, checked with outward rounding, then exactly."""
    told = program.sign * (Fraction(bound) - Fraction(program.offset))
    for prove in proven, proven_exactly:
        lowest = prove(program, prices, own)
        if lowest != -inf and told <= Fraction(lowest):
            return
        if lowest != -inf and told - Fraction(lowest) > (abs(told) + 1) * Fraction(NEAR):
            break
    yield f"bound {bound!r}, its prices prove {float(program.sign * lowest + program.offset)!r}"


def judged(program: Program, mark: Any, plan: Any) -> tuple[list[str], list[str]]:
    """Check a round; returns (what was checked, what is wrong)."""
    answer, settings, faults, checked = mark["answer"], mark["settings"], [], []
    none = np.zeros(0, int), np.zeros(0, int), np.zeros(0)
    if answer["status"] == "primal_infeasible":
        m = len(program.row_of)
        ray, own, at = answer["ray"], [], m
        for place, request in enumerate(program.requests.values()):
            at += request.limit < inf or request.least > -inf
            own += [(place, 1 + k, ray[at + k]) for k in range(request.template.n_own)]
            at += request.template.n_own
        triples = [np.array(each) for each in zip(*own, strict=True)] or none
        checked = ["ray"]
        faults += [] if proven(program, ray[:m], triples, False) > 0.0 else ["the ray proves nothing"]
    elif answer.get("prices") is not None and answer["status"] != "dual_infeasible":
        own = answer.get("own", none)
        prices, own = program.sign * answer["prices"], (own[0], own[1], program.sign * own[2])
        if answer["certified"]:
            checked.append("bound")
            faults += bound_fault(program, answer["bound"], prices, own)
        value, violation, most = point(program, (answer["place"], answer["column"], answer["x"]))
        checked.append("point")
        faults += objective_fault(program, value, answer["objective"])
        gap = abs(answer["objective"] - answer["bound"]) / (1 + abs(answer["objective"]) + abs(answer["bound"]))
        if answer["status"] == "optimal":
            within = violation <= settings["tolerance"] and most <= settings["absolute_tolerance"]
            faults += [] if within else [f"the point violates its rows by {violation:.3g} ({most:.3g} at most)"]
            faults += [] if gap <= settings["tolerance"] else [f"called optimal with a gap of {gap:.3g}"]
        if plan is not None and "column" in plan:
            checked.append("plan")
            faults += plan_faults(program, plan)
            faults += bound_fault(program, plan["bound"], prices, own) if plan["certified"] else []
    return checked, faults


def verify(path: Path) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield (round, what was checked, what is wrong) for every round of a tape, and "cut short ..." for a torn tape.

    Unusable if it cannot be read, or an edit cannot be done.
    """
    programs, waiting = {}, None
    for kind, stream, number, value in chain(records(path), [(b"ENDS", None, None, None)]):
        at = number  # the round that an error is of
        try:
            if waiting is not None:
                before, at, program, mark = waiting
                plan = value if kind == b"PLAN" and stream == before else None
                with np.errstate(all="ignore"):  # a number that is none proves nothing
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
