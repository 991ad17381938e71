"""The record of one simulated round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from copter_frontends.vocabulary import PlanStatus

Program = Literal["solved", "needless", "none"]


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round without its plan, so that a day of rounds takes a few megabytes.

    Attributes
    ----------
    index : int
        Number of rounds before this one.
    now_s : float
        Simulated seconds at which the round starts.
    warmup : bool
        Whether the round is left out of the statistics over rounds.
    active_jobs, running_jobs, queued_jobs : int
        Jobs in the cluster in this round: all, with GPUs, and without.
    started, stopped, moved : int
        Jobs that got GPUs, that lost them, and that changed type, number or nodes.
    gpus_used, gpus_capacity : mapping of GPU type to int
    objective, bound, gap, fractional_jobs, status, prices
        See :class:`~copter_frontends.vocabulary.Plan`.
    timings : mapping of str to float
        Wall-clock seconds in ``edit``, ``solve``, ``shim`` and ``place``, as reported by the policy.
    round_s : float
        Wall-clock seconds of the policy: the edits since the last round, and the plan.
    overhead_s : float
        Wall-clock seconds of the simulator itself.
    variables : int
        Variables of the policy's last linear program; 0 if it had none.
    completed : tuple of job ids
    peak_rss_mb : float
        Largest resident size of the process so far, in MB (10^6 bytes).
    program : {"solved", "needless", "none"}
        Whether the policy solved a linear program for the plan, or proved the plan good enough without one; "none" if
        no program was due. A policy that does not count its programs solves one wherever it has variables.
    """

    index: int
    now_s: float
    warmup: bool
    active_jobs: int
    running_jobs: int
    queued_jobs: int
    started: int
    stopped: int
    moved: int
    gpus_used: Mapping[str, int]
    gpus_capacity: Mapping[str, int]
    objective: float
    bound: float
    gap: float
    fractional_jobs: int
    status: PlanStatus
    prices: Mapping[str, float]
    timings: Mapping[str, float]
    round_s: float
    overhead_s: float
    variables: int
    completed: tuple[str, ...]
    peak_rss_mb: float
    program: Program = "none"

    @property
    def utilisation(self) -> float:
        """GPUs held divided by GPUs available."""
        capacity = sum(self.gpus_capacity.values())
        return sum(self.gpus_used.values()) / capacity if capacity else 0.0
