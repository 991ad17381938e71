"""linprog and milp beyond SciPy's own tests: warm starts, marginals, bad input in SciPy's words."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.optimize import OptimizeWarning

from copter.interop.scipy_linprog import LinprogResult, linprog, milp

A_UB, B_UB, C = [[-3, 1], [1, 2]], [6, 4], [-1, 4]
BOUNDS = [(None, None), (-3, None)]


def test_the_fields_are_scipys() -> None:
    mine = linprog(C, A_UB, B_UB, bounds=BOUNDS)
    theirs = scipy.optimize.linprog(C, A_UB, B_UB, bounds=BOUNDS)
    assert set(mine) == set(theirs)
    assert (mine.status, mine.message, mine.success) == (theirs.status, theirs.message, theirs.success)
    for name in ("x", "fun", "slack", "con"):
        np.testing.assert_allclose(mine[name], theirs[name], atol=1e-8)
    for name in ("ineqlin", "eqlin", "lower", "upper"):
        for part in ("residual", "marginals"):
            np.testing.assert_allclose(mine[name][part], theirs[name][part], atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_marginals_are_scipys(seed: int) -> None:
    """SciPy's own test of them asks that finite differences be zero to the last bit."""
    rng = np.random.default_rng(seed)
    n = 20
    A_ub, A_eq, x = rng.normal(size=(8, n)), rng.normal(size=(4, n)), rng.uniform(0.2, 0.8, n)
    data = {
        "c": rng.normal(size=n),
        "A_ub": A_ub,
        "b_ub": A_ub @ x + 0.1,
        "A_eq": A_eq,
        "b_eq": A_eq @ x,
        "bounds": (0, 1),
    }
    mine, theirs = linprog(**data), scipy.optimize.linprog(**data)
    assert mine.fun == pytest.approx(theirs.fun, rel=1e-8)
    for name in ("ineqlin", "eqlin", "lower", "upper"):
        np.testing.assert_allclose(mine[name].marginals, theirs[name].marginals, atol=1e-6)


@pytest.mark.usefixtures("still_clock")
def test_an_earlier_result_keeps_the_session() -> None:
    result = linprog(C, A_UB, B_UB, bounds=BOUNDS)
    for step in range(4):
        b = [6, 4 + 0.5 * step]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = linprog(C, A_UB, b, bounds=BOUNDS, x0=result)
        assert result.fun == pytest.approx(scipy.optimize.linprog(C, A_UB, b, bounds=BOUNDS).fun)
        assert result.live is not None
        assert result.live.is_warm
    again = pickle.loads(pickle.dumps(result))
    assert again.fun == result.fun
    other = linprog([1.0], bounds=(1, 2), x0=result)  # another shape: begun anew
    assert other.fun == pytest.approx(1.0)


def test_any_other_start_is_warned_of_as_in_scipy() -> None:
    with pytest.warns(OptimizeWarning, match="x0 is used only when"):
        assert linprog(C, A_UB, B_UB, bounds=BOUNDS, x0=[0.0, 0.0]).success


BAD: list[dict[str, Any]] = [
    {"c": None},
    {"c": "hello"},
    {"c": [[1, 2], [3, 4]]},
    {"c": []},
    {"c": [np.nan, 1]},
    {"c": [1 + 2j, 1]},
    {"c": [1, 2], "A_ub": [[1]], "b_ub": [1]},
    {"c": [1, 2], "A_ub": [[1, np.inf]], "b_ub": [1]},
    {"c": [1, 2], "A_ub": [[1, 2]], "b_ub": [1, 2]},
    {"c": [1, 2], "A_ub": [[1, 2]]},
    {"c": [1, 2], "b_ub": [1]},
    {"c": [1, 2], "A_eq": [[1, 2]], "b_eq": [np.nan]},
    {"c": [1, 2], "A_eq": [[1, 2]], "b_eq": "x"},
    {"c": [1, 2], "A_eq": np.zeros((1, 2, 3)), "b_eq": [1]},
    {"c": [1, 2], "A_ub": sp.csr_array([[1.0, np.nan]]), "b_ub": [1]},
    {"c": [1, 2, 3], "bounds": [(1, 2), (3, 4)]},
    {"c": [1, 2, 3], "bounds": [(1, 2), (3, 4), (3, 4, 5)]},
    {"c": [1, 2, 3], "bounds": [[1, 2, 3], [3, 4, 5]]},
    {"c": [1, 2], "bounds": "free"},
    {"c": [1, 2], "method": "none such"},
    {"c": [1, 2], "callback": print},
    {"c": [1, 2], "integrality": [1, 2, 3]},
]


@pytest.mark.parametrize("given", BAD, ids=[str(i) for i in range(len(BAD))])
def test_bad_input_is_answered_in_scipys_words(given: dict[str, Any]) -> None:
    with pytest.raises(Exception) as theirs:
        scipy.optimize.linprog(**given)
    with pytest.raises(type(theirs.value)) as mine:
        linprog(**given)
    assert str(mine.value) == str(theirs.value)


@pytest.mark.parametrize(
    ("bounds", "status"),
    [((2, 1), 2), ((np.inf, None), 2), ((None, -np.inf), 2), ((0, 1), 0), ((None, None), 3), (None, 0), ([], 0)],
)
def test_bounds_that_scipy_answers_with_a_status(bounds: Any, status: int) -> None:
    assert linprog([1.0], bounds=bounds).status == status


def test_semicontinuous_variables() -> None:
    data = {"c": [1.0, 1.0, -1.0, -1.0], "bounds": [[0.5, 1.5]] * 4, "integrality": [2, 3, 2, 3]}
    result = linprog(**data)
    np.testing.assert_allclose(result.x, [0, 0, 1.5, 1], atol=1e-8)
    with pytest.raises(ValueError, match="finite bounds"):
        linprog([1.0], bounds=(1, None), integrality=[2])
    with pytest.raises(ValueError, match="finite bounds"):
        linprog([1.0], bounds=(-3, -1), integrality=[2])
    assert linprog([1.0], bounds=(-3, 1), integrality=[2]).x == pytest.approx([-3.0])  # zero is within its bounds


@pytest.mark.parametrize(
    "given",
    [
        {"c": sp.coo_array([0, 0])},
        {"c": np.zeros((3, 4))},
        {"c": None},
        {"c": 1, "bounds": 10},
        {"c": 1, "constraints": 10},
        {"c": np.zeros(3), "constraints": ([[1, 2]], [2], [2])},
        {"c": [1, 2, 3], "integrality": [1, 5, 3]},
        {"c": [1, 2, 3], "bounds": ([1, 2], [3, 4])},
    ],
)
def test_milp_refuses_in_scipys_words(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as theirs:
        scipy.optimize.milp(**given)
    with pytest.raises(ValueError) as mine:
        milp(**given)
    assert str(mine.value) == str(theirs.value)


def test_arguments_are_not_changed() -> None:
    A, b, c = np.array(A_UB, dtype=float), np.array(B_UB, dtype=float), np.array(C, dtype=float)
    kept = A.copy(), b.copy(), c.copy()
    result = linprog(c, A, b, bounds=BOUNDS)
    result.x[:] = 7.0
    for now, before in zip((A, b, c), kept, strict=True):
        np.testing.assert_array_equal(now, before)
    assert isinstance(result, LinprogResult)
