"""A bound that is called certified is one, in rational arithmetic, however the program is scaled."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import copter
from copter import LinearProgram, Model, Session, Settings, Status
from copter.problem.dual_bound import proven_dual_bound
from copter.runtime.settings import Internals
from copter.testing import check
from tests.copter.exact import exact
from tests.copter.random_programs import random_program


def dual_function(lp: LinearProgram, y: np.ndarray) -> Fraction | None:
    """The exact dual function of the minimisation at prices of it; None for minus infinity."""
    sign = 1 if lp.sense == "min" else -1
    total = sign * Fraction(lp.offset)
    reduced = [sign * Fraction(c) for c in lp.c]
    for j in range(lp.shape[1]):
        for e in range(lp.A.indptr[j], lp.A.indptr[j + 1]):
            reduced[j] -= Fraction(lp.A.data[e]) * Fraction(y[lp.A.indices[e]])
    prices = [Fraction(v) for v in y]
    for values, lower, upper in ((prices, lp.row_lower, lp.row_upper), (reduced, lp.col_lower, lp.col_upper)):
        for value, low, high in zip(values, lower, upper, strict=True):
            at = low if value > 0 else high
            if value != 0 and not np.isfinite(at):
                return None
            total += value * Fraction(at) if value != 0 else 0
    return total


def scaled_program(rng: np.random.Generator) -> LinearProgram:
    """A small feasible program whose figures differ by up to twenty orders of magnitude."""
    m, n = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    spread = float(rng.choice([0, 3, 8]))
    matrix = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-spread, spread, (m, n)) * (rng.random((m, n)) < 0.8)
    if rng.random() < 0.3:
        matrix = np.rint(np.clip(matrix, -9, 9))
    x = rng.uniform(0, 1, n) * 10.0 ** rng.uniform(-spread, spread, n)
    lower = np.where(rng.random(n) < 0.25, -np.inf, x - rng.exponential(1.0, n))
    upper = np.where(rng.random(n) < 0.4, np.inf, x + rng.exponential(1.0, n))
    huge = rng.random(n) < 0.2
    lower, upper = np.where(huge, -1e20, lower), np.where(huge, 1e20, upper)
    activity = matrix @ x
    row_lower = np.where(rng.random(m) < 0.5, -np.inf, activity - rng.exponential(1.0, m) * (rng.random(m) < 0.7))
    row_upper = np.where(rng.random(m) < 0.5, np.inf, activity + rng.exponential(1.0, m) * (rng.random(m) < 0.7))
    cost = rng.normal(size=n) * 10.0 ** rng.uniform(-spread, spread, n)
    if rng.random() < 0.5:  # a cost that prices explain to the last bit but one
        cost = matrix.T @ rng.normal(size=m)
    return LinearProgram(
        cost, matrix, row_lower, row_upper, lower, upper,
        sense="min" if rng.random() < 0.5 else "max", offset=float(rng.choice([0.0, 0.1, 1e12])),
    )  # fmt: skip


def held(lp: LinearProgram, bound: float, best: Fraction) -> bool:
    """Whether no point is beyond the bound."""
    return Fraction(bound) <= best if lp.sense == "min" else Fraction(bound) >= best


@pytest.mark.parametrize("block", range(20))
def test_any_prices_of_badly_scaled_programs(block: int) -> None:
    """2,000 programs: what is certified is at most the exact dual function at the same prices."""
    certified = 0
    for seed in range(100 * block, 100 * block + 100):
        rng = np.random.default_rng(seed)
        lp = scaled_program(rng)
        sign = 1.0 if lp.sense == "min" else -1.0
        y = rng.normal(size=lp.shape[0]) * 10.0 ** rng.uniform(-8, 8)
        y = np.where(np.isinf(lp.row_lower), np.minimum(y, 0), y)
        y = np.where(np.isinf(lp.row_upper), np.maximum(y, 0), y)
        judged = check(lp, np.zeros(lp.shape[1]), sign * y)
        if judged.bound_is_certified:
            certified += 1
            value = dual_function(lp, y)
            assert value is not None
            assert Fraction(sign * judged.bound) <= value
            assert sign * judged.bound >= float(value) - 1e-8 * (1.0 + abs(float(value)) + abs(judged.objective))
    assert certified > 5


@pytest.mark.parametrize("method", ["auto", "interior", "proximal", "price_descent"])
@pytest.mark.parametrize("block", range(5))
def test_solved_programs_against_rational_optima(method: str, block: int) -> None:
    """Whatever the status, no certified bound is beyond the exact optimum."""
    limits = Settings(method=method, time_limit_s=0.1 if method == "price_descent" else 1.0)  # it may be slow
    for seed in range(30 * block, 30 * block + 30):
        lp = scaled_program(np.random.default_rng(10_000 + seed))
        solution = copter.solve(lp, limits)
        if solution.bound_is_certified:
            status, best = exact(lp)
            if status is Status.OPTIMAL:
                assert best is not None
                assert held(lp, solution.bound, best)


@hypothesis_settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda n: st.tuples(
            st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=n, max_size=n),
            st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=n, max_size=n),
            st.lists(st.floats(-1e300, 1e300), min_size=n, max_size=n),
        )
    ),
    st.floats(-1e300, 1e300),
    st.sampled_from([0.0, 1.0, 1e20, 1e300]),
)
def test_any_doubles(columns: tuple[list[float], ...], price: float, width: float) -> None:
    """Overflow, underflow and cancellation included."""
    cost, entries, middle = (np.array(each) for each in columns)
    with np.errstate(over="ignore"):
        lower, upper = np.clip(middle - width, -1.7e308, 1.7e308), np.clip(middle + width, -1.7e308, 1.7e308)
    lp = LinearProgram(cost, entries.reshape(1, -1), row_lower=-1.0, row_upper=1e3, col_lower=lower, col_upper=upper)
    bound = proven_dual_bound(lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper, np.array([price]))
    value = dual_function(lp, np.array([price]))
    if np.isfinite(bound):
        assert value is not None
        assert Fraction(bound) <= value


def test_a_free_column_with_a_residual_reduced_cost_proves_nothing() -> None:
    """0.1 + 0.2 is not 0.3: the price leaves a reduced cost of 5.6e-17, over which the bound is minus infinity."""
    lp = LinearProgram([0.3], [[0.1], [0.2]], row_lower=[1.0, 1.0], col_lower=-np.inf)
    judged = check(lp, np.array([10.0]), np.array([1.0, 1.0]))
    assert not judged.bound_is_certified
    whole = LinearProgram([3.0], [[1.0], [2.0]], row_lower=[1.0, 1.0], col_lower=-np.inf)
    judged = check(whole, np.array([1.0]), np.array([1.0, 1.0]))
    assert judged.bound_is_certified
    assert judged.bound == pytest.approx(2.0)


@pytest.mark.parametrize("seed", range(60))
def test_sessions_bounds_against_the_exact_dual_function(seed: int) -> None:
    """Models with scales, offsets, own bounds, single precision and cut solves: the bound is below the optimum."""
    rng = np.random.default_rng(seed)
    model = Model(sense="max" if seed % 2 else "min", offset=float(rng.choice([0.0, 0.1, 1e9])))
    spread = float(rng.choice([0, 4, 9]))
    for k in range(2):
        model.add_resources(k, float(rng.uniform(1, 9)) * 10.0 ** rng.uniform(-spread, spread))
    for request in range(5):
        n = int(rng.integers(1, 4))
        usage = {k: rng.uniform(0, 3, n) * 10.0 ** rng.uniform(-spread, spread) for k in range(2)}
        kind = rng.random()
        bounds = {} if kind < 0.6 else {"lower": 0.1, "upper": rng.choice([0.5, 1e6], n), "limit": np.inf}
        scale, offset = 10.0 ** rng.uniform(-spread, spread), float(rng.choice([0.0, 1e7]))
        model.add_request(request, rng.normal(size=n), usage, scale=scale, offset=offset, **bounds)
    session = Session(
        model, Settings(internals=Internals(max_pricing_passes=int(rng.choice([1, 2, 200]))), time_limit_s=1.0)
    )
    for _ in range(3):
        solution = session.solve()
        lp = model.to_linear_program()
        if solution.bound_is_certified:
            status, best = exact(lp)
            assert status is not Status.DUAL_INFEASIBLE
            if status is Status.OPTIMAL:
                assert best is not None
                assert held(lp, solution.bound, best)
        model.rescale_cost(int(rng.integers(5)), float(rng.uniform(0.5, 2)))


def test_the_proximal_method_is_judged_by_products_too() -> None:
    """Its gap was within tolerance, a price times its row's slack was not."""
    lp = random_program("nearly_infeasible", 1469, 25)
    found = copter.solve(lp, Settings(method="proximal"))
    judged = check(lp, found.x, found.y)
    assert found.status is not Status.OPTIMAL or judged.complementarity <= 1e-6


def test_a_bound_without_rounding_is_not_lowered() -> None:
    """Nothing to plan: the bound of an empty program is zero, and so is its gap."""
    model = Model(sense="max")
    model.add_resources("gpus", 4.0)
    for method in ("auto", "basis"):
        solution = Session(model, Settings(method=method)).solve()
        assert (solution.objective, solution.bound, solution.bound_is_certified) == (0.0, 0.0, True)
        assert copter.plan_gap(solution.objective, solution.bound) == 0.0


def test_a_product_that_underflows_lowers_the_bound() -> None:
    """A price of 1e-200 at a bound of -1e-200 is less than zero, though the product is zero in doubles."""
    lp = LinearProgram([0.0], [[0.0]], row_lower=-1e-200, col_lower=0.0, col_upper=1.0)
    bound = proven_dual_bound(lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper, np.array([1e-200]))
    exactly = dual_function(lp, np.array([1e-200]))
    assert exactly is not None
    assert -1e-280 < bound <= exactly < 0
