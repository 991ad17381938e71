"""Every kernel against a slow twin, on problems drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from copter.methods.proximal.accumulate import (
    activities,
    all_easy_minimum,
    easy_minimum,
    fit,
    group_least,
    idle_columns,
    least_columns,
    moved,
    primal_sums,
    raise_new,
    reduced_costs,
)
from copter.methods.proximal.ascent import jacobian_product, newton_matrix
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.project import (
    Dual,
    Projection,
    Slacks,
    block_minimum,
    project,
)
from copter.methods.proximal.purification import purify
from copter.methods.proximal.sweep import Sweep
from copter.methods.proximal.working_set import WorkingSet
from copter.model.matrix import BlockMatrix
from tests.copter.twins import Flat, Floats, Group, augmented_lagrangian, flat, projected, working_set

quick = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32 - 1)


def some_groups(rng: np.random.Generator, rows: int, tight: bool = False) -> list[Group]:
    """Blocks with bounds and limits of every kind, degenerate ones among them."""
    groups = []
    for _ in range(int(rng.integers(1, 6))):
        n = int(rng.integers(1, 7))
        lower = rng.choice([0.0, 0.0, -1.0, 0.25], n)
        upper = lower + rng.choice([0.0, 1.0, 2.0, np.inf], n, p=[0.1, 0.5, 0.2, 0.2])
        limit = float(lower.sum() + rng.choice([0.0, 0.5, 1.0, 3.0, np.inf], p=[0.05, 0.25, 0.4, 0.1, 0.2]))
        if tight:
            limit = float(lower.sum() + 0.3)
        if np.isinf(limit) and rng.random() < 0.3:
            lower = np.where(rng.random(n) < 0.5, -np.inf, lower)
        usage = np.where(rng.random((rows, n)) < 0.6, np.round(rng.normal(2, 2, (rows, n)), 2), 0.0)
        room = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
        center = np.where(np.isfinite(lower), lower, np.minimum(upper, 0.0)) + room * rng.random(n) * 0.2
        groups.append(Group(rng.normal(size=n), lower, upper, limit, usage, np.clip(center, lower, upper)))
    return groups


def project_all(problem: Flat, y: Floats, sigma: float, pieces: int = 1, guess: Floats | float = 0.0) -> dict[str, Any]:
    """Outputs of the projection kernel, run on so many pieces from these guesses of the multipliers."""
    n, groups = len(problem.cost), len(problem.limit)
    multiplier = np.full(groups, 0.0) + guess
    out = {"x": np.empty(n), "free": np.zeros(n, dtype=np.uint8), "multiplier": multiplier}
    activity, value = np.empty((pieces, len(y))), np.empty(pieces)
    project(problem.columns, problem.center, sigma, y, Projection(*out.values(), activity, value))
    return out | {"activity": activity.sum(axis=0), "value": float(value.sum())}


@quick
@given(seeds, st.sampled_from([1e-3, 0.1, 1.0, 50.0]), st.booleans())
def test_projection(seed: int, sigma: float, tight: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 5))
    groups = some_groups(rng, rows, tight)
    problem, y = flat(groups), rng.normal(size=rows)
    got = project_all(problem, y, sigma)
    wanted = [projected(group, y, sigma) for group in groups]
    x = np.concatenate([x for x, _ in wanted])
    np.testing.assert_allclose(got["x"], x, atol=1e-9 * (1 + sigma), rtol=1e-9)
    assert got["value"] == pytest.approx(sum(value for _, value in wanted), rel=1e-8, abs=1e-8 * (1 + sigma))
    np.testing.assert_allclose(
        got["activity"], np.hstack([g.usage for g in groups]) @ got["x"], atol=1e-9 * (1 + sigma)
    )
    np.testing.assert_array_equal(got["free"] == 1, (got["x"] > problem.lower) & (got["x"] < problem.upper))
    for g, group in enumerate(groups):
        total = got["x"][problem.start[g] : problem.start[g + 1]].sum()
        assert total <= group.limit + 1e-10 * (1 + sigma)
        if got["multiplier"][g] > 0:
            assert total == pytest.approx(group.limit, abs=1e-9 * (1 + sigma))


@quick
@given(seeds, st.sampled_from([1e-3, 1.0, 50.0]), st.integers(2, 4))
def test_projection_depends_neither_on_the_pieces_nor_on_the_guesses(seed: int, sigma: float, pieces: int) -> None:
    rng = np.random.default_rng(seed)
    problem, y = flat(some_groups(rng, 3, bool(rng.random() < 0.5))), rng.normal(size=3)
    one = project_all(problem, y, sigma)
    other = project_all(problem, y, sigma, pieces, rng.uniform(-1.0, 5.0, len(problem.limit)) * sigma)
    for key in ("x", "activity"):  # a multiplier is unique only where a column is free
        np.testing.assert_allclose(other[key], one[key], atol=1e-9 * (1 + sigma), rtol=1e-9)
    assert other["value"] == pytest.approx(one["value"], rel=1e-9, abs=1e-9 * (1 + sigma))


@quick
@given(seeds)
def test_sums_over_entries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = some_groups(rng, 3)
    problem, y = flat(groups), rng.normal(size=3)
    usage = np.hstack([g.usage for g in groups])
    x, reduced, activity = rng.normal(size=len(problem.cost)), np.empty(len(problem.cost)), np.empty(3)
    reduced_costs(problem.cost, problem.entry_start, problem.row, problem.coefficient, y, reduced)
    np.testing.assert_allclose(reduced, problem.cost - usage.T @ y, atol=1e-12)
    activities(problem.entry_start, problem.row, problem.coefficient, x, activity)
    np.testing.assert_allclose(activity, usage @ x, atol=1e-12)
    least, easy = np.empty(len(groups)), np.empty(len(groups), dtype=np.uint8)
    group_least(problem.start, x, least)
    threshold, slots = np.empty(2 * len(groups)), 2 * np.arange(len(groups), dtype=np.int32)
    lowest, column = np.empty(2 * len(groups)), np.empty(2 * len(groups), dtype=np.int32)
    key = np.repeat(slots.astype(np.int64), np.diff(problem.start)) << 32 | np.arange(len(x))
    least_columns(problem.columns, slots, key, y, 1e-3, lowest, column, threshold)
    group_least(problem.start, reduced, least)
    np.testing.assert_allclose(lowest[::2], least, atol=1e-12)
    np.testing.assert_allclose(reduced[column[::2]], least, atol=1e-12)
    assert set(lowest[1::2].tolist()) == {np.inf}
    assert set(column[1::2].tolist()) == {-1}
    wanted = np.minimum(least, 0.0) - 1e-3 * (1.0 - np.minimum(least, 0.0))
    np.testing.assert_allclose(threshold[::2], wanted, atol=1e-12)
    group_least(problem.start, x, least)
    np.testing.assert_array_equal(threshold[1::2], -1e-3)
    total, found = 0.0, easy_minimum(problem.start, problem.limit, problem.lower, problem.upper, x, easy)
    for g, (begin, end) in enumerate(pairwise(problem.start)):
        assert least[g] == x[begin:end].min()
        low, high, limit = problem.lower[begin:end], problem.upper[begin:end], problem.limit[g]
        plain, held = (low == 0).all() and (high >= limit).all() and np.isfinite(limit), (low == high).all()
        assert easy[g] == (plain or held)
        total += limit * min(least[g], 0.0) if plain else x[begin:end] @ low if held else 0.0
    assert found == pytest.approx(total, rel=1e-12, abs=1e-12)


@quick
@given(seeds)
def test_violations_and_idle_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = some_groups(rng, 2)
    problem = flat(groups)
    x = np.where(
        rng.random(len(problem.cost)) < 0.5, problem.lower, problem.center + rng.normal(size=len(problem.cost))
    )
    x = np.where(np.isfinite(x), x, 0.0)
    over = [
        max(value - high, low - value, 0.0) for value, low, high in zip(x, problem.lower, problem.upper, strict=True)
    ]
    over += [max(x[a:b].sum() - t, 0.0) for (a, b), t in zip(pairwise(problem.start), problem.limit, strict=True)]
    usage, loose = np.hstack([g.usage for g in groups]), np.full(2, np.inf)
    objective, relative, largest, costs = primal_sums(problem.columns, x, -loose, loose)
    assert objective == pytest.approx(problem.cost @ x, rel=1e-9, abs=1e-12)
    assert costs == pytest.approx(np.linalg.norm(problem.cost))
    assert relative == pytest.approx(np.linalg.norm(over), rel=1e-9, abs=1e-15)
    assert largest == pytest.approx(max(over), rel=1e-12, abs=1e-15)
    off = np.abs(usage @ x)
    _, relative, largest, _ = primal_sums(problem.columns, x, np.zeros(2), np.zeros(2))
    assert relative == pytest.approx(np.hypot(np.linalg.norm(over), np.linalg.norm(off)), rel=1e-9, abs=1e-12)
    assert largest == pytest.approx(max(*over, *off), rel=1e-9, abs=1e-12)

    y, idle = rng.normal(size=2), np.empty(len(x), dtype=np.uint8)
    reduced = problem.cost - usage.T @ y
    assert idle_columns(problem.columns, y, x, 0.3, idle) == idle.sum()
    for a, b in pairwise(problem.start):
        best, size = min(0.0, reduced[a:b].min()), np.abs(problem.cost[a:b]).max()
        for j in range(a, b):
            at_rest = x[j] == problem.lower[j] != problem.upper[j]
            assert bool(idle[j]) == bool(at_rest and reduced[j] - best > 0.3 * size)


@quick
@given(seeds)
def test_minima_over_plain_groups_and_projections_onto_bounds_and_limits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = some_groups(rng, 2)
    for only in (groups, [Group(g.cost, 0 * g.cost, 1 + 0 * g.cost, 0.5, g.usage, 0 * g.cost) for g in groups]):
        problem, y = flat(only), rng.normal(size=2)
        reduced = problem.cost - np.hstack([g.usage for g in only]).T @ y
        held = [(g.lower == g.upper).all() for g in only]
        easy = [
            h or ((g.lower == 0).all() and (g.upper >= g.limit).all() and g.limit < np.inf)
            for g, h in zip(only, held, strict=True)
        ]
        least = [
            part @ g.lower if h else g.limit * min(0.0, part.min())
            for g, h, part in zip(only, held, parts(reduced, problem), strict=True)
            if all(easy)
        ]
        assert all_easy_minimum(problem.columns, y) == (pytest.approx(sum(least), rel=1e-9, abs=1e-9), all(easy))
    problem, x = flat(groups), rng.normal(size=len(flat(groups).cost)) * 3.0
    clipped = np.clip(x, problem.lower, problem.upper)
    fit(problem.columns, 1e-12, x)
    for got, there, g in zip(parts(x, problem), parts(clipped, problem), groups, strict=True):
        shrinks = there.sum() > g.limit and there.sum() != 0.0
        wanted = np.clip(there * (g.limit / there.sum()), g.lower, g.upper) if shrinks else there
        if there.sum() != 0.0:
            np.testing.assert_allclose(got, wanted, rtol=1e-12)


def parts(values: Floats, problem: Flat) -> list[Floats]:
    """The values of each group's columns."""
    return [values[begin:end] for begin, end in pairwise(problem.start)]


