"""Speeds of one job by GPU type and number of GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite

from copter_frontends.policy_kit.throughputs import requested_gpus
from copter_frontends.vocabulary import InvalidJobError, Job

Rates = Mapping[str, Mapping[int, float]]
"""GPU type -> GPUs -> units of work per second, above zero."""

Option = tuple[str, int]
"""(GPU type, GPUs)."""


def checked_rates(job_id: str, rates: Rates) -> dict[str, dict[int, float]]:
    """Return a copy without zeros; raises InvalidJobError for a count below 1 or a rate that is negative or not
    finite.
    """
    found: dict[str, dict[int, float]] = {}
    for kind, by_count in rates.items():
        for gpus, rate in by_count.items():
            if gpus < 1 or not (isfinite(rate) and rate >= 0):
                raise InvalidJobError(
                    f"job {job_id!r}: its throughput on {gpus} {kind!r} GPUs is {rate}; give counts >= 1 and finite "
                    "throughputs >= 0, where 0 means that it cannot run"
                )
        kept = {int(gpus): float(rate) for gpus, rate in by_count.items() if rate > 0}
        if kept:
            found[kind] = kept
    return found


def default_rates(job: Job, types: Iterable[str]) -> dict[str, dict[int, float]]:
    """Return default rates of a job without measurements: its requested GPUs, equally fast on every type."""
    gpus = requested_gpus(job)
    return {kind: {gpus: 1.0} for kind in types}


def options_of(job: Job, rates: Rates) -> dict[Option, float]:
    """Return (type, GPUs) -> rate for the allocations a job may get, ascending in GPUs within a type."""
    most = float("inf") if job.max_gpus is None else job.max_gpus
    return {
        (kind, gpus): rate
        for kind, by_count in rates.items()
        for gpus, rate in sorted(by_count.items())
        if job.min_gpus <= gpus <= most and (job.gpus is None or gpus == job.gpus)
    }
