"""What multipliers of rows prove of a program's minimum (``judge.py``). It imports nothing of copter."""

from collections.abc import Iterator
from fractions import Fraction
from math import fsum, inf
from typing import Any

import numpy as np

from .program import Flat

U = 2.0**-53  # largest relative error of one rounded operation in float64
NEARLY, MOST_EQUATIONS = Fraction(1, 10**9), 60  # rates that are made zero: most, as a share of their terms; how many


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


def of_sums(flat: Flat, rate: Any, low: Any, high: Any, bounds: Any) -> Any:
    """Return the multiplier of each sum that proves most.

    Columns fill the sum from their lower bounds on, those of the smallest rates first: it is the rate of the unit that
    reaches the bound, unless the columns stay above a least sum, or below a limit, of themselves.
    """
    order, first, prices = np.lexsort((rate, flat.owner)), flat.first[:-1], []
    rate, low, high, owner, k = rate[order], low[order], high[order], flat.owner, len(first)
    open_low, open_high = abs(low) == inf, abs(high) == inf
    base, gain = np.where(open_low, 0, low), np.where(open_high, 0, high) - np.where(open_low, 0, low)

    def after(terms: Any) -> Any:
        """Return the sum of a request's terms up to each of its columns, and this one."""
        total = np.cumsum(np.append(terms[:1] * 0, terms))
        return total[1:] - total[first][owner]

    below = np.bincount(owner, open_low, k)
    total = added(owner, base, k)[owner] + after(gain)
    total = np.where(after(1 * open_high) > 0, inf, np.where(after(1 * open_low) < below[owner], -inf, total))
    start = np.where(below > 0, -inf, added(owner, base, k))
    for bound, worse, idle in zip(bounds, (np.maximum, np.minimum), (start >= bounds[0], False), strict=True):
        last = first + np.bincount(owner, total < bound[owner], k).astype(int)
        known = (abs(bound) < inf) & (last < flat.first[1:]) & ~np.array(idle, bool)
        price = worse(np.where(known, rate[np.where(known, last, first)], 0), 0)
        # No choice of columns reaches a least sum, or keeps to a limit: any price beyond all rates proves it.
        far = last == flat.first[1:] if worse is np.maximum else start > bound
        beyond = rate[flat.first[1:] - 1] if worse is np.maximum else rate[first]
        prices.append(np.where(far & (abs(bound) < inf), worse(beyond, 0) + worse(-1, 1), price))
    return sum(prices)


IMPLIED = 3  # rows in a chain by which a column is bounded


def implied(flat: Flat, value: Any, low: Any, high: Any, rows: Any, exact: bool) -> tuple[Any, Any]:
    """Return the box, with a bound that some row implies in the place of each that is infinite, for equation F6.

    A row allows a column what the least, or the most, of its other columns leaves; it is rounded outward.
    """
    row, column, m, sides = flat.row, flat.column, len(flat.row_low), [low.copy(), high.copy()]
    count = np.bincount(row, minlength=m)
    for bound, inward, outward in ((rows[1], low, high), (rows[0], high, low)):  # the most of a row, then its least
        at = np.where(value > 0, inward[column], outward[column])  # where each column leaves most to the others
        fixed = abs(at) < inf
        term = np.where(fixed, value * np.where(fixed, at, 0), 0)
        total, size, loose = added(row, term, m), added(row, abs(term), m), np.bincount(row, ~fixed, m)
        good = (abs(bound)[row] < inf) & (loose[row] == ~fixed) & (value != 0)
        room = (np.where(abs(bound) < inf, bound, 0) - total)[row] + term
        pad = 0 if exact else (count + 8)[row] * 8 * U * (abs(room) + size[row] + abs(term))
        for side, is_high in ((0, False), (1, True)):
            mine = np.flatnonzero(good & ((value > 0) == (is_high == (bound is rows[1]))))
            mine = mine[abs((low, high)[side][column[mine]]) == inf]
            far = room[mine] / value[mine]
            far = far + (pad if exact else abs(pad[mine] / value[mine]) * (1 + 8 * U)) * (1 if is_high else -1)
            for j, found in zip(column[mine].tolist(), far.tolist(), strict=True):
                sides[side][j] = (min if is_high else max)(sides[side][j], found)
    return sides[0], sides[1]


