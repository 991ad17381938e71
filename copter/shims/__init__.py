"""Integerisation: from an LP's solution to a whole, feasible plan with a true gap."""

from copter.shims.checked import require_feasible
from copter.shims.plan import IDLE, IntegerPlan, Shim
from copter.shims.restricted import RestrictedShim, shim_by_name
from copter.shims.rounding import RoundingShim

__all__ = ["IDLE", "IntegerPlan", "RestrictedShim", "RoundingShim", "Shim", "require_feasible", "shim_by_name"]
