"""The summary of a run, which ``--json`` prints, and the facts at the head of its report."""

from __future__ import annotations

import math
import shlex
import sys
from typing import Any

from copter_frontends.cli.run import Run
from copter_frontends.policies.registry.names import DEADLINE_NAMES
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policy_kit.deadlines import deadline_summary
from copter_frontends.policy_kit.offered_load import offered_load
from copter_frontends.simulator import SimulationResult
from copter_frontends.simulator.alone import GoodputAloneTimes
from copter_frontends.simulator.fairness import fairness_summary
from copter_frontends.simulator.waiting import waiting_summary


def summary_of(run: Run, result: SimulationResult, interrupted: str | None = None) -> dict[str, Any]:
    """Return the object that ``--json`` prints; `interrupted` is the signal that ended the run."""
    asked, jobs, policy = run.asked, run.workload.jobs, run.simulation.policy
    weighted, arrived, load = _weighted(run, result), _arrived(run, result), load_of(run, result)
    alone = GoodputAloneTimes(run.inputs.model)
    figures = {
        "policy": asked.policy,
        "gpus": result.gpus,
        **result.summary(),
        **fairness_summary(result, jobs, alone),
        "waiting": {**waiting_summary(result, jobs, alone), "bound": policy.waiting_bound},
        **weighted,
    }
    if asked.deadlines or asked.policy in DEADLINE_NAMES:
        slo_jobs = POLICIES["chronus"].in_form(jobs)
        figures |= deadline_summary(result, slo_jobs, run.rewards, run.simulation.policy)
    figures |= {
        "highs": run.comparison.summary() if run.comparison is not None else None,
        "seed": asked.seed,
        "mode": asked.mode,
        "profiles": run.profiles,
        "jobs_submitted": len(jobs),
        "jobs_arrived": arrived,
        "load": load,
        "jobs_skipped": len(result.skipped),
        "trace_lines_skipped": len(run.workload.skipped_lines),
    }
    if policy.edit_log is not None:
        figures["edits_per_solve"] = policy.edit_log.summary()
    if policy.figures:
        figures["figures"] = dict(policy.figures)
    return {**figures, "interrupted": interrupted}


def facts_of(run: Run, result: SimulationResult, interrupted: str | None = None) -> dict[str, str]:
    """Return the description of a run for its report; `interrupted` as for :func:`summary_of`."""
    asked = run.asked
    capacity = result.rounds[-1].gpus_capacity if result.rounds else {}
    facts = {
        "Command": shlex.join(["copter", *sys.argv[1:]]),
        "Cluster": asked.cluster or f"{result.gpus:,} GPUs of the scaled cluster",
        "GPUs by type": ", ".join(f"{count:,} {kind}" for kind, count in capacity.items()),
        "Jobs": run.workload.source,
        "Seed": str(asked.seed),
        "Configurations": asked.mode,
        "Round": f"{result.round_s:g} s",
    }
    if run.profiles is not None:
        facts["Profiles"] = run.profiles
    if interrupted is not None:
        facts["Interrupted"] = f"by {interrupted} after {len(result.rounds):,} rounds, which is all there is"
    return facts


def load_of(run: Run, result: SimulationResult) -> dict[str, Any] | None:
    """Return the load that the jobs offered in the counted rounds; None without such a round."""
    counted = [record for record in result.rounds if not record.warmup]
    if not counted:
        return None
    window_s = counted[0].now_s, counted[-1].now_s + result.round_s
    return offered_load(run.workload.jobs, run.inputs.rates, counted[0].gpus_capacity, *window_s).as_dict()


def _arrived(run: Run, result: SimulationResult) -> int:
    """Return the number of jobs submitted before the last round began, which could have had GPUs."""
    last_s = result.rounds[-1].now_s if result.rounds else -math.inf
    return sum(job.submit_s <= last_s for job in run.workload.jobs)


def _weighted(run: Run, result: SimulationResult) -> dict[str, float]:
    """Return Hare's objective, the sum of weight times JCT (hours) over completed jobs, if the workload has weights."""
    weights = run.workload.weights
    if not weights:
        return {}
    pairs = zip(result.jobs["id"], result.jobs["jct_s"], strict=True)
    done = ((str(job_id), float(jct_s)) for job_id, jct_s in pairs)
    return {"weighted_jct_h": sum(weights[job_id] * jct_s for job_id, jct_s in done if math.isfinite(jct_s)) / 3600.0}
