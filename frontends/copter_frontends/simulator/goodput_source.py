"""What the simulator asks of a goodput model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from copter_frontends.vocabulary import Configuration, Job


class ApplicationFacts(Protocol):
    """Constants of one application."""

    @property
    def work_samples(self) -> float:
        """Samples, at perfect statistical efficiency, of one full training run."""

    @property
    def restart_s(self) -> float:
        """Seconds that a start or a checkpoint-restore takes."""

    @property
    def slowdown(self) -> float:
        """Measured seconds per modelled second (1 or more)."""


class GoodputSource(Protocol):
    """A goodput model, piecewise constant over the phases of a job's training.

    Its class is made from ``(configurations, applications)``; the simulator does that for an allocation whose shape
    is not in `configurations`, such as one that splits a job over more nodes than it needs.
    """

    @property
    def configurations(self) -> Sequence[Configuration]:
        """Configurations, in the order of the entries of :meth:`row`."""

    @property
    def applications(self) -> Mapping[str, Any]:
        """Facts (see :class:`ApplicationFacts`) by the name of the application."""

    def row(self, application: str, progress: float, max_batch_size: int | None = None) -> NDArray[np.float64]:
        """Efficient samples per second in each configuration; 0 where the application cannot run."""

    def phase(self, application: str, progress: float) -> int:
        """Number of the phase that a job is in when this fraction of its work is done."""

    def phase_end(self, application: str, phase: int) -> float:
        """Fraction of the work done at which a phase ends; 1 for the last."""


def same_model_for(model: GoodputSource, configurations: Iterable[Configuration]) -> GoodputSource:
    """Make the same kind of model over other configurations."""
    make: Any = type(model)
    other: GoodputSource = make(list(configurations), model.applications)
    return other


def row_of(model: GoodputSource, job: Job, progress: float) -> NDArray[np.float64]:
    """A job's row with its own limits; a fixed batch or count needs a model that has ``job_row``."""
    own: Any = getattr(model, "job_row", None)
    if own is None:
        return model.row(job.application, progress, job.max_batch_size)
    result: NDArray[np.float64] = own(job, progress)
    return result
