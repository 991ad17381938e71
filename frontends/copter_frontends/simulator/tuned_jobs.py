"""Jobs tuned for rigid schedulers: GPUs and a batch at 50 to 80% of ideal speedup (docs/papers/baselines.md, B38)."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from copter.runtime.errors import InvalidDataError, SettingsError
from copter_frontends.goodput.profiled import ProfiledApplication, fitted_profiles, profile_of
from copter_frontends.simulator.agent_training import AgentTraining
from copter_frontends.simulator.job_table import JobTable
from copter_frontends.vocabulary import Allocation, Cluster, InvalidClusterError, InvalidJobError, Job
from copter_frontends.vocabulary.semantics import SIA_ARTIFACT

GPU_COUNTS = (2, 4, 6, 8, 12, 16, 24, 32, 48)
"""Numbers of GPUs that are tried, as in Pollux's public workloads."""

BAND = (0.5, 0.8)
"""Range of a combination's speedup, as a share of ideal speedup."""

LONGEST_S = 12 * 3600.0
"""Combinations with a longer training time (seconds) are left out, as in Pollux's workloads."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """A combination of GPUs and batch.

    Attributes
    ----------
    gpus : int
    batch_size : int
        Total batch in samples: the measured batch with the shortest training time on this number of GPUs.
    training_s : float
        Seconds of training, without the start and the application's slowdown.
    efficiency : float
        Speedup over one GPU with its best batch, divided by `gpus`.
    """

    gpus: int
    batch_size: int
    training_s: float
    efficiency: float


class JobTuner:
    """Finds a job's combinations of GPUs and batch in the band, and draws one (B38).

    Parameters
    ----------
    cluster : Cluster
        Gives the GPUs per node and in total; read once.
    gpu_type : str, optional
        GPU type for which jobs are tuned; by default the cluster's only type.
    most_gpus : int
        Most GPUs of a job; 64 for the thesis's homogeneous cluster, 16 for its others.
    seed : int
        With the same seed, a job's combination depends on its id only, not on the other jobs.
    profiles : mapping of application to ProfiledApplication, optional
        Training speeds of applications; by default from fitted constants.
    gpu_counts : sequence of int
        Numbers of GPUs above 1 that are tried.
    band : (float, float)
    longest_s : float
        See :data:`LONGEST_S`.

    Raises
    ------
    InvalidClusterError, UnknownGpuTypeError
        If the cluster lacks the type, or has several types and none is given.
    SettingsError
        If another parameter is out of range.
    """

    def __init__(
        self,
        cluster: Cluster,
        gpu_type: str | None = None,
        most_gpus: int = 64,
        seed: int = 0,
        profiles: Mapping[str, ProfiledApplication] | None = None,
        gpu_counts: Sequence[int] = GPU_COUNTS,
        band: tuple[float, float] = BAND,
        longest_s: float = LONGEST_S,
    ) -> None:
        self.gpu_type = _only_type(cluster) if gpu_type is None else gpu_type
        there = cluster.capacity(self.gpu_type)
        if there == 0:
            raise InvalidClusterError(f"jobs cannot be tuned on {self.gpu_type!r}: the cluster has no node of it")
        _require(most_gpus >= 1, f"most_gpus is {most_gpus}, must be 1 or more")
        _require(seed >= 0, f"seed is {seed}, must be 0 or more")
        _require(0 <= band[0] < band[1], f"band is {band}, must be two shares of ideal speedup, the lower one first")
        _require(longest_s > 0, f"longest_s is {longest_s}, must be > 0 seconds")
        _require(all(n > 1 for n in gpu_counts), f"gpu_counts is {tuple(gpu_counts)}, each must be 2 or more")
        self.gpu_counts = tuple(n for n in sorted(gpu_counts) if n <= min(most_gpus, there))
        self.seed, self.band, self.longest_s = seed, band, longest_s
        self._per_node = cluster.type_of(self.gpu_type).gpus_per_node
        self._profiles = fitted_profiles() if profiles is None else profiles
        self._known: dict[tuple[str, float | None], tuple[Tuning, ...]] = {}

    def choices(self, job: Job) -> tuple[Tuning, ...]:
        """Return a job's possible combinations; if none is in the band, one GPU with its best batch.

        Raises
        ------
        InvalidJobError
            If the job's speed on the type is unknown, or its number of GPUs is fixed.
        """
        if job.gpus is not None:
            raise InvalidJobError(
                f"job {job.id!r}: its GPUs are fixed to {job.gpus}; a job that is tuned has none fixed"
            )
        key = (job.application, job.work_samples)
        if key not in self._known:
            self._known[key] = self._search(job)
        fits = [t for t in self._known[key][1:] if job.min_gpus <= t.gpus <= (job.max_gpus or t.gpus)]
        return tuple(fits) or self._known[key][:1]

    def tune_all(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the tuned jobs."""
        return [self.tune(job) for job in jobs]

    def tune(self, job: Job) -> Job:
        """Return the job with `requested_gpus` and `batch_size` of a drawn combination."""
        choices = self.choices(job)
        drawn = choices[int(np.random.default_rng([self.seed, zlib.crc32(job.id.encode())]).integers(len(choices)))]
        return replace(job, requested_gpus=drawn.gpus, batch_size=drawn.batch_size, max_batch_size=None)

    def _search(self, job: Job) -> tuple[Tuning, ...]:
        """Return one GPU, then the combinations in the band, by GPUs."""
        one = self._best(job, 1)
        if one is None:
            raise InvalidJobError(
                f"job {job.id!r}: {job.application} runs with no measured batch on one {self.gpu_type}"
            )
        low, high = self.band
        result = [Tuning(1, one[1], one[0], 1.0)]
        for gpus in self.gpu_counts:
            best = self._best(job, gpus)
            if best is not None and best[0] < self.longest_s and low < one[0] / best[0] / gpus < high:
                result.append(Tuning(gpus, best[1], best[0], one[0] / best[0] / gpus))
        return tuple(result)

    def _best(self, job: Job, gpus: int) -> tuple[float, int] | None:
        """Return the least training time on `gpus` GPUs over the measured batches, and its batch; None if none runs."""
        application = self._application(job)
        times = []
        for batch in application.batches.astype(int).tolist():
            if math.ceil(batch / gpus) >= application.steps[self.gpu_type].min_local:
                seconds = self._alone_s(job, gpus, batch)
                if seconds is not None:
                    times.append((seconds / application.application.slowdown, batch))
        return min(times, default=None)

    def _alone_s(self, job: Job, gpus: int, batch: int) -> float | None:
        """Return the simulated seconds of the job alone; None if it is not profiled."""
        alone = replace(job, submit_s=0.0, batch_size=batch, max_batch_size=None)
        table = JobTable([alone], [job.application], [job.work_samples or 0.0])
        training = AgentTraining(table, self._profiles, SIA_ARTIFACT)
        each = [min(self._per_node, gpus - first) for first in range(0, gpus, self._per_node)]
        training.arrive(0)
        try:
            nodes = tuple((str(i), n) for i, n in enumerate(each))
            training.begin_all(np.array([0]), [Allocation(self.gpu_type, gpus, nodes)])
            training.advance(np.array([0]), 0.0, math.inf)
        except InvalidDataError:
            return None
        return max(float(table.completion_s[0]), 1.0)

    def _application(self, job: Job) -> ProfiledApplication:
        result = profile_of(self._profiles, job)
        if result.application.pipeline is not None:
            raise InvalidJobError(f"job {job.id!r}: {job.application} is hybrid-parallel and has no batch to tune")
        if self.gpu_type not in result.steps:
            known = ", ".join(result.steps)
            raise InvalidJobError(
                f"job {job.id!r}: {job.application} was not measured on {self.gpu_type!r}; tune it on one of {known}"
            )
        return result


def tuned_jobs(
    jobs: Iterable[Job],
    cluster: Cluster,
    gpu_type: str | None = None,
    most_gpus: int = 64,
    seed: int = 0,
    profiles: Mapping[str, ProfiledApplication] | None = None,
) -> list[Job]:
    """Return the TunedJobs of thesis 3.4.3: each job with GPUs and a batch at 50 to 80% of ideal speedup (B38).

    Parameters and errors are those of :class:`JobTuner` and :meth:`JobTuner.choices`.
    """
    return JobTuner(cluster, gpu_type, most_gpus, seed, profiles).tune_all(jobs)


def _only_type(cluster: Cluster) -> str:
    if len(cluster.types) != 1:
        known = ", ".join(cluster.types)
        raise InvalidClusterError(f"the cluster has GPUs of {known}: say on which of them jobs are tuned (gpu_type)")
    return next(iter(cluster.types))


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise SettingsError(complaint)