@np.errstate(all="ignore")  # with NaN the proof fails anyway
def proven(flat: Flat, y: Any, with_costs: bool = True, exact: bool = False, box: bool = False) -> Any:
    """Return the lower bound on the minimum that row multipliers prove: rounded down or, if exact, rational.

    Those of the sums are chosen here: every choice proves a bound. With `box`, rows bound columns that have no bound.
    """
    rows = flat.row_low, flat.row_high
    y = np.where((abs(np.where(y > 0, *rows)) < inf) & (abs(y) < inf), y, 0)
    y[flat.sums] = 0
    given = y, flat.cost * with_costs, flat.value, flat.low, flat.high, *rows
    y, cost, value, low, high, *rows = map(rational, given) if exact else given
    for _ in range(IMPLIED if box else 0):  # a bound that one row implies lets another row imply one
        low, high = implied(flat, value, low, high, rows, exact)
    at = np.flatnonzero(y[flat.row])
    used, column, error = value[at] * y[flat.row[at]], flat.column[at], 0
    rate = cost - added(column, used, flat.n)
    if not exact:
        n = np.bincount(column, minlength=flat.n) + 8.0
        error = n * U / (1 - n * U) * (np.bincount(column, abs(used), flat.n) + abs(cost)) * (1 + 8 * U)
    # Twice the error below its rate, the price leaves no column worth less than nothing that has no upper bound.
    y[flat.sums] = price = of_sums(flat, rate - 2 * error, low, high, [each[flat.sums] for each in rows])
    rate = rate - price[flat.owner]
    error = error if exact else error + 2 * U * abs(rate)
    paid = np.where(y == 0, 0, y * np.where(y > 0, *rows))
    most = [np.where(at < 0, rate, -rate) + error for at in (low, high)]
    most = [np.where((at == 0) | (each == 0), 0, each * abs(at)) for each, at in zip(most, (low, high), strict=True)]
    terms = np.concatenate((paid, -np.maximum(*most)))
    if not (abs(terms) < inf).all():
        return -inf
    return sum(terms.tolist()) if exact else fsum(terms.tolist()) - 4 * U * fsum(abs(terms).tolist()) - 1e-300


def corrected(flat: Flat, y: Any, with_costs: bool = True) -> Any:
    """Return multipliers near y at which no column without a bound has a rate against it, solved in rationals.

    Prices are floats: where two columns without bounds share rows, both rates may have to be zero, and are not quite.
    """
    y = rational(np.where(abs(y) < inf, y, 0))
    y[flat.sums] = Fraction(0)
    low, high, value, *rows = map(rational, (flat.low, flat.high, flat.value, flat.row_low, flat.row_high))
    rate = rational(flat.cost * with_costs) - added(flat.column, value * y[flat.row], flat.n)
    y[flat.sums] = price = of_sums(flat, rate, low, high, [each[flat.sums] for each in rows])
    rate, at = rate - price[flat.owner], np.flatnonzero(y[flat.row])
    value, row, column = value[at], flat.row[at], flat.column[at]
    free = (flat.low == -inf) & (flat.high == inf)
    wrong = ((flat.low == -inf) & (rate > 0)) | ((flat.high == inf) & (rate < 0))
    size = added(column, abs(value * y[row]), flat.n)
    touched = (size > 0) & (abs(rate) <= NEARLY * size)
    equations = []
    for j in np.flatnonzero((free | wrong) & touched)[:MOST_EQUATIONS].tolist():
        own: dict[int, Any] = {}
        for r, each in zip(row[column == j].tolist(), value[column == j].tolist(), strict=True):
            own[r] = own.get(r, 0) + each
        equations.append((own, rate[j]))
    change: list[tuple[int, dict[int, Any], Any]] = []
    while equations:  # elimination; rows that are left over do not change
        own, right = equations.pop()
        pivot = max((r for r in own if own[r]), key=lambda r: abs(own[r]), default=None)
        if pivot is None:
            continue
        change.append((pivot, own, right))
        for place, (other, told) in enumerate(equations):
            if factor := other.get(pivot, 0) / own[pivot]:
                for r, each in own.items():
                    other[r] = other.get(r, 0) - factor * each
                equations[place] = other, told - factor * right
    shift: dict[int, Any] = {}
    for pivot, own, right in reversed(change):
        shift[pivot] = (right - sum(each * shift.get(r, 0) for r, each in own.items() if r != pivot)) / own[pivot]
        y[pivot] += shift[pivot]
    return y


def attempts(flat: Flat, y: Any, with_costs: bool = True) -> Iterator[Any]:
    """Yield what multipliers prove, the quickest first: outward, with what rows imply, in rationals, corrected."""
    ways = (False, True) if (abs(flat.low) == inf).any() or (abs(flat.high) == inf).any() else (False,)
    for exact in (False, True):
        for box in ways:
            yield proven(flat, y, with_costs, exact, box)
    if len(ways) > 1:
        yield from (proven(flat, corrected(flat, y, with_costs), with_costs, True, box) for box in ways)
