"""Waiting jobs and what they wait for, computed from the current plan without a solve."""

from __future__ import annotations

from typing import Any

from copter_serve.service.cluster_state import ClusterState
from copter_serve.service.job_record import JobRecord
from copter_serve.service.plan_book import Allocations, PlanBook
from copter_serve.service.start_times import ASSUMED, MOST_ESTIMATED, sizes_of, start_document, starts_of

MOST_WAITING = MOST_ESTIMATED  # most waiting jobs whose reasons are given


def waiting_document(state: ClusterState, book: PlanBook, find: str = "") -> dict[str, Any]:
    """Return how many jobs wait, and why the oldest of them wait.

    With `find` only those whose id has this text, in any letters, or for the oldest :data:`MOST_WAITING` of all their
    reason; ``found`` is how many that are.

    The reason is computed from the current plan: the smallest number of missing GPUs over the job's sizes, their price,
    and the team (the part of a job's id before its first ``/``) that holds as many. Use ``what-if`` to find out what
    would really start. ``starts_in_s`` estimates when, under what ``assumed`` says; None if an end that it waits for is
    not known (a job without ``work``).
    """
    given = book.allocations
    free = state.capacity()
    teams: dict[str, dict[str, int]] = {kind: {} for kind in free}
    for job_id, kinds in held_by(given).items():
        team = team_of(job_id)
        for kind, gpus in kinds.items():
            free[kind] = free.get(kind, 0) - gpus
            if team:
                teams.setdefault(kind, {})[team] = teams.get(kind, {}).get(team, 0) + gpus
    skipped, new = book.header.get("skipped", {}), book.header["sequence"] < state.sequence
    starts = starts_of(state, held_by(given))
    jobs: dict[str, Any] = {}
    wanted, found = find.casefold(), 0
    for at, job in enumerate(job for job in state.jobs.values() if job.id not in given):
        named = wanted in job.id.casefold()
        if (not named and at >= MOST_WAITING) or (named and len(jobs) >= MOST_WAITING):
            found += named
            continue
        why = _reason(job, state, free, teams, book, skipped.get(job.id), new)
        if named or wanted in why["reason"].casefold():
            found += 1
            if len(jobs) < MOST_WAITING:
                jobs[job.id] = {"submit_s": job.submit_s, **why, **start_document(starts.get(job.id))}
    count = len(state.jobs) - len(given)
    head = {"version": book.version, "edition": book.edition, "count": count, "found": found}
    return {**head, "assumed": ASSUMED, "jobs": jobs}


def held_by(allocations: Allocations) -> dict[str, dict[str, int]]:
    """Return the GPUs of each type that each job of a plan has."""
    return {job: told.get("mixture") or {told["gpu_type"]: told["gpus"]} for job, told in allocations.items()}


def team_of(job_id: str) -> str:
    """Return the team in a job's id, such as "vision" of "vision/train-1"; empty if the id has none."""
    team, slash, _ = job_id.partition("/")
    return team if slash else ""


def _reason(
    job: JobRecord,
    state: ClusterState,
    free: dict[str, int],
    teams: dict[str, dict[str, int]],
    book: PlanBook,
    skipped: str | None,
    new: bool,
) -> dict[str, Any]:
    capacity = state.capacity()
    options = [(gpus - free[kind], gpus, kind) for kind, gpus in sizes_of(job, state)]
    fitting = [each for each in options if each[1] <= capacity[each[2]]]
    if not fitting:
        sizes = ", ".join(f"{gpus} {kind} of {capacity[kind]}" for _, gpus, kind in options[:3]) or "no size at all"
        return {"reason": f"fits nowhere: needs {sizes}"}
    if skipped is not None:
        return {"reason": f"is not in the plan: {skipped}"}
    short, gpus, kind = min(fitting)
    if short <= 0:
        later = "the next plan decides" if new else "not on nodes that fit it, or a start is not worth its cost"
        return {"reason": f"{gpus} {kind} are free: {later}"}
    price = book.header.get("prices", {}).get(kind)
    told = [f"waits for {short} more {kind}"]
    told += [f"price {price:.3g}"] if price is not None else []
    own = team_of(job.id)
    lenders = [(held, team) for team, held in teams[kind].items() if team != own and held >= short]
    found: dict[str, Any] = {"gpu_type": kind, "short": short, "price": price}
    if lenders:
        found["lender"] = max(lenders)[1]
        told.append(f"would fit if {found['lender']} lent {short}")
    return {"reason": "; ".join(told), **found}
