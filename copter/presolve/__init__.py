"""Presolve of a linear program with exact postsolve (docs/method/presolve.md): one reduction per file."""

from copter.presolve.presolved import Presolved
from copter.presolve.reduce import presolve
from copter.presolve.tolerances import Tolerances

__all__ = ["Presolved", "Tolerances", "presolve"]
