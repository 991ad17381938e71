"""Semi-continuous columns through every door: the point is one of the program's own, not of its relaxation."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.optimize as so

from copter.interop.scipy_linprog import linprog, milp
from copter.interop.search import searched
from copter.interop.semicontinuous import with_zero
from copter.methods.integer.solution import IntegerStatus
from copter.problem.linear_program import LinearProgram
from copter.runtime.errors import InvalidDataError

ALONE = ([-1.0], [[1.0]])


@pytest.mark.parametrize("most", [0.5, 0.9, 0.999])
def test_the_only_special_column_keeps_its_gap(most: float) -> None:
    c, A = ALONE
    found = linprog(c, A, [most], bounds=[(1, 5)], integrality=[2])
    assert (found.status, found.x.tolist()) == (0, [0.0])
    found = milp(c, constraints=so.LinearConstraint(A, ub=[most]), bounds=so.Bounds([1], [5]), integrality=[2])
    assert (found.status, found.x.tolist()) == (0, [0.0])


def test_crossed_bounds_leave_only_zero() -> None:
    found = milp([-1.0], bounds=so.Bounds([1.0], [0.5]), integrality=[2])
    assert found.x.tolist() == [0.0]
    assert milp([-1.0], bounds=so.Bounds([1.0], [0.5]), integrality=[0]).status == 2


def best_of(c: Any, A: Any, b: Any, lower: Any, upper: Any, kinds: Any) -> float:
    """Return the optimum by one LP (or MILP over the whole columns) for each set of columns at zero."""
    semi = np.flatnonzero(kinds >= 2)
    best = np.inf
    for off in product((False, True), repeat=len(semi)):
        low, high = lower.copy(), upper.copy()
        low[semi[list(off)]] = high[semi[list(off)]] = 0.0
        found = so.milp(
            c,
            constraints=so.LinearConstraint(A, ub=b),
            bounds=so.Bounds(low, high),
            integrality=(kinds % 2).astype(int),
        )
        best = min(best, found.fun) if found.status == 0 else best
    return best


@pytest.mark.parametrize("seed", range(16))
def test_random_programs_have_the_optimum_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    kinds = rng.choice([0, 2, 2, 3], n)
    kinds[0] = 2
    lower = np.where(kinds >= 2, rng.integers(1, 4, n), 0).astype(float)
    upper = lower + rng.integers(0, 5, n)
    A, b, c = (
        rng.integers(-3, 5, (m, n)).astype(float),
        rng.integers(0, 8, m) - 0.5,
        rng.integers(-5, 4, n).astype(float),
    )
    expected = best_of(c, A, b, lower, upper, kinds)
    bounds = so.Bounds(lower, upper)
    mine = milp(c, constraints=so.LinearConstraint(A, ub=b), bounds=bounds, integrality=kinds)
    other = linprog(c, A, b, bounds=np.column_stack((lower, upper)), integrality=kinds)
    if np.isinf(expected):
        assert (mine.status, other.status) == (2, 2)
        return
    for found in (mine, other):
        assert found.fun == pytest.approx(expected, abs=1e-6)
        gap = (kinds >= 2) & (np.abs(found.x) > 1e-7)
        assert (found.x[gap] >= lower[gap] - 1e-6).all()


def test_a_column_below_zero_is_refused_with_what_to_write() -> None:
    semi = np.array([False, True])
    with pytest.raises(InvalidDataError, match=r"column 1 is zero or from -3 to -1; .*minus the variable"):
        with_zero(semi, np.array([0.0, -3.0]), np.array([1.0, -1.0]))


def test_linopy_keeps_the_gap() -> None:
    linopy = pytest.importorskip("linopy", reason="linopy is not installed: pip install copter-lp[linopy]")
    pytest.importorskip("highspy")
    from copter.interop import linopy as door  # needs linopy

    assert door.NAME in linopy.available_solvers

    def model_of(most: float) -> Any:
        model = linopy.Model()
        x = model.add_variables(lower=1, upper=5, semi_continuous=True, name="x")
        y = model.add_variables(lower=0, upper=0.25, name="y")
        model.add_constraints(x + y <= most, name="room")
        model.add_objective(-2 * x - y)
        return model

    for most, expected in ((0.5, -0.25), (3.0, -6.0)):
        for solver in ("copter", "highs"):
            model = model_of(most)
            model.solve(solver, io_api="direct")
            assert model.objective.value == pytest.approx(expected), solver


def test_linopy_takes_a_variable_that_becomes_semicontinuous() -> None:
    pytest.importorskip("linopy", reason="linopy is not installed: pip install copter-lp[linopy]")
    from linopy.persistent.snapshot import VarKind

    from copter.interop.linopy import Arrays, Copter

    arrays = Arrays(
        np.array([-1.0]), np.array([1.0]), np.array([5.0]), np.array([False]), np.array([False]), np.array([[1.0]]),
        np.array([-np.inf]), np.array([0.5]), "min",
    )  # fmt: skip
    Copter._apply_var_types(None, arrays, [0], [VarKind.SEMI_CONTINUOUS])
    assert arrays.program().semicontinuous.tolist() == [1.0]


def test_pyomo_domains_with_gaps() -> None:
    pyo = pytest.importorskip("pyomo.environ", reason="pyomo is not installed: pip install copter-lp[pyomo]")
    from pyomo.contrib.solver.common.util import IncompatibleModelError
    from pyomo.core.base.range import NumericRange

    from copter.interop.pyomo import Copter

    def solved(domain: Any, most: float, **bounds: Any) -> float:
        model = pyo.ConcreteModel()
        model.x = pyo.Var(domain=domain, **bounds)
        model.room = pyo.Constraint(expr=model.x <= most)
        model.objective = pyo.Objective(expr=-model.x)
        Copter().solve(model)
        return float(pyo.value(model.x))

    gap = pyo.RangeSet(ranges=(NumericRange(0, 0, 0), NumericRange(1, 5, 0)))
    assert solved(gap, 0.5) == 0.0
    assert solved(gap, 3.5) == pytest.approx(3.5)
    assert solved(gap, 9.0, bounds=(0.5, 4)) == pytest.approx(4.0)
    assert solved(pyo.Set(initialize=[0, 1, 2]), 1.5) == 1.0
    for values in ([1, 3, 5], [0, 2, 7]):  # were taken as all whole numbers between
        with pytest.raises(IncompatibleModelError, match=r"'x': its domain .* write a binary variable for each value"):
            solved(pyo.Set(initialize=values), 2.5)


SIZE = 1e15
LARGE = ([[37.5, SIZE], [37.5, -SIZE]], [SIZE, 0.0])


def test_what_highs_refuses_is_searched_by_copter() -> None:
    """HiGHS takes no coefficient of 1e15; the answer was "Iteration limit reached" where no limit was set."""
    A, b = LARGE
    found = milp([-1, 0], constraints=so.LinearConstraint(A, ub=b), bounds=so.Bounds(0, 1), integrality=[1, 1])
    assert (found.status, found.x.tolist()) == (0, [1.0, 1.0])
    lp = LinearProgram([-1.0, 0.0], A, row_upper=b, col_upper=1.0, integrality=[1, 1])
    assert searched(lp).status is IntegerStatus.OPTIMAL
    assert searched(lp, 30.0).status is IntegerStatus.OPTIMAL
