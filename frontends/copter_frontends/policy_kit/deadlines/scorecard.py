"""Deadline statistics of a run, over the same jobs for every policy (docs/papers/chronus.md, C23)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Protocol, runtime_checkable

from copter_frontends.policy_kit.deadlines.rewards import Rewards, StepReward, reward_for, weighted_miss_rate
from copter_frontends.simulator.result import SimulationResult
from copter_frontends.vocabulary import Job


@runtime_checkable
class Promising(Protocol):
    """Interface of a policy that promises deadlines."""

    @property
    def promises(self) -> Mapping[str, int]:
        """Return, for each job, the number of the last deadline promised to it, kept or not."""

    @property
    def broken_promises(self) -> Mapping[str, bool]:
        """Return the jobs that lost their promise, and whether a loss of GPUs was the cause."""


@dataclass(frozen=True, slots=True)
class DeadlineOptions:
    """Options of policies for jobs with deadlines.

    Attributes
    ----------
    rewards : Rewards
    lease_s : float or None
        Length of a lease; None for the paper's length.
    profiling : bool
        Whether jobs first run for a few minutes to measure their speed.
    selective : bool
        Whether Chronus refuses jobs that would take more from later ones than they bring (C6); False: admission as in
        its paper.
    """

    rewards: Rewards
    lease_s: float | None = None
    profiling: bool = False
    selective: bool = True


def deadline_summary(
    result: SimulationResult, jobs: Iterable[Job], rewards: Rewards, policy: object = None
) -> dict[str, Any]:
    """Count kept and missed deadlines over all jobs submitted in the run, including unfinished ones.

    A job with a reward is an SLO job, any other job a best-effort job. The counted jobs do not depend on the policy.

    Returns
    -------
    dict
        One entry, ``deadlines``, a dict with these fields:

        - ``jobs``: SLO jobs.
        - ``due``: SLO jobs whose last deadline is within the run.
        - ``met``, ``missed``: due jobs that ended by one of their deadlines, and the other due jobs.
        - ``weighted_miss_rate``: of the due jobs; None if none is due.
        - ``best_effort_jobs``, ``best_effort_jct_h``: their number and mean completion time in hours, in which a job
          that has not ended counts with its age; None without such jobs.
        - ``promised``, ``kept``, ``demoted``, ``demoted_by_failures``, ``late``: SLO jobs that were promised a
          deadline, ended by it, lost the promise, lost it because GPUs failed, or did not end by it without losing the
          promise. All None for a policy that is not :class:`Promising`.
    """
    end_s = result.rounds[-1].now_s + result.round_s if result.rounds else 0.0
    jct_s = dict(zip(result.jobs["id"].tolist(), result.jobs["jct_s"].tolist(), strict=True))
    slo: dict[str, tuple[Job, StepReward]] = {}
    free: list[float] = []
    for job in jobs:
        if job.submit_s >= end_s:
            continue
        reward, taken_s = reward_for(rewards, job), jct_s.get(job.id, inf)
        if reward is None:
            free.append(taken_s if isfinite(taken_s) else end_s - job.submit_s)
        else:
            slo[job.id] = job, reward
    took = {job_id: jct_s[job_id] if isfinite(jct_s.get(job_id, inf)) else inf for job_id in slo}
    due = {job_id: reward for job_id, (job, reward) in slo.items() if job.submit_s + reward.last_s <= end_s}
    met = sum(took[job_id] <= reward.last_s + 1e-3 for job_id, reward in due.items())
    earned = [reward.at(took[job_id]) for job_id, reward in due.items()]
    found = {
        "jobs": len(slo),
        "due": len(due),
        "met": met,
        "missed": len(due) - met,
        "weighted_miss_rate": weighted_miss_rate(earned) if earned else None,
        "best_effort_jobs": len(free),
        "best_effort_jct_h": sum(free) / len(free) / 3600.0 if free else None,
    }
    return {"deadlines": {**found, **_promises(policy, slo, took, end_s)}}


def _promises(
    policy: object, slo: Mapping[str, tuple[Job, StepReward]], took: Mapping[str, float], end_s: float
) -> dict[str, int | None]:
    """Count promises: given, kept, demoted, late; None for policies without promises."""
    if not isinstance(policy, Promising):
        return dict.fromkeys(("promised", "kept", "demoted", "demoted_by_failures", "late"))
    promised = {job_id: step for job_id, step in policy.promises.items() if job_id in slo}
    broken = {job_id: lost for job_id, lost in policy.broken_promises.items() if job_id in slo}
    kept = late = 0
    for job_id, step in promised.items():
        job, reward = slo[job_id]
        until_s = reward.steps[step][0]
        in_time = took[job_id] <= until_s + 1e-3
        kept += in_time and job_id not in broken
        late += not in_time and job_id not in broken and job.submit_s + until_s < end_s
    return {
        "promised": len(promised),
        "kept": kept,
        "demoted": len(broken),
        "demoted_by_failures": sum(broken.values()),
        "late": late,
    }