@quick
@given(seeds)
def test_moves_to_a_found_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cost, x, found = rng.normal(size=(3, int(rng.integers(1, 9))))
    move, before = np.empty(len(x)), x.copy()
    objective, length = moved(cost, found, x, move)
    assert (objective, length) == (pytest.approx(cost @ found), np.abs(found - before).max())
    assert (x.tolist(), move.tolist()) == (found.tolist(), (found - before).tolist())


@quick
@given(seeds)
def test_new_columns_are_raised_to_their_bounds_or_the_best_of_a_resting_group_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = flat(some_groups(rng, 2))
    n = len(problem.cost)
    x = np.where(np.isfinite(problem.lower), problem.lower, 0.0)
    for a, b in pairwise(problem.start):
        if rng.random() < 0.3:
            x[a:b] += 0.1
    new, y, before = np.flatnonzero(rng.random(n) < 0.4), np.round(rng.normal(size=2), 1), x.copy()
    reduced = np.empty(n)
    reduced_costs(problem.cost, problem.entry_start, problem.row, problem.coefficient, y, reduced)
    raise_new(problem.columns, new, y, x)
    wanted = before.copy()
    for (a, b), limit in zip(pairwise(problem.start), problem.limit, strict=True):
        worth = [j for j in new if a <= j < b and reduced[j] < 0 and problem.lower[j] < problem.upper[j] < np.inf]
        if np.isinf(limit):
            wanted[worth] = problem.upper[worth]
        elif worth and (before[a:b] == problem.lower[a:b]).all():
            best = min(worth, key=lambda j: (reduced[j], j))
            wanted[best] = min(problem.upper[best], problem.lower[best] + max(limit - before[a:b].sum(), 0.0))
    np.testing.assert_allclose(x, wanted, rtol=1e-12, atol=1e-15)


