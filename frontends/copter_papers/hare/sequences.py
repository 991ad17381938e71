"""Writing task sequences to a file for an executor, and reading the executor's report (docs/papers/hare.md)."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path

import numpy as np

from copter.runtime.errors import InvalidDataError
from copter.storage.inputs import opened
from copter_frontends.policies.hare.instance import Ints
from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.schedule import HareSchedule

COLUMNS = ("job", "first_round", "rounds", "task", "gpu_type", "gpu", "start_s", "duration_s")


def write_sequences(schedule: HareSchedule, path: str | Path) -> None:
    """Write a CSV file with a line per task, sorted by GPU and start.

    A line's task stands for a task in each of `rounds` rounds from `first_round` on. GPUs are numbered within their
    type. `duration_s` is the time for which the task holds its GPU.
    """
    instance, chunks = schedule.instance, schedule.chunks
    task = _place_in_chunk(schedule)
    kind = np.repeat(np.arange(len(instance.gpus)), instance.gpus)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for at in np.lexsort((schedule.start_s, schedule.gpu)).tolist():
            b, gpu = int(schedule.chunk[at]), int(schedule.gpu[at])
            g = int(kind[gpu])
            name = instance.jobs[int(schedule.task_job[at])].id
            first, rounds = int(chunks.first_round[b]), int(chunks.rounds[b])
            start_s, end_s = float(schedule.start_s[at]), float(schedule.end_s[at])
            number = gpu - int(instance.first_gpu[g])
            rows.writerow(
                [
                    name,
                    first,
                    rounds,
                    int(task[at]),
                    instance.gpu_types[g],
                    number,
                    repr(start_s),
                    repr(end_s - start_s),
                ]
            )


def read_outcome(schedule: HareSchedule, path: str | Path) -> list[HareJob]:
    """Read an executor's report on a schedule's tasks; returns the jobs with observed task times.

    The report may cover only some tasks. Types without observations of a job keep their times.

    Raises
    ------
    InvalidDataError
        If a column is missing, a task is unknown or listed twice, its type cannot run the job, or a duration is not
        finite and positive. The error names the line.
    """
    instance, chunks = schedule.instance, schedule.chunks
    place = _place_in_chunk(schedule)
    names = [instance.jobs[n].id for n in schedule.task_job.tolist()]
    known = {
        (name, int(chunks.first_round[b]), int(k)): b
        for name, b, k in zip(names, schedule.chunk.tolist(), place.tolist(), strict=True)
    }
    seen: dict[tuple[str, int, int], int] = {}
    spent: dict[tuple[str, str], tuple[float, int]] = {}
    jobs = {job.id: job for job in instance.jobs}
    for line, row in _rows(path):
        where = f"{path}: line {line}"
        try:
            task = row["job"], int(row["first_round"]), int(row["task"])
            seconds = float(row["duration_s"])
        except (TypeError, ValueError) as error:
            raise InvalidDataError(f"{where}: {error}; the columns are {', '.join(COLUMNS)}") from None
        if task not in known:
            raise InvalidDataError(f"{where}: the schedule has no task {task[2]} of round {task[1]} of job {task[0]!r}")
        if task in seen:
            told = f"task {task[2]} of round {task[1]} of job {task[0]!r} is reported twice, first in line {seen[task]}"
            raise InvalidDataError(f"{where}: {told}; report a task once, when it has ended")
        if not (math.isfinite(seconds) and seconds > 0):
            raise InvalidDataError(f"{where}: duration_s is {seconds}, must be finite and > 0")
        job, kind = jobs[task[0]], row["gpu_type"]
        if kind not in job.train_s:
            raise InvalidDataError(f"{where}: job {job.id!r} does not run on {kind!r}: {', '.join(job.train_s)}")
        seen[task] = line
        rounds = int(chunks.rounds[known[task]])
        training_s = (seconds - (rounds - 1) * job.sync_s.get(kind, 0.0)) / rounds
        total, count = spent.get((job.id, kind), (0.0, 0))
        spent[job.id, kind] = total + max(training_s, 0.0), count + 1
    return [
        replace(job, train_s={kind: _mean(spent.get((job.id, kind)), planned) for kind, planned in job.train_s.items()})
        for job in instance.jobs
    ]


def _mean(spent: tuple[float, int] | None, planned: float) -> float:
    """Return the mean observed seconds of a task, or the planned seconds if there are no observations."""
    return planned if spent is None or not spent[0] > 0 else spent[0] / spent[1]


def _place_in_chunk(schedule: HareSchedule) -> Ints:
    """Return the number of each task within its chunk."""
    order = np.argsort(schedule.chunk, kind="stable")
    count = np.bincount(schedule.chunk)
    first = np.cumsum(count) - count
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - first[schedule.chunk[order]]
    return place


def _rows(path: str | Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Return the file's lines by number, starting from 1."""
    try:
        with TextIOWrapper(opened(path), encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise InvalidDataError(f"{path}: there is no column {missing[0]!r}; there must be {', '.join(COLUMNS)}")
            for row in reader:
                yield reader.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidDataError(f"{path}: cannot be read: {error}") from error
