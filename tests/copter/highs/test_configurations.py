"""Configurations: the requests' searches equal brute force; bounds hold and plans reach HiGHS's optimum."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import scipy.sparse as sp

from copter.highs import configurations
from copter.highs.choice import exchange
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


def optimum(program: Program) -> float:
    """Return HiGHS's optimum."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    return float(
        milp(
            program.cost,
            integrality=program.integrality.astype(int),
            bounds=Bounds(program.col_lower, program.col_upper),
            constraints=LinearConstraint(program.matrix, program.row_lower, program.row_upper),
            options={"mip_rel_gap": 0.0},
        ).fun
    )


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
    x = found.point_of(found.rounded(NEVER))
    activity = program.matrix @ x
    assert (activity[2:] >= program.row_lower[2:]).all()
    assert (activity[:2] <= program.row_upper[:2] + 1e-9).all()
    assert program.cost @ x >= best - 1e-9
    lp, kept = found.restricted(float(program.cost @ x))
    assert isinstance(lp, LinearProgram)
    assert lp.shape[1] == 1 + len(kept)


def slowly(usage, cost, sets, low, high, weight, now, used, passes):  # type: ignore[no-untyped-def]
    """The exchanges of `choice.pyx`, in NumPy."""
    for _ in range(passes):
        moved = False
        for g, of in enumerate(sets):
            sums = used - usage[now[g]] + usage[of]
            costs = cost[of] + (np.maximum(sums - high, 0.0) + np.maximum(low - sums, 0.0)) @ weight
            current = costs[of.tolist().index(now[g])]
            pick = int(np.argmin(costs))
            if costs[pick] < current - 1e-9 * (1.0 + abs(current)):
                used, now[g], moved = sums[pick], of[pick], True
        if not moved:
            break
    return now, used


@pytest.mark.parametrize("seed", range(30))
def test_exchanges_are_those_of_the_slow_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, size = int(rng.integers(1, 5)), rng.integers(1, 6, 8)
    first = np.concatenate(([0], np.cumsum(size)))
    k = int(first[-1])
    order = rng.permutation(k)
    usage, cost = rng.integers(0, 7, (k, m)).astype(float), rng.integers(1, 30, k).astype(float)
    high = np.where(rng.random(m) < 0.7, 20.0, np.inf)
    low = np.where(rng.random(m) < 0.5, 15.0, -np.inf)
    weight = rng.integers(1, 20, m) + rng.random(m)
    sets = [order[first[g] : first[g + 1]] for g in range(8)]
    now = np.array([of[0] for of in sets])
    used = usage[now].sum(axis=0)
    expected = slowly(usage, cost, sets, low, high, weight, now.copy(), used.copy(), 6)
    assert exchange(usage, cost, order, first, low, high, weight, now, used, 6, NEVER)
    assert now.tolist() == expected[0].tolist()
    assert used.tolist() == expected[1].tolist()


def test_exchanges_end_when_time_is_over() -> None:
    now, used = np.array([0]), np.zeros(1)
    given = np.zeros((2, 1)), np.array([2.0, 1.0]), np.array([0, 1]), np.array([0, 2])
    assert not exchange(*given, np.zeros(1), np.ones(1), np.ones(1), now, used, 5, 0.0)
    assert now[0] == 0
    assert exchange(*given, np.zeros(1), np.ones(1), np.ones(1), now, used, 5, NEVER)
    assert now[0] == 1


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
    search._part(free, found.point_of(found.rounded(NEVER)), 5.0, "completed")
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
