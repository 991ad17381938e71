"""Integerisation: from an LP's solution to a whole, feasible plan with a true gap."""

from copter.shims.plan import IDLE, IntegerPlan, Shim
from copter.shims.rounding import RoundingShim

__all__ = ["IDLE", "IntegerPlan", "RoundingShim", "Shim"]
