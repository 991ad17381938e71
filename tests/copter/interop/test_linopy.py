"""The linopy solver: updates in place, and a session that outlives linopy's rebuilds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

linopy = pytest.importorskip("linopy", reason="linopy is not installed: pip install copter-lp[linopy]")
pd = pytest.importorskip("pandas")
xr = pytest.importorskip("xarray")

from copter.interop.linopy import Copter  # noqa: E402 - needs linopy


def model_of(first: int = 0) -> Any:
    """Four units from `first` on: a demand, a budget of units."""
    units = pd.RangeIndex(first, first + 4, name="unit")
    model = linopy.Model()
    x = model.add_variables(lower=0, upper=10, coords=[units], name="x")
    model.add_constraints((x * xr.DataArray([1.0, 2, 3, 4], coords=[units])).sum() >= 20, name="demand")
    model.add_constraints(x.sum() <= 12, name="budget")
    model.add_objective((x * xr.DataArray([1.0, 3, 2, 5], coords=[units])).sum())
    return model


def expected(model: Any) -> float:
    pytest.importorskip("highspy")
    other = model.copy()
    other.solve("highs", io_api="direct", output_flag=False)
    return float(other.objective.value)


@pytest.mark.usefixtures("still_clock")
def test_updates_are_edits() -> None:
    model = model_of()
    solver = Copter.from_model(model, io_api="direct", track_updates=True)
    solver.solve(model, assign=True)
    assert model.objective.value == pytest.approx(expected(model))
    assert set(model.dual) == {"demand", "budget"}

    def rhs() -> None:
        model.constraints["demand"].update(rhs=22)

    def bounds() -> None:
        model.variables["x"].update(upper=5)

    def sign() -> None:
        model.constraints["budget"].update(sign=">=")

    for change in (rhs, bounds, sign, rhs):
        change()
        solver.solve(model, assign=True)
        assert model.objective.value == pytest.approx(expected(model))
        assert solver.live.is_warm
        assert solver._rebuilds == 0


@pytest.mark.usefixtures("still_clock")
def test_a_rebuild_keeps_the_session() -> None:
    """New coordinates make linopy build anew; the program has the same structure, so that the session stays."""
    solver = Copter.from_model(model_of(), io_api="direct", track_updates=True)
    solver.solve()
    for first in (3, 5, 8):
        model = model_of(first)
        model.constraints["demand"].update(rhs=20 + first)
        solver.solve(model, assign=True)
        assert model.objective.value == pytest.approx(expected(model))
        assert solver.live.is_warm
        assert not solver.live.edits.rebuilt


def test_statuses_and_integers() -> None:
    model = model_of()
    model.constraints["demand"].update(rhs=1000)
    solver = Copter.from_model(model, io_api="direct")
    assert solver.solve().status.termination_condition.value == "infeasible"
    whole = linopy.Model()
    x = whole.add_variables(lower=0, integer=True, coords=[pd.RangeIndex(2)], name="x")
    whole.add_constraints(2 * x <= 5, name="c")
    whole.add_objective(x.sum(), sense="max")
    Copter.from_model(whole, io_api="direct").solve(assign=True)
    assert whole.objective.value == pytest.approx(4.0)
    np.testing.assert_allclose(whole.solution.x, [2, 2])


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="no option 'tolerence'"):
        Copter.from_model(model_of(), io_api="direct", options={"tolerence": 1}).solve()
    with pytest.raises(ValueError, match="direct"):
        Copter.from_model(model_of(), io_api="lp")
    model = model_of()
    x = model.variables["x"]
    model.add_objective((x * x).sum(), overwrite=True)
    with pytest.raises(ValueError, match="quadratic"):
        Copter.from_model(model, io_api="direct")
