"""What Sia's formulation knows of each job."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.vocabulary import DuplicateJobError, Job, UnknownJobError

Floats = NDArray[np.float64]

IDLE = -1  # column of a job without GPUs


@dataclass(slots=True)
class JobState:
    """State of a job in the formulation.

    `base` is the objective's base over the configurations and `smallest` its smallest usable entry; `column` is the
    present configuration, `own_local` the job's own column of it, and `pinned` the one it is held on, or IDLE; (scale,
    offset) give its values at this round's restart factor, `own_value` is that of the configuration that it has;
    `clamped` says that the model holds a whole array of values, `rebased` that it does not hold the present base,
    `stale` that base, configuration or bonus have changed since then. `live_base` is the base of its columns,
    `own_base` that of its configuration.
    `most_gpus` is the most that the job has had, `bonus` what time sharing adds to its worth, `tie_scale` the factor of
    its steps between ties; `columns` and `local` are those of its column set. `worth` is what all its values are
    multiplied by: its weight and priority class; `limits` say
    where it can run and how well; `rows` are the numbers of the shared rows that it takes part in.
    """

    job: Job
    submit_s: float
    restart_cost_s: float
    base: Floats
    smallest: float
    progress: float = 0.0
    phase: int = 0
    restarts: int = 0
    column: int = IDLE
    own_local: int = IDLE
    pinned: int = IDLE
    factor: float = 1.0
    scale: float = 1.0
    offset: float = 0.0
    own_value: float = 0.0
    own_base: float = 0.0
    clamped: bool = False
    rebased: bool = True
    stale: bool = False
    hints: TrainingHints | None = None
    most_gpus: int = 0
    bonus: float = 0.0
    tie_scale: float = 1.0
    live_base: Floats = field(default_factory=lambda: np.empty(0))
    columns: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    limits: tuple[object, ...] = ()
    worth: float = 1.0
    rows: tuple[int, ...] = ()
    local: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))


class JobBook(dict[str, JobState]):
    """States by job id, in the order of arrival."""

    def state(self, job_id: str) -> JobState:
        """State of a job; UnknownJobError if there is none of this id."""
        try:
            return self[job_id]
        except KeyError:
            raise UnknownJobError(f"unknown job {job_id!r}: never added, or already removed") from None

    def require_new(self, job_id: str) -> None:
        """DuplicateJobError if the id is known."""
        if job_id in self:
            raise DuplicateJobError(f"job {job_id!r} is known already; remove it first")
