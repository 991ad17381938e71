"""Exact sums of doubles, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import fsum, isnan, nextafter

import numpy as np
import pytest

from copter.problem.exact_sums import enclosed_sums, exact_parts


@pytest.mark.parametrize("seed", range(5))
def test_parts_have_the_exact_sum_of_all_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=500) * 10.0 ** rng.integers(-200, 200, 500)
    values = np.concatenate((values, -values[:400], [0.0, 1e-300]))
    rng.shuffle(values)
    parts = exact_parts(values)
    assert sum(map(Fraction, parts)) == sum(map(Fraction, values.tolist()))
    assert fsum(parts) == fsum(values.tolist())
    assert fsum(exact_parts(np.zeros(0))) == 0.0


def test_a_sum_beyond_the_largest_double_is_none() -> None:
    assert all(isnan(part) for part in exact_parts(np.array([1.7e308, 1.7e308, -1.7e308])))
    assert all(isnan(part) for part in exact_parts(np.tile([1e308, 1e-300], 100)))
    low, high = enclosed_sums(
        np.array([1.7e308, np.nan, 1.0]), np.array([0, 1, 1, 2]), np.array([1.7e308, -1.0]), np.zeros(2)
    )
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, True, False]
    assert low[2] == high[2] == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_sums_lie_between_neighbouring_doubles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = np.append(0, rng.integers(0, 30, 39))
    start = np.concatenate(([0], np.cumsum(count)))
    spread = int(rng.choice([0, 5, 100]))
    one, other = rng.normal(size=(2, start[-1])) * 10.0 ** rng.integers(-spread, spread + 1, (2, start[-1]))
    if seed % 2:  # sums of which nothing or little is left
        one, other = np.rint(one), -np.rint(one) + rng.choice([0.0, 2.0**-80], start[-1])
    first = rng.choice([0.0, 0.1, 3.0], 40)
    exact = 0
    for i, (low, high) in enumerate(zip(*enclosed_sums(first, start, one, other), strict=True)):
        part = slice(start[i], start[i + 1])
        value = sum(map(Fraction, [*one[part].tolist(), *other[part].tolist()]), Fraction(first[i]))
        assert Fraction(low) <= value <= Fraction(high)
        if low == high:
            exact += 1
        else:
            assert high == nextafter(nextafter(low, np.inf), np.inf), "the doubles around the sum's own"
    assert exact, "a sum of one number is exact"


def test_entries_that_there_are_not() -> None:
    with pytest.raises(IndexError):
        enclosed_sums(np.zeros(1), np.array([0, 2]), np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match="disagree"):
        enclosed_sums(np.zeros(2), np.array([0, 1]), np.zeros(1), np.zeros(1))
