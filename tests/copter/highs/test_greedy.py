"""Single moves: the points they find hold, and are what they must be in small programs."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from copter.highs.greedy import Greedy

INF = np.inf


def made(
    cost: list[float], rows: list[list[float]], low: list[float], high: list[float], upper: list[float],
    integer: list[bool] | None = None,
) -> Greedy:  # fmt: skip
    n = len(cost)
    whole = np.ones(n, dtype=bool) if integer is None else np.array(integer)
    return Greedy(
        sp.csc_array(np.array(rows)), np.array(low), np.array(high), np.zeros(n), np.array(upper), whole, np.array(cost)
    )


def soon() -> float:
    return time.perf_counter() + 10.0


def test_a_packing_takes_what_is_worth_most_for_its_use() -> None:
    greedy = made([-6.0, -5.0, -9.0], [[2.0, 1.0, 9.0]], [-INF], [3.0], [1.0] * 3)
    point = greedy.point(greedy.free_point(), None, soon())
    assert point is not None
    assert point.tolist() == [1.0, 1.0, 0.0]


def test_bins_are_filled_first_and_then_closed() -> None:
    # columns: two items in each of two bins, then whether a bin is used
    rows = [[1, 0, 1, 0, 0, 0], [0, 1, 0, 1, 0, 0], [3, 4, 0, 0, -8, 0], [0, 0, 3, 4, 0, -8]]
    greedy = made([0, 0, 0, 0, 2.0, 1.0], rows, [1, 1, -INF, -INF], [1, 1, 0, 0], [1.0] * 6)
    assert greedy.free_point().tolist() == [0, 0, 0, 0, 1, 1]
    point = greedy.point(greedy.free_point(), None, soon())
    assert point is not None
    assert point[4:].sum() == 1.0


def test_prices_order_the_moves() -> None:
    cost, rows = [-3.0, -3.0], [[1.0, 1.0]]
    for reduced, taken in (([-1.0, 2.0], [1.0, 0.0]), ([2.0, -1.0], [0.0, 1.0])):
        greedy = made(cost, rows, [-INF], [1.0], [1.0, 1.0])
        point = greedy.point(np.zeros(2), np.array(reduced), soon())
        assert point is not None
        assert point.tolist() == taken


def test_an_upper_side_that_is_broken_is_mended_by_lowering() -> None:
    greedy = made([1.0, -1.0], [[2.0, 3.0]], [-INF], [4.0], [5.0, 5.0])
    point = greedy.point(np.array([0.0, 3.0]), None, soon())
    assert point is not None
    assert point.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("until", [0.0, INF])
def test_no_point_where_none_is_or_no_time(until: float) -> None:
    greedy = made([1.0], [[2.0]], [1.0], [1.0], [3.0])  # an equation that no whole number meets
    assert greedy.point(np.zeros(1), None, until) is None


def test_columns_without_limits_stay() -> None:
    greedy = made([-1.0, 1.0], [[0.0, 1.0]], [2.0], [INF], [INF, INF], [False, False])
    point = greedy.point(greedy.free_point(), None, soon())
    assert point is not None
    assert point.tolist() == [0.0, 2.0]


@given(st.integers(0, 2**32 - 1))
def test_points_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 6)), int(rng.integers(1, 9))
    matrix = rng.integers(-3, 6, (m, n)) * (rng.random((m, n)) < 0.6)
    inside = rng.integers(0, 4, n)
    use = matrix @ inside
    low = np.where(rng.random(m) < 0.5, use - rng.integers(0, 3, m), -INF)
    high = np.where(rng.random(m) < 0.7, use + rng.integers(0, 3, m), INF)
    whole = rng.random(n) < 0.7
    greedy = Greedy(
        sp.csc_array(matrix.astype(float)), low, high, np.zeros(n), np.full(n, 4.0), whole,
        cost := rng.integers(-5, 6, n).astype(float),
    )  # fmt: skip
    for start in (greedy.free_point(), greedy.near(rng.random(n) * 4.0), inside.astype(float)):
        point = greedy.point(start, None, soon())
        if point is None:
            assert not np.array_equal(start, inside)  # a point that holds already is never lost
            continue
        assert (point >= -1e-9).all()
        assert (point <= 4.0 + 1e-9).all()
        assert (point[whole] == np.rint(point[whole])).all()
        assert (matrix @ point >= low - 1e-7).all()
        assert (matrix @ point <= high + 1e-7).all()
        if np.array_equal(start, inside):
            assert cost @ point <= cost @ start + 1e-9
