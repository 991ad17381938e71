"""Seeded random linear programs of every shape, by the name of what is hard in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter import LinearProgram

Floats = NDArray[np.float64]
Generator = Callable[[np.random.Generator, int], LinearProgram]

INF = np.inf
SENSES = ("min", "max")


def sparse(rng: np.random.Generator, m: int, n: int, density: float = 0.4) -> sp.csc_array:
    """Normal entries, rounded to one decimal so that ties and exact cancellations occur."""
    return sp.csc_array(
        sp.random_array((m, n), density=density, rng=rng, data_sampler=lambda size: np.round(rng.normal(0, 3, size), 1))
    )


def size(rng: np.random.Generator, most: int) -> tuple[int, int]:
    """(rows, columns)."""
    return int(rng.integers(1, most + 1)), int(rng.integers(1, 2 * most + 1))


def around(rng: np.random.Generator, value: Floats) -> tuple[Floats, Floats]:
    """Bounds of every kind that hold the value: free, one-sided, range, equality."""
    kind = rng.integers(0, 5, len(value))
    lower = np.where(np.isin(kind, (0, 1)), -INF, np.where(kind == 4, value, value - rng.integers(0, 3, len(value))))
    upper = np.where(np.isin(kind, (0, 2)), INF, np.where(kind == 4, value, value + rng.integers(0, 3, len(value))))
    return lower, upper


def feasible(rng: np.random.Generator, most: int) -> LinearProgram:
    """Bounds of every kind around a point; it may be unbounded."""
    m, n = size(rng, most)
    a, inside = sparse(rng, m, n), np.round(rng.normal(0, 2, n), 1)
    return LinearProgram(
        np.round(rng.normal(size=n), 1), a, *around(rng, a @ inside), *around(rng, inside),
        sense=SENSES[rng.integers(2)], offset=float(rng.integers(-9, 9)),
    )  # fmt: skip


def bounded(rng: np.random.Generator, most: int) -> LinearProgram:
    """Feasible, in a box, so that there is an optimum."""
    m, n = size(rng, most)
    a, inside = sparse(rng, m, n), rng.uniform(-1, 2, n)
    low, high = around(rng, a @ inside)
    return LinearProgram(
        rng.normal(size=n), a, low, high, inside - rng.uniform(0, 2, n), inside + rng.uniform(0, 2, n),
        sense=SENSES[rng.integers(2)],
    )  # fmt: skip


def anything(rng: np.random.Generator, most: int) -> LinearProgram:
    """Bounds without regard to any point: infeasible, unbounded, both or neither."""
    m, n = size(rng, most)
    lower, col_lower = rng.normal(0, 3, m).round(), rng.normal(-1, 2, n).round()
    return LinearProgram(
        rng.normal(size=n).round(1), sparse(rng, m, n),
        np.where(rng.random(m) < 0.4, -INF, lower),
        np.where(rng.random(m) < 0.4, INF, lower + rng.integers(0, 4, m)),
        np.where(rng.random(n) < 0.3, -INF, col_lower),
        np.where(rng.random(n) < 0.5, INF, col_lower + rng.integers(0, 4, n)),
        sense=SENSES[rng.integers(2)],
    )  # fmt: skip


def integers(rng: np.random.Generator, most: int) -> LinearProgram:
    """Small whole numbers everywhere: ties, duplicate rows, dependent rows."""
    m, n = size(rng, most)
    lower, col_lower = rng.integers(-2, 3, m), rng.integers(-1, 2, n)
    return LinearProgram(
        rng.integers(-2, 3, n), rng.integers(-1, 2, (m, n)),
        np.where(rng.random(m) < 0.5, -INF, lower),
        np.where(rng.random(m) < 0.5, INF, lower + rng.integers(0, 3, m)),
        np.where(rng.random(n) < 0.2, -INF, col_lower),
        np.where(rng.random(n) < 0.4, INF, col_lower + rng.integers(0, 3, n)),
        sense=SENSES[rng.integers(2)],
    )  # fmt: skip


def transport(rng: np.random.Generator, most: int) -> LinearProgram:
    """Sources, sinks and every arc; whole numbers, balanced or one unit short."""
    sources, sinks = int(rng.integers(1, most + 1)), int(rng.integers(1, most + 1))
    plan = rng.integers(0, 4, (sources, sinks))
    supply, demand = plan.sum(1).astype(float), plan.sum(0).astype(float)
    if rng.random() < 0.25:
        demand[0] += 1.0  # infeasible
    a = sp.vstack(
        (sp.kron(sp.eye_array(sources), np.ones((1, sinks))), sp.kron(np.ones((1, sources)), sp.eye_array(sinks)))
    )
    equal = rng.random() < 0.5
    return LinearProgram(
        rng.integers(1, 9, sources * sinks), a, np.concatenate((supply if equal else np.full(sources, -INF), demand)),
        np.concatenate((supply, demand if equal else np.full(sinks, INF))),
    )  # fmt: skip


def assignment(rng: np.random.Generator, most: int) -> LinearProgram:
    """As degenerate as a program can be, and one row depends on the others."""
    n = int(rng.integers(1, most + 1))
    a = sp.vstack((sp.kron(sp.eye_array(n), np.ones((1, n))), sp.kron(np.ones((1, n)), sp.eye_array(n))))
    return LinearProgram(rng.integers(0, 5, n * n), a, np.ones(2 * n), np.ones(2 * n), sense=SENSES[rng.integers(2)])


def rank_deficient(rng: np.random.Generator, most: int) -> LinearProgram:
    """Equality rows that are combinations of others; sometimes one does not agree with them."""
    m, n = size(rng, most)
    a, inside = sparse(rng, m, n, 0.6), rng.uniform(0, 2, n)
    mix = sp.csr_array(rng.integers(-1, 2, (int(rng.integers(1, m + 1)), m)).astype(float))
    whole = sp.vstack((a, mix @ a))
    right = whole @ inside
    if rng.random() < 0.2:
        right[-1] += 1.0
    return LinearProgram(rng.normal(size=n), whole, right, right, np.zeros(n), rng.choice([3.0, INF], n))


def badly_scaled(rng: np.random.Generator, most: int) -> LinearProgram:
    """Rows and columns in units that are up to six powers of ten apart."""
    lp = bounded(rng, most)
    row, column = 10.0 ** rng.uniform(-3, 3, lp.shape[0]), 10.0 ** rng.uniform(-3, 3, lp.shape[1])
    return LinearProgram(
        lp.c * column, sp.diags_array(row) @ lp.A @ sp.diags_array(column), lp.row_lower * row, lp.row_upper * row,
        lp.col_lower / column, lp.col_upper / column, sense=lp.sense,
    )  # fmt: skip


def sizes_apart(rng: np.random.Generator, most: int) -> LinearProgram:
    """Single coefficients from 1e-6 to 1e6, in no row's or column's unit."""
    m, n = size(rng, most)
    a, inside = sparse(rng, m, n), rng.uniform(0, 2, n)
    a.data *= 10.0 ** rng.integers(-6, 7, a.nnz)
    return LinearProgram(rng.normal(size=n), a, *around(rng, a @ inside), np.zeros(n), np.full(n, 4.0))


def chain(rng: np.random.Generator, most: int) -> LinearProgram:
    """Stocks over periods: stock' = growth * stock + bought - sold, prices that pay or do not."""
    periods, growth = int(rng.integers(2, 4 * most)), float(rng.choice([1.0, 0.9, 1.1]))
    eye, before = sp.eye_array(periods), sp.eye_array(periods, k=-1)
    a = sp.hstack((eye - growth * before, -eye, eye))
    demand = rng.integers(0, 4, periods).astype(float)
    stock, sale = float(rng.choice([5.0, INF])), float(rng.choice([9.0, INF]))
    return LinearProgram(
        np.concatenate((np.full(periods, 0.1), rng.integers(1, 6, periods), rng.integers(-3, 1, periods))), a,
        np.zeros(periods), np.zeros(periods), np.concatenate((np.zeros(2 * periods), demand)),
        np.concatenate((np.full(periods, stock), np.full(periods, 4.0), np.full(periods, sale))),
    )  # fmt: skip


