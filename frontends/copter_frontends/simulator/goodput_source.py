"""The interface of goodput models for the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from copter_frontends.vocabulary import Configuration, InvalidJobError, Job, OwnGoodput, configurations_for


class ApplicationFacts(Protocol):
    """Interface: constants of one application."""

    @property
    def work_samples(self) -> float:
        """Number of samples of one full training run at perfect statistical efficiency."""

    @property
    def restart_s(self) -> float:
        """Seconds that a start or a checkpoint-restore takes."""

    @property
    def slowdown(self) -> float:
        """Measured seconds per modelled second (1 or more)."""


class GoodputSource(Protocol):
    """Interface of a goodput model that is constant within each phase of a job's training.

    Policies have configurations of their own, and the simulator needs allocations that are not in `configurations`,
    such as one over more nodes than necessary. So a model may have a method ``over(configurations)`` that returns the
    same model over other configurations; without it, the class is called with ``(configurations, applications)``.
    """

    @property
    def configurations(self) -> Sequence[Configuration]:
        """Configurations, in the order of the entries of :meth:`row`."""

    @property
    def applications(self) -> Mapping[str, Any]:
        """Facts (see :class:`ApplicationFacts`) by the name of the application."""

    def row(self, application: str, progress: float, max_batch_size: int | None = None) -> NDArray[np.float64]:
        """Return efficient samples per second in each configuration; 0 if the application cannot run."""

    def phase(self, application: str, progress: float) -> int:
        """Return the number of the phase that a job is in when this fraction of its work is done."""

    def phase_end(self, application: str, phase: int) -> float:
        """Return the fraction of the work at which a phase ends; 1 for the last."""


def same_model_for(model: GoodputSource, configurations: Iterable[Configuration]) -> GoodputSource:
    """Make the same kind of model over other configurations: by its own ``over``, or of its class."""
    over: Any = getattr(model, "over", None)
    if over is None:
        make: Any = type(model)
        other: GoodputSource = make(list(configurations), model.applications)
    else:
        other = over(list(configurations))
    return other


def row_of(model: GoodputSource, job: Job, progress: float) -> NDArray[np.float64]:
    """Return a job's row, with the job's own limits; a fixed batch or number of GPUs needs a model with ``job_row``.

    A job with its own goodput function is evaluated by it, in the middle of the phase.
    """
    if job.own_goodput is not None:
        return _own_row(model, job, job.own_goodput, progress)
    own: Any = getattr(model, "job_row", None)
    if own is None:
        return model.row(job.application, progress, job.max_batch_size)
    result: NDArray[np.float64] = own(job, progress)
    return result


def slowdown_of(model: GoodputSource, job: Job) -> float:
    """Return measured seconds per modelled second; 1 for a job with its own goodput."""
    return 1.0 if job.own_goodput is not None else float(model.applications[job.application].slowdown)


def _own_row(model: GoodputSource, job: Job, goodput: OwnGoodput, progress: float) -> NDArray[np.float64]:
    """Return a job's own goodput in each configuration, at the middle of the phase of `progress`.

    If the job's number of GPUs is fixed, configurations with other numbers get 0.
    """
    phase = model.phase(job.application, progress)
    begin = model.phase_end(job.application, phase - 1) if phase else 0.0
    middle = 0.5 * (begin + model.phase_end(job.application, phase))
    row = np.zeros(len(model.configurations))
    for at, place in enumerate(model.configurations):
        asked = place if job.gpus is None else replace(place, gpus=job.gpus)
        row[at] = float(goodput(asked, middle))
        if not 0.0 <= row[at] < np.inf:
            raise InvalidJobError(f"job {job.id!r}: its own goodput of {asked} is {row[at]}, must be finite and >= 0")
    if job.gpus is not None:
        row[[at for at in range(len(row)) if at not in configurations_for(model.configurations, job.gpus)]] = 0.0
    return row
