"""Job speeds for policies, from a table or the goodput model (docs/papers/baselines.md, B1), and GPUs of rigid jobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal, Protocol, runtime_checkable

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput import GoodputModel, UnknownApplicationError
from copter_frontends.simulator.goodput_source import GoodputSource, row_of, same_model_for
from copter_frontends.vocabulary import Cluster, Configuration, Job, Shape, configurations_of

Unit = Literal["samples", "iterations"]
TableEntry = float | Mapping[int, float]

MOST_RATES = 100_000
"""Most cached rates: enough for ten thousand job shapes on seven GPU types."""

GIVEN = attrgetter("application", "max_batch_size", "batch_size", "gpus", "requested_gpus", "min_gpus", "max_gpus")
"""Of a job without a goodput of its own: all that its shape and its requested GPUs follow from, read in one call."""


def requested_gpus(job: Job) -> int:
    """Return a rigid job's GPUs: its user's request, clipped to the range on which it runs."""
    if job.gpus is not None:
        return job.gpus
    wanted = max(job.requested_gpus, job.min_gpus)
    return wanted if job.max_gpus is None else min(wanted, job.max_gpus)


@runtime_checkable
class Throughputs(Protocol):
    """Interface: progress per second of jobs, in samples or iterations; a job has the same unit on all GPU types."""

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """Return units per second on `gpus` GPUs of a type, on as few nodes as possible; 0 if the job cannot run.

        `progress` is the fraction of the job that is done, 0 to 1, for sources whose rate depends on it.
        """

    def work(self, job: Job) -> float:
        """Return a job's total work, in the same unit."""


class ThroughputTable:
    """Throughputs read from a table.

    Parameters
    ----------
    rates : mapping of job id, or application, to {GPU type: units per second}
        An entry is either a number for the requested GPUs (other counts scale in proportion) or a mapping of GPUs to
        units per second (other counts cannot run). A missing type cannot run the job. An entry for the job's id takes
        precedence over one for its application.
    work : mapping of job id, or application, to float, optional
        Units of work; by default the job's `work_samples`.

    Raises
    ------
    InvalidDataError
        If a rate or an amount of work is negative or not finite.
    """

    def __init__(self, rates: Mapping[str, Mapping[str, TableEntry]], work: Mapping[str, float] | None = None) -> None:
        self._rates = {name: dict(row) for name, row in rates.items()}
        self._work = dict(work or {})
        for name, row in self._rates.items():
            for gpu_type, entry in row.items():
                for value in entry.values() if isinstance(entry, Mapping) else (entry,):
                    _check(f"throughput of {name!r} on {gpu_type!r}", value)
        for name, units in self._work.items():
            _check(f"work of {name!r}", units)

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """Return units per second; raises InvalidDataError if the table has neither the job nor its application."""
        row = self._rates.get(job.id, self._rates.get(job.application))
        if row is None:
            raise InvalidDataError(
                f"the throughput table has no row for job {job.id!r}, nor for its application {job.application!r}"
            )
        entry = row.get(gpu_type, 0.0)
        if isinstance(entry, Mapping):
            return float(entry.get(gpus, 0.0))
        return float(entry) * gpus / job.requested_gpus

    def work(self, job: Job) -> float:
        """Return units of work; raises InvalidDataError if neither the table nor the job gives them."""
        known = self._work.get(job.id, self._work.get(job.application, job.work_samples))
        if known is None:
            raise InvalidDataError(f"the work of job {job.id!r} is not known: give it in the table, or as work_samples")
        return float(known)


