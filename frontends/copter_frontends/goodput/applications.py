"""The representative jobs: six training applications, each with its models on seven GPU types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput.bootstrap import bootstrapped
from copter_frontends.goodput.errors import UnknownApplicationError
from copter_frontends.goodput.fitted_constants import (
    FITTED,
    GPT,
    GPT_MICROBATCHES,
    GPT_STAGES,
    MAX_LOCAL_BATCH_SIZE,
    TRAINING,
    V100_RATIO,
)
from copter_frontends.goodput.noise_scales import NOISE_SCALE
from copter_frontends.goodput.throughput import ThroughputParameters


@dataclass(frozen=True, slots=True)
class GpuProfile:
    """An application on one GPU type: its throughput model and its range of local batch sizes."""

    parameters: ThroughputParameters
    min_local_batch_size: int
    max_local_batch_size: int

    def __post_init__(self) -> None:
        if not 1 <= self.min_local_batch_size <= self.max_local_batch_size:
            limits = f"{self.min_local_batch_size} to {self.max_local_batch_size}"
            raise InvalidDataError(f"local batch sizes {limits}: the range must start at 1 or more and not be empty")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The partition of an application into pipeline stages.

    Parameters
    ----------
    stages : mapping of GPU type to int
        GPUs of one replica, P: the number of pipeline stages on GPUs of this type.
    microbatches : int
        Micro-batches of one sample that a replica trains in a step.
    """

    stages: Mapping[str, int]
    microbatches: int

    def __post_init__(self) -> None:
        if self.microbatches < 1 or any(count < 1 for count in self.stages.values()):
            raise InvalidDataError(f"a pipeline needs 1 or more stages and microbatches, not {self}")


def noise_scale_at(noise_scale: Sequence[float], progress: float) -> float:
    """Return the noise scale, in samples, at a fraction of training; interpolated geometrically (G6).

    Raises
    ------
    InvalidDataError
        If `progress` is not from 0 to 1.
    """
    if not 0 <= progress <= 1:
        raise InvalidDataError(f"progress is {progress}, must be a fraction from 0 to 1")
    grid = np.linspace(0.0, 1.0, len(noise_scale))
    return float(np.exp(np.interp(progress, grid, np.log(noise_scale))))