class SlowDual:
    """The dual of a proximal subproblem and its line search, by NumPy (equations A4 and A5)."""

    def __init__(self, groups: list[Group], center: Floats, rows: Rows, sigma: float) -> None:
        self.groups, self.center, self.rows, self.sigma = groups, center, rows, sigma
        self.slack_sigma = sigma * rows.scale**2
        self.usage = np.hstack([group.usage for group in groups])
        self.largest = max(float(np.abs(group.cost).max()) for group in groups)

    def at(self, y: Floats) -> tuple[float, Floats, Floats]:
        blocks = [projected(group, y, self.sigma) for group in self.groups]
        slack = np.clip(self.center - self.slack_sigma * y, self.rows.lower, self.rows.upper)
        value = sum(value for _, value in blocks) + y @ slack
        value += ((slack - self.center) ** 2 / (2.0 * self.slack_sigma)).sum()
        return float(value), slack, slack - self.usage @ np.concatenate([x for x, _ in blocks])

    def search(self, start: Floats, direction: Floats) -> Floats | None:
        value, _, residual = self.at(start)
        slope = float(direction @ residual)
        size = np.abs(direction * self.rows.scale).max()
        reach = 10.0 * (np.abs(start * self.rows.scale).max() + self.largest)
        length = min(1.0, reach / size) if reach > 0 and size > 0 else 1.0
        low, low_slope, high, high_slope, best = 0.0, slope, np.inf, 0.0, None
        for trial in range(40):
            y = start + length * direction
            there, _, residual = self.at(y)
            here = float(direction @ residual)
            if here >= 0.0:
                best, low, low_slope = y, length, here
                if here <= 0.9 * slope or (length >= 1.0 and np.isinf(high)):
                    return y
            else:
                high, high_slope = length, here
                if there > value and -here <= 0.9 * slope:
                    return y
            if np.isinf(high):
                length = min(4.0 * length, 1.0)
            else:
                secant = low + (high - low) * low_slope / (low_slope - high_slope)
                margin = (0.1 if trial % 2 else 0.01) * (high - low)
                length = min(max(secant, low + margin), high - margin)
            if not low < length:
                break
        return best


