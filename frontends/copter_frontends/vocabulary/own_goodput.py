"""Goodput that a job supplies itself: a table or a callable (thesis 3.3.4, "any goodput estimator")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

from copter_frontends.vocabulary.configuration import Configuration
from copter_frontends.vocabulary.errors import InvalidJobError

OwnGoodput = Callable[[Configuration, float], float]
"""Function (configuration, fraction of training done) -> work per second; 0 if the job cannot run."""


@dataclass(frozen=True, eq=False)
class GoodputTable:
    """Constant work per second by (GPU type, GPUs); 0 for missing entries.

    Raises
    ------
    InvalidJobError
        If a rate is not finite and >= 0, or a key is not (GPU type, GPUs >= 1).
    """

    rates: Mapping[tuple[str, int], float]

    def __post_init__(self) -> None:
        for key, rate in self.rates.items():
            named = isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], str) and isinstance(key[1], int)
            if not named or key[1] < 1:
                raise InvalidJobError(f"a table of goodput has the key {key!r}, must be (GPU type, GPUs >= 1)")
            if not (isfinite(rate) and rate >= 0):
                raise InvalidJobError(f"a table of goodput has {rate!r} for {key!r}, must be finite and >= 0")

    def __call__(self, configuration: Configuration, progress: float) -> float:
        """Return the work per second."""
        return float(self.rates.get((configuration.gpu_type, configuration.gpus), 0.0))


@dataclass(frozen=True, eq=False)
class BatchInference:
    """Inference over many samples, with throughput as goodput (thesis 3.3.4).

    Parameters
    ----------
    samples_per_s : mapping of GPU type to float
        Samples per second on one GPU; the speed is proportional to the number of GPUs.
    """

    samples_per_s: Mapping[str, float]

    def __post_init__(self) -> None:
        for kind, rate in self.samples_per_s.items():
            if not (isfinite(rate) and rate >= 0):
                raise InvalidJobError(f"batch inference on {kind!r}: {rate!r} samples per second, must be >= 0, finite")

    def __call__(self, configuration: Configuration, progress: float) -> float:
        """Return samples per second."""
        return configuration.gpus * float(self.samples_per_s.get(configuration.gpu_type, 0.0))


@dataclass(frozen=True, eq=False)
class LatencyInference:
    """Inference with a latency target: goodput is 1 if a configuration meets it, otherwise 0 (thesis 3.3.4).

    The job's work is then its serving time in seconds.

    Parameters
    ----------
    latency_s : mapping of (GPU type, GPUs) to float
        Measured latencies; missing configurations cannot serve.
    limit_s : float
        Promised latency.
    """

    latency_s: Mapping[tuple[str, int], float]
    limit_s: float

    def __post_init__(self) -> None:
        if not self.limit_s > 0:
            raise InvalidJobError(f"inference: the promised latency is {self.limit_s!r} s, must be > 0")

    def __call__(self, configuration: Configuration, progress: float) -> float:
        """Return 1 if the latency is within the limit, otherwise 0."""
        found = self.latency_s.get((configuration.gpu_type, configuration.gpus))
        return float(found is not None and found <= self.limit_s)
