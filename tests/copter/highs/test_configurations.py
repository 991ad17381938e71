"""Configurations: the requests' searches equal brute force; bounds hold and plans reach HiGHS's optimum."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from copter.highs import configurations
from copter.highs.choice import oscillate
from copter.highs.configurations import NODES, Configurations, moved_prices
from copter.highs.pricing import Pricer
from copter.highs.search import Search, Warm
from copter.highs.tree import Program, Report, Task
from copter.problem.linear_program import LinearProgram

NEVER = float("inf")


def cheapest(d: np.ndarray, rows: np.ndarray, low: np.ndarray, high: np.ndarray, upper: np.ndarray) -> float:
    """Return the least cost of all whole points within bounds and rows, by enumeration."""
    best = np.inf
    for point in itertools.product(*(range(int(top) + 1) for top in upper)):
        activity = rows @ point
        if (activity >= low - 1e-9).all() and (activity <= high + 1e-9).all():
            best = min(best, float(d @ point))
    return best


@pytest.mark.parametrize("seed", range(60))
def test_price_equals_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 5)), int(rng.integers(0, 4))
    rows = rng.integers(-2, 5, (m, n)).astype(float)
    low = np.where(rng.random(m) < 0.6, rng.integers(-2, 6, m), -np.inf).astype(float)
    high = np.where(rng.random(m) < 0.4, np.where(np.isfinite(low), low, 0) + rng.integers(0, 6, m), np.inf)
    upper, d = rng.integers(0, 4, n).astype(float), np.round(rng.normal(0.0, 3.0, n), 2)
    pricer = Pricer(
        np.array([0, n], "i4"), np.array([0, m], "i4"), np.array([0, m * n], "i8"), np.append(rows.ravel(), 0.0), low,
        high, np.zeros(n), upper,
    )  # fmt: skip
    x, bound = np.full(n, np.nan), np.zeros(1)
    whole = pricer.price(d, x, bound, 100_000)
    best = cheapest(d, rows, low, high, upper)
    if np.isinf(best):
        assert np.isnan(x[0])
        return
    assert whole == 1
    assert (rows @ x >= low - 1e-6).all()
    assert (rows @ x <= high + 1e-6).all()
    assert d @ x == pytest.approx(best, abs=1e-9)
    assert bound[0] == pytest.approx(best, abs=1e-8)
    few = np.zeros(1)  # with too few nodes the bound is that of a relaxation
    pricer.price(d, np.full(n, np.nan), few, 1)
    assert few[0] <= best + 1e-8
    late = np.zeros(1)  # and where time is over
    pricer.price(d, np.full(n, np.nan), late, 100_000, 0.0)
    assert late[0] <= best + 1e-8


def test_costs_without_end_have_no_bound() -> None:
    pricer = Pricer(
        np.array([0, 1], "i4"), np.array([0, 0], "i4"), np.array([0, 0], "i8"), np.zeros(1), np.zeros(0), np.zeros(0),
        np.zeros(1), np.array([np.inf]),
    )  # fmt: skip
    x, bound = np.full(1, np.nan), np.zeros(1)
    assert pricer.price(np.array([-1.0]), x, bound, 10) == 0
    assert bound[0] == -np.inf
    assert np.isnan(x[0])


def knapsacks(seed: int, groups: int = 12) -> Program:
    """Requests of four whole columns and an own row, two shared rows, and a column that fills an equation."""
    rng = np.random.default_rng(seed)
    k = 4
    shared = sp.csr_array(rng.integers(1, 6, (2, groups * k)).astype(float))
    own = sp.block_diag([rng.integers(1, 5, (1, k)).astype(float) for _ in range(groups)])
    fill = sp.csr_array(([1.0], ([1], [0])), shape=(2 + groups, 1))
    matrix = sp.csc_array(sp.hstack([fill, sp.vstack([shared, own])]))
    cost = np.concatenate(([0.0], rng.integers(1, 20, groups * k).astype(float)))
    room = 12.0 * groups
    return Program(
        cost, matrix, np.concatenate(([-np.inf, room], rng.integers(3, 9, groups))),
        np.concatenate(([room, room], np.full(groups, np.inf))), np.zeros(1 + groups * k),
        np.concatenate(([np.inf], np.full(groups * k, 3.0))), np.arange(1 + groups * k) > 0,
        np.concatenate(([0], 1 + np.repeat(np.arange(groups), k))).astype(np.int32),
    )  # fmt: skip


def solved(program: Program) -> Any:
    """Return HiGHS's answer."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    return milp(
        program.cost,
        integrality=program.integrality.astype(int),
        bounds=Bounds(program.col_lower, program.col_upper),
        constraints=LinearConstraint(program.matrix, program.row_lower, program.row_upper),
        options={"mip_rel_gap": 0.0},
    )


