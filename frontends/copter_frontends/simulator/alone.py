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
    """Times of jobs that run alone."""

    def seconds(self, job: Job, gpu_type: str, gpus: int) -> float:
        """Return seconds from start to end on at most `gpus` GPUs of a type; infinite if it cannot run."""


class GoodputAloneTimes:
    """Times from a goodput model: a job takes the size that ends it first and keeps it.

    A job that runs only on more GPUs than these has them for a fraction of the time: these over those.

    Parameters
    ----------
    model : GoodputSource
        Its configurations are the sizes that there are.
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
        """See :meth:`AloneTimes.seconds`."""
        sizes = self._sizes.get(gpu_type, np.zeros(0, dtype=np.int64))
        at, share_of_size = int(np.searchsorted(sizes, gpus, side="right")) - 1, 1.0
        if len(sizes) == 0:
            return math.inf
        fastest = self._fastest(job, gpu_type)
        if at < 0 or math.isinf(fastest[at]):  # it runs only on more than these: it has them for a part of the time
            runs = np.flatnonzero(np.isfinite(fastest))
            if len(runs) == 0:
                return math.inf
            at = int(runs[0])
            share_of_size = gpus / float(sizes[at])
        facts = self._model.applications[job.application]
        share = 1.0 if job.work_samples is None else job.work_samples / float(facts.work_samples)
        return float(facts.restart_s) + share * float(fastest[at]) / share_of_size

    def _fastest(self, job: Job, gpu_type: str) -> Floats:
        """Seconds of a full run on the best size up to each of the type's, (sizes,)."""
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
    """Seconds on an isolated part of so many GPUs of a type, which need not be whole (B39).

    Between whole sizes it is linear; below one GPU it is the time on one, divided by the part.
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
    """Seconds on the GPUs that the job asks for, of the type that is fastest (`types` gives the GPUs of each)."""
    return min(
        (alone.seconds(job, kind, min(job.requested_gpus, most)) for kind, most in types.items()), default=math.inf
    )