@quick
@given(seeds, st.sampled_from([0.1, 1.0, 50.0]), st.integers(1, 3))
def test_the_dual_and_its_line_search(seed: int, sigma: float, pieces: int) -> None:
    rng = np.random.default_rng(seed)
    groups, m = some_groups(rng, 3), 3
    problem, y, center = flat(groups), rng.normal(size=m), rng.normal(size=m)
    lower = np.where(rng.random(m) < 0.4, -np.inf, -rng.random(m))
    rows = Rows(lower, np.where(rng.random(m) < 0.4, np.inf, rng.random(m)), rng.uniform(0.5, 2.0, m))
    slow = SlowDual(groups, center, rows, sigma)
    x, free, multiplier = np.empty(len(problem.cost)), np.zeros(len(problem.cost), np.uint8), np.zeros(len(groups))
    out = Projection(x, free, multiplier, np.empty((pieces, m)), np.empty(pieces))
    slacks = Slacks(center, slow.slack_sigma, rows.lower, rows.upper, rows.scale)
    dual = Dual(problem.columns, slacks, problem.center, sigma, out, 1)
    slack, residual, found = np.empty(m), np.empty(m), np.full((3, m), np.nan)
    value = dual.evaluate(y, slack, residual)
    expected = slow.at(y)
    near = {"rtol": 1e-8, "atol": 1e-8 * (1 + sigma)}
    np.testing.assert_allclose(value, expected[0], **near)
    np.testing.assert_allclose(slack, expected[1], **near)
    np.testing.assert_allclose(residual, expected[2], **near)
    direction = residual * rng.choice([1e-3, 0.3, 100.0])
    best, is_last = dual.search(y, value, direction, float(direction @ residual), found)
    wanted = slow.search(y, direction)
    if wanted is None:
        assert best == -np.inf
        return
    there = slow.at(found[0])
    np.testing.assert_allclose([best, *found[1], *found[2]], [there[0], *there[1], *there[2]], **near)
    assert there[0] >= value - 1e-7 * (1 + abs(value))
    np.testing.assert_allclose(there[0], slow.at(wanted)[0], rtol=1e-5, atol=1e-5 * (1 + sigma))
    if is_last:
        np.testing.assert_allclose(found[1] - slow.usage @ x, found[2], **near)


