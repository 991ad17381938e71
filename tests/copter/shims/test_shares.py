"""Shares of continuous requests: which columns they know, what they must have, and how limits bind."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from copter import Model
from copter.shims.shares import Shares

INF = float("inf")
Floats = np.ndarray


def made() -> Model:
    """In slots 0 to 4: whole; two of no bounds; least, of 0.25 and 0.5 in its last columns; free, of no limit."""
    model = Model("min")
    model.set_count("r", 9.0)
    model.set_count("s", 9.0)
    model.add_request("whole", [1.0, 2.0], {"r": [1, 1]}, integer=True, lower=[0.0, 1.0])
    for name in ("one", "two"):
        model.add_request(name, [1.0, 2.0, 3.0], {"r": [1, 2, 0], "s": [0, 4, 5]}, limit=2.0)
    model.add_request("least", [4.0, 5.0, 6.0], {"r": [1, 0, 3]}, limit=3.0, lower=[0.0, 0.25, 0.5], upper=2.0)
    model.add_request(
        "free", [7.0] * 4, {"s": [1, 2, 3, 4]}, limit=INF, lower=[-INF, -INF, -2.0, 0.0], upper=[-1.0, 5.0, 3.0, 4.0]
    )
    return model


def shares_of(model: Model, *listed: tuple[int, int]) -> Shares:
    """Shares that know these (slot, column), and what they must."""
    continuous = np.array([not model.ledger.matrix.slabs[slot].integer for slot in range(len(model.requests))])
    return Shares(model.ledger.matrix, continuous, np.array([slot << 32 | at for slot, at in listed], dtype=np.int64))


def test_columns_that_are_listed_or_have_to_be_there() -> None:
    shares = shares_of(made(), (2, 2), (1, 0), (2, 0), (0, 0))
    known = [(1, 0), (2, 0), (2, 2), (3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (4, 3)]
    assert shares.key.tolist() == [slot << 32 | column for slot, column in known]
    assert (shares.slots.tolist(), shares.start.tolist(), shares.size) == ([1, 2, 3, 4], [0, 1, 3, 6, 10], 10)
    assert shares.group.tolist() == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    assert (shares.limit.tolist(), shares.cost.tolist()) == ([2, 2, 3, INF], [1, 1, 3, 4, 5, 6, 7, 7, 7, 7])
    assert shares.lower.tolist() == [0, 0, 0, 0, 0.25, 0.5, -INF, -INF, -2, 0]
    assert shares.upper.tolist() == [2, 2, 2, 2, 2, 2, -1, 5, 3, 4]
    assert shares.base.tolist() == [0, 0, 0, 0, 0.25, 0.5, -1, 0, -2, 0]
    assert shares.use(np.arange(10.0), 2).tolist() == [0 + 1 + 3 + 3 * 5, 5 * 2 + 6 + 2 * 7 + 3 * 8 + 4 * 9]
    assert shares_of(made()).slots.tolist() == [3, 4]


def test_the_best_shares_of_what_is_left_are_a_program() -> None:
    lp = shares_of(made(), (1, 1), (1, 0)).program(np.array([3.0, 4.0]))
    assert lp.A.toarray().tolist() == [
        [1, 2, 1, 0, 3, 0, 0, 0, 0],
        [0, 4, 0, 0, 0, 1, 2, 3, 4],
        [1, 1, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 1, 1, 1],
    ]
    assert lp.row_upper.tolist() == [3, 4, 2, 3, INF]
    assert (lp.c.tolist(), lp.col_upper.tolist()) == ([1, 2, 4, 5, 6, 7, 7, 7, 7], [2, 2, 2, 2, 2, -1, 5, 3, 4])


def test_values_are_put_where_columns_are_known() -> None:
    shares = shares_of(made(), (1, 0), (2, 1))
    key = np.array([9 << 32, 2 << 32 | 1, 1 << 32 | 2, 4 << 32 | 3, 0], dtype=np.int64)
    assert shares.spread(key, np.array([9.0, 0.5, 9.0, 3.0, 9.0])).tolist() == [0, 0.5, 0, 0.25, 0.5, -1, 0, -2, 3]
    assert shares.spread(key[:0], np.zeros(0)).tolist() == shares.base.tolist()


# Limits ---------------------------------------------------------------------------------------------------------------


def tenths(limit: float, n: int, lower: float = 0.0, groups: int = 1, upper: float = INF) -> Shares:
    """Requests of n columns each, all known."""
    model = Model("max")
    model.set_count("r", 1e9)
    for name in range(groups):
        model.add_request(name, np.ones(n), {"r": np.ones(n)}, limit=limit, lower=lower, upper=upper)
    return shares_of(model, *((slot, at) for slot in range(groups) for at in range(n)))


def total(x: Floats) -> Fraction:
    """The exact sum."""
    return sum(map(Fraction, x.tolist()), Fraction(0))


def test_values_within_bounds_and_limits_stay_to_the_last_bit() -> None:
    """At the limit, too."""
    shares = tenths(1.0, 3, groups=3)
    x = np.array([0.25, 0.25, 0.5, 0.1, 0.2, 0.3, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(shares.within(x), x)
    clipped = tenths(4.0, 3, lower=0.25, upper=0.75)
    assert clipped.within(np.array([-1.0, 0.5, 9.0])).tolist() == [0.25, 0.5, 0.75]
    assert clipped.within(np.array([np.nan, np.inf, -np.inf])).tolist() == [0.25, 0.25, 0.25]
    assert tenths(INF, 3).within(np.array([1e300, 2.0, 3.0])).tolist() == [1e300, 2.0, 3.0]


def test_what_is_above_the_limit_comes_down_to_it_in_proportion() -> None:
    shares = tenths(2.0, 4, groups=3)
    x = np.array([1.0, 2.0, 0.0, 1.5, 0.5, 0.5, 0.5, 0.25, 8.0, 0.0, 0.0, 1.0])  # no column is above two
    right = [4 / 9, 8 / 9, 0.0, 6 / 9, 0.5, 0.5, 0.5, 0.25, 4 / 3, 0.0, 0.0, 2 / 3]
    np.testing.assert_allclose(shares.within(x), right, rtol=1e-13)
    least = tenths(2.0, 4, lower=0.25)  # one of two is what must be: half of the rest of 4
    np.testing.assert_allclose(
        least.within(np.array([0.25, 1.25, 2.25, 0.25])), [0.25, 0.25 + 1 / 3, 0.25 + 2 / 3, 0.25], rtol=1e-13
    )
    full = tenths(1.0, 4, lower=0.25)
    assert full.within(np.array([0.25, 1.25, 2.25, 0.25])).tolist() == [0.25] * 4


def test_sums_are_rounded_once() -> None:
    """Ten times 0.1 is above one by less than that, and below it added up one by one; others have sums of their own."""
    x = np.array([0.1] * 10 + [0.125] * 8 + [0.0] * 2 + [0.1] * 9 + [0.1 + 2.0**-52])
    assert sum([0.1] * 10) < 1.0 < total(x[:10])
    found = tenths(1.0, 10, groups=3).within(x)
    np.testing.assert_array_equal(found[:20], x[:20])
    assert total(found[20:]) <= 1 < total(x[20:])
    np.testing.assert_allclose(found[20:], 0.1, rtol=1e-13)


@pytest.mark.parametrize("size", [2.0**-20, 1.0, 2.0**20])
def test_sums_that_rounding_takes_past_the_limit_are_left(size: float) -> None:
    """A thousand terms of 0.75 units in the last place, each of which float64 rounds up to one."""
    unit = 2.0**-52 * size
    x = np.array([size, *[0.75 * unit] * 1000])
    shares = tenths(size + 750 * unit, 1001)
    np.testing.assert_array_equal(shares.within(x), x)
    below = tenths(size + 749 * unit, 1001).within(x)
    assert total(below) <= Fraction(size + 749 * unit)
    np.testing.assert_allclose(below, x, rtol=1e-11)
    lost = np.array([size, *[0.25 * unit] * 1000])
    brought = tenths(size + 249 * unit, 1001).within(lost)
    assert total(brought) <= Fraction(size + 249 * unit)
    np.testing.assert_allclose(brought, lost, rtol=1e-11)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_many_columns_above_the_limit_come_below_it(seed: int, scale: float) -> None:
    """Rounding of the sum of so many does not take them past it; it costs next to nothing."""
    rng = np.random.default_rng(seed)
    n = 1500
    for limit in (10.0 * scale, 5.0 * scale):
        x = tenths(limit, n).within(rng.uniform(0.0, 0.1, n) * scale)
        assert limit * (1.0 - 1e-10) <= total(x) <= limit


def test_values_of_both_signs_above_the_limit_come_below_it() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 3, 40):
        for _ in range(50):
            x = tenths(0.1, n, lower=-7.3).within(rng.uniform(-7.0, 9.0, n))
            assert total(x) <= Fraction(0.1)
            assert (x >= -7.3).all()