def huge_free(rng: np.random.Generator, most: int) -> LinearProgram:
    """Free columns whose values are up to 1e7."""
    m, n = size(rng, most)
    a, inside = sparse(rng, m, n, 0.6), np.round(rng.normal(0, 1, n) * 10.0 ** rng.integers(0, 8, n))
    y = rng.normal(size=m)
    return LinearProgram(a.T @ y, a, a @ inside, a @ inside, np.full(n, -INF), np.full(n, INF))


def only_free(rng: np.random.Generator, most: int) -> LinearProgram:
    """No column has a bound; the cost is one of the rows' prices, so that there is an optimum."""
    m, n = size(rng, most)
    a = sparse(rng, m, n, 0.6)
    low, high = around(rng, a @ rng.normal(size=n))
    price = np.where(np.isinf(low), 0.0, rng.random(m)) - np.where(np.isinf(high), 0.0, rng.random(m))
    return LinearProgram(a.T @ price, a, low, high, np.full(n, -INF), np.full(n, INF))


def all_fixed(rng: np.random.Generator, most: int) -> LinearProgram:
    """One point, in the rows or not."""
    m, n = size(rng, most)
    a, point = sparse(rng, m, n), rng.integers(-3, 4, n).astype(float)
    shift = float(rng.choice([0.0, 0.0, 3.0]))
    low, high = around(rng, a @ point)
    return LinearProgram(rng.normal(size=n), a, low + shift, high + shift, point, point)


