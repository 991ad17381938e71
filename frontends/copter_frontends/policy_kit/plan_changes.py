"""Derivation of a plan from the allocations before and after: which jobs start, stop and move."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import compress
from operator import is_not

from copter_frontends.policy_kit.gap import relative_gap
from copter_frontends.vocabulary import Allocation, Plan


@dataclass(frozen=True, slots=True)
class PlanChanges:
    """Ids of jobs, sorted.

    Attributes
    ----------
    start, stop, move : tuple of str
        Jobs that get GPUs for the first time or again, that lose all GPUs, and that change type, number or nodes.
    """

    start: tuple[str, ...]
    stop: tuple[str, ...]
    move: tuple[str, ...]


def plan_changes(
    before: Mapping[str, Allocation], now: Mapping[str, Allocation], among: Collection[str] | None = None
) -> PlanChanges:
    """Compare two plans' allocations by job id; `among`: the jobs that may differ, if they are known."""
    if among is not None:
        here = {job_id for job_id in among if job_id in now}
        return PlanChanges(
            start=tuple(sorted(job_id for job_id in here if job_id not in before)),
            stop=tuple(sorted(job_id for job_id in among if job_id in before and job_id not in here)),
            move=tuple(sorted(job for job in here if job in before and _differ(before[job], now[job]))),
        )
    others = list(compress(now, map(is_not, map(before.get, now), now.values())))  # all but the same objects
    start = {job_id for job_id in others if job_id not in before}
    gone = before.keys() - now.keys() if len(now) - len(start) < len(before) else ()
    return PlanChanges(
        start=tuple(sorted(start)),
        stop=tuple(sorted(gone)),
        move=tuple(sorted(job_id for job_id in others if job_id not in start and before[job_id] != now[job_id])),
    )


def _differ(one: Allocation, other: Allocation) -> bool:
    return one is not other and one != other


def plan_between(
    before: Mapping[str, Allocation],
    now: Mapping[str, Allocation],
    objective: float,
    bound: float,
    scale: float = 1.0,
    among: Collection[str] | None = None,
) -> Plan:
    """Return the plan between two sets of allocations; the policy adds its other fields.

    Parameters
    ----------
    before, now : mapping of job id to Allocation
    objective, bound : float
        Value of the plan, and an upper bound on any plan's.
    scale : float
        Factor that converts both to the units in which the LP is solved, for the gap.
    among : collection of job ids, optional
        The jobs whose allocation may differ, if they are known: the others are not compared.
    """
    changes = plan_changes(before, now, among)
    return Plan(
        allocations=dict(now),
        start=changes.start,
        stop=changes.stop,
        move=changes.move,
        objective=objective,
        bound=bound,
        gap=relative_gap(scale * objective, scale * bound),
    )
