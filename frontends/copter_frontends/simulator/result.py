"""The result of a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter_frontends.simulator.activity import Span
from copter_frontends.simulator.metrics import summarise
from copter_frontends.simulator.round_record import RoundRecord


@dataclass(frozen=True, slots=True)
class SkippedJob:
    """A job left out of the simulation, with the reason.

    `waited_s` is the job's wait if it was given up because the policy gave it no GPUs, and `ran` whether it had some
    before; None for a job that was refused.
    """

    id: str
    reason: str
    waited_s: float | None = None
    ran: bool = False


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Rounds and jobs of a simulation.

    Attributes
    ----------
    gpus : int
        GPUs of the cluster at the end.
    round_s : float
        Simulated seconds of a round.
    seed : int
    rounds : tuple of RoundRecord
    jobs : mapping of str to array
        Columns of the table of jobs, with a row for each job that was not skipped; see
        :func:`~copter_frontends.simulator.metrics.job_columns`.
    skipped : tuple of SkippedJob
    spans : tuple of Span
        Periods in which each job had which GPUs.
    """

    gpus: int
    round_s: float
    seed: int
    rounds: tuple[RoundRecord, ...]
    jobs: Mapping[str, NDArray[np.generic]]
    skipped: tuple[SkippedJob, ...]
    spans: tuple[Span, ...] = ()

    @property
    def warmup_rounds(self) -> int:
        """Rounds left out of the statistics over rounds."""
        return sum(record.warmup for record in self.rounds)

    def summary(self) -> dict[str, Any]:
        """Return statistics over the jobs and over the rounds after the warm-up; see :func:`.metrics.summarise`.

        It also has ``simulated_h``, the hours from the first of these rounds to the end of the last.
        """
        figures = summarise(self.rounds, self.jobs)
        return {**figures, "simulated_h": figures["rounds"] * self.round_s / 3600.0}
