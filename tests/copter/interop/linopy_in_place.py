"""A pytest plugin for linopy's own tests: copter as a solver of its name, and in the place of HiGHS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from linopy import solvers

from copter.interop.linopy import Copter

IN_PLACE = ("test_optimization.py", "test_persistent_")  # files whose tests of HiGHS ask nothing of highspy itself

# What cannot apply, with the reason (docs/howto/interop.md).
LEFT_OUT = {
    "test_sign_flip": "asks for a rebuild, because HiGHS cannot change a sign; copter can",
    "test_solver_time_limit_options": "takes the option's name from a table of solvers, or HiGHS's name for it",
    "test_solver_method_options": "asks for HiGHS's options by their names",
    "test_infeasible_model": "asks HiGHS for a set of infeasible constraints",
    "test_quadratic_model": "a quadratic objective: copter solves linear programs",
    "test_quadratic_model_cross_terms": "a quadratic objective",
    "test_quadratic_model_wo_constraint": "a quadratic objective",
    "test_quadratic_model_unbounded": "a quadratic objective",
    "test_warmstart_direct_from_lp_basis": "writes a basis to a file of HiGHS's, by the lp interface",
}


@dataclass
class Highs(Copter):
    """copter, which is told to be quiet as linopy's tests tell HiGHS."""

    def _run_direct(self, **given: Any) -> Any:
        self.options = {name: value for name, value in self.options.items() if name != "output_flag"}
        return super()._run_direct(**given)


solvers.Highs = Highs


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of other solvers out."""
    kept, others = [], []
    for item in items:
        by_name, in_place = "copter" in item.name, "highs" in item.name and item.path.name.startswith(IN_PLACE)
        name, _, told = item.name.partition("[")
        # with copter by its name, linopy's infeasible model and options are as they should be
        reason = LEFT_OUT.get(name) if in_place or name == "test_solver_time_limit_options" else None
        if not (by_name or in_place):
            others.append(item)
            continue
        kept.append(item)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"{reason} ({told})"))
    config.hook.pytest_deselected(items=others)
    items[:] = kept