def optimum(program: Program) -> float:
    """Return HiGHS's optimum."""
    return float(solved(program).fun)


@pytest.mark.parametrize("seed", range(8))
def test_bound_is_below_the_optimum_and_the_choice_holds(seed: int) -> None:
    program = knapsacks(seed)
    found = Configurations(program, program.col_lower, program.col_upper)
    assert found.is_fit
    assert found.generate(None, NEVER, lambda: False)
    found.improve(NEVER, lambda: False, NODES)
    best = optimum(program)
    assert found.bound <= best + 1e-6
    assert found.bound >= found.value - 1e-3 * (1.0 + abs(best))  # the generation came to its end
    x = found.point_of(found.rounded(NEVER, 1e-4, 10))
    activity = program.matrix @ x
    assert (activity[2:] >= program.row_lower[2:]).all()
    assert (activity[:2] <= program.row_upper[:2] + 1e-9).all()
    assert program.cost @ x >= best - 1e-9
    lp, kept = found.restricted(float(program.cost @ x))
    assert isinstance(lp, LinearProgram)
    assert lp.shape[1] == 1 + len(kept)


def slowly(usage, cost, sets, low, high, weight, now, tries, enough):  # type: ignore[no-untyped-def]
    """The oscillation of `choice.pyx`, in NumPy."""
    state, turn, first, idle = 88172645463325252, list(range(len(sets))), weight.copy(), 0
    best, value = None, np.inf
    while idle < tries and value > enough:
        idle, moved = idle + 1, True
        while moved:
            moved = False
            for h in range(len(sets) - 1, 0, -1):
                state ^= state << 13 & (1 << 64) - 1
                state ^= state >> 7
                state ^= state << 17 & (1 << 64) - 1
                k = state % (h + 1)
                turn[h], turn[k] = turn[k], turn[h]
            for g in turn:
                of = sets[g]
                sums = usage[now].sum(axis=0) - usage[now[g]] + usage[of]
                costs = cost[of] + (np.maximum(sums - high, 0.0) + np.maximum(low - sums, 0.0)) @ weight
                current = costs[of.tolist().index(now[g])]
                pick = int(np.argmin(costs))
                if costs[pick] < current - 1e-9 * (1.0 + abs(current)):
                    now[g], moved = of[pick], True
        sums = usage[now].sum(axis=0)
        off = (sums > high) | (sums < low)
        weight = np.clip(weight * np.where(off, 2.0, 0.9), 1e-6 * first, 1e12 * first)
        if not off.any() and cost[now].sum() < value:
            best, value, idle = now.copy(), cost[now].sum(), 0
    return best, now


@pytest.mark.parametrize("seed", range(30))
def test_exchanges_are_those_of_the_slow_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, size = int(rng.integers(1, 5)), rng.integers(1, 6, 8)
    first = np.concatenate(([0], np.cumsum(size)))
    k = int(first[-1])
    order = rng.permutation(k)
    usage, cost = rng.integers(0, 7, (k, m)).astype(float), rng.integers(1, 30, k) + rng.random(k)
    high = np.where(rng.random(m) < 0.7, 26.0, np.inf)
    low = np.where(rng.random(m) < 0.5, 22.0, -np.inf)
    weight = rng.integers(1, 20, m) + rng.random(m)
    sets = [order[first[g] : first[g + 1]] for g in range(8)]
    now = np.array([of[0] for of in sets])
    best, last = slowly(usage, cost, sets, low, high, weight.copy(), now.copy(), 20, -np.inf)
    given = usage, cost, order, first, low, high, np.zeros(m)
    assert oscillate(*given, weight, now, 2.0, 0.9, -np.inf, 20, NEVER) == (best is not None)
    assert now.tolist() == (last if best is None else best).tolist()


