"""A policy's decision for a round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, slots=True)
class Allocation:
    """GPUs given to one job: type, number, and GPUs on each node.

    `nodes` is a tuple of (node id, GPUs on it), sorted by node id; its counts add up to `gpus`. If there are several
    types, `gpu_type` is the one that limits the job's speed, and `mixture` has (type, GPUs) for each.
    """

    gpu_type: str
    gpus: int
    nodes: tuple[tuple[str, int], ...] = ()
    mixture: tuple[tuple[str, int], ...] = ()

    @property
    def by_type(self) -> dict[str, int]:
        """Return the GPUs of each type."""
        return dict(self.mixture) if self.mixture else {self.gpu_type: self.gpus}


class PlanStatus(str, Enum):
    """Known quality of a plan."""

    OPTIMAL = "optimal"  # within the solver's tolerance of the bound
    FEASIBLE = "feasible"  # feasible, with the stated gap
    KEPT_PREVIOUS = "kept_previous"  # the last round's plan again, because no better one was found


@dataclass(frozen=True, slots=True)
class Plan:
    """One round's decision; always feasible.

    Attributes
    ----------
    allocations : mapping of job id to Allocation
        Allocations of the jobs with GPUs in this round.
    start, stop, move : tuple of job ids
        Jobs that get GPUs and had none; that lose all GPUs; that change type, number or nodes (and so restart).
    objective, bound, gap : float
        Value of the integer plan, a certified upper bound on any plan's value, and
        max(bound - objective, 0) / |objective|.
    prices : mapping of GPU type to float
        Marginal value of one more GPU of that type for this round.
    fractional_jobs : int
        Number of jobs that were fractional in the LP's solution.
    skipped : mapping of job id to str
        Jobs that could not be considered, and why.
    timings : mapping of str to float
        Seconds spent in ``edit``, ``solve``, ``shim`` and ``place``.
    """

    allocations: Mapping[str, Allocation]
    start: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    move: tuple[str, ...] = ()
    objective: float = 0.0
    bound: float = 0.0
    gap: float = 0.0
    prices: Mapping[str, float] = field(default_factory=dict)
    fractional_jobs: int = 0
    skipped: Mapping[str, str] = field(default_factory=dict)
    status: PlanStatus = PlanStatus.FEASIBLE
    timings: Mapping[str, float] = field(default_factory=dict)
