"""SciPy's own tests of linprog and milp, from the installed package, against copter in its place."""

from __future__ import annotations

import importlib
from types import FunctionType

import pytest
import scipy.optimize

from copter.interop import scipy_linprog

try:
    peer = importlib.import_module("scipy.optimize.tests.test_linprog")
    peer_milp = importlib.import_module("scipy.optimize.tests.test_milp")
except ImportError:  # some distributions leave SciPy's tests out
    pytest.skip("SciPy is installed without its tests", allow_module_level=True)

# What cannot apply, with the reason.
MARGINALS = (
    "asks that finite differences of the optimum be zero to the last bit, which an interior-point method's rounding "
    "does not give; test_scipy_linprog.py holds them against SciPy's own marginals"
)
DECIDED = (
    "asks that presolve decide it, in no iterations; copter gives a small program to the simplex method as it stands, "
    "which ends in the same way"
)
LEFT_OUT = {
    "ipm": {
        "test_crossover": "asks for the number of HiGHS's crossover steps; copter has no crossover, and says 0",
        "test_bug_20336": "calls scipy.optimize.linprog by its full name, which is HiGHS",
        "test_marginals": MARGINALS,
    },
    "simplex": {
        "test_bounds_fixed": DECIDED,
        "test_singleton_row_eq_1": DECIDED,
        "test_singleton_row_ub_1": DECIDED,
        "test_zero_row_3": DECIDED,  # with the numbers that SciPy 1.15 draws
        "test_bug_20336": "calls scipy.optimize.linprog by its full name, which is HiGHS",
    },
}


@pytest.fixture(autouse=True)
def copter_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "linprog", scipy_linprog.linprog)
    monkeypatch.setattr(peer_milp, "milp", scipy_linprog.milp)
    monkeypatch.setattr(scipy.optimize, "milp", scipy_linprog.milp)


def without(base: type, reasons: dict[str, str]) -> dict[str, object]:
    """Members that leave tests of a class out, with the reason."""

    def member(reason: str) -> FunctionType:
        @pytest.mark.skip(reason=reason)
        def left_out(self: object) -> None: ...

        return left_out

    return {name: member(reason) for name, reason in reasons.items() if hasattr(base, name)}


TestLinprogDual = type(
    "TestLinprogDual",
    (peer.TestLinprogHiGHSSimplexDual,),
    without(peer.TestLinprogHiGHSSimplexDual, LEFT_OUT["simplex"]),
)
TestLinprogIpm = pytest.mark.long(
    type("TestLinprogIpm", (peer.TestLinprogHiGHSIPM,), without(peer.TestLinprogHiGHSIPM, LEFT_OUT["ipm"]))
)
TestLinprogMip = pytest.mark.long(type("TestLinprogMip", (peer.TestLinprogHiGHSMIP,), {}))

SHORT_MILP = ("test_milp_iv", "test_milp_optional_args", "test_three_constraints_16878", "test_infeasible_prob_16609")
for name, test in vars(peer_milp).items():
    if name.startswith("test_") and isinstance(test, FunctionType):
        copied = FunctionType(test.__code__, test.__globals__, name, test.__defaults__, test.__closure__)
        copied.__dict__.update(test.__dict__)
        globals()[name] = copied if name in SHORT_MILP else pytest.mark.long(copied)
