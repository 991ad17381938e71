"""Selection of the jobs that can be simulated, with reasons for the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from copter_frontends.simulator.goodput_source import GoodputSource
from copter_frontends.simulator.result import SkippedJob
from copter_frontends.vocabulary import Job
from copter_frontends.vocabulary.semantics import Semantics


def usable_jobs(
    jobs: Iterable[Job], goodput_model: GoodputSource, semantics: Semantics
) -> tuple[list[Job], list[SkippedJob]]:
    """Return the usable jobs in order of submission, and the skipped ones with reasons."""
    usable: dict[str, Job] = {}
    skipped: list[SkippedJob] = []
    known: Mapping[str, object] = goodput_model.applications
    for job in sorted(jobs, key=lambda job: job.submit_s):
        if job.id in usable:
            skipped.append(SkippedJob(job.id, "another job, submitted before, has the same id"))
        elif job.application not in known:
            reason = f"unknown application {job.application!r}; there are {', '.join(sorted(known))}"
            skipped.append(SkippedJob(job.id, reason))
        elif semantics.training == "agent" and job.own_goodput is not None:
            reason = "it brings its own goodput, which needs training='exact': an agent measures steps"
            skipped.append(SkippedJob(job.id, reason))
        else:
            usable[job.id] = job
    return list(usable.values()), skipped
