"""The Pyomo solver: models that change between solves, statuses, duals."""

from __future__ import annotations

from typing import Any

import pytest

pyo = pytest.importorskip("pyomo.environ", reason="pyomo is not installed: pip install copter-lp[pyomo]")
pytest.importorskip("pyomo.contrib.solver.common.factory")

from pyomo.contrib.solver.common.factory import SolverFactory  # noqa: E402
from pyomo.contrib.solver.common.util import (  # noqa: E402
    IncompatibleModelError,
    NoFeasibleSolutionError,
    NoOptimalSolutionError,
)

from copter.interop.pyomo import Copter  # noqa: E402


def model_of() -> Any:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(4), bounds=(0, 10))
    model.cost = pyo.Param(range(4), initialize=[1.0, 3.0, 2.0, 5.0], mutable=True)
    model.need = pyo.Param(initialize=20, mutable=True)
    model.demand = pyo.Constraint(expr=sum((i + 1) * model.x[i] for i in range(4)) >= model.need)
    model.budget = pyo.Constraint(expr=(1, sum(model.x[i] for i in range(4)), 12))
    model.objective = pyo.Objective(expr=sum(model.cost[i] * model.x[i] for i in range(4)) + 7)
    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    return model


@pytest.mark.usefixtures("still_clock")
def test_a_model_solved_again_is_edited() -> None:
    pytest.importorskip("highspy")
    model, solver = model_of(), SolverFactory("copter")
    assert isinstance(solver, Copter)

    def need() -> None:
        model.need = 25

    def cost() -> None:
        model.cost[2] = 9.0

    def bound() -> None:
        model.x[3].setub(2.0)

    def fixed() -> None:
        model.x[0].fix(1.0)

    for step, change in enumerate((lambda: None, need, cost, bound, fixed)):
        change()
        result = solver.solve(model)
        reference = SolverFactory("highs").solve(model, load_solutions=False)
        assert result.incumbent_objective == pytest.approx(reference.incumbent_objective)
        assert pyo.value(model.objective) == pytest.approx(result.incumbent_objective)
        for constraint, dual in reference.solution_loader.get_duals().items():
            assert result.solution_loader.get_duals()[constraint] == pytest.approx(dual, abs=1e-6)
            assert model.dual[constraint] == pytest.approx(dual, abs=1e-6)
        assert solver.live.is_warm == (step > 0)
        # A fixed variable is no column any more: whether the basis follows is decided by what is cheaper.
        assert step == 4 or not solver.live.edits.shifted
    assert result.solution_loader.get_reduced_costs()


def test_statuses() -> None:
    model, solver = model_of(), SolverFactory("copter")
    model.more = pyo.Constraint(expr=model.x[1] >= 11)
    with pytest.raises(NoOptimalSolutionError):
        solver.solve(model)
    with pytest.raises(NoFeasibleSolutionError):
        solver.solve(model, raise_exception_on_nonoptimal_result=False)
    model.del_component("more")
    model.x[2].domain = pyo.Integers
    model.del_component("dual")  # a mixed-integer program has none
    assert solver.solve(model).incumbent_objective == pytest.approx(21.0)
    assert str(pyo.SolverFactory("copter").solve(model).solver.termination_condition) == "optimal"


def test_bad_input() -> None:
    model, solver = model_of(), SolverFactory("copter")
    with pytest.raises(ValueError, match="no option 'tolerence'"):
        solver.solve(model, solver_options={"tolerence": 1})
    model.square = pyo.Constraint(expr=model.x[1] ** 2 <= 1)
    with pytest.raises(IncompatibleModelError, match="linear"):
        solver.solve(model)
    model.del_component("square")
    model.other = pyo.Objective(expr=model.x[0])
    with pytest.raises(IncompatibleModelError):
        solver.solve(model)
