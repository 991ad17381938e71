"""copter by its name in linopy and PyPSA, and the page's blocks as printed."""

from __future__ import annotations

from typing import Any

import pytest

linopy = pytest.importorskip("linopy", reason="linopy is not installed: pip install copter-lp[linopy]")

from copter.interop.linopy import Copter, register  # noqa: E402 - needs linopy


def model_of(whole: bool = False) -> Any:
    """Two variables, a demand that both answer."""
    model = linopy.Model()
    x = model.add_variables(lower=0, upper=3, name="x", integer=whole)
    y = model.add_variables(lower=0, name="y")
    model.add_constraints(2 * x + y >= 7, name="demand")
    model.add_objective(3 * x + 2 * y)
    return model


@pytest.mark.parametrize("whole", [False, True])
def test_a_model_is_solved_by_name(whole: bool) -> None:
    model = model_of(whole)
    assert model.solve("copter") == ("ok", "optimal")
    assert model.objective.value == pytest.approx(11.0)
    assert isinstance(model.solver, Copter)
    assert model.solver_name == "copter"


def test_options_are_copters() -> None:
    assert model_of().solve("copter", time_limit_s=20.0)[0] == "ok"
    with pytest.raises(ValueError, match="copter has no option 'pace'"):
        model_of().solve("copter", pace=1)


def test_a_file_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="copter takes io_api='direct' only, not 'lp'"):
        model_of().solve("copter", io_api="lp")


def test_linopys_default_stays_and_registering_again_changes_nothing() -> None:
    register()
    assert list(linopy.available_solvers).count("copter") == 1
    assert [each.value for each in linopy.solvers.SolverName].count("copter") == 1
    assert linopy.available_solvers[-1] == "copter"
    assert linopy.solvers.check_solver_licenses("copter")["copter"].ok


def test_a_network_is_optimised_by_name() -> None:
    pypsa = pytest.importorskip("pypsa")
    network = pypsa.Network(snapshots=range(3))
    network.add("Bus", ["north", "south"])
    network.add("Line", "line", bus0="north", bus1="south", x=0.1, s_nom=4)
    network.add("Load", "load", bus="south", p_set=[3.0, 6.0, 9.0])
    network.add("Generator", "wind", bus="north", p_nom=8, marginal_cost=1)
    network.add("Generator", "gas", bus="south", p_nom=10, marginal_cost=20)
    assert network.optimize(solver_name="copter") == ("ok", "optimal")
    assert network.objective == pytest.approx(3 + 4 + 4 + 20 * (2 + 5))
