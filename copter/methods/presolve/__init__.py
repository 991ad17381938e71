"""Presolve of a linear program with exact postsolve (docs/method/presolve.md): one reduction per file."""

from copter.methods.presolve.presolved import Presolved
from copter.methods.presolve.reduce import presolve
from copter.methods.presolve.tolerances import Tolerances

__all__ = ["Presolved", "Tolerances", "presolve"]
