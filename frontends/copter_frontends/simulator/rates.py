"""Rates of each application on each allocation, by phase, computed once and cached."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter_frontends.simulator.errors import SimulationError
from copter_frontends.simulator.goodput_source import GoodputSource, row_of, same_model_for, slowdown_of
from copter_frontends.vocabulary import Allocation, Configuration, Job, Shape

_MOST_ROWS = 4096  # most cached rows of goodput; a row has one float64 per configuration


class RateTable:
    """Rates by (curve, phase), where a *curve* is a job's shape (see :attr:`.Job.shape`) on a configuration.

    Rates are computed at their first use, so only those of the jobs' actual allocations are computed.

    Attributes
    ----------
    phase_ends : float64 array (applications, phases)
        Fraction of the work done at which each phase ends; 1 from the last phase on.
    phases : int64 array (applications,)
        Number of phases of each application.
    """

    def __init__(self, model: GoodputSource, applications: list[str]) -> None:
        self._model = model
        self._column = {configuration: j for j, configuration in enumerate(model.configurations)}
        ends = [_phase_ends(model, name) for name in applications]
        self.phases: NDArray[np.int64] = np.array([len(e) for e in ends], dtype=np.int64)
        width = max((len(e) for e in ends), default=1)
        self.phase_ends: NDArray[np.float64] = np.ones((len(ends), width))
        for i, values in enumerate(ends):
            self.phase_ends[i, : len(values)] = values
        self._number = {name: i for i, name in enumerate(applications)}
        self._curves: dict[tuple[Shape, int, int, str], int] = {}  # by shape, nodes, GPUs, and GPU type
        self._keys: list[tuple[Job, Configuration]] = []
        self._rates: NDArray[np.float64] = np.full((64, width), np.nan)
        self._rows: dict[tuple[Shape, int], NDArray[np.float64]] = {}
        self._odd: dict[Configuration, GoodputSource] = {}

    @property
    def known(self) -> NDArray[np.float64]:
        """Rates by curve and phase, (curves, phases); NaN where :meth:`rates` has not been asked yet."""
        return self._rates

    def curve(self, job: Job, allocation: Allocation) -> int:
        """Return the number of the curve of jobs of this shape on an allocation."""
        key = job.shape, len(allocation.nodes), allocation.gpus, allocation.gpu_type
        result = self._curves.get(key)
        if result is None:
            result = self._curves[key] = len(self._keys)
            self._keys.append((job, Configuration(len(allocation.nodes), allocation.gpus, allocation.gpu_type)))
            if result == len(self._rates):
                self._rates = np.vstack([self._rates, np.full_like(self._rates, np.nan)])
        return result

    def rates(self, curves: NDArray[np.int64], phases: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return efficient samples per second, with the slowdown included, for pairs (curve, phase)."""
        result = self._rates[curves, phases]
        for i in np.flatnonzero(np.isnan(result)).tolist():
            result[i] = self._fill(int(curves[i]), int(phases[i]))
        return result

    def _fill(self, curve: int, phase: int) -> float:
        if not np.isnan(self._rates[curve, phase]):
            return float(self._rates[curve, phase])
        job, configuration = self._keys[curve]
        name = job.application
        goodput = self._goodput(job, configuration, phase)
        if not 0.0 < goodput < np.inf:
            raise SimulationError(
                f"application {name!r} cannot run on {configuration.gpus} {configuration.gpu_type} GPUs over "
                f"{configuration.nodes} nodes (goodput {goodput:g}), but the plan puts it there"
            )
        rate = goodput / slowdown_of(self._model, job)
        self._rates[curve, phase] = rate
        return rate

    def _goodput(self, job: Job, wanted: Configuration, phase: int) -> float:
        application = self._number[job.application]
        end = float(self.phase_ends[application, phase])
        start = float(self.phase_ends[application, phase - 1]) if phase else 0.0
        middle = 0.5 * (start + end)
        column = self._column.get(wanted)
        if column is None:
            if wanted not in self._odd:
                self._odd[wanted] = same_model_for(self._model, [wanted])
            return float(row_of(self._odd[wanted], job, middle)[0])
        key = (job.shape, phase)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= _MOST_ROWS:
                self._rows.clear()
            row = self._rows[key] = row_of(self._model, job, middle)
        return float(row[column])


def _phase_ends(model: GoodputSource, application: str) -> list[float]:
    ends: list[float] = []
    while not ends or ends[-1] < 1.0:
        end = float(model.phase_end(application, len(ends)))
        if ends and end <= ends[-1]:
            raise SimulationError(f"application {application!r}: phase {len(ends)} ends at {end}, before it begins")
        ends.append(min(end, 1.0))
    return ends
