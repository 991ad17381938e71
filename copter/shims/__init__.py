"""Shims: from an LP's solution to an integer, feasible plan with its true gap."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from copter.processor import with_levels

__path__ = with_levels(__name__, __path__)

from copter.shims.checked import require_feasible
from copter.shims.chosen import plan_of
from copter.shims.plan import IDLE, IntegerPlan, Shim
from copter.shims.rounding import RoundingShim

if TYPE_CHECKING:
    from copter.shims.restricted import RestrictedShim, shim_by_name

__all__ = [
    "IDLE",
    "IntegerPlan",
    "RestrictedShim",
    "RoundingShim",
    "Shim",
    "plan_of",
    "require_feasible",
    "shim_by_name",
]

# Imported when they are first asked for: they bring the integer search with them, which a session need not have.
_LAZY = ("RestrictedShim", "shim_by_name")


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("copter.shims.restricted"), name)
    globals()[name] = value
    return value
