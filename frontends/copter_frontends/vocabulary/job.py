"""A training job in the form that all schedulers share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from copter_frontends.vocabulary.errors import InvalidJobError
from copter_frontends.vocabulary.own_goodput import GoodputTable, OwnGoodput

Shape = tuple[str, int | None, int | None, int | None, OwnGoodput | None]
"""Properties that determine a job's goodput; see :attr:`Job.shape`."""


@dataclass(frozen=True, slots=True)
class Job:
    """A deep-learning training job.

    Parameters
    ----------
    id : str
        Unique name.
    application : str
        Name of its representative model (a key of :data:`copter_frontends.goodput.applications.APPLICATIONS`).
    submit_s : float
        Submission time, seconds from the start of the trace.
    work_samples : float, optional
        Work to do, in samples at perfect statistical efficiency. None: the application's own full training run.
    requested_gpus : int
        GPUs requested by the user, which only rigid schedulers use.
    max_batch_size : int, optional
        Largest total batch that may be used. None: the application's own limit.
    min_gpus, max_gpus : int, optional
        Range of GPUs that the job may run on.
    batch_size : int, optional
        A total batch that may not be changed (a *strong-scaling* job; with `gpus` a *rigid* one). None: adaptive.
    gpus : int, optional
        A fixed number of GPUs, whose type may still change. The scheduler may hold more for the job: the smallest
        configuration with at least this many.
    preemptible : bool
        Whether the job may lose or change its GPUs once it has some.
    reservation : (GPU type, GPUs), optional
        GPUs reserved for the job from submission to end, even if other jobs are worth more.
    goodput : callable or mapping, optional
        The job's own goodput in place of its application's: a callable (configuration, progress) -> work per second, or
        a mapping {(GPU type, GPUs): work per second}. It needs `work_samples` in the same unit; the restart time is
        still the application's.
    weight : float
        Worth of the job relative to a job of weight 1; schedulers without weights ignore it.
    priority : int
        Priority class, 0 the lowest; schedulers without classes ignore it.
    tenant : str, optional
        Owner of the job, for quotas.
    """

    id: str
    application: str
    submit_s: float = 0.0
    work_samples: float | None = None
    requested_gpus: int = 1
    max_batch_size: int | None = None
    min_gpus: int = 1
    max_gpus: int | None = None
    batch_size: int | None = None
    gpus: int | None = None
    preemptible: bool = True
    reservation: tuple[str, int] | None = None
    goodput: OwnGoodput | Mapping[tuple[str, int], float] | None = None
    weight: float = 1.0
    priority: int = 0
    tenant: str | None = None

    def __post_init__(self) -> None:
        self._require(bool(self.id), "the id is empty")
        self._require(0 <= self.submit_s < float("inf"), f"submit_s is {self.submit_s}, must be finite and >= 0")
        work = self.work_samples
        self._require(work is None or 0 < work < float("inf"), f"work_samples is {work}, must be finite and > 0")
        self._require(self.requested_gpus >= 1, f"requested_gpus is {self.requested_gpus}, must be >= 1")
        batch = self.max_batch_size
        self._require(batch is None or batch >= 1, f"max_batch_size is {batch}, must be >= 1")
        self._require(self.min_gpus >= 1, f"min_gpus is {self.min_gpus}, must be >= 1")
        most = self.max_gpus
        self._require(most is None or most >= self.min_gpus, f"max_gpus is {most}, below min_gpus {self.min_gpus}")

        fixed = self.batch_size
        self._require(fixed is None or fixed >= 1, f"batch_size is {fixed}, must be >= 1")
        self._require(
            fixed is None or batch is None or fixed <= batch, f"batch_size is {fixed}, above max_batch_size {batch}"
        )
        count = self.gpus
        self._require(count is None or count >= 1, f"gpus is {count}, must be >= 1")
        within = count is None or self.min_gpus <= count <= (most or count)
        self._require(within, f"gpus is {count}, outside min_gpus {self.min_gpus} to max_gpus {most}")
        held = self.reservation
        self._require(held is None or held[1] >= 1, f"reservation is {held}, must be (GPU type, GPUs >= 1)")
        self._require(isfinite(self.weight) and self.weight > 0, f"weight is {self.weight}, must be finite and > 0")
        self._require(self.priority >= 0, f"priority is {self.priority}, must be >= 0")
        self._check_goodput()

    @property
    def shape(self) -> Shape:
        """Properties that determine the goodput: application, largest and fixed batch, fixed GPUs, own goodput."""
        return (self.application, self.max_batch_size, self.batch_size, self.gpus, self.own_goodput)

    @property
    def own_goodput(self) -> OwnGoodput | None:
        """The job's own goodput function, or None."""
        return self.goodput if callable(self.goodput) else None

    def _check_goodput(self) -> None:
        """Convert a goodput table to a callable; raises InvalidJobError for other values or unknown work."""
        if self.goodput is None:
            return
        if isinstance(self.goodput, Mapping):
            object.__setattr__(self, "goodput", GoodputTable(dict(self.goodput)))
        self._require(callable(self.goodput), "goodput must be a callable (configuration, progress), or a mapping")
        self._require(self.work_samples is not None, "a job with a goodput of its own needs work_samples, in its unit")

    def _require(self, condition: bool, complaint: str) -> None:
        if not condition:
            raise InvalidJobError(f"job {self.id!r}: {complaint}")
