"""Rows that are exceeded: exact sums against Fractions, at limits a few bits away."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from copter.shims.feasibility import exceeded, exceeded_by, two_products
from copter.shims.tally import tally

Floats = np.ndarray


def of_row(coefficients: list[float], upper: float, values: list[float] | None = None) -> bool:
    """Whether a row of these terms is exceeded; it is the middle one of three, and the others hold."""
    n = len(coefficients)
    row = np.array([0, *[1] * n, 2], dtype=np.int32)
    found = exceeded(
        np.array([np.inf, upper, 7.0]),
        row,
        np.array([1e300, *coefficients, 7.0]),
        np.array([0.5, *(values or [1.0] * n), 1.0]),
    )
    assert found.tolist() in ([], [1])
    return len(found) > 0


def allowed(terms: list[tuple[float, float]], upper: float) -> Fraction:
    """Half a unit in the last place of the terms and the limit; nothing where all are whole."""
    if all(each == np.rint(each) for term in terms for each in term):
        return Fraction(0)
    return (sum((abs(Fraction(a) * Fraction(x)) for a, x in terms), Fraction(0)) + abs(Fraction(upper))) / 2**53


def test_products_are_exact() -> None:
    rng = np.random.default_rng(0)
    one, other = (
        rng.integers(2**52, 2**53, 2000) * 2.0 ** rng.integers(-60, 10, 2000) * rng.choice([-1, 1], 2000) for _ in "ab"
    )
    product, rest = two_products(one, other)
    np.testing.assert_array_equal(product, one * other)
    for a, b, p, r in zip(one.tolist(), other.tolist(), product.tolist(), rest.tolist(), strict=True):
        assert Fraction(p) + Fraction(r) == Fraction(a) * Fraction(b)


@pytest.mark.parametrize("most_terms", [1, 3])
def test_limits_a_few_bits_away(most_terms: int) -> None:
    """Limits that are so many units in the last place from the sum that half of the rows are exceeded."""
    rng, rows = np.random.default_rng(most_terms), 3000
    row = np.repeat(np.arange(rows, dtype=np.int32), rng.integers(1, most_terms + 1, rows))
    coefficient, value = rng.uniform(-1.0, 3.0, len(row)), rng.uniform(0.5, 2.0, len(row))
    terms: list[list[tuple[float, float]]] = [[] for _ in range(rows)]
    for i, a, x in zip(row.tolist(), coefficient.tolist(), value.tolist(), strict=True):
        terms[i].append((a, x))
    exact = [sum((Fraction(a) * Fraction(x) for a, x in each), Fraction(0)) for each in terms]
    upper = np.array([float(e) for e in exact])
    for step in range(6):
        upper = np.where(step < rng.integers(0, 6, rows), np.nextafter(upper, -np.inf), upper)
    found, seen = set(exceeded(upper, row, coefficient, value).tolist()), 0
    for i, (e, u) in enumerate(zip(exact, upper.tolist(), strict=True)):
        over = e - Fraction(u) - allowed(terms[i], u)
        if abs(over) > 2.0**-40 * allowed(terms[i], u):  # what is allowed is itself rounded
            assert (i in found) == (over > 0)
            seen += over > 0
    assert rows / 10 < seen < rows


def test_half_a_unit_of_every_figure_is_allowed() -> None:
    """3.5 - 3 against 0.5 less k units of 2^-54: sizes of 7 allow fewer than 14."""
    assert not of_row([3.5, -3.0], 0.5 - 13 * 2.0**-54)
    assert of_row([3.5, -3.0], 0.5 - 14 * 2.0**-54)
    assert not of_row([0.1] * 10, 1.0)  # each is more than a tenth
    assert sum([Fraction(0.1)] * 10) > 1
    assert of_row([0.1] * 10, 1.0 - 2.0**-51)
    assert not of_row([1.0 + 2.0**-52, -1.0], 0.0), "2^-52 is allowed, to the last bit"


def test_whole_numbers_are_allowed_nothing() -> None:
    assert not of_row([2.0, 1.0], 5.0, [1.0, 3.0])
    assert of_row([2.0, 1.0], 4.0, [1.0, 3.0])
    assert of_row([2.0, 1.0], np.nextafter(5.0, 0.0), [1.0, 3.0])
    assert not of_row([2.0**52, 2.0**52 - 1.0], 2.0**53 - 1.0)
    assert of_row([2.0**52, 2.0**52 - 1.0], 2.0**53 - 2.0)
    assert not of_row([], 0.0)
    assert of_row([], -1.0)
    assert of_row([-1.0], -np.inf)


@pytest.mark.parametrize("terms", [4, 40])
def test_whole_numbers_whose_sum_is_rounded_are_not_exact(terms: int) -> None:
    """2^53 and ones that a float64 cannot add to it; 2 are allowed."""
    assert of_row([2.0**53, *[1.0] * terms], 2.0**53)
    assert not of_row([2.0**53, *[1.0] * terms], 2.0**53 + terms)
    assert not of_row([2.0**53, *[1.0] * 2], 2.0**53)


@pytest.mark.parametrize("size", [2.0**-20, 0.5, 1.0, 2.0**20])
def test_what_adding_up_loses_is_found(size: float) -> None:
    """A thousand small terms, each lost or rounded up when it is added to a large one."""
    unit = 2.0**-52 * size  # in the last place of the sum
    lost, more = [size, *[0.25 * unit] * 1000], [size, *[0.75 * unit] * 1000]
    assert (sum(lost), sum(more)) == (size, size + 1000 * unit)
    assert of_row(lost, size + 75 * unit)
    assert of_row(lost, size + 248 * unit)
    assert not of_row(lost, size + 250 * unit)
    assert not of_row(more, size + 800 * unit)
    assert not of_row(more, size + 750 * unit)
    assert of_row(more, size + 748 * unit)


def never() -> tuple[Floats, Floats, Floats]:
    raise AssertionError("the sums tell")


def test_terms_are_asked_for_only_where_the_sums_do_not_tell() -> None:
    """One row is far below its limit, one far above, two are whole: at the limit and above."""
    upper = np.array([3.0, 1.0, 2.0, 2.0])
    row = np.arange(4, dtype=np.int32)
    coefficient = np.array([1.5, 1.5, 2.0, 3.0])
    sums = tally(row, coefficient, np.ones(4), 4)
    assert exceeded_by(upper, sums, never).tolist() == [1, 3]
    assert exceeded_by(upper + 2.0, tally(row, coefficient, np.ones(4), 4), never).tolist() == []
    with pytest.raises(AssertionError, match="the sums tell"):
        exceeded_by(np.array([3.0, 1.5]), tally(row[:2], coefficient[:2], np.ones(2), 2), never)
