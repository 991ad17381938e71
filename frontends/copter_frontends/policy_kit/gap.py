"""The optimality gap that every policy reports, and the gap at which a plan counts as optimal."""

from __future__ import annotations

from copter import plan_gap
from copter_frontends.vocabulary import PlanStatus

OPTIMAL_GAP = 1e-6
"""A plan with at most this gap counts as optimal."""


def relative_gap(objective: float, bound: float) -> float:
    """Return max(bound - objective, 0) / |objective|, the gap of plans as HiGHS defines it, for a maximisation.

    Parameters
    ----------
    objective, bound : float
        Value of the plan, and an upper bound on the value of any plan.
    """
    return plan_gap(objective, max(bound, objective))


def status_of(gap: float, solved: bool, kept: bool = False) -> PlanStatus:
    """Return a plan's status, given its gap, whether its LP was `solved`, and whether the last plan was `kept`."""
    if kept:
        return PlanStatus.KEPT_PREVIOUS
    return PlanStatus.OPTIMAL if solved and gap <= OPTIMAL_GAP else PlanStatus.FEASIBLE