@quick
@given(seeds, st.sampled_from([0.1, 1.0, 20.0]), st.booleans())
def test_newton_matrix(seed: int, sigma: float, tight: bool) -> None:
    """The matrix, the product without it, and differences of A x(y) are one linear map where x(y) is smooth."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 5))
    problem, y = flat(some_groups(rng, rows, tight)), rng.normal(size=rows)
    here = project_all(problem, y, sigma)
    pattern = problem.columns, here["free"], here["multiplier"]
    matrix = np.zeros((rows, rows))
    newton_matrix(*pattern, sigma, matrix)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9)
    assert np.linalg.eigvalsh(matrix).min() >= -1e-9 * (1 + np.abs(matrix).max())
    direction = rng.normal(size=rows)
    product = np.ones(rows)
    jacobian_product(*pattern, sigma, direction, product)
    np.testing.assert_allclose(product - 1.0, matrix @ direction, atol=1e-9 * (1 + np.abs(matrix).max()))
    step = 1e-6 / sigma
    ahead, behind = project_all(problem, y + step * direction, sigma), project_all(problem, y - step * direction, sigma)
    smooth = all(
        np.array_equal(ahead[k], behind[k]) and np.array_equal(ahead[k], here[k]) for k in ("free",)
    ) and np.array_equal(ahead["multiplier"] > 0, behind["multiplier"] > 0)
    assume(smooth)
    slope = (ahead["activity"] - behind["activity"]) / (2 * step)
    np.testing.assert_allclose(slope, matrix @ direction, atol=1e-5 * (1 + np.abs(matrix).max()))


@quick
@given(seeds)
def test_dual_value_has_the_residual_as_gradient(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, sigma = int(rng.integers(1, 4)), 2.0
    problem, y = flat(some_groups(rng, rows)), rng.normal(size=rows)
    here, direction = project_all(problem, y, sigma), rng.normal(size=rows)
    step = 1e-6
    ahead = project_all(problem, y + step * direction, sigma)["value"]
    behind = project_all(problem, y - step * direction, sigma)["value"]
    scale = 1 + np.abs(here["activity"]).max() + abs(here["value"])
    assert (ahead - behind) / (2 * step) == pytest.approx(-direction @ here["activity"], abs=1e-4 * scale)


@quick
@given(seeds)
def test_block_minimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = some_groups(rng, 1)
    problem = flat(groups)
    reduced = np.where(rng.random(len(problem.cost)) < 0.2, 0.0, np.round(rng.normal(size=len(problem.cost)), 1))
    order = np.concatenate([a + np.argsort(reduced[a:b], kind="stable") for a, b in pairwise(problem.start)])
    least = np.empty(len(groups))
    bounded = ~(np.isposinf(problem.upper) & np.repeat(np.isinf(problem.limit), np.diff(problem.start)) & (reduced < 0))
    assume(bounded.all())
    block_minimum(problem.start, problem.limit, reduced, problem.lower, problem.upper, order.astype(np.int64), least)
    for g, group in enumerate(groups):
        part = slice(problem.start[g], problem.start[g + 1])
        limit = {"A_ub": np.ones((1, len(group.cost))), "b_ub": [group.limit]} if np.isfinite(group.limit) else {}
        found = linprog(reduced[part], bounds=np.column_stack((group.lower, group.upper)), **limit)
        if found.status == 3 or (not reduced[part].any() and not np.isfinite(found.fun or 0.0)):
            assert least[g] == -np.inf
        else:
            assert least[g] == pytest.approx(found.fun, abs=1e-9)


@quick
@given(seeds)
def test_sweep_goes_down_within_bounds_and_limits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, sigma = int(rng.integers(1, 5)), float(rng.choice([0.1, 1.0, 30.0]))
    groups = some_groups(rng, rows)
    problem = flat(groups)
    usage, x = np.hstack([g.usage for g in groups]), problem.center.copy()
    for g in range(len(groups)):  # a start within every limit
        part = slice(problem.start[g], problem.start[g + 1])
        if x[part].sum() > problem.limit[g]:
            x[part] = problem.lower[part]
    center, y = x.copy(), rng.normal(size=rows)
    row_lower = np.where(rng.random(rows) < 0.5, -np.inf, -rng.random(rows))
    row_upper = np.where(rng.random(rows) < 0.3, np.inf, rng.random(rows) * 3)
    penalty = rng.uniform(0.1, 10.0, rows)
    passes = Sweep(problem.columns, row_lower, row_upper, penalty, center, sigma, x)
    passes.begin(y)
    np.testing.assert_allclose(passes.activity, usage @ x, atol=1e-12)

    def value() -> float:
        return augmented_lagrangian(x, usage, problem.cost, center, sigma, y, penalty, row_lower, row_upper)

    before = value()
    for _ in range(5):
        largest = passes.sweep()
        after = value()
        assert after <= before + 1e-9 * (1 + abs(before))
        before = after
        assert np.all((x >= problem.lower) & (x <= problem.upper))
        totals = np.add.reduceat(x, problem.start[:-1])
        assert np.all(totals <= problem.limit + 1e-9)
        np.testing.assert_allclose(passes.activity, usage @ x, atol=1e-8 * (1 + np.abs(x).max()))
        assert largest >= 0


def test_sweeps_reach_the_minimum_of_a_smooth_block() -> None:
    """One block, no limit, one row: descent ends where the projection at the row's multiplier does."""
    group = Group(np.array([-1.0, -0.5]), np.zeros(2), np.full(2, 5.0), np.inf, np.array([[1.0, 2.0]]), np.zeros(2))
    problem, x = flat([group]), np.zeros(2)
    low, high, y, penalty = np.array([-np.inf]), np.array([1.0]), np.zeros(1), np.full(1, 3.0)
    passes = Sweep(problem.columns, low, high, penalty, group.center, 1.0, x)
    passes.begin(y)
    for _ in range(2000):
        largest = passes.sweep()
    assert largest < 1e-12
    np.testing.assert_allclose(x, projected(group, passes.price, 1.0)[0], atol=1e-9)


