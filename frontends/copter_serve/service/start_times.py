"""Estimates of when waiting jobs start, from the plan in force; nothing is solved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from math import inf
from typing import Any

from copter_serve.queues.reservations import Choice, Reservation, reserved, wait_words
from copter_serve.service.cluster_state import ClusterState
from copter_serve.service.job_record import JobRecord

MOST_ESTIMATED = 200  # most waiting jobs that get an estimate, the oldest
ASSUMED = (
    "running jobs keep their GPUs until their work is done, at the rates given; waiting jobs start as they came, each"
    " as early as no earlier one starts later (backfill); GPUs of a type are one pool; no job comes. A policy that"
    " moves running jobs starts some of them sooner and others later"
)

Held = Mapping[str, Mapping[str, int]]
"""Job -> GPU type -> GPUs that it has."""


def sizes_of(job: JobRecord, state: ClusterState) -> Iterator[tuple[str, int]]:
    """Return (GPU type, GPUs) of each size on which a job can run."""
    fixed = job.gpus or (job.requested_gpus if state.record.rated else job.min_gpus)
    most = job.max_gpus or inf
    for kind in state.node_gpus:
        if not job.throughputs:
            yield kind, fixed
        for gpus, rate in job.throughputs.get(kind, {}).items():
            if rate > 0 and job.min_gpus <= gpus <= most and job.gpus in (None, gpus):
                yield kind, gpus


def seconds_left(job: JobRecord, kind: str, gpus: int) -> float:
    """Return how long a job still runs on GPUs of a type; infinity if its work or its rate is not known."""
    rate = job.throughputs.get(kind, {}).get(gpus, 0.0)
    return inf if job.work is None or rate <= 0.0 else job.work * (1.0 - job.progress) / rate


def starts_of(state: ClusterState, held: Held) -> dict[str, Reservation | None]:
    """Return the reservations of the oldest waiting jobs; None for one of which it is not known that it ever starts."""
    free = {kind: float(count) for kind, count in state.capacity().items()}
    ends: list[tuple[str, float, float]] = []
    for job_id, given in held.items():
        job = state.jobs.get(job_id)  # one that a delta has just removed gives back what it had
        if job is None:
            continue
        for kind, gpus in given.items():
            free[kind] = free.get(kind, 0.0) - gpus
            ends.append((kind, gpus, seconds_left(job, kind, gpus)))
    waiting = (job for job in state.jobs.values() if job.id not in held)
    choices = (
        (job.id, [Choice(kind, gpus, seconds_left(job, kind, gpus)) for kind, gpus in sizes_of(job, state)])
        for job in islice(waiting, MOST_ESTIMATED)
    )
    return reserved(free, ends, choices)


def start_document(found: Reservation | None) -> dict[str, Any]:
    """Return an estimate as a JSON document."""
    if found is None:
        return {"starts_in_s": None}
    on = {"gpu_type": found.choice.kind, "gpus": int(found.choice.units)}
    return {"starts_in_s": round(found.start_s, 3), "starts_on": on, "backfills": found.backfills}


def waits_between(before: tuple[ClusterState, Held], after: tuple[ClusterState, Held]) -> dict[str, Any]:
    """Return the estimated waits of jobs that are there before and after a change, where they differ.

    Returns
    -------
    dict
        ``assumed``: what the estimate takes for granted; ``jobs``: {job: [seconds before, seconds after]}, None for a
        start that is not known, the largest differences first; ``sooner`` and ``later``: how many there are.
    """
    old, new = (_waits(*each) for each in (before, after))
    differing = {job: (old[job], new[job]) for job in old if job in new and old[job] != new[job]}
    ranked = sorted(differing, key=lambda job: (-abs(_number(old[job]) - _number(new[job])), job))[:MOST_ESTIMATED]
    return {
        "assumed": ASSUMED,
        "sooner": sum(_number(then) > _number(now) for then, now in differing.values()),
        "later": sum(_number(then) < _number(now) for then, now in differing.values()),
        "jobs": {job: list(differing[job]) for job in ranked},
    }


def wait_lines(waits: Mapping[str, Any], most: int = 8) -> list[str]:
    """Return differing waits as lines of text; none if there are none."""
    if not waits["jobs"]:
        return []
    told = [
        f"{job} ({wait_words(then)} -> {wait_words(now)})" for job, (then, now) in list(waits["jobs"].items())[:most]
    ]
    count = f"{waits['sooner']:,} would start sooner, {waits['later']:,} later"
    return [f"  estimated starts: {count}: {', '.join(told)}", f"  the estimate assumes that {waits['assumed']}"]


def _waits(state: ClusterState, held: Held) -> dict[str, float | None]:
    """Return the seconds until each job starts: 0 for those that run, None where it is not known."""
    starts = starts_of(state, held)
    waiting = {job: None if found is None else round(found.start_s, 3) for job, found in starts.items()}
    return dict.fromkeys(held, 0.0) | waiting


def _number(seconds: float | None) -> float:
    return 1e18 if seconds is None else seconds
