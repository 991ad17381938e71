"""Mapping of a logged job, by its GPU hours, to a representative application (Sia, SOSP '23, table 2)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from copter.runtime.errors import SettingsError
from copter_frontends.vocabulary import Job

BOUNDARIES_GPU_H = (1.0, 10.0, 100.0)  # GPU-hours at which classes 1, 2 and 3 begin
CLASSES: tuple[tuple[str, ...], ...] = (("cifar10",), ("deepspeech2", "bert"), ("yolov3",), ("imagenet",))
MOST_GPUS = 64  # larger requests are reduced to this many GPUs


def classes_of(gpu_hours: ArrayLike) -> NDArray[np.int64]:
    """Return each job's class, 0 to 3: under 1 GPU hour, under 10, under 100, and the rest."""
    return np.digitize(np.asarray(gpu_hours, dtype=np.float64), BOUNDARIES_GPU_H).astype(np.int64)


def draw_applications(classes: Iterable[int], rng: np.random.Generator) -> list[str]:
    """Return an application for each class; if a class has two, a random choice."""
    return [CLASSES[k][0] if len(CLASSES[k]) == 1 else str(rng.choice(CLASSES[k])) for k in classes]


def named_jobs(
    applications: Iterable[str],
    submit_s: Iterable[float],
    gpus: Iterable[int],
    work_samples: Iterable[float | None] | None = None,
) -> list[Job]:
    """Return jobs in the order of their times, with ids such as ``cifar10-17``; work None is the application's full
    run.
    """
    rows = list(zip(applications, submit_s, gpus, strict=True))
    works = [None] * len(rows) if work_samples is None else list(work_samples)
    return [
        Job(f"{app}-{i}", app, float(when), work, min(int(count), MOST_GPUS))
        for i, ((app, when, count), work) in enumerate(zip(rows, works, strict=True))
    ]


def check_day(jobs: int, hours: float) -> None:
    """Raise SettingsError unless there is at least one job and a finite, positive number of hours."""
    if jobs < 1:
        raise SettingsError(f"jobs is {jobs}, must be >= 1")
    if not (hours > 0 and math.isfinite(hours)):
        raise SettingsError(f"hours is {hours}, must be finite and > 0")


def check_work(work: str) -> None:
    """Raise SettingsError unless work is "full" or "trace"."""
    if work not in ("full", "trace"):
        raise SettingsError(f"work is {work!r}, must be 'full' or 'trace'")