# Pricing ----------------------------------------------------------------------------------------------------------


def priced_slowly(cost: Floats, usage: Floats, y: Floats, weight: float) -> Floats:
    """Reduced costs of one block."""
    return weight * cost - usage.T @ y


@quick
@given(seeds, st.sampled_from([1.0, 0.0, 0.5]), st.integers(1, 2))
def test_pricing(seed: int, weight: float, threads: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 4))
    matrix = BlockMatrix()
    for _ in range(rows):
        matrix.add_row(-np.inf, 10.0)
    blocks: dict[int, tuple[Floats, Floats, int]] = {}
    for _ in range(int(rng.integers(1, 4))):
        n = int(rng.integers(1, 30))
        usage = np.zeros((rows, n))
        if rng.random() < 0.6:  # runs of columns on one row: segments
            usage[np.sort(rng.integers(0, rows, n)), np.arange(n)] = rng.uniform(1, 5, n)
        else:
            usage = np.where(rng.random((rows, n)) < 0.5, rng.uniform(1, 5, (rows, n)), 0.0)
        pattern = flat([Group(np.zeros(n), np.zeros(n), np.ones(n), 1.0, usage, np.zeros(n))])
        template = matrix.add_template(pattern.entry_start, pattern.row, pattern.coefficient)
        for _ in range(int(rng.integers(1, 4))):
            base, scale, offset = rng.normal(size=n), float(rng.normal()), float(rng.normal())
            slot = matrix.add_slab(template, base.copy(), 1.0, 0.0, 1.0, scale, offset)
            cost = scale * base + offset
            if rng.random() < 0.5:
                columns = np.sort(rng.choice(n, int(rng.integers(0, n + 1)), replace=False))
                values = rng.normal(size=len(columns))
                matrix.set_exceptions(slot, columns if len(columns) else None, values if len(columns) else None)
                cost[columns] = values
            fixed = int(rng.integers(n)) if rng.random() < 0.2 else -1
            matrix.set_fixed(slot, fixed)
            blocks[slot] = (cost, usage, fixed)
    if rng.random() < 0.5 and len(blocks) > 1:
        gone = int(rng.choice(list(blocks)))
        matrix.remove_slab(gone)
        del blocks[gone]
    y, threshold = rng.normal(size=rows), rng.normal(-1.0, 1.0, matrix.n_slots)
    smallest, slot_of, column, reduced_cost = matrix.price(y, threshold, threads, weight)
    found: dict[int, list[tuple[int, float]]] = {slot: [] for slot in blocks}
    for slot, j, value in zip(slot_of, column, reduced_cost, strict=True):
        found[int(slot)].append((int(j), float(value)))
    for slot in range(matrix.n_slots):
        if slot not in blocks:
            assert smallest[slot] == np.inf
            continue
        cost, usage, fixed = blocks[slot]
        reduced = priced_slowly(cost, usage, y, weight)
        if fixed >= 0:
            assert smallest[slot] == pytest.approx(reduced[fixed])
            assert found[slot] == []
            continue
        assert smallest[slot] == pytest.approx(reduced.min())
        for j, value in found[slot]:
            assert value == pytest.approx(reduced[j])
            assert value < threshold[slot]
        if reduced.min() < threshold[slot]:
            assert min(value for _, value in found[slot]) == pytest.approx(reduced.min())
        else:
            assert found[slot] == []
        starts = matrix.slabs[slot].template.segment_start
        best = [reduced[a:b].min() for a, b in pairwise(starts)]
        assert len(found[slot]) == sum(value < threshold[slot] for value in best)


