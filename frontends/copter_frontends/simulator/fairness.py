"""Fairness of a simulation: finish-time fairness, latency ratios, fragmentation (B39-B43)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter_frontends.simulator.alone import AloneTimes, fastest_alone_s, isolated_jct_s
from copter_frontends.simulator.result import SimulationResult
from copter_frontends.simulator.round_record import RoundRecord
from copter_frontends.vocabulary import Allocation, Cluster, Job

Floats = NDArray[np.float64]

CDF_AT = (10, 25, 50, 75, 90, 95, 99, 100)  # percentiles in summaries


@dataclass(frozen=True)
class Ratios:
    """One number per completed job.

    Attributes
    ----------
    jobs : tuple of job ids
    values : ndarray (jobs,)
    """

    jobs: tuple[str, ...]
    values: Floats

    @property
    def worst(self) -> float | None:
        """The largest value; None without jobs."""
        return float(self.values.max()) if len(self.values) else None

    @property
    def unfair_fraction(self) -> float | None:
        """Share of the jobs with a value above 1; None without jobs."""
        return float((self.values > 1.0).mean()) if len(self.values) else None

    def cdf(self) -> tuple[Floats, Floats]:
        """Return the ascending values and the share of jobs up to each."""
        ascending = np.sort(self.values)
        return ascending, np.arange(1, len(ascending) + 1) / max(len(ascending), 1)

    def summary(self) -> dict[str, Any]:
        """Return ``worst``, ``unfair_fraction``, ``mean`` and ``cdf`` (percentiles by name) of the jobs' fairness."""
        some = len(self.values) > 0
        return {
            "worst": self.worst,
            "unfair_fraction": self.unfair_fraction,
            "mean": float(self.values.mean()) if some else None,
            "cdf": {f"p{q}": float(np.percentile(self.values, q)) if some else None for q in CDF_AT},
        }


def finish_time_fairness(result: SimulationResult, jobs: Iterable[Job], alone: AloneTimes) -> dict[str, Ratios]:
    """Return rho of every completed job, in both definitions for several GPU types.

    Returns
    -------
    dict
        ``"thesis"``: the mean, over GPU types, of JCT divided by isolated JCT (equation 3.6, B40). ``"artifact"``: JCT
        divided by the mean isolated JCT, as in Sia's public tool (B41); it is never larger than the other.
    """
    capacity = dict(result.rounds[0].gpus_capacity) if result.rounds else {}
    known = {job.id: job for job in jobs}
    ids, thesis, artifact = [], [], []
    contention = mean_contention(result)
    for job_id, jct_s, others in zip(
        result.jobs["id"].tolist(), result.jobs["jct_s"].tolist(), contention, strict=True
    ):
        if not math.isfinite(jct_s) or job_id not in known:
            continue
        isolated = {
            kind: isolated_jct_s(alone, known[job_id], kind, gpus / others) for kind, gpus in capacity.items() if gpus
        }
        runs = {kind: seconds for kind, seconds in isolated.items() if math.isfinite(seconds)}
        if not runs:
            continue
        total = sum(capacity[kind] for kind in runs)
        ids.append(str(job_id))
        thesis.append(sum(capacity[kind] / total * jct_s / seconds for kind, seconds in runs.items()))
        artifact.append(jct_s / sum(capacity[kind] / total * seconds for kind, seconds in runs.items()))
    return {"thesis": Ratios(tuple(ids), np.array(thesis)), "artifact": Ratios(tuple(ids), np.array(artifact))}


def mean_contention(result: SimulationResult) -> Floats:
    """Return the mean number of jobs in the cluster over the rounds of each job, (jobs,), at least 1 (B39)."""
    starts = np.array([record.now_s for record in result.rounds])
    active = np.concatenate([[0.0], np.cumsum([record.active_jobs for record in result.rounds])])
    submit_s, end_s = (result.jobs[name].astype(np.float64) for name in ("submit_s", "completion_s"))
    first = np.searchsorted(starts, submit_s, side="left")
    last = np.searchsorted(starts, np.where(np.isnan(end_s), np.inf, end_s), side="left")
    first = np.minimum(first, max(len(starts) - 1, 0))
    last = np.maximum(last, first + 1)
    last = np.minimum(last, len(starts))
    mean = (active[last] - active[first]) / np.maximum(last - first, 1)
    return np.asarray(np.maximum(mean, 1.0))


