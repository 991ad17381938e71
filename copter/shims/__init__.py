"""Shims: from an LP's solution to an integer, feasible plan with its true gap."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from copter.runtime.processor import with_levels

__path__ = with_levels(__name__, __path__)

from copter.shims.checked import require_feasible
from copter.shims.chosen import plan_of
from copter.shims.plan import IDLE, IntegerPlan, Shim
from copter.shims.rounding import RoundingShim

if TYPE_CHECKING:
    from copter.shims import proven
    from copter.shims.restricted import RestrictedShim, shim_by_name

__all__ = [
    "IDLE",
    "IntegerPlan",
    "RestrictedShim",
    "RoundingShim",
    "Shim",
    "plan_of",
    "proven",
    "require_feasible",
    "shim_by_name",
]

# These names are imported at their first use, because they load the integer search, which most sessions do not need.
_LAZY = {"RestrictedShim": "restricted", "shim_by_name": "restricted", "proven": "proven"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"copter.shims.{_LAZY[name]}")
    value = module if name == _LAZY[name] else getattr(module, name)
    globals()[name] = value
    return value
