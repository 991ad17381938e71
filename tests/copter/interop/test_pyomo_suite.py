"""Pyomo's own solver tests, from the installed package, with copter in the place of its HiGHS."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("pyomo.environ", reason="pyomo is not installed: pip install 'copter-lp[pyomo]'")
pytest.importorskip("parameterized", reason="pyomo's tests need the package parameterized")

from pyomo.contrib.solver.solvers import highs as peer

from copter.interop.pyomo import Copter

# What cannot apply, with the reason (docs/howto/interop.md).
LEFT_OUT = {
    "test_mutable_quadratic_objective_qp": "a quadratic objective: copter solves linear programs",
    "test_node_limit": "asks for HiGHS's own option mip_max_nodes by its name",
}


def own_tests() -> ModuleType | None:
    """Pyomo's module of tests, whose lists of solvers are made when it is read: copter stands there as "highs"."""
    spec = importlib.util.find_spec("pyomo.contrib.solver.tests.solvers.test_solvers")
    if spec is None or spec.loader is None:
        return None
    found, real = importlib.util.module_from_spec(spec), peer.Highs
    peer.Highs = Copter
    try:
        spec.loader.exec_module(found)
    finally:
        peer.Highs = real
    return found


suite = own_tests()
if suite is None:
    pytest.skip("Pyomo is installed without its tests", allow_module_level=True)


def with_copter(base: type) -> dict[str, Any]:
    """Members that leave out the tests of other solvers, and those that cannot apply."""
    members: dict[str, Any] = {}
    for name in dir(base):
        if not name.startswith("test_"):
            continue
        if not name.endswith("_highs"):
            members[name] = None
            continue
        reason = LEFT_OUT.get(name.removesuffix("_highs").rstrip("0123456789").rstrip("_"))
        if reason is not None:
            members[name] = pytest.mark.skip(reason=reason)(lambda self: None)
    return members


for name, base in vars(suite).items():
    if isinstance(base, type) and name.startswith("Test") and any(each.endswith("_highs") for each in dir(base)):
        globals()[name] = type(name, (base,), with_copter(base))