class GoodputThroughputs:
    """Throughputs of a goodput model (docs/method/goodput.md), at the phase of training that a job is in.

    Parameters
    ----------
    cluster : Cluster
        Gives the GPUs per node of each type, and so the nodes of an allocation; read once.
    model : GoodputSource
    unit : {"samples", "iterations"}
        Efficient samples, or iterations of the application's initial batch size.
    """

    def __init__(self, cluster: Cluster, model: GoodputSource, unit: Unit = "samples") -> None:
        if unit not in ("samples", "iterations"):
            raise InvalidDataError(f"unit is {unit!r}, must be 'samples' or 'iterations'")
        self._per_node = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
        self._model = model
        self._unit = unit
        self._position = {configuration: at for at, configuration in enumerate(model.configurations)}
        self._others: dict[Configuration, GoodputSource] = {}

    @cached_property
    def _first(self) -> dict[tuple[Shape, str, int], float]:
        """Cache of rates at the start of jobs, by shape, GPU type and GPUs; most jobs share a shape."""
        return {}

    @cached_property
    def _first_rows(self) -> dict[tuple[Shape, tuple[str, ...], int], list[float]]:
        """Cache of rates at the start of jobs, for several types at once."""
        return {}

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """Return units per second, before the application's slowdown."""
        if progress != 0.0 or job.own_goodput is not None:
            return self._rate(job, gpu_type, gpus, progress)
        key = job.shape, gpu_type, gpus
        known = self._first.get(key)
        if known is None:
            if len(self._first) >= MOST_RATES:
                self._first.clear()
            known = self._first[key] = self._rate(job, gpu_type, gpus, progress)
        return known

    def rates_at_start(self, job: Job, gpu_types: tuple[str, ...], gpus: int) -> list[float]:
        """Return a new job's rates on `gpus` GPUs of each type."""
        if job.own_goodput is not None:
            return [self._rate(job, name, gpus, 0.0) for name in gpu_types]
        key = job.shape, gpu_types, gpus
        known = self._first_rows.get(key)
        if known is None:
            if len(self._first_rows) >= MOST_RATES:
                self._first_rows.clear()
            known = self._first_rows[key] = [self.rate(job, name, gpus) for name in gpu_types]
        return known

    def _rate(self, job: Job, gpu_type: str, gpus: int, progress: float) -> float:
        self._facts(job)
        where = Configuration(math.ceil(gpus / self._per_node[gpu_type]), gpus, gpu_type)
        at = self._position.get(where)
        if at is not None and job.gpus is None:
            goodput = row_of(self._model, job, progress)[at]
        else:
            goodput = row_of(self._other(where), job, progress)[0]
        return float(goodput) / self._samples(job)

    def work(self, job: Job) -> float:
        """Return units of work: the job's own, or those of its application's full training run."""
        facts, known = self._facts(job), job.work_samples
        return float(facts.work_samples if known is None else known) / self._samples(job)

    def work_of(self, jobs: Iterable[Job]) -> list[float]:
        """Return :meth:`work` of each job, looked up once an application; who overrides one overrides both."""
        shared = dict[str, tuple[float, float]]()  # by application: samples of a full run, samples per unit
        result = []
        for job in jobs:
            facts = shared.get(job.application)
            if facts is None:
                facts = shared[job.application] = float(self._facts(job).work_samples), self._samples(job)
            known = job.work_samples
            result.append((facts[0] if known is None else float(known)) / facts[1])
        return result

    def _samples(self, job: Job) -> float:
        """Return the samples per unit."""
        return 1.0 if self._unit == "samples" else float(self._facts(job).init_batch_size)

    def _facts(self, job: Job) -> Any:
        """Return the constants of the job's application; raises UnknownApplicationError."""
        known = self._model.applications
        if job.application not in known:
            names = ", ".join(sorted(known)) or "none"
            raise UnknownApplicationError(
                f"job {job.id!r}: unknown application {job.application!r}; the known ones are: {names}"
            )
        return known[job.application]

    def _other(self, where: Configuration) -> GoodputSource:
        if where not in self._others:
            self._others[where] = same_model_for(self._model, [where])
        return self._others[where]


def rates_at_start(throughputs: Throughputs, job: Job, gpu_types: tuple[str, ...], gpus: int) -> list[float]:
    """Return a new job's rates on `gpus` GPUs of each type; :class:`GoodputThroughputs` caches them."""
    if isinstance(throughputs, GoodputThroughputs):
        return throughputs.rates_at_start(job, gpu_types, gpus)
    return [throughputs.rate(job, name, gpus) for name in gpu_types]


def representative_throughputs(cluster: Cluster) -> GoodputThroughputs:
    """Return the throughputs of the project's representative jobs (docs/method/goodput.md)."""
    return GoodputThroughputs(cluster, GoodputModel(configurations_of(cluster)))


def _check(what: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise InvalidDataError(f"{what} is {value}, must be finite and >= 0")
