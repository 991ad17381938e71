"""Programs, solutions and bases to HiGHS and back."""

from __future__ import annotations

import numpy as np
import pytest

import copter
from copter import DimensionError, InvalidDataError, LinearProgram

highspy = pytest.importorskip("highspy")

from copter.highs.exchange import from_highs, to_highs  # noqa: E402


def program(integer: bool = False) -> LinearProgram:
    return LinearProgram(
        [1.0, 2.0, -1.0],
        [[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]],
        [1.0, -np.inf],
        [3.0, 1.0],
        [0.0, -np.inf, 0.0],
        [5.0, np.inf, 2.0],
        [integer, False, False],
        "max" if integer else "min",
        7.0,
        ["r", "s"],
        ["x", "y", "z"],
        "three",
    )


@pytest.mark.parametrize("integer", [False, True])
def test_there_and_back(integer: bool) -> None:
    lp = program(integer)
    found = from_highs(to_highs(lp))
    for name in ("c", "row_lower", "row_upper", "col_lower", "col_upper", "integrality"):
        np.testing.assert_array_equal(getattr(found.lp, name), getattr(lp, name))
    np.testing.assert_array_equal(found.lp.A.toarray(), lp.A.toarray())
    assert (found.lp.sense, found.lp.offset, found.lp.name) == (lp.sense, lp.offset, lp.name)
    assert (found.lp.row_names, found.lp.col_names) == (lp.row_names, lp.col_names)
    assert (found.x, found.col_status) == (None, None)


def test_solution_and_basis() -> None:
    rng = np.random.default_rng(0)
    A = rng.uniform(0.1, 1.0, (10, 40))
    lp = LinearProgram(-rng.uniform(1.0, 2.0, 40), A, None, np.full(10, 5.0), None, np.ones(40))
    highs = to_highs(lp)
    highs.run()
    cold = highs.getInfo().simplex_iteration_count
    state = from_highs(highs)
    assert cold > 0
    assert state.x is not None
    assert state.col_status is not None
    again = to_highs(lp, state)
    again.run()
    assert again.getInfo().simplex_iteration_count == 0
    assert again.getInfo().objective_function_value == pytest.approx(float(lp.c @ state.x))
    solution = copter.solve(lp)
    started = to_highs(lp, solution)
    started.run()
    assert started.getInfo().objective_function_value == pytest.approx(solution.objective, rel=1e-6)
    certified = to_highs(lp, copter.certify_with_highs(lp, solution))
    certified.run()
    assert certified.getInfo().objective_function_value == pytest.approx(solution.objective, rel=1e-6)


def test_bad_input() -> None:
    with pytest.raises(InvalidDataError, match=r"highspy\.Highs"):
        from_highs("model")
    with pytest.raises(InvalidDataError, match="LinearProgram"):
        to_highs("model")  # type: ignore[arg-type]
    with pytest.raises(DimensionError, match="1 columns"):
        to_highs(program(), copter.solve(LinearProgram([1.0], [[1.0]])))
    highs = to_highs(program())
    highs.changeColsIntegrality(1, np.array([2]), np.array([2], dtype=np.uint8))
    highs.changeColBounds(2, 1.0, np.inf)
    with pytest.raises(InvalidDataError, match="semi-continuous"):
        from_highs(highs)


def test_semicontinuous_columns_go_there_and_back() -> None:
    lp = LinearProgram(
        [1.0, -2.0], [[1.0, 1.0]], col_upper=[9.0, 4.0], integrality=[True, False], semicontinuous=[2.5, 1.0]
    )
    again = from_highs(to_highs(lp)).lp
    assert again.semicontinuous.tolist() == [2.5, 1.0]
    assert again.integrality.tolist() == [True, False]
    assert again.col_lower.tolist() == [0.0, 0.0]
