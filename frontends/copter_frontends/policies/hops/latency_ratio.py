"""Latency-ratio fairness: waiting time relative to running time (equations 6 to 9; HP19, HP20)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

import numpy as np

from copter.runtime.errors import SettingsError
from copter_frontends.policies.hops.ties import without_ties
from copter_frontends.vocabulary import Job

Priority = Literal["lr", "las", "sjf", "srtf", "ftf"]
AgeTerm = tuple[float, float]
PRIORITIES = ("lr", "las", "sjf", "srtf", "ftf")
KEPT_S = 24 * 3600.0  # seconds for which latency ratios of ended jobs are kept
REFRESH_S = 30.0  # least seconds between two updates of the priorities
LEAST = 1e-9  # least divisor (seconds) and least weight, so that quotients and the program stay finite


@dataclass(frozen=True, slots=True)
class Standing:
    """Times from which a job's priority is computed.

    Attributes
    ----------
    wait_s : float
        Seconds in the queue so far.
    age_s : float
        Expected run time without waiting (9).
    left_s : float
        Remaining part of the age.
    served_gpu_s : float
        GPU-seconds of the job so far.
    run_s : float
        Seconds with GPUs so far.
    share_gpus : float
        GPUs of the cluster divided by the number of jobs, for finish-time fairness.
    mean_gpus, most_gpus : float
        Mean and largest of the job's requirement set.
    """

    wait_s: float
    age_s: float
    left_s: float
    served_gpu_s: float
    run_s: float = 0.0
    share_gpus: float = 1.0
    mean_gpus: float = 1.0
    most_gpus: float = 1.0


def age_s(work: float, terms: Sequence[AgeTerm]) -> float:
    """Return age_i of (9): the run time on the mean requirement, averaged over GPU types with their GPUs as weights.

    Parameters
    ----------
    work : float
        Samples of the job.
    terms : sequence of (float, float)
        From :func:`age_terms`.
    """
    return sum([weight * work / rate for weight, rate in terms]) if terms else float("inf")


def age_terms(per_gpu: Mapping[str, float], gpus: Mapping[str, int], mean_gpus: float) -> tuple[AgeTerm, ...]:
    """Return what :func:`age_s` needs besides the work: (weight, samples per second on the mean) of each type.

    Types on which the job cannot run are left out, and the other weights sum to one.

    Parameters
    ----------
    per_gpu : mapping of GPU type to float
        Samples per second of one GPU of each type.
    gpus : mapping of GPU type to int
    mean_gpus : float
        R_avg.
    """
    runs = {kind: rate for kind, rate in per_gpu.items() if rate > 0 and gpus.get(kind, 0) > 0}
    total = sum(gpus[kind] for kind in runs)
    return tuple([(gpus[kind] / total, rate * mean_gpus) for kind, rate in runs.items()])


def latency_ratio(standing: Standing) -> float:
    """Return wait_i / age_i, (6) and (8)."""
    return standing.wait_s / max(standing.age_s, LEAST)


def finish_time_ratio(standing: Standing) -> float:
    """Return the currently expected rho = T_sh / T_id of section 4.4 (HP21).

    T_sh is elapsed plus remaining time. T_id is the time of the whole run on the job's share of the cluster, 1/N of the
    GPUs but at most as many as it can use; the age (9) is the time on its mean requirement. Both are means over the GPU
    types, as in Sia.
    """
    used = min(standing.share_gpus, standing.most_gpus)
    alone_s = standing.age_s * standing.mean_gpus / max(used, LEAST)
    return (standing.wait_s + standing.run_s + standing.left_s) / max(alone_s, LEAST)


RULES: Mapping[str, Callable[[Standing], float]] = {
    "lr": latency_ratio,
    "las": lambda s: -s.served_gpu_s,
    "sjf": lambda s: -s.age_s,
    "srtf": lambda s: -s.left_s,
    "ftf": finish_time_ratio,
}


class LatencyQueue:
    """Jobs by descending priority; priorities are updated at most every 30 seconds.

    Parameters
    ----------
    priority : {"lr", "las", "sjf", "srtf", "ftf"}
    refresh_s : float
    """

    def __init__(self, priority: Priority = "lr", refresh_s: float = REFRESH_S) -> None:
        if priority not in PRIORITIES:
            raise SettingsError(f"priority is {priority!r}, must be one of {', '.join(PRIORITIES)}")
        if not (isfinite(refresh_s) and refresh_s >= 0):
            raise SettingsError(f"refresh_s is {refresh_s}, must be finite and >= 0")
        self.priority, self.refresh_s = priority, refresh_s
        self.values: dict[str, float] = {}
        self._refreshed_s: float | None = None
        self._ended: deque[tuple[float, float]] = deque()

    def refresh(self, now_s: float, jobs: Collection[str], standing: Callable[[str], Standing]) -> None:
        """Update all priorities if due, and give new jobs theirs."""
        rule = RULES[self.priority]
        self.renew(now_s, jobs, lambda ids: [rule(standing(job)) for job in ids])

    def renew(
        self, now_s: float, jobs: Collection[str], priorities: Callable[[Collection[str]], Sequence[float]]
    ) -> None:
        """Update priorities with a function from ids of jobs to their priorities."""
        if self._refreshed_s is None or not 0 <= now_s - self._refreshed_s < self.refresh_s:
            self._refreshed_s = now_s
            self.values = dict(zip(jobs, priorities(jobs), strict=True))
            return
        for gone in [job for job in self.values if job not in jobs]:
            del self.values[gone]
        fresh = [job for job in jobs if job not in self.values]
        self.values.update(zip(fresh, priorities(fresh), strict=True))

    def order(self, jobs: Mapping[str, Job]) -> list[str]:
        """Return ids by descending priority; ties by submission, then id."""
        ids, value = list(jobs), np.fromiter(map(self.values.__getitem__, jobs), dtype=np.float64, count=len(jobs))
        order = np.argsort(-value, kind="stable")
        ranked = value[order]
        turns = without_ties(order, ranked[1:] == ranked[:-1], lambda at: (jobs[ids[at]].submit_s, ids[at]))
        return [ids[at] for at in turns]

    def ended(self, now_s: float, ratio: float) -> None:
        """Record the latency ratio of an ended job."""
        self._ended.append((now_s, ratio))
        while self._ended[0][0] < now_s - KEPT_S:
            self._ended.popleft()

    def recent_ratio(self, now_s: float, hours: float = 1.0) -> float | None:
        """Return RAQLR (7): the mean latency ratio of jobs ended in the last hours, 24 at most; None without jobs."""
        if not 0 < 3600.0 * hours <= KEPT_S:
            raise SettingsError(f"hours is {hours}, must be above 0 and at most {KEPT_S / 3600:g}")
        recent = [ratio for ended_s, ratio in self._ended if now_s - 3600.0 * hours < ended_s <= now_s]
        return sum(recent) / len(recent) if recent else None


class Weights(Mapping[str, float]):
    """w_i = ((prior_i + bias) / largest)^lambda, in (0, 1] (HP15), worked out when it is asked for.

    The bias keeps every priority at 0.01 or more. Dividing by the largest before the power changes no decision and
    keeps any lambda from overflowing; where a weight would be too small for arithmetic it is held at 1e-9.

    Parameters
    ----------
    values : mapping of job id to float
        Priorities, of more jobs than those weighed perhaps.
    power : float
        lambda.
    among : collection of float, optional
        Priorities of the jobs weighed; by default all values.
    """

    def __init__(self, values: Mapping[str, float], power: float, among: Collection[float] | None = None) -> None:
        self._values, self._power = values, power
        weighed = values.values() if among is None else among
        self._bias = max(0.0, -min(weighed, default=0.0)) + 0.01
        self._largest = max(weighed, default=0.0) + self._bias

    def __getitem__(self, job_id: str) -> float:
        value = ((self._values[job_id] + self._bias) / self._largest) ** self._power
        return value if value > LEAST else LEAST

    def of(self, ids: Collection[str]) -> list[float]:
        """Return the weights of many jobs."""
        each = np.fromiter(map(self._values.__getitem__, ids), dtype=np.float64, count=len(ids))
        each = (each + self._bias) / self._largest
        if self._power != 1.0:
            each = np.array([one**self._power for one in each.tolist()])
        weights: list[float] = np.maximum(each, LEAST).tolist()
        return weights

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def weights(values: Mapping[str, float], power: float) -> dict[str, float]:
    """Return the :class:`Weights` of all jobs."""
    return dict(Weights(values, power))
