"""A slow exact solver for tiny programs: two-phase simplex by Bland's rule, in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from copter import LinearProgram, Status

Row = list[Fraction]


def exact(lp: LinearProgram) -> tuple[Status, Fraction | None]:
    """(status, optimal objective) of the program whose data are the doubles given, in exact arithmetic.

    An infeasible program is PRIMAL_INFEASIBLE, whether its dual is feasible or not.
    """
    rows, right, cost, constant = equations(lp)
    tableau = [[*row, *unit(len(rows), i), b] for i, (row, b) in enumerate(zip(rows, right, strict=True))]
    basis = [len(cost) + i for i in range(len(rows))]
    first = [Fraction(0)] * len(cost) + [Fraction(1)] * len(rows)
    descend(tableau, basis, first, len(first))
    if sum((row[-1] for row, j in zip(tableau, basis, strict=True) if j >= len(cost)), Fraction(0)) > 0:
        return Status.PRIMAL_INFEASIBLE, None
    drop_artificial(tableau, basis, len(cost))
    if not descend(tableau, basis, cost + [Fraction(0)] * len(rows), len(cost)):
        return Status.DUAL_INFEASIBLE, None
    value = sum((cost[j] * row[-1] for row, j in zip(tableau, basis, strict=True)), constant)
    return Status.OPTIMAL, (value if lp.sense == "min" else -value)


def unit(size: int, at: int) -> Row:
    """Column of an identity matrix."""
    return [Fraction(int(i == at)) for i in range(size)]


def equations(lp: LinearProgram) -> tuple[list[Row], Row, Row, Fraction]:
    """(rows, right sides >= 0, costs, constant) of the minimisation over t >= 0 that the program is."""
    m, n = lp.shape
    sign = 1 if lp.sense == "min" else -1
    dense = lp.A.toarray()
    columns = [([Fraction(v) for v in dense[:, j]], sign * Fraction(lp.c[j])) for j in range(n)]
    bounds = list(zip(lp.col_lower, lp.col_upper, strict=True))
    for i in range(m):  # a column for the activity of every row: a'x - s = 0
        columns.append(([-v for v in unit(m, i)], Fraction(0)))
        bounds.append((lp.row_lower[i], lp.row_upper[i]))
    right, constant = [Fraction(0)] * m, sign * Fraction(lp.offset)
    kept: list[tuple[Row, Fraction]] = []
    boxes: list[tuple[int, Fraction]] = []
    for (entries, cost), (low, high) in zip(columns, bounds, strict=True):
        origin = Fraction(low) if np.isfinite(low) else Fraction(high) if np.isfinite(high) else Fraction(0)
        right = [b - a * origin for a, b in zip(entries, right, strict=True)]
        constant += cost * origin
        way = 1 if np.isfinite(low) or not np.isfinite(high) else -1
        kept.append(([way * a for a in entries], way * cost))
        if np.isfinite(low) and np.isfinite(high):
            boxes.append((len(kept) - 1, Fraction(high) - Fraction(low)))
        if not np.isfinite(low) and not np.isfinite(high):
            kept.append(([-a for a in entries], -cost))
    total = len(kept) + len(boxes)
    rows = [[entries[i] for entries, _ in kept] + [Fraction(0)] * len(boxes) for i in range(m)]
    for k, (j, width) in enumerate(boxes):
        rows.append([Fraction(int(i in (j, len(kept) + k))) for i in range(total)])
        right.append(width)
    flipped = [b < 0 for b in right]
    rows = [[-v for v in row] if flip else row for row, flip in zip(rows, flipped, strict=True)]
    return rows, [abs(b) for b in right], [cost for _, cost in kept] + [Fraction(0)] * len(boxes), constant


def descend(tableau: list[Row], basis: list[int], cost: Row, columns: int) -> bool:
    """Pivot to the optimum over the first columns; False if it is unbounded."""
    slopes = [slope(tableau, basis, cost, j) for j in range(len(cost))] + [Fraction(0)]
    while True:
        entering = next((j for j in range(columns) if slopes[j] < 0), None)
        if entering is None:
            return True
        ratios = [(row[-1] / row[entering], basis[i], i) for i, row in enumerate(tableau) if row[entering] > 0]
        if not ratios:
            return False
        leaving = min(ratios)[2]
        pivot(tableau, basis, leaving, entering)
        by = slopes[entering]
        slopes = [v - by * w if w else v for v, w in zip(slopes, tableau[leaving], strict=True)]


def slope(tableau: list[Row], basis: list[int], cost: Row, j: int) -> Fraction:
    """Reduced cost of a column."""
    return cost[j] - sum((cost[k] * row[j] for row, k in zip(tableau, basis, strict=True)), Fraction(0))


def pivot(tableau: list[Row], basis: list[int], leaving: int, entering: int) -> None:
    """Bring a column into the basis."""
    chosen = tableau[leaving]
    divisor = chosen[entering]
    chosen[:] = [v / divisor if v else v for v in chosen]
    for i, row in enumerate(tableau):
        if i != leaving and row[entering]:
            factor = row[entering]
            row[:] = [v - factor * w if w else v for v, w in zip(row, chosen, strict=True)]
    basis[leaving] = entering


def drop_artificial(tableau: list[Row], basis: list[int], columns: int) -> None:
    """Take artificial columns, which are zero, out of the basis; rows that depend on others go."""
    for i in range(len(basis) - 1, -1, -1):
        if basis[i] >= columns:
            entering = next((j for j in range(columns) if tableau[i][j]), None)
            if entering is None:
                del tableau[i], basis[i]
            else:
                pivot(tableau, basis, i, entering)
