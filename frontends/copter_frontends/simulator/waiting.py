"""Waiting of all jobs submitted, also of those that have not completed or never ran (B44, B45)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter_frontends.simulator.alone import AloneTimes, fastest_alone_s
from copter_frontends.simulator.result import SimulationResult
from copter_frontends.vocabulary import Job

Floats = NDArray[np.float64]


def end_s(result: SimulationResult) -> float:
    """Return the simulated seconds at which the last round ended."""
    return result.rounds[-1].now_s + result.round_s if result.rounds else 0.0


def waits_so_far(result: SimulationResult) -> Floats:
    """Return the seconds since each job was submitted or last had GPUs, (jobs,); NaN if it does not wait (B44).

    The jobs that wait at the end have arrived, have not completed and have no GPUs.
    """
    now_s, (submit_s, jct_s, gpus, last_s) = end_s(result), _columns(result, "submit_s", "jct_s", "gpus", "last_held_s")
    waits = np.isnan(jct_s) & (submit_s < now_s) & (gpus == 0)
    return np.where(waits, now_s - np.fmax(submit_s, last_s), np.nan)


def waiting_summary(result: SimulationResult, jobs: Iterable[Job], alone: AloneTimes) -> dict[str, Any]:
    """Return the figures of waiting over all jobs that were submitted before the end.

    Jobs that were given up because the policy gave them no GPUs are among them; jobs that it refused are counted apart.

    Returns
    -------
    dict
        ``jobs``; ``refused``; ``never_run``, those without GPUs in any round; ``still_waiting``; ``longest_wait_h``, of
        a job still waiting; ``latency_ratio`` (``max`` and ``mean``), in which an unfinished job counts with its time
        without GPUs so far (B45).
    """
    known, now_s = {job.id: job for job in jobs}, end_s(result)
    submit_s, first_s, queue_s = _columns(result, "submit_s", "first_start_s", "queue_s")
    there, waits = submit_s < now_s, waits_so_far(result)
    given_up = {each.id: each.waited_s for each in result.skipped if each.waited_s is not None}
    unserved = sum(not each.ran for each in result.skipped if each.waited_s is not None)
    longest = [float(each) for each in waits[~np.isnan(waits)]] + list(given_up.values())
    queued = dict(zip(map(str, result.jobs["id"][there].tolist()), queue_s[there].tolist(), strict=True)) | given_up
    capacity = dict(result.rounds[0].gpus_capacity) if result.rounds else {}
    ages = {name: fastest_alone_s(alone, known[name], capacity) for name in queued if name in known}
    ratios = [queued[name] / age_s for name, age_s in ages.items() if math.isfinite(age_s)]
    return {
        "jobs": int(there.sum()) + len(given_up),
        "refused": len(result.skipped) - len(given_up),
        "never_run": int((there & np.isnan(first_s)).sum()) + unserved,
        "still_waiting": len(longest),
        "longest_wait_h": max(longest, default=0.0) / 3600.0,
        "latency_ratio": {"max": max(ratios, default=None), "mean": float(np.mean(ratios)) if ratios else None},
    }


def _columns(result: SimulationResult, *names: str) -> list[Floats]:
    return [result.jobs[name].astype(np.float64) for name in names]