@quick
@given(seeds)
def test_gather_copies_what_the_matrix_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = BlockMatrix()
    for _ in range(3):
        matrix.add_row(-np.inf, 5.0)
    usage = np.where(rng.random((3, 6)) < 0.5, rng.uniform(1, 5, (3, 6)), 0.0)
    pattern = flat([Group(np.zeros(6), np.zeros(6), np.ones(6), 1.0, usage, np.zeros(6))])
    template = matrix.add_template(pattern.entry_start, pattern.row, pattern.coefficient)
    costs = []
    for _ in range(4):
        cost = rng.normal(size=6)
        slot = matrix.add_slab(template, cost, 1.0, 0.0, 1.0, 2.0, 0.5)
        matrix.set_exceptions(slot, np.array([1, 4]), np.array([7.0, 8.0]))
        costs.append(2.0 * cost + 0.5)
        costs[-1][[1, 4]] = [7.0, 8.0]
    matrix.set_fixed(2, 3)
    ws = WorkingSet()
    picks = [(slot, j) for slot in range(4) for j in range(6) if rng.random() < 0.5] or [(0, 0)]
    slots, columns = np.array(picks, dtype=np.int32).T
    assert ws.grow(matrix, np.ascontiguousarray(slots), np.ascontiguousarray(columns)) == len(picks)
    assert ws.grow(matrix, np.ascontiguousarray(slots), np.ascontiguousarray(columns)) == 0
    np.testing.assert_allclose(ws.cost, [costs[slot][j] for slot, j in picks])
    np.testing.assert_array_equal(ws.lower, [float(pick == (2, 3)) for pick in picks])
    np.testing.assert_array_equal(ws.upper, [float(slot != 2 or j == 3) for slot, j in picks])
    y = rng.normal(size=3)
    np.testing.assert_allclose(ws.reduced_costs(y), [costs[slot][j] - usage[:, j] @ y for slot, j in picks])
    x = rng.random(len(picks))
    ws.x[:] = x
    np.testing.assert_allclose(ws.activity(3), sum(usage[:, j] * v for (_, j), v in zip(picks, x, strict=True)))
    seen = {"slots": ws.slots.tolist(), "groups": np.repeat(ws.slots, np.diff(ws.start)).tolist()}
    assert seen["slots"] == sorted(set(slots.tolist()))
    assert seen["groups"] == slots.tolist()


