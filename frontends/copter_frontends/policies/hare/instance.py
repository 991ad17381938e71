"""Jobs and GPUs as arrays, the input of the relaxation, the list scheduler and the baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.round_kernel import least_rounds
from copter_frontends.vocabulary import DuplicateJobError, InvalidClusterError, InvalidJobError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class HareInstance:
    """N jobs on GPUs of G types.

    Attributes
    ----------
    jobs : tuple of HareJob
        Jobs as they were added; the arrays contain their progress.
    gpu_types : tuple of str
    gpus : ndarray (G,)
        M_g, the GPUs of each type. GPUs are numbered by type, those of type g from ``first_gpu[g]`` on.
    train_s, sync_s : ndarray (N, G)
        Seconds per task; infinite and zero if a type cannot run the job or has no GPU.
    rounds, tasks : ndarray (N,) of int
    weight, arrival_s : ndarray (N,)
    """

    jobs: tuple[HareJob, ...]
    gpu_types: tuple[str, ...]
    gpus: Ints
    train_s: Floats
    sync_s: Floats
    rounds: Ints
    tasks: Ints
    weight: Floats
    arrival_s: Floats

    @classmethod
    def of(cls, jobs: Sequence[HareJob], gpus: Mapping[str, int], horizon_s: float | None = None) -> HareInstance:
        """Make the instance of some jobs.

        Parameters
        ----------
        jobs : sequence of HareJob
        gpus : mapping of GPU type to int
        horizon_s : float, optional
            End of the plan's horizon in seconds; every job must arrive before it.

        Raises
        ------
        InvalidClusterError
            If there are no GPUs, or a negative number.
        DuplicateJobError
        InvalidJobError
            If no GPU can run a job, or it arrives after the horizon.
        """
        for kind, count in gpus.items():
            if count < 0:
                raise InvalidClusterError(f"GPU type {kind!r}: the number of GPUs is {count}, must be >= 0")
        if sum(gpus.values()) == 0:
            raise InvalidClusterError("there are no GPUs: give at least one type some")
        seen: set[str] = set()
        for job in jobs:
            if job.id in seen:
                raise DuplicateJobError(f"job {job.id!r} is there twice; ids must differ")
            seen.add(job.id)
            check_job(job, gpus, horizon_s)
        train = np.array(
            [[job.train_s.get(k, np.inf) if m else np.inf for k, m in gpus.items()] for job in jobs], dtype=np.float64
        ).reshape(len(jobs), len(gpus))
        sync = np.array([[job.sync_s.get(kind, 0.0) for kind in gpus] for job in jobs], dtype=np.float64)
        return cls(
            jobs=tuple(jobs),
            gpu_types=tuple(gpus),
            gpus=np.array(list(gpus.values()), dtype=np.int64),
            train_s=train,
            sync_s=np.where(np.isfinite(train), sync.reshape(train.shape), 0.0),
            rounds=np.array([job.rounds for job in jobs], dtype=np.int64),
            tasks=np.array([job.tasks for job in jobs], dtype=np.int64),
            weight=np.array([job.weight for job in jobs], dtype=np.float64),
            arrival_s=np.array([job.arrival_s for job in jobs], dtype=np.float64),
        )

    @property
    def n_jobs(self) -> int:
        """Number of jobs, N."""
        return len(self.jobs)

    @property
    def first_gpu(self) -> Ints:
        """Number of the first GPU of each type, (G,)."""
        return np.concatenate(([0], np.cumsum(self.gpus)[:-1])).astype(np.int64)

    @property
    def work(self) -> Ints:
        """Number of tasks of each job, W_n = R_n K_n, (N,)."""
        return self.rounds * self.tasks

    def least_round_s(self) -> Floats:
        """Least seconds of a round of each job, ell_n of HR2, (N,)."""
        return least_round_s(self.train_s, self.sync_s, self.tasks, self.gpus)

    def objective(self, completion_s: Floats) -> float:
        """Sum of w_n C_n."""
        return float(self.weight @ completion_s)


def check_job(job: HareJob, gpus: Mapping[str, int], horizon_s: float | None = None) -> None:
    """Raise InvalidJobError for a job that no GPU can run, or that arrives after the horizon."""
    if not any(gpus.get(kind, 0) > 0 for kind in job.train_s):
        here = ", ".join(kind for kind, count in gpus.items() if count) or "none"
        raise InvalidJobError(
            f"job {job.id!r}: no GPU can run it: it has times for {', '.join(sorted(job.train_s))}, "
            f"the cluster has {here}; profile it on one of these"
        )
    if horizon_s is not None and job.arrival_s >= horizon_s:
        raise InvalidJobError(
            f"job {job.id!r}: it arrives at {job.arrival_s:g} s, after the horizon of {horizon_s:g} s; "
            "leave it out or plan further ahead"
        )


def least_round_s(train_s: Floats, sync_s: Floats, tasks: Ints, gpus: Ints) -> Floats:
    """Return the least seconds of a round (HR2), min T with sum_g M_g floor((T - s_g) / p_g) >= K, by bisection.

    The result is rounded down. It is at least min_g (p_g + s_g), and equal to it if there are K GPUs of the fastest
    type. `gpus` is (G,), or has a row for each job.
    """
    least: Floats = np.empty(len(tasks))
    least_rounds(train_s, sync_s, np.asarray(tasks, dtype=np.int64), np.atleast_2d(gpus).astype(np.int64), least)
    return least
