"""The jobs of a run: drawn or read as the options say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from copter_frontends.cli.options import TESTBEDS, SimulateOptions
from copter_frontends.cli.output import InputError
from copter_frontends.cli.saving import RunInputs
from copter_frontends.goodput.profiled import ProfiledApplication
from copter_frontends.policies.registry.elsewhere import elsewhere
from copter_frontends.policies.registry.policy_entry import PolicyEntry
from copter_frontends.replay.what_if.change import Change
from copter_frontends.simulator.tuned_jobs import tuned_jobs
from copter_frontends.simulator.workload import Workload, make_workload
from copter_frontends.vocabulary.semantics import Semantics

Profiles = Mapping[str, ProfiledApplication]


def jobs_of(
    asked: SimulateOptions,
    inputs: RunInputs,
    profiles: Profiles | None,
    semantics: Semantics,
    entry: PolicyEntry,
    change: Change | None = None,
) -> Workload:
    """Return the jobs, with reservations, the what-if change, and sizes tuned for a policy of rigid jobs.

    Raises InputError if a reservation names an unknown job.
    """
    workload = drawn_jobs(asked, inputs, semantics)
    changes: dict[str, dict[str, Any]] = {job: {"preemptible": False} for job in asked.non_preemptible}
    for job, kind, gpus in asked.reserve:
        changes.setdefault(job, {})["reservation"] = (kind, gpus)
    missing = sorted(changes.keys() - {job.id for job in workload.jobs})
    if missing:
        some = ", ".join(job.id for job in workload.jobs[:3])
        raise InputError(f"no job is called {missing[0]!r}; the first jobs are {some}")
    jobs = [replace(job, **changes.get(job.id, {})) for job in workload.jobs]
    if change is not None:
        jobs = list(change.jobs(jobs))
    if asked.tuned is not None and entry.rigid:
        jobs = tuned_jobs(jobs, inputs.cluster, asked.tuned, seed=asked.seed, profiles=profiles)
    return replace(workload, jobs=jobs)


def drawn_jobs(asked: SimulateOptions, inputs: RunInputs, semantics: Semantics) -> Workload:
    """Return a paper's own jobs on its GPUs, otherwise those of the options."""
    if asked.on_testbed:
        jobs: Workload = elsewhere(TESTBEDS)[asked.cluster].workload(asked.jobs, asked.seed)
        return jobs
    return make_workload(
        asked.trace,
        asked.jobs,
        asked.window_hours or max(asked.hours or 24.0, 24.0),
        inputs.cluster.gpus,
        asked.seed,
        "full" if asked.work == "full" else "trace",
        semantics.batch_limit == "policy",
        asked.throughputs,
        inputs.model.applications,
    )