@given(st.lists(st.lists(st.integers(0, 2), max_size=3, unique=True), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_segments_are_runs_on_the_same_rows(rows_of: list[list[int]]) -> None:
    rows_of = [sorted(rows) for rows in rows_of]
    start = np.cumsum([0] + [len(rows) for rows in rows_of]).astype(np.int32)
    matrix = BlockMatrix()
    for _ in range(3):
        matrix.add_row(0.0, 1.0)
    flat_rows = np.array([r for rows in rows_of for r in rows], dtype=np.int32)
    starts = matrix.add_template(start, flat_rows, np.ones(len(flat_rows))).segment_start.tolist()
    cuts = [0] + [j for j in range(1, len(rows_of)) if rows_of[j] != rows_of[j - 1]] + [len(rows_of)]
    assert starts == (cuts if len(cuts) <= 9 else [0, len(rows_of)])


# Purification -----------------------------------------------------------------------------------------------------


@quick
@given(seeds, st.booleans())
def test_purification(seed: int, ties: bool) -> None:
    """From an interior point of a face: not worse, still feasible, and a vertex."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 4))
    groups = []
    for _ in range(int(rng.integers(2, 12))):
        n = int(rng.integers(1, 6))
        cost = np.zeros(n) if ties else np.round(rng.normal(size=n), 1)
        usage = rng.integers(0, 5, (rows, n)).astype(float)
        groups.append(Group(cost, np.zeros(n), np.ones(n), float(rng.choice([1.0, np.inf], p=[0.8, 0.2])), usage, cost))
    problem = flat(groups)
    x = np.concatenate([rng.dirichlet(np.ones(len(g.cost) + 1))[:-1] if rng.random() < 0.7 else
                        rng.dirichlet(np.ones(len(g.cost))) for g in groups])  # fmt: skip
    usage = np.hstack([g.usage for g in groups])
    activity = usage @ x
    upper = np.where(rng.random(rows) < 0.7, activity, activity + rng.uniform(0, 3, rows))
    bounds = Rows(np.full(rows, -np.inf), upper, np.maximum(1.0, usage.max(axis=1)))
    ws = working_set(problem, x)
    purify(ws, bounds)
    assert problem.cost @ ws.x <= problem.cost @ x + 1e-9
    assert np.all((ws.x >= 0.0) & (ws.x <= 1.0))
    assert np.all(usage @ ws.x <= upper + 1e-7 * (1 + upper))
    totals = np.add.reduceat(ws.x, problem.start[:-1])
    assert np.all(totals <= problem.limit + 1e-9)
    require_vertex(problem, usage, upper, ws.x, totals)


def require_vertex(problem: Flat, usage: Floats, upper: Floats, x: Floats, totals: Floats) -> None:
    """Columns between bounds are independent in the tight constraints, and few blocks are fractional (F12)."""
    between = np.flatnonzero((x > 1e-8) & (x < 1 - 1e-8))
    group = np.repeat(np.arange(len(totals)), np.diff(problem.start))
    tight = usage @ x >= upper - 1e-6 * (1 + upper)
    limited = np.isfinite(problem.limit) & (totals >= problem.limit - 1e-8)
    rows = [usage[tight][:, between]] + [(group[between] == g)[None, :] for g in np.flatnonzero(limited)]
    constraints = np.vstack([np.asarray(row, dtype=float) for row in rows])
    rank = np.linalg.matrix_rank(constraints, tol=1e-8) if len(between) else 0
    assert rank == len(between)
    if np.isfinite(problem.limit).all():
        assert len(np.unique(group[between])) <= int(tight.sum())


def test_purification_leaves_many_tight_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("copter.methods.proximal.purification.WALK_ROWS", 1)
    group = Group(np.zeros(2), np.zeros(2), np.ones(2), 1.0, np.eye(2), np.zeros(2))
    problem, x = flat([group]), np.array([0.5, 0.5])
    ws = working_set(problem, x)
    assert purify(ws, Rows(np.full(2, -np.inf), np.array([0.5, 0.5]), np.ones(2))) == 0
    np.testing.assert_array_equal(ws.x, x)


@pytest.mark.parametrize("make", [lambda: np.array([0.3, 0.7]), lambda: np.array([5.0, -2.0])])
def test_purification_of_a_face_without_vertices(make: Callable[[], Floats]) -> None:
    """Free columns without cost: nothing to walk to, and the walk ends."""
    free = np.full(2, np.inf)
    group = Group(np.zeros(2), -free, free, np.inf, np.array([[1.0, 0.0]]), np.zeros(2))
    ws = working_set(flat([group]), make())
    steps = purify(ws, Rows(np.array([-np.inf]), np.array([np.inf]), np.ones(1)))
    assert steps <= 4
    assert np.isfinite(ws.x).all()
