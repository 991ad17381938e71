"""A pricing pass: its bound, the margin of its rounding, what certifies it; equations A3 and F9 in plain loops."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from copter import Model
from copter.methods.proximal import pricing
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.pricing import price_all, resident_errors, resident_minimum
from copter.methods.proximal.working_set import WorkingSet
from tests.copter.twins import Floats, Group, flat, working_set

INF = np.inf
ULP = 2.0**-53


class Matrix:
    """Stands for a matrix of slabs: least reduced costs, limits, fixed slabs, residents."""

    n_columns = 10

    def __init__(self, smallest: list[float], limit: list[float], fixed: list[bool], resident: list[bool]) -> None:
        self.n_slots = len(smallest)
        self.smallest, self.limit, self.fixed = np.array(smallest), np.array(limit), np.array(fixed)
        self.resident = np.array(resident, dtype=bool)
        self.asked: dict[str, Any] = {}

    def price(self, y: Floats, threshold: Floats, threads: int, weight: float, seconds: float, *more: Any) -> Any:
        self.asked = {"threshold": threshold.copy(), "threads": threads, "weight": weight, "seconds": seconds}
        self.asked["screen"], least, best = more
        np.testing.assert_array_equal(threshold, np.minimum(least, 0.0) - 1e-12 * (1.0 - np.minimum(least, 0.0)))
        assert len(best) == len(least)
        return self.smallest, np.array([7], dtype=np.int32), np.array([3], dtype=np.int32), None

    def work_of_pass(self, screen: bool) -> int:
        return self.n_columns // 2 if screen else self.n_columns

    def dual_value(self, smallest: Floats) -> tuple[float, float, float, int]:
        """In plain NumPy."""
        at = np.flatnonzero(~np.isinf(smallest))
        term = np.where(self.fixed[at], smallest[at], np.minimum(smallest[at], 0.0)) * self.limit[at]
        error = 1e-16 * (1.0 + at) * self.limit[at]
        return float(term.sum()), float(np.abs(term).sum()), float(error.sum()), len(at)

    @property
    def free_slots(self) -> list[int]:
        return np.flatnonzero(np.isinf(self.smallest) & ~self.resident).tolist()

    def resident_mask(self) -> Any:
        return self.resident

    def offsets(self) -> Floats:
        return 0.25 * (1.0 + np.arange(self.n_slots))


def some_rows() -> Rows:
    return Rows(np.array([-INF, 2.0, 1.0]), np.array([4.0, INF, 9.0]), np.ones(3))


PRICES = np.array([-0.5, 0.75, 0.0])
USAGE = np.array([[1.0, 0.0], [2.0, 4.0], [0.0, 5.0]])


def two_groups(**changed: Any) -> WorkingSet:
    """Slots 0 and 2, of which the second may be resident: a free column and one with an upper bound."""
    given = {"lower": np.array([-INF, -0.5]), "upper": np.array([INF, 3.0]), "limit": INF, **changed}
    plain = Group(np.array([-4.0, -1.0]), np.zeros(2), np.ones(2), 1.0, USAGE, np.zeros(2))
    own = Group(np.array([1.0, -8.0]), given["lower"], given["upper"], given["limit"], USAGE, np.zeros(2))
    ws = working_set(flat([plain, own]), np.zeros(4))
    ws.key = np.array([0, 1, 2 << 32, 2 << 32 | 1])
    ws.slots = np.array([0, 2], dtype=np.int32)
    if "cost" in changed:
        ws.cost[2:] = changed["cost"]
    return ws


def test_a_bound_is_the_sum_over_rows_slabs_and_residents() -> None:
    """Slot 1 was removed; slot 3 is fixed, so that its reduced cost counts with either sign."""
    matrix = Matrix([-2.0, INF, INF, 0.5, 0.25], [1.5, 1.0, INF, 2.0, 3.0], [False, False, False, True, False], [
        False, False, True, False, False
    ])  # fmt: skip
    ws = two_groups()
    found = price_all(matrix, ws, some_rows(), np.array([-0.5, 0.75, 0.0]), 4)  # type: ignore[arg-type]
    reduced = ws.cost - np.tile(USAGE.T @ PRICES, 2)
    assert reduced.tolist() == [-5.0, -4.0, 0.0, -11.0]
    rows_term, slabs, resident = -0.5 * 4.0 + 0.75 * 2.0, 1.5 * -2.0 + 2.0 * 0.5, -11.0 * 3.0
    assert found.bound == rows_term + slabs + resident
    assert not found.certified, "the free column's reduced cost may be a little off zero"
    assert not found.dual_violation.any()
    assert (found.slot.tolist(), found.column.tolist()) == ([7], [3])
    errors = 1.5 * 1e-16 + 2.0 * 4e-16 + 3.0 * 5e-16
    size = 3.0 + 1.0 + 2.0 + 1.5
    used = np.abs(USAGE).T @ np.abs(PRICES)
    own = [8.0 * ULP * ((2 + 4) * used[0] + 1.0 + 1.5), 8.0 * ULP * ((2 + 4) * used[1] + 8.0 + 1.5)]
    margin = errors + own[1] * 3.0 + ULP * (3 + 3 + 4 + 16) * (size + 33.0)
    assert found.margin == pytest.approx(1.01 * margin, rel=1e-12, abs=0.0)
    assert matrix.asked["threads"] == 1
    assert (matrix.asked["weight"], matrix.asked["seconds"]) == (1.0, INF)
    np.testing.assert_allclose(matrix.asked["threshold"] + 1e-12, [-5.0 - 5e-12, 0.0, -11.0 - 11e-12, 0, 0], rtol=1e-15)


def test_a_bound_is_certified_if_every_reduced_cost_surely_has_its_sign() -> None:
    plain = Matrix([-2.0, 0.5, INF], [1.5, 1.0, 1.0], [False] * 3, [False] * 3)
    found = price_all(plain, two_groups(), some_rows(), PRICES, 1)  # type: ignore[arg-type]
    assert found.certified
    assert found.bound == -0.5 + 1.5 * -2.0
    assert found.dual_violation.tolist() == []
    resident = Matrix([-2.0, INF, INF], [1.5, 1.0, INF], [False] * 3, [False, False, True])
    sure = two_groups(lower=np.array([0.0, 0.0]), cost=[5.0, 2.0])
    found = price_all(resident, sure, some_rows(), PRICES, 1)  # type: ignore[arg-type]
    assert found.certified
    assert found.dual_violation.tolist() == [0.0, 0.0]
    wrong = two_groups(lower=np.array([0.0, 0.0]), cost=[-1.0, 2.0])
    found = price_all(resident, wrong, some_rows(), PRICES, 1)  # type: ignore[arg-type]
    assert not found.certified
    assert found.dual_violation.tolist() == [-2.0, 0.0]
    infinite = Matrix([-2.0, 0.5, INF], [INF, 1.0, 1.0], [False] * 3, [False] * 3)
    assert not price_all(infinite, two_groups(), some_rows(), PRICES, 1).certified  # type: ignore[arg-type]


def test_prices_of_the_wrong_sign_are_not_used() -> None:
    matrix = Matrix([-2.0], [1.0], [False], [False])
    found = price_all(matrix, WorkingSet(), some_rows(), np.array([3.0, -3.0, -0.5]), 1)  # type: ignore[arg-type]
    assert found.y.tolist() == [0.0, 0.0, -0.5]
    assert found.bound == -4.5 - 2.0
    assert matrix.asked["threshold"].tolist() == [-1e-12]


def test_a_ray_is_priced_without_costs_and_certifies_nothing() -> None:
    matrix = Matrix([-2.0, INF, INF], [1.5, 1.0, INF], [False] * 3, [False, False, True])
    ws = two_groups(lower=np.array([0.0, 0.0]))
    found = price_all(matrix, ws, some_rows(), PRICES, 1, 0.0, 2.5)  # type: ignore[arg-type]
    assert found.bound == -0.5 - 3.0 + -3.0 * 3.0
    assert found.dual_violation.tolist() == [-1.0, 0.0]
    assert (found.certified, found.margin) == (False, INF)
    assert (matrix.asked["weight"], matrix.asked["seconds"]) == (0.0, 2.5)
    np.testing.assert_allclose(matrix.asked["threshold"], [-3.0, 0.0, -3.0], atol=1e-11)
    half = price_all(matrix, ws, some_rows(), PRICES, 1, 0.5)  # type: ignore[arg-type]
    assert half.bound == -0.5 - 3.0 + (-4.0 - 3.0) * 3.0


def test_a_pass_that_was_cut_short_has_no_bound() -> None:
    matrix = Matrix([-2.0, np.nan, INF], [1.5, 1.0, INF], [False] * 3, [False] * 3)
    found = price_all(matrix, two_groups(), some_rows(), PRICES, 1)  # type: ignore[arg-type]
    assert (found.bound, found.certified, found.margin, len(found.dual_violation)) == (-INF, False, INF, 0)
    assert (found.slot.tolist(), found.column.tolist()) == ([7], [3])


def test_threads_are_for_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = Matrix([-2.0], [1.0], [False], [False])
    assert pricing.SMALL_MODEL == 500_000
    for most, threads in ((11, 1), (10, 4)):
        monkeypatch.setattr(pricing, "SMALL_MODEL", most)
        price_all(matrix, WorkingSet(), some_rows(), PRICES, 4)  # type: ignore[arg-type]
        assert matrix.asked["threads"] == threads
        assert not matrix.asked["screen"]
    price_all(matrix, WorkingSet(), some_rows(), PRICES, 4, screen=True)  # type: ignore[arg-type]
    assert (matrix.asked["threads"], matrix.asked["screen"]) == (1, True)


# Resident slabs ---------------------------------------------------------------------------------------------------


def errors_of(
    reduced: list[float], lower: list[float], upper: list[float], limit: float, y: Floats = PRICES, **changed: Any
) -> tuple[bool, float, float]:
    """The errors of one resident group of two columns beside one that is none."""
    ws = two_groups(lower=np.array(lower), upper=np.array(upper), limit=limit, **changed)
    matrix = Matrix([0.0] * 3, [1.0] * 3, [False] * 3, [False, False, True])
    given = np.array([-1e9, 1e9, *reduced])
    return resident_errors(matrix, ws, some_rows(), y, given)  # type: ignore[arg-type]


def own_errors() -> list[float]:
    used = np.abs(USAGE).T @ np.abs(PRICES)
    return [8.0 * ULP * (6 * used[0] + 1.0 + 1.5), 8.0 * ULP * (6 * used[1] + 8.0 + 1.5)]


@pytest.mark.parametrize(
    ("lower", "upper", "limit", "reach"),
    [
        ([0.0, 0.0], [2.0, 3.0], INF, [2.0, 3.0]),
        ([-5.0, 0.0], [2.0, 3.0], INF, [5.0, 3.0]),
        ([0.0, 0.0], [2.0, 3.0], 0.5, [0.5, 0.5]),
        ([-5.0, 0.25], [2.0, 30.0], 0.5, [5.0, 5.5]),  # the limit and what the other's lower bound gives room for
        ([1.0, 0.5], [INF, INF], INF, [1.0, 0.5]),
        ([-INF, 0.0], [2.0, 0.5], INF, [2.0, 0.5]),
    ],
)
def test_errors_of_residents_count_within_what_their_columns_can_reach(
    lower: list[float], upper: list[float], limit: float, reach: list[float]
) -> None:
    _, size, error = errors_of([-4.0, 0.5], lower, upper, limit)
    assert size == pytest.approx(4.0 * reach[0] + 0.5 * reach[1], rel=1e-14)
    assert error == pytest.approx(np.dot(own_errors(), reach), rel=1e-12, abs=0.0)


def test_a_reduced_cost_must_have_its_sign_by_more_than_its_error() -> None:
    """Positive with a lower bound only, negative with an upper bound or a limit only, zero with neither."""
    one, other = own_errors()
    both, above, below = [0.0, 0.0], [INF, 1.0], [-INF, 0.0]
    for cost, lower, upper, limit, answered in [
        (1.01 * one, both, above, INF, True),
        (0.99 * one, both, above, INF, False),
        (one, both, above, INF, True),  # exactly zero at worst
        (-1.0, both, above, INF, False),
        (-1.0, both, above, 5.0, True),
        (-1.0, both, [1.0, 1.0], INF, True),
        (-1.01 * one, below, [1.0, 1.0], INF, True),
        (-0.99 * one, below, [1.0, 1.0], INF, False),
        (-one, below, [1.0, 1.0], INF, True),
        (1.0, below, [1.0, 1.0], INF, False),
        (-1.0, below, above, INF, False),
    ]:
        assert errors_of([cost, -8.0], lower, upper, limit)[0] == answered, (cost, lower, upper, limit)
    assert errors_of([0.0, 0.5 * other], both, [1.0, INF], INF)[0] is False, "the last column counts too"


def test_a_column_without_cost_and_usage_has_no_error() -> None:
    """A free column whose reduced cost is zero exactly, for certain."""
    ws = two_groups(cost=[0.0, -8.0])
    ws.coefficient[4:6] = 0.0
    matrix = Matrix([0.0] * 3, [1.0] * 3, [False] * 3, [False, False, True])
    matrix.offsets = lambda: np.zeros(3)  # type: ignore[method-assign]
    answered, size, error = resident_errors(matrix, ws, some_rows(), PRICES, np.array([0.0, 0.0, 0.0, -11.0]))  # type: ignore[arg-type]
    assert answered
    assert size == 33.0
    used = np.abs(USAGE[:, 1]) @ np.abs(PRICES)
    assert error == pytest.approx(3.0 * 8.0 * ULP * (6 * used + 8.0), rel=1e-12, abs=0.0)
    ws.cost[2] = 1e-3  # the same reduced cost, but not for certain
    assert not resident_errors(matrix, ws, some_rows(), PRICES, np.array([0.0, 0.0, 0.0, -11.0]))[0]  # type: ignore[arg-type]


def test_without_residents_there_is_nothing_to_add() -> None:
    none = Matrix([0.0] * 3, [1.0] * 3, [False] * 3, [False] * 3)
    for ws in (two_groups(), WorkingSet()):
        assert resident_errors(none, ws, some_rows(), PRICES, np.zeros(ws.size)) == (True, 0.0, 0.0)  # type: ignore[arg-type]
        value, wrong = resident_minimum(none, ws, np.zeros(ws.size))  # type: ignore[arg-type]
        assert (value, len(wrong)) == (0.0, 0)


def test_the_minimum_over_residents_leaves_the_others_out() -> None:
    some = Matrix([0.0] * 3, [1.0] * 3, [False] * 3, [True, False, True])
    ws = two_groups(lower=np.array([0.0, 0.0]))
    value, wrong = resident_minimum(some, ws, np.array([-5.0, -4.0, 2.0, -11.0]))  # type: ignore[arg-type]
    assert value == -5.0 * 1.0 - 11.0 * 3.0
    some.resident[0] = False
    value, wrong = resident_minimum(some, ws, np.array([-5.0, -4.0, -2.0, -11.0]))  # type: ignore[arg-type]
    assert value == -33.0
    assert wrong.tolist() == [-2.0, 0.0]


def test_a_matrix_is_priced_as_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the real kernel: the bound is the dual's value, and improving columns are those below their block's."""
    model = Model("min")
    for name in ("a", "b"):
        model.add_resources(name, 3.0)
    for request, value in enumerate(([-3.0, -5.0], [-2.0, -1.0])):
        model.add_request(request, value, usage={"a": [1.0, 2.0], "b": [0.0, 1.0]}, limit=1.0)
    matrix = model.ledger.matrix
    rows = Rows(*(getattr(matrix, f"row_{name}")[:2].copy() for name in ("lower", "upper", "scale")))
    y = np.array([-1.0, -0.5])
    found = price_all(matrix, WorkingSet(), rows, y, 1)
    reduced = np.array([[-3.0 + 1.0, -5.0 + 2.0 + 0.5], [-2.0 + 1.0, -1.0 + 2.5]])
    assert found.bound == pytest.approx(-1.5 * 3.0 + np.minimum(reduced.min(axis=1), 0.0).sum(), rel=1e-15)
    assert found.certified
    assert 0.0 < found.margin < 1e-13
    assert found.slot.tolist() == [0, 1] or found.slot.tolist() == [0, 0, 1]
    monkeypatch.setattr(pricing, "ROUNDING", 10.0)
    assert price_all(matrix, WorkingSet(), rows, y, 1).slot.tolist() == []
    assert SimpleNamespace(slot=price_all(matrix, WorkingSet(), rows, y, 1, 0.0).slot).slot.tolist() == []