def nearly_infeasible(rng: np.random.Generator, most: int) -> LinearProgram:
    """Two rows that cross, or leave a sliver, of 1e-4 down to 1e-9."""
    lp = bounded(rng, most)
    row = sparse(rng, 1, lp.shape[1], 0.8)
    gap = float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.integers(-9, -3))
    value = float((row @ (0.5 * (lp.col_lower + lp.col_upper)))[0])
    return LinearProgram(
        lp.c, sp.vstack((lp.A, row, row)), np.concatenate((lp.row_lower, [value, -INF])),
        np.concatenate((lp.row_upper, [INF, value + gap])), lp.col_lower, lp.col_upper, sense=lp.sense,
    )  # fmt: skip


def infeasible(rng: np.random.Generator, most: int) -> LinearProgram:
    """A planted contradiction: a mix of the rows asks for more than their bounds give."""
    m, n = size(rng, most)
    a, price = sparse(rng, m, n, 0.6), rng.random(m)
    high = rng.normal(0, 2, m)
    mixed = sp.csr_array(price[None, :]) @ a
    low = float(price @ high) + rng.choice([0.01, 1.0, 100.0])
    bounds = rng.random(n) < 0.5
    return LinearProgram(
        rng.normal(size=n), sp.vstack((a, mixed)), np.concatenate((np.full(m, -INF), [low])),
        np.concatenate((high, [INF])), np.where(bounds, -INF, 0.0), INF,
    )  # fmt: skip


def unbounded(rng: np.random.Generator, most: int) -> LinearProgram:
    """A planted direction that no row and no bound stops, at a cost below zero."""
    m, n = size(rng, most)
    a, ray, inside = sparse(rng, m, n, 0.6), rng.integers(0, 3, n).astype(float), rng.uniform(0, 2, n)
    ray[rng.integers(n)] = 1.0
    along, activity = a @ ray, a @ inside
    cost = rng.normal(size=n)
    cost -= ray * (cost @ ray + rng.choice([0.01, 1.0])) / (ray @ ray)
    return LinearProgram(
        cost, a, np.where(along >= 0, activity - rng.random(m), -INF), np.where(along > 0, INF, activity + 1.0),
        np.zeros(n), np.where(ray > 0, INF, inside + 1.0),
    )  # fmt: skip