def test_exchanges_find_the_best_choice_of_tight_rows() -> None:
    """Penalties that only rose ended at the first choice that held, or at none: 20 of 60 rounds were far off."""
    reached = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups, each, m = 5, 5, 3
        usage = rng.integers(0, 9, (groups * each, m)).astype(float)
        cost = np.round(40.0 - usage.sum(axis=1) + 6.0 * rng.random(groups * each), 2)
        sums = np.array(list(itertools.product(*(range(g * each, (g + 1) * each) for g in range(groups)))))
        high = np.quantile(usage[sums].sum(axis=1), 0.35, axis=0)  # few choices hold
        holding = (usage[sums].sum(axis=1) <= high).all(axis=1)
        best = cost[sums].sum(axis=1)[holding].min()
        first = np.arange(groups + 1) * each
        now = first[:-1].copy()
        none = np.full(m, -np.inf)
        given = usage, cost, np.arange(groups * each), first, none, high, np.zeros(m), np.ones(m)
        assert oscillate(*given, now, 2.0, 0.9, -np.inf, 300, NEVER)
        assert (usage[now].sum(axis=0) <= high).all()
        reached += bool(cost[now].sum() <= best + 1e-9)
    assert reached >= 16


def test_exchanges_end_when_time_is_over_or_a_choice_is_good_enough() -> None:
    given = np.zeros((2, 1)), np.array([2.0, 1.0]), np.array([0, 1]), np.array([0, 2]), np.zeros(1), np.ones(1)
    now = np.array([0])
    oscillate(*given, np.zeros(1), np.ones(1), now, 2.0, 0.9, -np.inf, 5, 0.0)
    assert now[0] == 0
    assert oscillate(*given, np.zeros(1), np.ones(1), now, 2.0, 0.9, 1.0, 10**15, NEVER)  # would go on for years
    assert now[0] == 1


@pytest.mark.parametrize("seed", range(30))
def test_several_points_hold_and_the_first_is_the_cheapest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, most = int(rng.integers(2, 5)), int(rng.integers(1, 7))
    rows, upper, d = rng.integers(-1, 5, (2, n)).astype(float), rng.integers(1, 4, n).astype(float), rng.random(n)
    low = rng.integers(0, 6, 2).astype(float)
    pricer = Pricer(
        np.array([0, n], "i4"), np.array([0, 2], "i4"), np.array([0, 2 * n], "i8"), np.append(rows.ravel(), 0.0), low,
        np.full(2, np.inf), np.zeros(n), upper,
    )  # fmt: skip
    x, count = np.zeros(most * n), np.zeros(1, dtype=np.int32)
    pricer.several(d, x, count, most, 100_000, NEVER)
    points = x.reshape(most, n)[: count[0]]
    best = cheapest(d, rows, low, np.full(2, np.inf), upper)
    if np.isinf(best):
        assert count[0] == 0
        return
    costs = points @ d
    assert costs[0] == pytest.approx(best)
    assert (np.diff(costs) >= -1e-12).all()
    assert len(np.unique(points, axis=0)) == count[0]
    assert (points @ rows.T >= low - 1e-6).all()
    assert (points <= upper).all()
    assert (points >= 0.0).all()
    x2, count2 = np.zeros(most * n), np.zeros(1, dtype=np.int32)
    pricer.several(d, x2, count2, most, 100_000, 0.0)  # time is over
    assert count2[0] <= 1


def tight(seed: int, groups: int = 10, k: int = 6, m: int = 6) -> Program:
    """Requests of six whole columns and an own row, and six shared rows with little more room than they need."""
    rng = np.random.default_rng(seed)
    n = groups * k
    shared = rng.integers(0, 9, (m, n)).astype(float)
    own = sp.block_diag([rng.integers(2, 6, (1, k)).astype(float) for _ in range(groups)])
    need = rng.integers(6, 14, groups).astype(float)
    upper = np.full(m + groups, np.inf)
    program = Program(
        rng.integers(1, 20, n) + np.round(rng.random(n), 2), sp.csc_array(sp.vstack([sp.csr_array(shared), own])),
        np.concatenate((np.full(m, -np.inf), need)), upper, np.zeros(n), np.full(n, 4.0), np.ones(n, bool),
        np.repeat(np.arange(groups, dtype=np.int32), k),
    )  # fmt: skip
    least = np.rint(solved(replace(program, cost=shared.sum(axis=0))).x)
    return replace(program, row_upper=np.concatenate((np.floor(1.1 * (shared @ least)), upper[m:])))


