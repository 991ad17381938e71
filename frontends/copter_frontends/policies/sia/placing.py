"""Nodes for the jobs of an assignment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from copter_frontends.placement import PlacementError, Placer
from copter_frontends.policies.sia.reservations import Reservations
from copter_frontends.policies.sia.shim import Assignment, as_changes, as_plan, fill
from copter_frontends.vocabulary import Allocation


def place(
    assignment: Assignment,
    placer: Placer,
    reservations: Reservations,
    held: Mapping[str, Allocation],
    pins: Mapping[str, Allocation],
    replaced: Iterable[str],
) -> tuple[dict[str, Allocation], Collection[str] | None]:
    """Return allocations by job id, and the jobs whose allocation may have changed (None: all); a job without room
    beside pinned jobs gets its next best configuration.

    Parameters
    ----------
    assignment : Assignment
        The assignment; changed if a job gets another configuration.
    placer : Placer
    reservations : Reservations
        Determine which jobs, besides the pinned ones, keep their nodes.
    held, pins : mapping of job id to Allocation
        Current allocations, and allocations of pinned jobs.
    replaced : iterable of job ids
        Jobs whose current allocation is not that of the last placement.

    Raises
    ------
    PlacementError
        If a pinned job does not fit on its nodes.
    """
    refused, looked_at = False, set(replaced)
    while True:
        fixed = reservations.in_place(assignment, held, pins)
        changes = as_changes(assignment, looked_at)
        looked_at |= changes.keys()
        try:
            found: tuple[dict[str, Allocation], Collection[str] | None] | None
            found = placer.place_changes(changes, held, fixed)
            if found is None:
                found = placer.place(as_plan(assignment), held, fixed)[0], None
        except PlacementError as error:
            if error.job_id is None or error.job_id in fixed:
                raise
            assignment.refuse(error.job_id)
            fill(assignment)
            refused = True
            continue
        if refused:
            assignment.evaluate()
        return found
