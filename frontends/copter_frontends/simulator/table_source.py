"""Plain throughput tables as a goodput model, so that the simulator can run jobs with known rates only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter_frontends.simulator.goodput_source import ApplicationFacts
from copter_frontends.vocabulary import Configuration, InvalidJobError


@dataclass(frozen=True, slots=True)
class TableApplication:
    """An application with known speed only; implements :class:`~.goodput_source.ApplicationFacts`.

    Parameters
    ----------
    name : str
    per_gpu : mapping of GPU type to float
        Iterations per second on one GPU of each type; a type that is missing or 0 cannot run it. The speed is
        proportional to the number of GPUs (Hadar's constraint (1a)).
    per_node : mapping of GPU type to int
        GPUs per node of each type.
    work_samples : float
        Iterations of a job without a number of its own.
    restart_s : float
        Seconds that a start or a change of GPUs takes.
    spread_cost : float
        Share of the speed lost on more nodes than the GPUs need.
    """

    name: str
    per_gpu: Mapping[str, float]
    per_node: Mapping[str, int]
    work_samples: float = 1.0
    restart_s: float = 10.0
    spread_cost: float = 0.0

    slowdown = 1.0

    def __post_init__(self) -> None:
        for gpu_type, rate in self.per_gpu.items():
            if not (isfinite(rate) and rate >= 0):
                raise InvalidJobError(
                    f"application {self.name!r}: its throughput on {gpu_type!r} is {rate}, must be finite and >= 0"
                )
        if not (self.work_samples > 0 and self.restart_s >= 0 and 0 <= self.spread_cost < 1):
            raise InvalidJobError(
                f"application {self.name!r}: work_samples is {self.work_samples}, restart_s {self.restart_s} and "
                f"spread_cost {self.spread_cost}; must be > 0, >= 0 and from 0 to below 1"
            )

    def rate(self, configuration: Configuration) -> float:
        """Return the iterations per second of a job."""
        gpus, kind = configuration.gpus, configuration.gpu_type
        whole = self.per_gpu.get(kind, 0.0) * gpus
        spread = configuration.nodes > -(-gpus // self.per_node.get(kind, gpus))
        return whole * (1.0 - self.spread_cost) if spread else whole


class RatedApplication(ApplicationFacts, Protocol):
    """Interface of an application with a known speed on every configuration."""

    def rate(self, configuration: Configuration) -> float:
        """Return a job's work per second; 0 if it cannot run."""


class TableSource:
    """A :class:`~.goodput_source.GoodputSource` with one phase and constant rates.

    Parameters
    ----------
    configurations : sequence of Configuration
    applications : mapping of name to RatedApplication
        :class:`TableApplication` or another implementation of :class:`RatedApplication`.
    """

    def __init__(self, configurations: Sequence[Configuration], applications: Mapping[str, RatedApplication]) -> None:
        self.configurations = tuple(configurations)
        self.applications = dict(applications)
        self._rows: dict[str, NDArray[np.float64]] = {}

    def row(self, application: str, progress: float, max_batch_size: int | None = None) -> NDArray[np.float64]:
        """Return work per second in each configuration; 0 if the application cannot run."""
        if application not in self._rows:
            facts = self.applications[application]
            self._rows[application] = np.array([facts.rate(each) for each in self.configurations])
        return self._rows[application]

    def phase(self, application: str, progress: float) -> int:
        """Return 0: there is one phase."""
        return 0

    def phase_end(self, application: str, phase: int) -> float:
        """Return 1: the phase ends with the job."""
        return 1.0