def test_more_configurations_make_good_choices_where_rows_are_tight() -> None:
    """The LP's configurations alone held no whole choice, or a poor one."""
    without = with_more = 0
    for seed in range(12):
        program = tight(seed)
        found = Configurations(program, program.col_lower, program.col_upper)
        assert found.generate(None, NEVER, lambda: False)
        found.improve(NEVER, lambda: False, NODES)
        costs = []
        for several in (0, 12, 48):
            found.enrich(several, NEVER)
            x = found.point_of(found.rounded(NEVER, 0.0, 1_000))
            holds = (program.matrix @ x <= program.row_upper).all()
            costs.append(float(program.cost @ x) if holds else np.inf)
        best = optimum(program)
        assert min(costs) >= best - 1e-6
        without += bool(costs[0] <= 1.001 * best)
        with_more += bool(min(costs) <= 1.001 * best)
    assert without <= 5
    assert with_more >= 11


def test_more_configurations_are_limited_by_the_table_and_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    program = knapsacks(2)
    found = Configurations(program, program.col_lower, program.col_upper)
    assert found.generate(None, NEVER, lambda: False)
    before = len(found.cost)
    found.enrich(48, 0.0)
    assert len(found.cost) == before
    monkeypatch.setattr(configurations, "MOST_USAGE", 1)
    found.enrich(48, NEVER)
    assert len(found.cost) == before
    monkeypatch.undo()
    found.enrich(48, NEVER)
    assert len(found.cost) > before
    found.improve(NEVER, lambda: False, NODES)  # the master takes them in


@pytest.mark.parametrize("seed", range(8))
def test_the_last_rounds_configurations_are_taken_if_they_hold(seed: int) -> None:
    """The program loses its first request, others get other bounds, rows and costs, and a new one comes."""
    rng = np.random.default_rng(seed)
    program, after = knapsacks(seed), knapsacks(seed)
    last = Configurations(program, program.col_lower, program.col_upper)
    assert last.generate(None, NEVER, lambda: False)
    last.improve(NEVER, lambda: False, NODES)
    pool = last.pool()
    assert pool is not None
    came_from = np.arange(len(program.cost), dtype=np.int32)
    came_from[1:-4], came_from[-4:] = came_from[5:].copy(), -1  # the first request went, the others moved up
    matrix, lower, cost, upper = after.matrix.toarray(), after.row_lower, after.cost, after.col_upper
    own = slice(2, None)
    matrix[:2, 1:-4], cost[1:-4], upper[1:-4] = matrix[:2, 5:].copy(), cost[5:].copy(), upper[5:].copy()
    matrix[own, 1:-4], lower[2:-1] = np.vstack([matrix[3:, 5:], np.zeros((1, 44))]), lower[3:].copy()
    matrix[-1, -4:] = 1.0
    cost[1:] += rng.integers(0, 3, 48)
    lower[4] += 2.0  # of a request's own row
    upper[13:17] = 1.0
    after = Program(
        cost, sp.csc_array(matrix), lower, after.row_upper, after.col_lower, upper, after.integrality, after.group
    )
    fresh, warm = (Configurations(after, after.col_lower, after.col_upper) for _ in range(2))
    assert fresh.generate(None, NEVER, lambda: False)
    assert warm.generate(last.prices, NEVER, lambda: False, pool, came_from)
    points = sp.hstack(warm.points).toarray()
    for g, x in zip(warm.group.tolist(), points.T, strict=True):
        mine = slice(warm.first[g], warm.first[g + 1])
        assert (x[mine] <= upper[1:][mine]).all()
        assert matrix[2 + g, 1:][mine] @ x[mine] >= lower[2 + g] - 1e-9
    for one in (fresh, warm):
        one.improve(NEVER, lambda: False, NODES)
    assert warm.value == pytest.approx(fresh.value, rel=1e-6)
    assert warm.bound == pytest.approx(fresh.bound, rel=1e-3)
    assert warm.bound <= optimum(after) + 1e-6


