"""Certificates, residuals, stopping rules and sweeps of the proximal method, on points worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from copter import Settings, Status
from copter.methods.proximal import certificates, descent, row_sums
from copter.methods.proximal.certificates import RAY_TOLERANCE, farkas, improving_ray
from copter.methods.proximal.descent import SWEEPS_PER_MULTIPLIER_STEP, descend
from copter.methods.proximal.groups import Groups
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.residuals import PrimalSide, primal_side, residuals_of
from copter.methods.proximal.termination import status_of
from copter.problem.residuals import Residuals
from copter.runtime.settings import Internals

INF = np.inf


def columns(
    matrix: list[list[float]],
    cost: list[float],
    lower: list[float],
    upper: list[float],
    limits: list[tuple[int, float]],
) -> Any:
    """A working set of a small dense matrix, whose groups are (columns, limit)."""
    dense = np.array(matrix)
    n = dense.shape[1]
    found = SimpleNamespace(
        size=n,
        x=np.zeros(n),
        cost=np.array(cost),
        lower=np.array(lower),
        upper=np.array(upper),
        start=np.cumsum([0, *(count for count, _ in limits)]).astype(np.int32),
        limit=np.array([limit for _, limit in limits]),
        entry_start=np.arange(0, dense.size + 1, dense.shape[0]).astype(np.int32),
        row=np.tile(np.arange(dense.shape[0], dtype=np.int32), n),
        coefficient=dense.T.ravel().copy(),
    )
    found.activity = lambda count: dense @ found.x
    found.groups = lambda: Groups(
        found.start, found.limit, found.cost, found.lower, found.upper, found.entry_start, found.row, found.coefficient
    )
    return found


def rows(lower: list[float], upper: list[float]) -> Rows:
    return Rows(np.array(lower), np.array(upper), np.ones(len(lower)))


FREE = {"lower": [-INF, -INF], "upper": [INF, INF], "limits": [(2, INF)]}


def test_a_direction_that_nothing_stops_is_a_ray_of_size_one() -> None:
    ws = columns([[1.0, 1.0]], [1.0, 2.0], **FREE)  # type: ignore[arg-type]
    found = improving_ray(ws, rows([-INF], [5.0]), np.array([-4.0, 1e-12]))
    assert found is not None
    assert found.tolist() == [-1.0, 0.0]
    for nothing in (np.zeros(2), np.array([np.inf, 1.0]), np.array([np.nan, 1.0])):
        assert improving_ray(ws, rows([-INF], [5.0]), nothing) is None


@pytest.mark.parametrize(
    ("changed", "row", "direction"),
    [
        ({"lower": [0.0, -INF]}, (-INF, INF), [-1.0, 0.0]),  # a lower bound stops it
        ({"upper": [INF, 3.0], "cost": [1.0, -9.0]}, (-INF, INF), [0.0, 1.0]),  # an upper one
        ({"limits": [(1, INF), (1, 2.0)], "cost": [1.0, -9.0]}, (-INF, INF), [0.0, 1.0]),  # its group's limit
        ({}, (-3.0, INF), [-1.0, 0.0]),  # a row's lower side
        ({"matrix": [[-1.0, 1.0]]}, (-INF, 3.0), [-1.0, 0.0]),  # and its upper one
        ({}, (-INF, INF), [1.0, 0.0]),  # it gets worse
        ({"cost": [0.0, 2.0]}, (-INF, INF), [-1.0, 0.0]),  # it stays the same
    ],
)
def test_a_direction_is_no_ray_if_one_thing_stops_it(
    changed: dict[str, Any], row: tuple[float, float], direction: list[float]
) -> None:
    given = {"matrix": [[1.0, 1.0]], "cost": [1.0, 2.0], **FREE, **changed}
    sides = rows([row[0]], [row[1]])
    assert improving_ray(columns(**given), sides, np.array(direction)) is None


def test_a_ray_may_keep_a_rows_and_a_limits_sum() -> None:
    ws = columns([[1.0, 1.0], [0.0, 0.0]], [1.0, -1.0], [-INF, -INF], [INF, INF], [(2, 4.0)])
    found = improving_ray(ws, rows([0.0, 0.0], [0.0, 0.0]), np.array([-3.0, 3.0]))
    assert found is not None
    assert found.tolist() == [-1.0, 1.0]
    leaves = np.array([-1.0, 1.0 - 100 * RAY_TOLERANCE])
    assert improving_ray(ws, rows([0.0, 0.0], [0.0, 0.0]), leaves) is None


def test_violations_are_those_of_rows_bounds_and_limits() -> None:
    ws = columns([[1.0, 2.0], [1.0, 0.0]], [3.0, 4.0], [0.0, 0.0], [INF, 2.0], [(1, INF), (1, 1.5)])
    ws.x = np.array([-1.0, 2.5])  # 1 below its bound; 0.5 above its bound, 1 above the limit
    side = primal_side(ws, rows([-INF, 1.0], [1.0, INF]))  # activities 4 and -1: 3 and 2 outside
    assert side.objective == 7.0
    assert side.largest == 3.0
    assert side.cost_norm == 5.0
    assert side.relative >= np.sqrt(9.0 + 4.0 + 1.0) / (1.0 + np.sqrt(2.0)) - 1e-12
    ws.x = np.array([3.0, 1.0])  # activities 5 and 3, within bounds and limits
    side = primal_side(ws, rows([-3.0, -INF], [2.0, INF]))  # 3 above; the larger side counts, none is zero
    assert side.relative == pytest.approx(3.0 / (1.0 + 3.0))


@pytest.mark.parametrize("seed", range(20))
def test_sums_over_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, y = np.where(rng.random(6) < 0.3, -INF, rng.normal(size=6)), np.round(rng.normal(size=6))
    high = np.where(rng.random(6) < 0.3, INF, np.where(np.isinf(low), 0.0, low) + rng.random(6))
    price = row_sums.signed(y, low, high)
    assert price.tolist() == [
        0.0 if p == 0 or not np.isfinite(a if p > 0 else b) else p for p, a, b in zip(y, low, high, strict=True)
    ]
    terms = [p * (a if p > 0 else b) for p, a, b in zip(price, low, high, strict=True) if p != 0.0]
    assert row_sums.dual_terms(price, low, high) == pytest.approx((sum(terms), sum(map(abs, terms))))
    bound = np.maximum(*(np.where(np.isfinite(each), np.abs(each), 0.0) for each in (low, high)))
    assert row_sums.row_tolerances(low, high, 0.5, 0.8) == pytest.approx(np.minimum(0.5 * (1.0 + bound), 0.8))
    base, unit = rng.normal(size=6), 0.1 + rng.random(6)
    far = float((np.abs(y - base) / unit).max())
    assert row_sums.farthest(y, base, unit) == pytest.approx(far)
    assert row_sums.is_within(y, base, unit, far * (1.0 + 1e-12))
    assert not row_sums.is_within(y, base, unit, far * (1.0 - 1e-12))


def test_a_direction_is_judged_by_the_last_group_and_every_row() -> None:
    """The first group falls as much as the second grows; only the second row stops the direction."""
    two: dict[str, Any] = {"lower": [-INF, -INF], "upper": [INF, INF], "limits": [(1, INF), (1, 2.0)]}
    ws = columns([[1.0, 1.0]], [9.0, 1.0], **two)
    assert improving_ray(ws, rows([-INF], [INF]), np.array([-1.0, 1.0])) is None
    one = columns([[0.0, 1.0], [1.0, 0.0]], [9.0, 1.0], **FREE)  # type: ignore[arg-type]
    sides = rows([-INF, -2.0], [INF, INF])
    assert improving_ray(one, sides, np.array([-1.0, 0.0])) is None
    held = columns([[1.0, 1.0]], [5.0, -1.0], [0.0, -INF], [9.0, INF], [(2, INF)])
    found = improving_ray(held, rows([-INF], [INF]), np.array([0.0, 0.5]))
    assert found is not None
    assert found.tolist() == [0.0, 1.0], "bounds of columns that stay do not stop it"


def test_an_improvement_is_one_in_units_of_the_largest_cost() -> None:
    row = rows([-INF], [INF])
    for cost, is_ray in ([1e-12, 3e-12], True), ([1000.0, 5e-7], False), ([1000.0, 2e-6], True), ([0.0, 0.0], False):
        found = improving_ray(columns([[1.0, 1.0]], cost, **FREE), row, np.array([0.0, -1.0]))  # type: ignore[arg-type]
        assert (found is not None) == is_ray, cost


def test_a_row_is_kept_in_units_of_its_scale() -> None:
    """1e-6 of a row whose coefficients reach ten thousand is rounding; of one with small coefficients it is not."""
    ws = columns([[1e4, 0.1]], [0.0, 1.0], **FREE)  # type: ignore[arg-type]
    direction = np.array([1e-5 * (1.0 - 2e-5), -1.0])
    for scale, is_ray in ((1e4, True), (1.0, False)):
        sides = Rows(np.array([0.0]), np.array([0.0]), np.array([scale]))
        assert (improving_ray(ws, sides, direction) is not None) == is_ray


@pytest.mark.parametrize("times", [1.0, 1.0 + 1e-9])
def test_a_change_of_the_tolerance_itself_is_none(times: float) -> None:
    """Of a row's upper side, of its lower one, of a limit's sum, and of an entry of the direction."""
    small = RAY_TOLERANCE * times
    for coefficient, lower, upper in ((small, -INF, 1.0), (-small, 1.0, INF)):
        ws = columns([[coefficient, 0.0]], [-1.0, 0.0], **FREE)  # type: ignore[arg-type]
        found = improving_ray(ws, rows([lower], [upper]), np.array([1.0, 0.0]))
        assert (found is not None) == (times == 1.0)
    limited = columns([[0.0, 0.0]], [-1.0, 0.0], [-INF, -INF], [INF, INF], [(1, INF), (1, 3.0)])
    found = improving_ray(limited, rows([0.0], [0.0]), np.array([1.0, small]))
    assert (found is not None) == (times == 1.0)
    if found is not None:
        assert found.tolist() == [1.0, small]


@pytest.mark.parametrize(
    ("y", "bound", "violation", "proves"),
    [
        ([3.0, -4.0], 2.0, [0.0], True),
        ([3.0, -4.0], 2.0, [2e-9, -1e-12], True),  # a billionth of the bound
        ([3.0, -4.0], 2.0, [1e-12, -2.1e-9], False),
        ([3.0, -4.0], 0.5, [0.6e-9], False),
        ([3.0, -4.0], 1.1e-9, [], True),
        ([3.0, -4.0], 1e-9, [], False),
        ([0.125, 0.0], 2.0, [0.0], True),
        ([0.0, 0.0], 2.0, [0.0], False),
    ],
)
def test_prices_prove_that_nothing_is_feasible(
    monkeypatch: pytest.MonkeyPatch, y: list[float], bound: float, violation: list[float], proves: bool
) -> None:
    """Scaled to the size one in units of the rows, and priced without costs."""
    asked: list[Any] = []

    def price(matrix: Any, ws: Any, given: Rows, ray: Any, threads: int, weight: float) -> Any:
        asked.append((ray.tolist(), threads, weight))
        return SimpleNamespace(bound=bound, dual_violation=np.array(violation))

    monkeypatch.setattr(certificates, "price_all", price)
    sides = Rows(np.zeros(2), np.ones(2), np.array([2.0, 1.0]))
    found, priced = farkas(None, None, sides, np.array(y), 3)  # type: ignore[arg-type]
    size = max(2.0 * abs(y[0]), abs(y[1])) or 1.0
    assert asked == [([y[0] / size, y[1] / size], 3, 0.0)]
    assert (found, priced.bound) == (proves, bound)


@pytest.mark.parametrize("offset", [0.0, 50.0])
def test_the_gap_is_relative_to_the_objective_with_its_constant(offset: float) -> None:
    side = PrimalSide(objective=10.0, relative=0.25, largest=0.5, cost_norm=4.0)
    priced: Any = SimpleNamespace(bound=9.0, dual_violation=np.array([3.0, -4.0]))
    found = residuals_of(side, priced, offset) if offset else residuals_of(side, priced)
    assert (found.primal, found.primal_absolute) == (0.25, 0.5)
    assert (found.dual, found.dual_absolute) == (1.0, 4.0)
    assert found.gap_absolute == 1.0
    priced.dual_violation = np.array([0.25, -0.5])
    assert residuals_of(side, priced).dual_absolute == 0.5
    assert residuals_of(side, priced).gap == 1.0 / (1.0 + 10.0 + 9.0)
    assert found.gap == pytest.approx(1.0 / (1.0 + (10.0 + offset) + (9.0 + offset)), rel=1e-12)


def test_what_ends_a_solve_and_in_which_order() -> None:
    settings = Settings(time_limit_s=5.0, internals=Internals(max_pricing_passes=7))
    good, bad = (Residuals(v, v, v, v, v, v) for v in (0.0, 1.0))
    cases = [
        (good, 9, 9.0, True, Status.OPTIMAL),
        (bad, 9, 9.0, True, Status.INTERRUPTED),
        (bad, 9, 5.0, False, Status.TIME_LIMIT),
        (bad, 7, 4.9, False, Status.ITERATION_LIMIT),
        (bad, 6, 4.9, False, None),
    ]
    for residuals, passes, elapsed_s, interrupted, status in cases:
        assert status_of(residuals, settings, passes, elapsed_s, interrupted) is status


def test_sweeps_move_the_prices_every_second_time_and_end_where_nothing_moves() -> None:
    def swept(sweeps: int) -> tuple[np.ndarray, np.ndarray]:
        ws = columns([[1.0, 2.0]], [-1.0, -1.0], [0.0, 0.0], [INF, INF], [(1, 1.0), (1, 1.0)])
        ws.x[:] = 1.0  # two above the row
        y = descend(ws, rows([-INF], [1.0]), np.zeros(1), 1.0, sweeps)
        return y, ws.x

    before = np.zeros(1)
    assert descend(columns([[1.0]], [1.0], [0.0], [1.0], [(1, 1.0)]), rows([0.0], [1.0]), before, 1.0, 0) is before
    assert SWEEPS_PER_MULTIPLIER_STEP == 2
    assert swept(1)[0][0] == 0.0  # no multiplier step yet
    two, three, four = swept(2)[0][0], swept(3)[0][0], swept(4)[0][0]
    assert two < 0.0
    assert three == two
    assert four != two
    y, x = swept(40_000)
    assert y[0] == pytest.approx(-1.0, abs=1e-6)
    assert x[0] + 2.0 * x[1] == pytest.approx(1.0, abs=1e-6)


def test_prices_are_updated_every_second_sweep_and_when_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Watched:
        def __init__(
            self, columns: Any, lower: Any, upper: Any, penalty: Any, center: Any, sigma: float, x: Any
        ) -> None:
            assert center is not x
            self.given, self.moves, self.begun, self.price = (penalty.tolist(), sigma), self.largest[:], [], np.zeros(1)
            made.append(self)

        def begin(self, y: Any) -> None:
            self.begun.append(float(y[0]))

        def sweep(self) -> float:
            self.price = self.price - 1.0
            return self.moves.pop(0)

    monkeypatch.setattr(descent, "Sweep", Watched)
    ws = columns([[1.0]], [1.0], [0.0], [1.0], [(1, 1.0)])
    sides = Rows(np.zeros(1), np.ones(1), np.array([2.0]))
    for largest, sweeps, begun in [
        ([1.0] * 5, 5, [9.0, -2.0, -4.0]),
        ([1.0] * 5, 1, [9.0]),
        ([1.0, 1.0, 1e-9, 0.9e-9, 1.0], 5, [9.0, -2.0, -4.0]),
        ([0.9e-9, 1.0], 2, [9.0, -1.0]),
        ([1.0, 1e-9, 1.0, 1.0], 4, [9.0, -2.0, -4.0]),
    ]:
        Watched.largest = largest
        y = descend(ws, sides, np.array([9.0]), 0.5, sweeps)
        assert made[-1].begun == begun
        assert y.tolist() == [begun[-1]]
        assert made[-1].given == ([100.0 / (0.5 * 4.0)], 0.5)
