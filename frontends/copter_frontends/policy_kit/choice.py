"""A policy's decision, before jobs are placed on nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from copter_frontends.vocabulary import PlanStatus

Wanted = dict[str, tuple[str, int]]
"""GPU type and number of GPUs by job id."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A policy's decision for a round, before nodes are chosen.

    Attributes
    ----------
    wanted : dict of job id to (GPU type, GPUs)
        Wanted GPUs, within each type's capacity, without pinned jobs.
    objective, bound, fractional_jobs, prices, skipped, status
        See :class:`~copter_frontends.vocabulary.Plan`; if the objective is None, the plan's objective is the number of
        GPUs in use.
    timings : mapping of str to float
        Seconds of the stages ``solve`` and ``shim``.
    """

    wanted: Wanted
    objective: float | None = None
    bound: float | None = None
    fractional_jobs: int = 0
    prices: Mapping[str, float] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    status: PlanStatus = PlanStatus.FEASIBLE
    timings: Mapping[str, float] = field(default_factory=dict)
