"""Nodes for the jobs of an assignment."""

from __future__ import annotations

from collections.abc import Mapping

from copter_frontends.placement import PlacementError, Placer
from copter_frontends.policies.sia.reservations import Reservations
from copter_frontends.policies.sia.shim import Assignment, as_plan, fill
from copter_frontends.vocabulary import Allocation


def place(
    assignment: Assignment,
    placer: Placer,
    reservations: Reservations,
    held: Mapping[str, Allocation],
    pins: Mapping[str, Allocation],
) -> dict[str, Allocation]:
    """Return allocations by job id; a job without room beside pinned jobs gets its next best configuration.

    Parameters
    ----------
    assignment : Assignment
        The assignment; changed if a job gets another configuration.
    placer : Placer
    reservations : Reservations
        Determine which jobs, besides the pinned ones, keep their nodes.
    held, pins : mapping of job id to Allocation
        Current allocations, and allocations of pinned jobs.

    Raises
    ------
    PlacementError
        If a pinned job does not fit on its nodes.
    """
    refused = False
    while True:
        fixed = reservations.in_place(assignment.column, held, pins)
        try:
            placed = placer.place(as_plan(assignment), held, fixed)[0]
        except PlacementError as error:
            if error.job_id is None or error.job_id in fixed:
                raise
            assignment.refuse(error.job_id)
            fill(assignment)
            refused = True
            continue
        if refused:
            assignment.evaluate()
        return placed
