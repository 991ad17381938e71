"""A goodput model whose numbers can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter_frontends.vocabulary import Configuration


@dataclass(frozen=True)
class FakeApplication:
    work_samples: float = 6000.0
    restart_s: float = 0.0
    slowdown: float = 1.0
    # (fraction of the work at which the phase ends, factor on the rate)
    phases: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    types: tuple[str, ...] = ("t4", "a100")


SPEED = {"t4": 1.0, "a100": 2.0}  # efficient samples per second and GPU
SPREAD = 0.5  # factor on the rate of an allocation on more than one node


class FakeGoodput:
    """Rate = speed of the type x GPUs x factor of the phase (x SPREAD over nodes)."""

    def __init__(self, configurations: Sequence[Configuration], applications: Mapping[str, FakeApplication]) -> None:
        self.configurations = list(configurations)
        self.applications = applications

    def row(self, application: str, progress: float, max_batch_size: int | None = None) -> NDArray[np.float64]:
        facts = self.applications[application]
        factor = facts.phases[self.phase(application, progress)][1]
        rates = [
            SPEED[c.gpu_type] * c.gpus * factor * (SPREAD if c.nodes > 1 else 1.0) if c.gpu_type in facts.types else 0.0
            for c in self.configurations
        ]
        return np.array(rates)

    def phase(self, application: str, progress: float) -> int:
        ends = [end for end, _ in self.applications[application].phases]
        return next((i for i, end in enumerate(ends) if progress < end), len(ends) - 1)

    def phase_end(self, application: str, phase: int) -> float:
        return self.applications[application].phases[phase][0]
