"""Limits of the numbers in a delta, within which every policy can plan."""

from __future__ import annotations

from copter_serve.service.fields import at
from copter_serve.service.job_record import JobRecord, Table
from copter_serve.service.problems import invalid

LEAST_RATE, MOST_RATE = 1e-9, 1e12
"""Limits of a job's rate, in units of work per second; zero means that the job cannot run."""

LEAST_WORK, MOST_WORK = 1e-6, 1e18
"""Limits of a job's work, in units."""

LEAST_WEIGHT, MOST_WEIGHT = 1e-9, 1e9
"""Limits of a job's weight."""

MOST_S = 1e11
"""Most seconds between a cluster's creation and a job's submission: 3,000 years."""


def check_numbers(where: str, job: JobRecord) -> None:
    """Raise Problem 422 for a job with a number outside the limits."""
    if job.work is not None:
        _within(f"{where}/work", job.work, LEAST_WORK, MOST_WORK)
    check_weight(f"{where}/weight", job.weight)
    if job.submit_s is not None:
        _within(f"{where}/submit_s", job.submit_s, 0.0, MOST_S)
    check_rates(f"{where}/throughputs", job.throughputs)


def check_weight(where: str, weight: float) -> None:
    """Raise Problem 422 for a weight outside the limits."""
    _within(where, weight, LEAST_WEIGHT, MOST_WEIGHT)


def check_rates(where: str, table: Table) -> None:
    """Raise Problem 422 for a rate outside the limits; zero means that the job cannot run."""
    for kind, rates in table.items():
        for gpus, rate in rates.items():
            if rate and not LEAST_RATE <= rate <= MOST_RATE:  # the position is made for errors only, for speed
                _within(at(at(where, kind), gpus), rate, LEAST_RATE, MOST_RATE)


def _within(where: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise invalid(where, f"is {value:g}, must be from {least:g} to {most:g}", "take another unit of work")