def test_nothing_is_taken_from_a_pool_of_other_requests() -> None:
    program = knapsacks(0)
    last = Configurations(program, program.col_lower, program.col_upper)
    assert last.pool() is None
    assert last.generate(None, NEVER, lambda: False)
    again = Configurations(program, program.col_lower, program.col_upper)
    none = np.full(len(program.cost), -1, dtype=np.int32)
    assert again.generate(None, NEVER, lambda: False, last.pool(), none)
    assert again.bound <= optimum(program) + 1e-6


def searched(program: Program, seconds: float = 20.0) -> list[Report]:
    """Return the reports of a search in this process."""
    reports: list[Report] = []
    task = Task(1, program, None, None, None, seconds, 1e-4)
    Search(task, program, Warm(), lambda _: False, lambda _: None, reports.append).run()
    return reports


@pytest.mark.parametrize("seed", range(4))
def test_search_by_configurations_reaches_the_optimum(seed: int) -> None:
    program = knapsacks(seed)
    points = [each for each in searched(program) if each.x is not None]
    assert points[0].by == "configurations"
    best = optimum(program)
    assert float(program.cost @ points[-1].x) == pytest.approx(best, rel=2e-4)
    assert max(each.bound for each in points) <= best + 1e-6 * abs(best)


def test_a_first_point_completed_by_an_lp_counts() -> None:
    """A part without integer columns gave a point that was compared with "no value" and dropped."""
    program = knapsacks(1)
    reports: list[Report] = []
    task = Task(1, program, None, None, None, 10.0, 1e-4)
    search = Search(task, program, Warm(), lambda _: False, lambda _: None, reports.append)
    free = np.zeros(search.n, dtype=bool)
    free[0] = True
    found = Configurations(program, program.col_lower, program.col_upper)
    assert found.generate(None, time.perf_counter() + 10.0, lambda: False)
    search._part(free, found.point_of(found.rounded(NEVER, 1e-4, 10)), 5.0, "completed")
    assert [each.by for each in reports if each.x is not None] == ["completed"]


def test_programs_of_other_kinds_do_not_fit() -> None:
    n = 6
    choice = sp.csc_array(np.vstack([np.ones(n), np.kron(np.eye(2), np.ones(3))]))
    groups = np.repeat(np.arange(2, dtype=np.int32), 3)
    one_of_three = Program(
        np.ones(n), choice, np.full(3, -np.inf), np.array([4.0, 1.0, 1.0]), np.zeros(n), np.ones(n), np.ones(n, bool),
        groups,
    )  # fmt: skip
    assert not Configurations(one_of_three, one_of_three.col_lower, one_of_three.col_upper).is_fit
    mixed = Program(
        np.ones(n), choice, np.full(3, -np.inf), np.array([4.0, 2.0, 2.0]), np.zeros(n), np.ones(n),
        np.arange(n) % 2 == 0, groups,
    )  # fmt: skip
    assert not Configurations(mixed, mixed.col_lower, mixed.col_upper).is_fit


def test_time_that_is_over_ends_the_generation_at_once() -> None:
    program = knapsacks(3)
    found = Configurations(program, program.col_lower, program.col_upper)
    if found.generate(None, 0.0, lambda: False):
        assert found.bound <= optimum(program) + 1e-6
    else:
        assert found.bound == -np.inf


def test_programs_whose_table_of_usage_would_be_large_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    program = knapsacks(0)
    assert Configurations(program, program.col_lower, program.col_upper).is_fit
    monkeypatch.setattr(configurations, "MOST_USAGE", 10)
    assert not Configurations(program, program.col_lower, program.col_upper).is_fit


def test_prices_move_with_their_rows() -> None:
    prices = np.array([1.0, 2.0, 3.0])
    assert moved_prices(prices, np.array([2, -1], dtype=np.int32)).tolist() == [3.0, 0.0]
    assert moved_prices(np.zeros(0), np.array([-1], dtype=np.int32)).tolist() == [0.0]
