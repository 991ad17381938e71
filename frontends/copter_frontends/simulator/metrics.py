"""Results of a simulation: one row per job, and a summary."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter_frontends.simulator.job_table import JobTable
from copter_frontends.simulator.round_record import RoundRecord

STAGES = ("edit", "solve", "shim", "place")
"""Parts of a round's wall-clock time, in order."""


def job_columns(table: JobTable, rows: NDArray[np.int64]) -> dict[str, NDArray[np.generic]]:
    """Return the table of jobs by column.

    Columns: ``id``, ``application``, ``submit_s``, ``first_start_s``, ``completion_s``, ``jct_s`` (completion minus
    submission), ``gpu_seconds``, ``restarts`` (starts after the first), ``queue_s`` (seconds without GPUs),
    ``progress`` (0 to 1), ``gpus`` (held now) and ``last_held_s`` (when GPUs were last given up). Times of events that
    have not happened are NaN.
    """
    jobs = [table.jobs[i] for i in rows.tolist()]
    return {
        "id": np.array([job.id for job in jobs], dtype=np.str_),
        "application": np.array([job.application for job in jobs], dtype=np.str_),
        "submit_s": table.submit_s[rows],
        "first_start_s": table.first_start_s[rows],
        "completion_s": table.completion_s[rows],
        "jct_s": table.completion_s[rows] - table.submit_s[rows],
        "gpu_seconds": table.gpu_seconds[rows],
        "restarts": table.restarts[rows],
        "queue_s": table.queue_s[rows],
        "progress": table.progress[rows],
        "gpus": table.gpus[rows],
        "last_held_s": table.last_held_s[rows],
    }


def summarise(rounds: Sequence[RoundRecord], jobs: Mapping[str, NDArray[np.generic]]) -> dict[str, Any]:
    """Summarise a simulation.

    Statistics over rounds leave out the warm-up; those over jobs do not. Times of jobs are in hours, wall-clock times
    in seconds, memory in MB (10^6 bytes). A figure without a job or round is None.

    Returns
    -------
    dict
        ``rounds``, ``warmup_rounds``, ``variables``, ``rounds_with_lp`` and ``rounds_proven_without_lp`` (see
        :attr:`.RoundRecord.program`), ``jobs_completed``, ``avg_jct_h``, ``p99_jct_h``, ``makespan_h`` (first
        submission to last completion), ``utilisation`` (GPU-seconds held, as a share of those available),
        ``jobs_without_gpus``, ``contention`` and ``contention_max`` (mean and largest number of jobs in the cluster
        over the rounds that have any), ``gpu_hours_per_job`` (held, in whole rounds) and ``queue_h_per_job`` (hours
        without GPUs) of the jobs that completed, ``round_s``, ``edit_s``, ``solve_s``, ``shim_s``, ``place_s``,
        ``gap``, ``fractional_jobs``, ``restarts_per_job`` (over the jobs that started), ``peak_rss_mb`` and
        ``rss_growth_mb`` (peak at the end less peak after the first round).
    """
    measured = [record for record in rounds if not record.warmup]
    summary: dict[str, Any] = {
        "rounds": len(measured),
        "warmup_rounds": len(rounds) - len(measured),
        "variables": spread((r.variables for r in measured), ("p50", "max")),
    }
    summary.update(_job_figures(jobs))
    held = sum(sum(r.gpus_used.values()) for r in measured)
    capacity = sum(sum(r.gpus_capacity.values()) for r in measured)
    summary["utilisation"] = held / capacity if capacity else None
    busy = [r.active_jobs for r in measured if r.active_jobs]
    summary["contention"] = float(np.mean(busy)) if busy else None
    summary["contention_max"] = max(busy, default=None)
    summary["rounds_with_lp"] = sum(r.program == "solved" for r in measured)
    summary["rounds_proven_without_lp"] = sum(r.program == "needless" for r in measured)
    summary["jobs_without_gpus"] = spread((r.queued_jobs for r in measured), ("p50", "max"))
    summary["round_s"] = spread((r.round_s for r in measured), ("p50", "p95", "p99", "max"))
    summary["all_rounds_s"] = sum(r.round_s for r in measured)
    for stage in STAGES:
        summary[f"{stage}_s"] = spread((r.timings.get(stage, 0.0) for r in measured), ("p50", "p95", "p99", "max"))
    summary["gap"] = spread((r.gap for r in measured), ("p50", "max"))
    summary["fractional_jobs"] = spread((r.fractional_jobs for r in measured), ("p50", "max"))
    summary["peak_rss_mb"] = peak_rss_mb()
    summary["rss_growth_mb"] = measured[-1].peak_rss_mb - measured[0].peak_rss_mb if measured else None
    return summary


def spread(values: Iterable[float], which: Sequence[str] = ("p50", "p99", "max")) -> dict[str, float | None]:
    """Return the median, the 99th percentile and the largest of some values (or other percentiles, by name),
    interpolated linearly.

    None if there are no values.
    """
    array = np.fromiter(values, dtype=np.float64)
    result = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}
    return {name: float(np.percentile(array, result[name])) if array.size else None for name in which}


def peak_rss_mb() -> float:
    """Return the largest resident size of this process, in MB (10^6 bytes)."""
    unit = 1 if sys.platform == "darwin" else 1024  # getrusage counts bytes on macOS, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _job_figures(jobs: Mapping[str, NDArray[np.generic]]) -> dict[str, Any]:
    jct_s = jobs["jct_s"].astype(np.float64)
    done = np.isfinite(jct_s)
    started = np.isfinite(jobs["first_start_s"].astype(np.float64))
    last_s = jobs["completion_s"].astype(np.float64)[done]
    first_s = jobs["submit_s"].astype(np.float64)
    restarts = jobs["restarts"].astype(np.float64)[started]
    held_s, queued_s = (jobs[name].astype(np.float64) for name in ("gpu_seconds", "queue_s"))
    return {
        "jobs_completed": int(done.sum()),
        "avg_jct_h": float(jct_s[done].mean() / 3600) if done.any() else None,
        "p99_jct_h": float(np.percentile(jct_s[done], 99) / 3600) if done.any() else None,
        "makespan_h": float((last_s.max() - first_s.min()) / 3600) if done.any() else None,
        "gpu_hours_per_job": float(held_s[done].mean() / 3600) if done.any() else None,
        "queue_h_per_job": float(queued_s[done].mean() / 3600) if done.any() else None,
        "restarts_per_job": float(restarts.mean()) if restarts.size else None,
    }