@dataclass(frozen=True)
class Application:
    """A representative training job.

    Parameters
    ----------
    name : str
    init_batch_size, max_batch_size : int
        Batch size M0 at which efficiency is 1, and the largest total batch, in samples.
    work_samples : float
        Work of a full training run, in samples at perfect efficiency: scale-invariant iterations at M0, times M0.
    noise_scale : tuple of float
        Gradient noise scale in samples at M0, at evenly spaced fractions of training from 0 to 1.
    restart_s : float
        Seconds that a start or restart takes (checkpoint-restore) before training goes on.
    policy_restart_s : float
        The restart time that Sia's policy assumes; the public artifact uses two different numbers.
    slowdown : float
        Measured training time divided by modelled time. Rows of goodput do not include it.
    gpus : mapping of GPU type to GpuProfile
        Profiles by type; other types cannot run the application.
    noise_by_batch : mapping of int to tuple of float
        Noise scale at every measured total batch. Empty: the one at M0 holds for all batches.
    pipeline : Pipeline, optional
        Partition into stages, if one GPU cannot hold the application.

    Raises
    ------
    InvalidDataError
        If a batch size, the work or a noise scale is impossible.
    """

    name: str
    init_batch_size: int
    max_batch_size: int
    work_samples: float
    noise_scale: tuple[float, ...]
    restart_s: float
    policy_restart_s: float
    slowdown: float
    gpus: Mapping[str, GpuProfile]
    noise_by_batch: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    pipeline: Pipeline | None = None

    def __post_init__(self) -> None:
        self._require(1 <= self.init_batch_size <= self.max_batch_size, "needs 1 <= init_batch_size <= max_batch_size")
        self._require(0 < self.work_samples < float("inf"), "work_samples must be finite and > 0")
        self._require(len(self.noise_scale) >= 2, "noise_scale needs at least two points")
        self._require(all(0 < x < float("inf") for x in self.noise_scale), "noise_scale must be finite and > 0")
        self._require(self.restart_s >= 0 and self.policy_restart_s >= 0, "restart times must be >= 0")
        self._require(self.slowdown > 0, "slowdown must be > 0")

    def _require(self, condition: bool, complaint: str) -> None:
        if not condition:
            raise InvalidDataError(f"application {self.name!r}: {complaint}")

    def noise_scale_at(self, progress: float) -> float:
        """Return the noise scale in samples at a fraction of training, 0 to 1."""
        return noise_scale_at(self.noise_scale, progress)

    def noise_scales_at(self, progress: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return total batches, ascending, and the noise scale at each, both in samples, at a fraction of training
        (G6).
        """
        table = self.noise_by_batch or {self.init_batch_size: self.noise_scale}
        batches = sorted(table)
        scales = [noise_scale_at(table[batch], progress) for batch in batches]
        return np.array(batches, dtype=np.float64), np.array(scales)


def application_of(name: str, applications: Mapping[str, Application] | None = None) -> Application:
    """Return the application of this name; raises UnknownApplicationError, which lists the known ones."""
    known = ALL_APPLICATIONS if applications is None else applications
    try:
        return known[name]
    except KeyError:
        names = ", ".join(sorted(known)) or "none"
        raise UnknownApplicationError(f"unknown application {name!r}; the known ones are: {names}") from None


def _profiles(name: str, min_local_batch_size: int) -> Mapping[str, GpuProfile]:
    """Return the profiles of one application: five GPU types are fitted, P100 and K80 are derived from the V100."""
    models = {kind: ThroughputParameters(*row) for (app, kind), row in FITTED.items() if app == name}
    models["quad"] = models["quad"].with_multi_node_floor()
    for kind, ratio in zip(("p100", "k80"), V100_RATIO[name], strict=True):
        models[kind] = bootstrapped(models["v100"], ratio)
    most = MAX_LOCAL_BATCH_SIZE[name]
    return MappingProxyType({k: GpuProfile(m, min_local_batch_size, most[k]) for k, m in models.items()})


def _table() -> Mapping[str, Application]:
    """Build all applications from the table of constants."""
    table = {}
    for name, (first, most, iterations, min_local, restart_s, policy_restart_s, slowdown) in TRAINING.items():
        table[name] = Application(
            name=name,
            init_batch_size=first,
            max_batch_size=most,
            work_samples=float(iterations * first),
            noise_scale=NOISE_SCALE[name][first],
            noise_by_batch=MappingProxyType(NOISE_SCALE[name]),
            restart_s=restart_s,
            policy_restart_s=policy_restart_s,
            slowdown=slowdown,
            gpus=_profiles(name, min_local),
        )
    return MappingProxyType(table)


APPLICATIONS: Mapping[str, Application] = _table()


def _gpt() -> Application:
    """Return the 2.8 billion parameter model of thesis 3.5.3; its statistics are those of BERT, as in the thesis."""
    like = APPLICATIONS["bert"]
    return Application(
        name="gpt",
        init_batch_size=like.init_batch_size,
        max_batch_size=like.max_batch_size,
        work_samples=like.work_samples,
        noise_scale=like.noise_scale,
        restart_s=30.0,
        policy_restart_s=30.0,
        slowdown=1.0,
        gpus=MappingProxyType({kind: GpuProfile(ThroughputParameters(*row), 1, 1) for kind, row in GPT.items()}),
        noise_by_batch=like.noise_by_batch,
        pipeline=Pipeline(GPT_STAGES, GPT_MICROBATCHES),
    )


HYBRID_APPLICATIONS: Mapping[str, Application] = MappingProxyType({"gpt": _gpt()})
"""Applications with both pipeline and data parallelism."""

ALL_APPLICATIONS: Mapping[str, Application] = MappingProxyType({**APPLICATIONS, **HYBRID_APPLICATIONS})
"""Every application, by name."""
