"""The true training speed of jobs in a simulation: measured steps if available, otherwise fitted constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter_frontends.goodput.applications import ALL_APPLICATIONS, Application, GpuProfile
from copter_frontends.goodput.fitted_constants import EPOCHS
from copter_frontends.goodput.refitting import Observation
from copter_frontends.goodput.throughput import compute_time_s, step_time_s
from copter_frontends.vocabulary import InvalidJobError, Job

PROFILED_SHARES = 6  # number of local batches, in geometric progression, in a profile of fitted steps


class ProfiledSteps(Protocol):
    """Interface: step times of one application on one GPU type."""

    min_local: int
    max_local: int

    @property
    def one_gpu_rate(self) -> float:
        """Return samples per second on one GPU at the largest local batch: xput(1) of equation (3.1)."""

    def observations(self, nodes: int, gpus: int) -> list[Observation]:
        """Return the points that a profiler measures up to these numbers of nodes and GPUs."""

    def most_local(self, placement: Sequence[int]) -> int:
        """Return the largest local batch of a placement (GPUs on each node)."""

    def most_local_of(self, gpus: int) -> int | None:
        """Return the largest local batch on this number of GPUs; None if unknown."""

    def step(self, placement: Sequence[int], local: int) -> tuple[float, float]:
        """Return the seconds of a whole step, and of its exposed synchronisation."""


@dataclass(frozen=True)
class ProfiledApplication:
    """The true training behaviour of one application.

    Attributes
    ----------
    application : Application
        Constants: batch limits, restart times, slowdown.
    epoch_ends : array (epochs,)
        Progress, in scale-invariant iterations, at the end of each epoch.
    batches : array (b,)
        Total batch sizes whose gradients are known, ascending.
    gradients : array (b, epochs, 2)
        Squared norm and variance of the gradient.
    steps : mapping of GPU type to ProfiledSteps
    """

    application: Application
    epoch_ends: NDArray[np.float64]
    batches: NDArray[np.float64]
    gradients: NDArray[np.float64]
    steps: Mapping[str, ProfiledSteps]

    @property
    def init_batch_size(self) -> int:
        """Initial total batch M0, in samples."""
        return self.application.init_batch_size

    @property
    def max_batch_size(self) -> int:
        """Largest total batch, in samples."""
        return self.application.max_batch_size

    @property
    def epochs(self) -> int:
        """Number of epochs of a full run."""
        return len(self.epoch_ends)

    def gradient(self, batch: int, epoch: int) -> tuple[float, float]:
        """Return the gradient's (squared norm, variance) at a total batch in an epoch, interpolated linearly (G13)."""
        known = self.gradients[:, epoch]
        return float(np.interp(batch, self.batches, known[:, 0])), float(np.interp(batch, self.batches, known[:, 1]))


class FittedSteps:
    """Step times from the fitted constants (a :class:`ProfiledSteps`)."""

    def __init__(self, profile: GpuProfile) -> None:
        self._parameters = profile.parameters
        self.min_local, self.max_local = profile.min_local_batch_size, profile.max_local_batch_size

    @property
    def one_gpu_rate(self) -> float:
        """Return samples per second on one GPU at the largest local batch."""
        return self.max_local / self.step((1,), self.max_local)[0]

    def observations(self, nodes: int, gpus: int) -> list[Observation]:
        """Return points on one node and on several, at local batches in geometric progression."""
        shares = np.unique(np.geomspace(self.min_local, self.max_local, PROFILED_SHARES).astype(int))
        places = [(1, 2**k) for k in range(gpus.bit_length()) if 2**k <= gpus]
        places += [(n, 4 * n) for n in range(2, nodes + 1) if 4 * n <= gpus]
        return [(n, k, int(m), *self.step((k // n,) * n, int(m))) for n, k in places for m in shares]

    def most_local(self, placement: Sequence[int]) -> int:
        """Return the largest local batch of the GPU type, which is the same for every placement."""
        return self.max_local

    def most_local_of(self, gpus: int) -> int | None:
        """Return the largest local batch of the GPU type, which is the same for every number of GPUs."""
        return self.max_local

    def step(self, placement: Sequence[int], local: int) -> tuple[float, float]:
        """Return (step time, synchronisation time that does not overlap with computation), by equations G1 to G3."""
        step = float(step_time_s(self._parameters, len(placement), sum(placement), local))
        return step, step - float(compute_time_s(self._parameters, local))


def fitted_profiles(applications: Mapping[str, Application] = ALL_APPLICATIONS) -> dict[str, ProfiledApplication]:
    """Return profiles from fitted constants: epochs of equal length, each with the noise scale at its middle."""
    result = {}
    for name, application in applications.items():
        epochs = EPOCHS.get(name, 40)
        ends = np.arange(1, epochs + 1) / epochs * application.work_samples / application.init_batch_size
        middles = [application.noise_scales_at((epoch + 0.5) / epochs) for epoch in range(epochs)]
        variance = np.array([scales for _, scales in middles]).T / application.init_batch_size
        gradients = np.stack([np.ones_like(variance), variance], axis=2)
        steps = {kind: FittedSteps(profile) for kind, profile in application.gpus.items()}
        result[name] = ProfiledApplication(application, ends, middles[0][0], gradients, steps)
    return result


def profile_of(profiles: Mapping[str, ProfiledApplication], job: Job) -> ProfiledApplication:
    """Return the profile of a job's application; raises InvalidJobError if there is none."""
    result = profiles.get(job.application)
    if result is None:
        known = ", ".join(sorted(profiles))
        raise InvalidJobError(f"job {job.id!r}: no profile of {job.application!r}; there are {known}")
    return result