def neither(rng: np.random.Generator, most: int) -> LinearProgram:
    """Infeasible, and its dual is too."""
    one, other = infeasible(rng, most), unbounded(rng, most)
    return LinearProgram(
        np.concatenate((one.c, other.c)), sp.block_diag((one.A, other.A)),
        np.concatenate((one.row_lower, other.row_lower)), np.concatenate((one.row_upper, other.row_upper)),
        np.concatenate((one.col_lower, other.col_lower)), np.concatenate((one.col_upper, other.col_upper)),
    )  # fmt: skip


def empty_interior(rng: np.random.Generator, most: int) -> LinearProgram:
    """Rows that hold a set of columns at a bound without saying so; often without a cost."""
    m, n = size(rng, most)
    a, inside = sparse(rng, m, n), rng.uniform(0, 2, n) * (rng.random(n) < 0.5)
    zero = (inside == 0).astype(float)[None, :]
    whole = sp.vstack((a, sp.csr_array(zero)))
    cost = rng.normal(size=n) if rng.random() < 0.5 else np.zeros(n)
    return LinearProgram(
        cost, whole, np.concatenate((a @ inside, [-INF])), np.concatenate((a @ inside, [0.0])), 0.0, 4.0
    )


def covering(rng: np.random.Generator, most: int) -> LinearProgram:
    """Every row wants one of some columns, all at the same or nearly the same cost."""
    m, n = 3 * most, 2 * most
    a = (rng.random((m, n)) < rng.uniform(0.1, 0.5)).astype(float)
    a[np.arange(m), rng.integers(0, n, m)] = 1.0
    return LinearProgram(rng.choice([1.0, 1.0, 2.0], n), a, np.ones(m), INF, 0.0, 1.0)


def slivers(rng: np.random.Generator, most: int) -> LinearProgram:
    """Ranges and boxes as narrow as 1e-9."""
    m, n = size(rng, most)
    a, inside = sparse(rng, m, n), rng.uniform(-1, 2, n)
    return LinearProgram(
        rng.normal(size=n), a, a @ inside - 10.0 ** rng.integers(-9, 1, m), a @ inside + 10.0 ** rng.integers(-9, 1, m),
        inside - 10.0 ** rng.integers(-9, 1, n), inside + 10.0 ** rng.integers(-9, 1, n),
    )  # fmt: skip


def big_numbers(rng: np.random.Generator, most: int) -> LinearProgram:
    """Bounds and right sides of up to 1e6 beside others of one."""
    m, n = size(rng, most)
    a, inside = sparse(rng, m, n), 10.0 ** rng.uniform(-2, 6, n)
    low, high = around(rng, a @ inside)
    return LinearProgram(rng.normal(size=n), a, low, high, 0.0, inside * rng.choice([1.0, 2.0, 10.0], n))


def costs_apart(rng: np.random.Generator, most: int) -> LinearProgram:
    """Costs from 1e-6 to 1e6, of both signs."""
    lp = bounded(rng, most)
    cost = rng.normal(size=lp.shape[1]) * 10.0 ** rng.integers(-6, 7, lp.shape[1])
    return LinearProgram(cost, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper, sense=lp.sense)


