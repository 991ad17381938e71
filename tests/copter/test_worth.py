"""Concave worths: values, pieces, wrong numbers."""

from __future__ import annotations

from math import inf, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from copter import InvalidDataError, worth

POSITIVE = st.floats(0.01, 100.0)


@given(POSITIVE, POSITIVE, st.floats(0.0, 10.0))
def test_values_are_those_of_the_formulas(weight: float, total: float, floor: float) -> None:
    assert worth.log(weight, floor)(total) == pytest.approx(weight * log(total + floor))
    assert worth.power(3.0, weight, floor)(total) == pytest.approx(-0.5 * weight / (total + floor) ** 2)
    assert worth.power(0.0, weight)(total) == pytest.approx(weight * total)
    assert worth.quadratic(weight, 2.0)(total) == pytest.approx(weight * total - total**2)
    assert worth.saturating(weight, floor + 1.0)(total) == pytest.approx(min(weight * total, floor + 1.0))


@given(st.lists(st.tuples(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0)), min_size=1, max_size=6), st.floats(0.0, 20.0))
def test_minimum_is_the_least_line(lines: list[tuple[float, float]], total: float) -> None:
    least = min(slope * total + value for slope, value in lines)
    assert worth.minimum(lines)(total) == pytest.approx(least, abs=1e-9)


def test_nothing_is_worth_minus_infinity_without_a_floor() -> None:
    assert worth.log()(0.0) == -inf
    assert not worth.power(1.5).finite_at_zero
    assert worth.log(floor=0.5).finite_at_zero
    assert worth.power(0.5)(0.0) == 0.0


def test_points_on_a_line_are_one_piece() -> None:
    assert worth.piecewise([(0, 1), (1, 3), (2, 5), (4, 6)]).numbers == (1.0, 2.0, 2.0, 0.5)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: worth.log(0.0), "weight is 0.0, must be above zero"),
        (lambda: worth.log(float("nan")), "weight is nan"),
        (lambda: worth.log(1.0, -1.0), "floor is -1.0, must be zero or above"),
        (lambda: worth.power(-0.5), "alpha is -0.5"),
        (lambda: worth.power(float("inf")), "alpha is inf"),
        (lambda: worth.power(50.0), "max-min"),
        (lambda: worth.power("x"), "alpha is 'x'"),
        (lambda: worth.piecewise([(0, 0), (1, 1), (2, 3)]), "not concave: the slope rises from 1 to 2 at point 1"),
        (lambda: worth.piecewise([(0, 0)]), "at least two points"),
        (lambda: worth.piecewise([(1, 0), (2, 1)]), "must be at a total of 0"),
        (lambda: worth.piecewise([(0, 0), (2, 1), (1, 2)]), "point 2 is at 1, must lie beyond 2"),
        (lambda: worth.piecewise([(0, 0), (1, float("nan"))]), "finite"),
        (lambda: worth.minimum([]), "at least one"),
        (lambda: worth.quadratic(1.0, 0.0), "curvature is 0.0"),
        (lambda: worth.saturating(1.0, 0.0), "most is 0.0"),
    ],
)
def test_wrong_numbers_are_named(made: object, says: str) -> None:
    with pytest.raises(InvalidDataError, match=says.replace("(", r"\(")):
        made()  # type: ignore[operator]
