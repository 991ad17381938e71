"""Measured steps per second of a trace's models, from CSV; they convert Gavel's steps to durations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from copter_frontends.simulator.traces.fields import BadFieldError, Columns
from copter_frontends.simulator.traces.readers import numbered_rows
from copter_frontends.simulator.traces.trace import SkippedLine, Trace
from copter_frontends.vocabulary import TraceError

COLUMNS = ("job_type", "scale_factor", "gpu_type", "steps_per_s")
REFERENCE_TYPE = "v100"  # GPU type to which a job's duration refers

Throughputs = Mapping[str, Mapping[int, float]]
"""Steps per second by model and number of GPUs."""


def find_throughputs(*next_to: str | Path) -> Path | None:
    """Return ``profiles/gavel/isolated_throughputs_flat.csv`` in the data directory or above a given file; None if
    absent.

    The data directory is the environment's ``COPTER_DATA``, by default ``../shared/data``.
    """
    roots = [Path(os.environ.get("COPTER_DATA", "../shared/data"))]
    roots += [folder for path in next_to for folder in Path(path).resolve().parents]
    places = (root / "profiles" / "gavel" / "isolated_throughputs_flat.csv" for root in roots)
    return next((place for place in places if place.is_file()), None)


def read_throughputs(path: str | Path, gpu_type: str = REFERENCE_TYPE) -> Throughputs:
    """Read the steps per second on one GPU type.

    Parameters
    ----------
    path : path
        A CSV file with the columns ``job_type,scale_factor,gpu_type,steps_per_s`` in any order, others ignored.
    gpu_type : str

    Raises
    ------
    TraceError
        If the file cannot be read, a line is broken (the message names it), or no line is about the type.
    """
    rows = numbered_rows(str(path))
    header = next(rows, (0, []))[1]
    if not {column.strip() for column in header}.issuperset(COLUMNS):
        raise TraceError(f"{path}: no file of throughputs: its header lacks one of {','.join(COLUMNS)}")
    columns, result = Columns(header), dict[str, dict[int, float]]()
    for line_number, row in rows:
        try:
            columns.check(row)
            if columns.text(row, "gpu_type") == gpu_type:
                gpus, rate = columns.count(row, "scale_factor"), columns.number(row, "steps_per_s")
                result.setdefault(columns.text(row, "job_type"), {})[gpus] = rate
        except BadFieldError as error:
            raise TraceError(f"{path}: line {line_number}: {error}") from None
    if not result:
        raise TraceError(f"{path}: says nothing of GPU type {gpu_type!r}")
    return result


def with_durations(trace: Trace, throughputs: Throughputs) -> Trace:
    """Return the trace with durations computed from its jobs' steps.

    For an unmeasured number of GPUs, the next smaller measured number counts, because steps with one batch per GPU take
    at least as long on more GPUs. Jobs of unmeasured models are skipped, with the reason.
    """
    jobs, skipped = [], list(trace.skipped)
    for job in trace.jobs:
        if job.duration_s is not None or job.steps is None:
            jobs.append(job)
            continue
        rates = throughputs.get(job.model or "", {})
        measured = [gpus for gpus, rate in rates.items() if gpus <= job.gpus and rate > 0]
        if measured:
            jobs.append(replace(job, duration_s=job.steps / rates[max(measured)]))
        else:
            reason = f"no throughput of {job.model!r} on {job.gpus} GPUs or fewer"
            skipped.append(SkippedLine(job.line_number, reason))
    return replace(trace, jobs=tuple(jobs), skipped=skipped)