def latency_ratios(result: SimulationResult, jobs: Iterable[Job], alone: AloneTimes) -> Ratios:
    """Divide each completed job's waiting time by its expected running time (B42; Hops, equation 6).

    The waiting time is the time without GPUs. The expected running time is that of the job alone, with its requested
    GPUs, on its fastest type. Jobs that are not in `jobs` or cannot run on any type are left out.
    """
    capacity = dict(result.rounds[0].gpus_capacity) if result.rounds else {}
    known = {job.id: job for job in jobs}
    ids, values = [], []
    rows = zip(*(result.jobs[name].tolist() for name in ("id", "jct_s", "queue_s")), strict=True)
    for job_id, jct_s, queue_s in rows:
        age_s = fastest_alone_s(alone, known[job_id], capacity) if job_id in known else math.inf
        if math.isfinite(jct_s) and math.isfinite(age_s):
            ids.append(str(job_id))
            values.append(queue_s / age_s)
    return Ratios(tuple(ids), np.array(values))


def recent_latency_ratio(result: SimulationResult, ratios: Ratios, now_s: float, hours: float) -> float | None:
    """Return the mean latency ratio of jobs ended in the `hours` before `now_s` (Hops, equation 7); None without
    jobs.
    """
    ended = dict(zip(result.jobs["id"].tolist(), result.jobs["completion_s"].tolist(), strict=True))
    recent = [
        value
        for job_id, value in zip(ratios.jobs, ratios.values.tolist(), strict=True)
        if now_s - 3600.0 * hours < ended[job_id] <= now_s
    ]
    return float(np.mean(recent)) if recent else None


def latency_ratios_by_hour(result: SimulationResult, ratios: Ratios) -> dict[int, float]:
    """Return Hops' equation 7 by hour: {hours elapsed: mean latency ratio of jobs ended in that hour}."""
    ended = dict(zip(result.jobs["id"].tolist(), result.jobs["completion_s"].tolist(), strict=True))
    hours = np.array([max(1, math.ceil(ended[job_id] / 3600.0)) for job_id in ratios.jobs], dtype=np.int64)
    jobs, totals = np.bincount(hours), np.bincount(hours, weights=ratios.values)
    return {hour: float(totals[hour] / jobs[hour]) for hour in np.flatnonzero(jobs).tolist()}


def fragmentation_gpus(rounds: Sequence[RoundRecord]) -> float | None:
    """Return the mean number of GPUs idle while jobs wait (B43); None without rounds."""
    if not rounds:
        return None
    idle = [sum(r.gpus_capacity.values()) - sum(r.gpus_used.values()) if r.queued_jobs else 0 for r in rounds]
    return float(np.mean(idle))


def partly_used_gpus(allocations: Mapping[str, Allocation], cluster: Cluster) -> int:
    """Return the idle GPUs on partly used nodes, a plan's fragments."""
    used: dict[str, int] = {}
    for allocation in allocations.values():
        for node, gpus in allocation.nodes:
            used[node] = used.get(node, 0) + gpus
    return sum(cluster.nodes[node].gpus - gpus for node, gpus in used.items())


def fairness_summary(result: SimulationResult, jobs: Iterable[Job], alone: AloneTimes) -> dict[str, Any]:
    """Return ``finish_time_fairness`` (both definitions, and the number of ``jobs``), ``latency_ratio`` and
    ``fragmentation_gpus``.

    Latency ratios are given for the worst job, as a mean, and as the mean of the worst hour (Hops' equation 7).
    """
    listed = list(jobs)
    latency = latency_ratios(result, listed, alone)
    both = finish_time_fairness(result, listed, alone)
    measured = [record for record in result.rounds if not record.warmup]
    return {
        "finish_time_fairness": {
            **{name: ratios.summary() for name, ratios in both.items()},
            "jobs": len(both["thesis"].jobs),
        },
        "latency_ratio": {
            "max": latency.worst,
            "mean": float(latency.values.mean()) if latency.jobs else None,
            "worst_hour": max(latency_ratios_by_hour(result, latency).values(), default=None),
        },
        "fragmentation_gpus": fragmentation_gpus(measured),
    }