def badly_scaled_stairs(rng: np.random.Generator, most: int) -> LinearProgram:
    """Periods whose coefficients lie between 1e-4 and 1e4, stocks between them, free columns and ranges."""
    periods, rows, columns = 4, max(2, most // 4), max(3, most // 2)
    blocks = []
    for _ in range(periods):
        block = sparse(rng, rows, columns, 0.4)
        block.data = block.data * 10.0 ** rng.integers(-4, 5, len(block.data))
        blocks.append(block)
    stock = sp.kron(sp.eye_array(periods, k=-1), sp.eye_array(rows, columns))
    a = sp.csc_array(sp.block_diag(blocks) - stock)
    m, n = a.shape
    inside = rng.uniform(0, 3, n) * (rng.random(n) < 0.5)
    free = rng.random(n) < 0.2
    price, activity = rng.normal(size=m), a @ inside
    span = np.where(rng.random(m) < 0.5, 0.0, rng.uniform(0, 5, m))
    slack = np.where(free | (inside > 0), 0.0, rng.random(n))
    return LinearProgram(
        a.T @ price + slack, a, activity - np.where(price > 0, 0.0, span), activity + np.where(price > 0, span, 0.0),
        np.where(free, -INF, 0.0), INF,
    )  # fmt: skip


def flow_off_by_a_hair(rng: np.random.Generator, most: int) -> LinearProgram:
    """Conservation of flow whose supplies do not add up, by 1e-6 to 1e-2, or do."""
    nodes, arcs = max(4, most), 3 * max(4, most)
    tail, head = rng.integers(0, nodes, arcs), rng.integers(0, nodes, arcs)
    arc = np.arange(arcs)
    a = sp.coo_array((np.ones(arcs), (tail, arc)), shape=(nodes, arcs)) - sp.coo_array(
        (np.ones(arcs), (head, arc)), shape=(nodes, arcs)
    )
    supply = a @ np.round(rng.uniform(0, 9, arcs))
    supply[rng.integers(nodes)] += rng.choice([0.0, 1e-6, 1e-5, 1e-4, 1e-2])
    return LinearProgram(rng.uniform(-1, 4, arcs), a, supply, supply, 0.0, 10.0)


def unbounded_through_equations(rng: np.random.Generator, most: int) -> LinearProgram:
    """A direction in the null space of equations, along which the cost falls, a little or much."""
    m, n = max(2, most // 2), most + 2
    a, ray = sparse(rng, m, n, 0.5).toarray(), rng.uniform(0.5, 2.0, n)
    a -= np.outer(a @ ray, ray) / (ray @ ray)
    cost = rng.normal(size=n)
    cost -= ray * (cost @ ray + rng.choice([1e-3, 1.0])) / (ray @ ray)
    right = a @ rng.uniform(0, 3, n)
    return LinearProgram(cost, a, right, right, 0.0, INF)


def full_columns(rng: np.random.Generator, most: int) -> LinearProgram:
    """A band beside a few columns with an entry in every row."""
    m = 12 * most
    band = sp.diags_array([rng.uniform(1, 2, m), rng.uniform(-1, 1, m - 1)], offsets=[0, 1])
    a = sp.csc_array(sp.hstack((band, sp.eye_array(m), rng.normal(size=(m, 3)))))
    x = np.where(rng.random(2 * m + 3) < 0.5, rng.random(2 * m + 3), 0.0)
    cost = a.T @ rng.normal(size=m) + np.where(x > 0, 0.0, rng.random(len(x)))
    return LinearProgram(cost, a, a @ x, a @ x + np.where(rng.random(m) < 0.5, 0.0, rng.random(m)))


KINDS: dict[str, Generator] = {
    generator.__name__: generator
    for generator in (
        feasible, bounded, anything, integers, transport, assignment, rank_deficient, badly_scaled, sizes_apart, chain,
        huge_free, only_free, all_fixed, nearly_infeasible, infeasible, unbounded, neither, empty_interior, covering,
        slivers, big_numbers, costs_apart, badly_scaled_stairs, flow_off_by_a_hair, unbounded_through_equations,
        full_columns,
    )
}  # fmt: skip


def random_program(kind: str, seed: int, most: int = 8) -> LinearProgram:
    """One program of a kind, at most about `most` rows and twice as many columns."""
    return KINDS[kind](np.random.default_rng(seed), most)
