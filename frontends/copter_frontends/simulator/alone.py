"""Completion time of a job that runs alone (docs/papers/baselines.md, B39)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter_frontends.simulator.goodput_source import GoodputSource, row_of, slowdown_of
from copter_frontends.vocabulary import Job

Floats = NDArray[np.float64]


class AloneTimes(Protocol):
    """Interface: times of jobs that run alone."""

    def seconds(self, job: Job, gpu_type: str, gpus: int) -> float:
        """Return seconds from start to end on at most `gpus` GPUs of a type; infinite if it cannot run."""


class GoodputAloneTimes:
    """Times from a goodput model: a job runs on the size with the shortest time throughout.

    A job that needs more GPUs than `gpus` has them for a fraction of the time: `gpus` over the number needed.

    Parameters
    ----------
    model : GoodputSource
        Model whose configurations are the possible sizes.
    """

    def __init__(self, model: GoodputSource) -> None:
        self._model = model
        self._sizes: dict[str, NDArray[np.int64]] = {}
        self._columns: dict[str, NDArray[np.intp]] = {}
        gpus = np.array([c.gpus for c in model.configurations], dtype=np.int64)
        for kind in dict.fromkeys(c.gpu_type for c in model.configurations):
            columns = np.array([j for j, c in enumerate(model.configurations) if c.gpu_type == kind])
            order = np.argsort(gpus[columns], kind="stable")
            self._columns[kind], self._sizes[kind] = columns[order], gpus[columns[order]]
        self._best: dict[tuple[Hashable, str], Floats] = {}

    def seconds(self, job: Job, gpu_type: str, gpus: int) -> float:
        """Return seconds from start to end on at most `gpus` GPUs of a type; infinite if the job cannot run."""
        sizes = self._sizes.get(gpu_type, np.zeros(0, dtype=np.int64))
        at, share_of_size = int(np.searchsorted(sizes, gpus, side="right")) - 1, 1.0
        if len(sizes) == 0:
            return math.inf
        fastest = self._fastest(job, gpu_type)
        if at < 0 or math.isinf(fastest[at]):  # the job needs more GPUs, so it has them for a part of the time
            runs = np.flatnonzero(np.isfinite(fastest))
            if len(runs) == 0:
                return math.inf
            at = int(runs[0])
            share_of_size = gpus / float(sizes[at])
        facts = self._model.applications[job.application]
        share = 1.0 if job.work_samples is None else job.work_samples / float(facts.work_samples)
        return float(facts.restart_s) + share * float(fastest[at]) / share_of_size

    def _fastest(self, job: Job, gpu_type: str) -> Floats:
        """Return the seconds of a full run on the best size up to each of the type's sizes, (sizes,)."""
        key = (job.shape, gpu_type)
        if key not in self._best:
            columns = self._columns[gpu_type]
            facts, total, begin, phase = self._model.applications[job.application], np.zeros(len(columns)), 0.0, 0
            while begin < 1.0:
                end = min(float(self._model.phase_end(job.application, phase)), 1.0)
                rates = row_of(self._model, job, 0.5 * (begin + end))[columns]
                total += (end - begin) * np.divide(1.0, rates, out=np.full(len(columns), np.inf), where=rates > 0)
                begin, phase = end, phase + 1
            work = float(facts.work_samples) * slowdown_of(self._model, job)
            self._best[key] = np.minimum.accumulate(work * total)
        return self._best[key]


def isolated_jct_s(alone: AloneTimes, job: Job, gpu_type: str, gpus: float) -> float:
    """Return the seconds of a job on an isolated part of the cluster: a number of GPUs that need not be whole (B39).

    Between whole numbers the time is interpolated linearly; below one GPU it is the time on one GPU divided by the
    part.
    """
    if gpus <= 0:
        return math.inf
    if gpus < 1:
        return alone.seconds(job, gpu_type, 1) / gpus
    low = math.floor(gpus)
    below, share = alone.seconds(job, gpu_type, low), gpus - low
    if share == 0:
        return below
    above = alone.seconds(job, gpu_type, low + 1)
    return below if math.isinf(above) else (1 - share) * below + share * above


def fastest_alone_s(alone: AloneTimes, job: Job, types: Mapping[str, int]) -> float:
    """Return the seconds on the job's requested GPUs of its fastest type (`types` has the GPUs of each type)."""
    return min(
        (alone.seconds(job, kind, min(job.requested_gpus, most)) for kind, most in types.items()), default=math.inf
    )
