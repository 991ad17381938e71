"""copter solves the LP or MILP of every scheduling round.

It keeps one model, takes edits, starts from the last round's solution, and returns a feasible plan with a certified
gap.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Let OpenMP's threads sleep while they wait: on a busy machine, spinning threads take the processor from the thread
# that they wait for. OpenMP reads this variable when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from copter.runtime.errors import (
    CopterError,
    DimensionError,
    DuplicateHandleError,
    EditNotAllowedError,
    InvalidDataError,
    NoPlanError,
    SettingsError,
    SnapshotError,
    StaleSolutionError,
    UnknownHandleError,
)

try:
    from copter.model.matrix import Template
    from copter.model.model import Model
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("copter."):
        raise
    raise ImportError(
        f"copter's compiled modules are not built here (there is no {error.name}): run `make test` or "
        "`pip install -e .` in the checkout, or leave its folder to use an installed copter"
    ) from None
from copter.methods.solve import solve
from copter.model.private_rows import PrivateRows
from copter.problem import worth
from copter.problem.explanation import Explanation
from copter.problem.linear_program import LinearProgram
from copter.problem.residuals import Residuals, plan_gap
from copter.problem.solution import Solution, Status
from copter.runtime.progress import Progress, with_record
from copter.runtime.settings import Settings
from copter.runtime.version import VERSION
from copter.session.max_min import MaxMin
from copter.session.session import Session
from copter.shims.plan import IntegerPlan

if TYPE_CHECKING:
    from copter.highs.certify import Certificate, certify_with_highs
    from copter.methods.integer.solution import IntegerSolution, IntegerStatus
    from copter.methods.integer.solve import solve_integer
    from copter.model.formats.lp import read_lp, write_lp
    from copter.model.formats.mps import read_mps, write_mps

__version__ = VERSION

# These names are imported at their first use, so that importing copter stays fast.
_LAZY = {
    "Certificate": "copter.highs.certify",
    "IntegerSolution": "copter.methods.integer.solution",
    "IntegerStatus": "copter.methods.integer.solution",
    "certify_with_highs": "copter.highs.certify",
    "read_lp": "copter.model.formats.lp",
    "read_mps": "copter.model.formats.mps",
    "solve_integer": "copter.methods.integer.solve",
    "write_lp": "copter.model.formats.lp",
    "write_mps": "copter.model.formats.mps",
}

__all__ = [
    "Certificate",
    "CopterError",
    "DimensionError",
    "DuplicateHandleError",
    "EditNotAllowedError",
    "Explanation",
    "IntegerPlan",
    "IntegerSolution",
    "IntegerStatus",
    "InvalidDataError",
    "LinearProgram",
    "MaxMin",
    "Model",
    "NoPlanError",
    "PrivateRows",
    "Progress",
    "Residuals",
    "Session",
    "Settings",
    "SettingsError",
    "SnapshotError",
    "Solution",
    "StaleSolutionError",
    "Status",
    "Template",
    "UnknownHandleError",
    "certify_with_highs",
    "plan_gap",
    "read_lp",
    "read_mps",
    "solve",
    "solve_integer",
    "with_record",
    "worth",
    "write_lp",
    "write_mps",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
