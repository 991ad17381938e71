"""Goodput of every application in every configuration, phase by phase."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput.applications import ALL_APPLICATIONS, Application, application_of
from copter_frontends.goodput.batch_kernel import best_batches
from copter_frontends.goodput.pipeline import pipeline_goodput
from copter_frontends.vocabulary import Configuration, Job, UnknownGpuTypeError, configurations_for

PHASES = 40  # parts of training in which the noise scale is constant
ROWS_KEPT = 4096  # most rows in the cache; the least recently used one is dropped first


class Batch(NamedTuple):
    """A batch size: total = GPUs * local * (accumulation_steps + 1), in samples."""

    total: int
    local: int
    accumulation_steps: int


@dataclass(frozen=True, slots=True)
class _Row:
    """The best goodput of each configuration and the batch that achieves it."""

    goodput: NDArray[np.float64]
    local: NDArray[np.int64]
    accumulation: NDArray[np.int64]


class GoodputModel:
    """Goodput, in efficient samples per second, of applications in the configurations of a cluster.

    Training is divided into :data:`PHASES` phases of equal progress. In each phase the noise scale has its value of the
    phase's middle. So goodput is constant within a phase, a simulator can integrate it exactly, and jobs of one
    application share rows.

    Parameters
    ----------
    configurations : sequence of Configuration
        Configurations, in the order of the rows' entries.
    applications : mapping of name to Application

    Raises
    ------
    UnknownGpuTypeError
        If no application has a model of a configuration's type.
    """

    def __init__(
        self, configurations: Sequence[Configuration], applications: Mapping[str, Application] = ALL_APPLICATIONS
    ) -> None:
        self.configurations = tuple(configurations)
        self.applications = applications
        self._kinds = list(dict.fromkeys(c.gpu_type for c in self.configurations))
        modelled = {kind for application in applications.values() for kind in application.gpus}
        for kind in self._kinds:
            if kind not in modelled:
                known = ", ".join(sorted(modelled)) or "none"
                raise UnknownGpuTypeError(f"no application has a model of GPU type {kind!r}; modelled types: {known}")
        index = {kind: i for i, kind in enumerate(self._kinds)}
        self._nodes = np.array([c.nodes for c in self.configurations], dtype=np.int64)
        self._gpus = np.array([c.gpus for c in self.configurations], dtype=np.int64)
        self._kind = np.array([index[c.gpu_type] for c in self.configurations], dtype=np.int64)
        self._position = {c: i for i, c in enumerate(self.configurations)}
        self._ends = [(i + 1) / PHASES for i in range(PHASES)]
        self._rows: OrderedDict[tuple[str, int, int, int, int], _Row] = OrderedDict()
        self._tables: dict[str, tuple[NDArray[np.float64], NDArray[np.int64]]] = {}
        self._noise: dict[tuple[str, int], tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
        plain = [each for each in applications.values() if each.pipeline is None]
        loaded = getattr(best_batches, "signatures", True)
        if plain and not loaded:  # the first call loads the kernel: here, not in the first round
            self._evaluate(plain[0], 0, plain[0].init_batch_size, 0, 0)

    def over(self, configurations: Sequence[Configuration]) -> GoodputModel:
        """Return the same model over other configurations; subclasses with more state override this."""
        other = type(self)(configurations, self.applications)
        other._noise = self._noise  # the same at all sizes
        return other

    @property
    def phases(self) -> int:
        """Number of phases of every application."""
        return PHASES

    def phase(self, application: str, progress: float) -> int:
        """Return the number, from 0, of the phase at this fraction of training; a boundary belongs to the later phase.

        Raises
        ------
        UnknownApplicationError
            If there is no such application.
        InvalidDataError
            If `progress` is not from 0 to 1.
        """
        if application not in self.applications:
            application_of(application, self.applications)
        if not 0 <= progress <= 1:
            raise InvalidDataError(f"{application}: progress is {progress}, must be a fraction from 0 to 1")
        return bisect_right(self._ends, progress, 0, PHASES - 1)

    def phase_end(self, application: str, phase: int) -> float:
        """Return the fraction of training at which a phase ends; 1.0 for the last.

        Raises
        ------
        UnknownApplicationError, InvalidDataError
            If there is no such application or phase.
        """
        application_of(application, self.applications)
        if not 0 <= phase < PHASES:
            raise InvalidDataError(f"{application}: phase is {phase}, must be from 0 to {PHASES - 1}")
        return self._ends[phase]

    def job_row(self, job: Job, progress: float) -> NDArray[np.float64]:
        """Return a job's row with its own limits: its largest or fixed batch, its fixed GPUs (see :meth:`row`)."""
        return self._row(job.application, progress, job.max_batch_size, job.batch_size, job.gpus).goodput

    def row(self, application: str, progress: float, max_batch_size: int | None = None) -> NDArray[np.float64]:
        """Return a job's best goodput in each configuration, over all batch sizes (G8).

        Parameters
        ----------
        application : str
        progress : float
            Fraction of training done, 0 to 1.
        max_batch_size : int, optional
            The job's own limit on the total batch; the application's limit holds as well.

        Returns
        -------
        ndarray (configurations,) of float64
            Efficient samples per second, before the application's slowdown; 0.0 if the job cannot run. The array is
            read-only and shared by calls with the same phase and limit.

        Raises
        ------
        UnknownApplicationError, InvalidDataError
            If there is no such application, or `progress` or `max_batch_size` is out of range.
        """
        return self._row(application, progress, max_batch_size).goodput

    def batch(
        self, application: str, progress: float, configuration: Configuration, max_batch_size: int | None = None
    ) -> Batch | None:
        """Return the batch that achieves a configuration's goodput; None if the job cannot run.

        Raises
        ------
        InvalidDataError
            If the configuration is not one of the model's, or as :meth:`row`.
        """
        position = self._position.get(configuration)
        if position is None:
            raise InvalidDataError(
                f"{configuration} is not one of this model's {len(self.configurations)} configurations"
            )
        row = self._row(application, progress, max_batch_size)
        local, steps = int(row.local[position]), int(row.accumulation[position])
        return Batch(configuration.gpus * local * (steps + 1), local, steps) if local else None

    def training_time_s(self, application: str, configuration: Configuration) -> float:
        """Return the seconds of a full run on one configuration, with slowdown and without restarts (G10).

        Infinite if the job cannot run.
        """
        result = application_of(application, self.applications)
        middles = [(phase + 0.5) / PHASES for phase in range(PHASES)]
        position = self._position.get(configuration)
        if position is None:
            raise InvalidDataError(
                f"{configuration} is not one of this model's {len(self.configurations)} configurations"
            )
        rates = np.array([self.row(application, middle)[position] for middle in middles])
        return float("inf") if (rates == 0).any() else result.work_samples * result.slowdown * float((1 / rates).mean())

    def _row(
        self,
        application: str,
        progress: float,
        max_batch_size: int | None,
        batch_size: int | None = None,
        gpus: int | None = None,
    ) -> _Row:
        result = application_of(application, self.applications)
        if max_batch_size is not None and max_batch_size < 1:
            raise InvalidDataError(f"{application}: max_batch_size is {max_batch_size}, must be >= 1")
        cap = result.max_batch_size if max_batch_size is None else min(max_batch_size, result.max_batch_size)
        key = (application, self.phase(application, progress), cap, batch_size or 0, gpus or 0)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._evaluate(result, *key[1:])
            if len(self._rows) > ROWS_KEPT:
                self._rows.popitem(last=False)
        else:
            self._rows.move_to_end(key)
        return row

    def _evaluate(self, application: Application, phase: int, cap: int, batch_size: int, gpus: int) -> _Row:
        count = len(self.configurations)
        row = _Row(np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.int64))
        batches, noise = self._noise_scales(application, phase)
        if application.pipeline is not None:
            row.goodput[:] = pipeline_goodput(application, self.configurations, cap, batches, noise)
        elif not batch_size or application.init_batch_size <= batch_size <= cap:
            parameters, limits = self._table(application)
            used = self._gpus if not gpus else np.full(count, gpus)
            outputs = (row.goodput, row.local, row.accumulation)
            best_batches(
                parameters,
                limits,
                self._nodes,
                used,
                self._kind,
                application.init_batch_size,
                cap,
                False,
                batch_size,
                batches,
                noise,
                *outputs,
            )
        if gpus:
            row.goodput[~self.holds(gpus)] = 0.0
        for array in (row.goodput, row.local, row.accumulation):
            array.flags.writeable = False
        return row

    def _noise_scales(self, application: Application, phase: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the noise scales in the middle of a phase, which all jobs of an application share."""
        found = self._noise.get((application.name, phase))
        if found is None:
            found = self._noise[application.name, phase] = application.noise_scales_at((phase + 0.5) / PHASES)
        return found

    def holds(self, gpus: int) -> NDArray[np.bool_]:
        """Return the configurations for a job with a fixed number of GPUs: of each type, the smallest one with
        enough GPUs.
        """
        result = np.zeros(len(self.configurations), dtype=bool)
        result[configurations_for(self.configurations, gpus)] = True
        return result

    def _table(self, application: Application) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return constants and local batch limits of the model's GPU types; zeros for types without a model of the
        application.
        """
        if application.name not in self._tables:
            parameters, limits = np.ones((len(self._kinds), 7)), np.zeros((len(self._kinds), 2), np.int64)
            for i, kind in enumerate(self._kinds):
                profile = application.gpus.get(kind)
                if profile is not None:
                    parameters[i] = profile.parameters.as_array()
                    limits[i] = profile.min_local_batch_size, profile.max_local_batch_size
            self._tables[application.name] = parameters, limits
        return self._tables[application.name]
