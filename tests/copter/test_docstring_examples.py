"""The names that people meet first have an example in their docstring, and it prints what it says."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from typing import Any

import pytest

import copter

MODEL = (
    "add_resource",
    "add_units",
    "remove_units",
    "set_count",
    "count",
    "add_template",
    "add_request",
    "add_requests",
    "remove_request",
    "fix",
    "batch",
    "update_cost",
    "update_costs",
    "rescale_cost",
    "update_limit",
    "update_bounds",
    "to_linear_program",
)
FIRST: list[Callable[..., Any]] = [
    copter.LinearProgram,
    copter.Model,
    copter.PrivateRows,
    copter.Session,
    copter.Session.solve,
    copter.Session.solve_integer,
    copter.Settings,
    copter.Solution.explain,
    copter.Solution.of,
    copter.Solution.price,
    copter.read_lp,
    copter.read_mps,
    copter.solve,
    copter.solve_integer,
    copter.write_mps,
    *(getattr(copter.Model, name) for name in MODEL),
]


@pytest.mark.parametrize("documented", FIRST, ids=lambda each: each.__qualname__)
def test_the_example_runs(documented: Callable[..., Any]) -> None:
    tests = doctest.DocTestFinder(recurse=False).find(documented, documented.__qualname__)
    examples = [test for test in tests if test.examples]
    assert examples
    for test in examples:
        assert doctest.DocTestRunner().run(test).failed == 0
