"""The base of policies that place their jobs themselves: jobs, nodes, pins, service, and the plan's bookkeeping."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress, filterfalse
from math import inf
from operator import is_not
from time import perf_counter
from typing import Any, NoReturn

import numpy as np

from copter.runtime.collector import uncollected
from copter_frontends.goodput.job_facts import check_facts, checked_progress
from copter_frontends.policy_kit.can_run import CanRun, anywhere
from copter_frontends.policy_kit.checks import check_round_s, require_gpus
from copter_frontends.policy_kit.choice import Choice
from copter_frontends.policy_kit.deadline_guard import by_deadline, kept_between
from copter_frontends.policy_kit.held_back import HeldBack
from copter_frontends.policy_kit.making_room import jobs_on, jobs_to_stop
from copter_frontends.policy_kit.node_inventory import NodeInventory
from copter_frontends.policy_kit.plan_changes import plan_between
from copter_frontends.policy_kit.service_book import BookedService, ServiceBook
from copter_frontends.policy_kit.throughputs import requested_gpus
from copter_frontends.vocabulary import (
    Allocation,
    Attained,
    Cluster,
    DuplicateJobError,
    InvalidJobError,
    Job,
    Plan,
    SchedulingPolicy,
    UnknownJobError,
)


class RoundPolicy(SchedulingPolicy):
    """Base class of scheduling policies; subclasses define their rule in :meth:`choose`.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    round_s : float
        Seconds between plans.
    can_run : callable (job, GPU type, GPUs) -> bool, optional
        Whether a job can run somewhere; by default always.

    Raises
    ------
    InvalidClusterError, SettingsError
        If the cluster has no GPUs, or the round's length is not finite and above zero.

    Attributes
    ----------
    jobs : dict of job id to Job
        Jobs in the order in which they were added.
    held, pins : dict of job id to Allocation
        Current allocations, and allocations of pinned jobs.
    service : dict of job id to BookedService
    """

    def __init__(self, cluster: Cluster, round_s: float, can_run: CanRun | None = None) -> None:
        require_gpus(cluster)
        self.round_s = round_s
        check_round_s(round_s)
        self.nodes = NodeInventory(cluster)
        self.jobs: dict[str, Job] = {}
        self.held: dict[str, Allocation] = {}
        self.pins: dict[str, Allocation] = {}
        self.service: dict[str, BookedService] = {}
        self.services = ServiceBook()
        self._can_run = can_run or anywhere
        self._order: dict[str, tuple[float, int]] = {}
        self._settled: dict[str, None] = {}  # jobs that may not be preempted
        self._arrivals = 0
        self._planned: dict[str, Allocation] = {}
        self._last_plan_s: float | None = None

    # The rule -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Decide which of the jobs without a pin get which GPUs in the round that starts at `now_s`."""

    def sizes(self, job: Job) -> Iterable[int]:
        """Return the GPU counts a job may get; the job is accepted if one of them runs somewhere."""
        return (requested_gpus(job),)

    def queue(self) -> list[str]:
        """Return the jobs' ids by submission time, ties in the order of arrival."""
        return sorted(self.jobs, key=self._order.__getitem__)

    def room(self) -> dict[str, int]:
        """Return the GPUs of each type that no pinned job has."""
        left = {kind: self.nodes.capacity(kind) for kind in self.nodes.types}
        for pin in self.pins.values():
            left[pin.gpu_type] -= pin.gpus
        return left

    def can_run(self, job: Job, gpu_type: str, gpus: int) -> bool:
        """Whether a job can run on this number of GPUs of a type."""
        return self._can_run(job, gpu_type, gpus)

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Queue a job. Raises DuplicateJobError for a known id, InvalidJobError if it fits nowhere."""
        self.enqueue((job,))

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Do :meth:`add_job` for each job; on an error none is added."""
        added, arrivals = list[str](), self._arrivals
        with HeldBack():
            try:
                for job in jobs:
                    self.add_job(job)
                    added.append(job.id)
            except Exception:
                for job_id in reversed(added):
                    self.remove_job(job_id)
                self._arrivals = arrivals
                raise

    def enqueue(self, jobs: Sequence[Job]) -> None:
        """Queue jobs, with what this class keeps of them; on an error none is queued."""
        ids = [job.id for job in jobs]
        if len(set(ids)) < len(ids) or not self.jobs.keys().isdisjoint(ids):
            known = next(each for at, each in enumerate(ids) if each in self.jobs or each in ids[:at])
            raise DuplicateJobError(f"job {known!r} is in the queue already; remove it first")
        self.require_room(jobs)
        last_s = -inf if self._last_plan_s is None else self._last_plan_s
        submits_s = [job.submit_s for job in jobs]
        self.jobs.update(zip(ids, jobs, strict=True))
        services = self.services.enter(submits_s, [max(submit_s, last_s) for submit_s in submits_s])
        self.service.update(zip(ids, services, strict=True))
        turns = range(self._arrivals, self._arrivals + len(ids))
        self._order.update(zip(ids, zip(submits_s, turns, strict=True), strict=True))
        self._settled.update((job.id, None) for job in jobs if not job.preemptible)
        self._arrivals += len(ids)

    def require_room(self, jobs: Sequence[Job]) -> None:
        """Raise InvalidJobError for a job that fits nowhere."""
        for job in jobs:
            if not self.fits_somewhere(job):
                self.refuse(job)

    def refuse(self, job: Job) -> NoReturn:
        """Raise InvalidJobError for a job that fits nowhere."""
        sizes = list(self.sizes(job))
        there = ", ".join(f"{kind}: {self.nodes.capacity(kind)}" for kind in self.nodes.types)
        wants = f"{sizes[0]} GPUs" if len(sizes) == 1 else f"{min(sizes, default=0)} or more GPUs"
        raise InvalidJobError(f"job {job.id!r}: its {wants} fit on no GPU type that can run it ({there})")

    @uncollected()
    def remove_jobs(self, job_ids: Sequence[str]) -> None:
        """Do :meth:`remove_job` for each job; if one is unknown, none is removed."""
        for job_id in job_ids:
            self.job(job_id)
        with HeldBack():
            for job_id in dict.fromkeys(job_ids):
                self.remove_job(job_id)

    def note_progress(self, told: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        """Store the ``progress`` of many jobs and return it; on an error, as in :meth:`update_job`, none is stored."""
        progress = dict[str, float]()
        for job_id, facts in told.items():
            self.job(job_id)
            share = facts.get("progress")
            if len(facts) != 1 or type(share) is not float or not 0.0 <= share <= 1.0:  # most are told this alone
                check_facts(job_id, facts)
            if share is not None:
                progress[job_id] = float(share)
        for job_id, share in progress.items():
            self.service[job_id].progress = share
        return progress

    def update_progress(self, progress: Mapping[str, float]) -> None:
        """Store the progress of many jobs; on an error none is stored."""
        checked_progress(progress)
        try:
            services = list(map(self.service.__getitem__, progress))
        except KeyError:
            services = [self.service[self.job(job_id).id] for job_id in progress]
        for had, share in zip(services, progress.values(), strict=True):
            had.progress = float(share)

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Update a job's ``progress``; other changes are checked by :func:`.check_facts`."""
        self.job(job_id)
        check_facts(job_id, what_changed)
        if what_changed.get("progress") is not None:
            self.service[job_id].progress = float(what_changed["progress"])

    def remove_job(self, job_id: str) -> None:
        """Forget a job and free its GPUs; raises UnknownJobError for an unknown id."""
        self.job(job_id)
        self.release(job_id)
        self.pins.pop(job_id, None)
        self._planned.pop(job_id, None)
        self._settled.pop(job_id, None)
        self.services.leave(self.service.pop(job_id))
        del self.jobs[job_id], self._order[job_id]

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes, named or not."""
        self.nodes.add(gpu_type, count, nodes)

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Remove `count` GPUs of a type as whole nodes: those named, or else the emptiest, newest first.

        Jobs on them return to their position in the queue. Raises CapacityInUseError if a pinned job is on one of them,
        or there are fewer GPUs.
        """
        pinned = {node for pin in self.pins.values() for node, _ in pin.nodes}
        gone = set(self.nodes.choose(gpu_type, count, nodes, pinned))
        for job_id in jobs_on(gone, self.held):
            self.release(job_id)
        self.nodes.drop(gpu_type, gone)

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Pin a job to exactly this allocation; None ends the pin.

        Raises CapacityInUseError if pinned jobs use the GPUs (or any jobs, in a policy without preemption), and
        InvalidClusterError if the GPUs do not exist.
        """
        self.job(job_id)
        if allocation is None:
            self.pins.pop(job_id, None)
            return
        before = self.held.get(job_id)
        if before == allocation:
            self.hold_again(job_id, allocation)
            self.pins[job_id] = allocation
            return
        self.nodes.check(job_id, allocation)
        self.release(job_id)
        try:
            self.make_room(job_id, allocation)
        except Exception:
            if before is not None:
                self.hold(job_id, before)
            raise
        self.hold(job_id, allocation)
        self.pins[job_id] = allocation

    def make_room(self, job_id: str, allocation: Allocation) -> None:
        """Free an allocation's GPUs by stopping unpinned jobs; raises CapacityInUseError if pinned jobs hold them."""
        if not self.nodes.short_of(allocation):  # if the GPUs are free, no pinned job has them either
            return
        for other in jobs_to_stop(self.nodes, job_id, [allocation], self.held, self.pins):
            if self.nodes.short_of(allocation):
                self.release(other)

    def resume(self, now_s: float, attained: Mapping[str, Attained]) -> None:
        """Take over from an earlier scheduler at `now_s`, with the service that jobs have had and the GPUs they
        hold.
        """
        self.services.now_s = now_s
        for job_id, had in attained.items():
            if job_id in self.jobs:
                service = self.service[job_id]
                service.executed_s, service.gpu_s = sum(had.by_type.values()), had.gpu_s
                service.waiting_s = had.waiting_s
        for job_id in self.jobs.keys() - attained.keys():
            self.service[job_id].waiting_s = max(now_s - self.jobs[job_id].submit_s, 0.0)
        self._last_plan_s, self._planned = now_s, dict(self.held)
        self.services.note_plan()

    # The round ----------------------------------------------------------------------------------------------------

    @by_deadline
    @uncollected()
    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Plan the round that starts at `now_s`: apply the policy's rule, then assign nodes to the chosen jobs.

        Raises InvalidDataError for a time that is not finite, or a deadline that is not above zero.
        """
        self._serve(now_s)
        begun = perf_counter()
        kept = {j: self.held[j] for j in self._settled if j in self.held and j not in self.pins}
        self.pins.update(kept)
        try:
            choice = self.choose(now_s, deadline_s)
            chosen = perf_counter()
            self.settle(choice.wanted)
        finally:
            for job_id in kept:
                del self.pins[job_id]
        before, self._planned = self._planned, dict(self.held)
        self.services.note_plan()
        value = float(sum(held.gpus for held in self.held.values())) if choice.objective is None else choice.objective
        bound = value if choice.bound is None else choice.bound
        stages = {"solve": chosen - begun, "shim": 0.0, **choice.timings}
        return replace(
            plan_between(before, self._planned, value, bound),
            prices=choice.prices,
            fractional_jobs=choice.fractional_jobs,
            skipped=choice.skipped,
            status=choice.status,
            timings={**stages, "place": perf_counter() - chosen},
        )

    def kept_plan(self, now_s: float) -> Plan:
        """Return the last plan without the jobs that have gone; the next plan counts the service since the last one."""
        before, self._planned = self._planned, dict(self.held)
        self.services.note_plan()
        return kept_between(before, self._planned)

    def settle(self, wanted: Mapping[str, tuple[str, int]]) -> None:
        """Assign nodes to the wanted jobs (id -> GPU type and GPUs): unchanged jobs keep theirs, then larger jobs
        first.

        A job is split over nodes only if necessary. Jobs that are neither wanted nor pinned lose their GPUs.
        """
        for job_id, held in list(self.held.items()):
            if job_id not in self.pins and wanted.get(job_id) != (held.gpu_type, held.gpus):
                self.release(job_id)
        pending = [(job_id, *want) for job_id, want in wanted.items() if job_id not in self.held]
        for job_id, gpu_type, gpus in sorted(pending, key=lambda job: -job[2]):
            shares = self.nodes.find(gpu_type, gpus, split=True)
            if shares is not None:
                self.hold(job_id, Allocation(gpu_type, gpus, shares))

    # Inside -------------------------------------------------------------------------------------------------------

    def settle_as(self, chosen: Mapping[str, Allocation]) -> None:
        """Assign exactly the chosen nodes; jobs neither chosen nor pinned lose their GPUs."""
        had = self.held
        others = list(compress(had, map(is_not, map(chosen.get, had), had.values())))
        self.release_all([job for job in others if chosen.get(job) != had[job] and job not in self.pins])
        self.hold_all({job_id: chosen[job_id] for job_id in filterfalse(had.__contains__, chosen)})

    def job(self, job_id: str) -> Job:
        """Return a job by id; raises UnknownJobError."""
        try:
            return self.jobs[job_id]
        except KeyError:
            raise UnknownJobError(f"job {job_id!r} is not known: never added, or removed already") from None

    def fits_somewhere(self, job: Job) -> bool:
        """Whether a job would fit on some type of an empty cluster; all types are checked for its first size."""
        sizes = list(self.sizes(job))
        first = [self.fits_empty(job, kind, gpus) for gpus in sizes[:1] for kind in self.nodes.types]
        return any(first) or any(self.fits_empty(job, kind, gpus) for kind in self.nodes.types for gpus in sizes[1:])

    def fits_empty(self, job: Job, gpu_type: str, gpus: int) -> bool:
        """Whether a job would fit on a type of an empty cluster."""
        return gpus <= self.nodes.capacity(gpu_type) and self._can_run(job, gpu_type, gpus)

    def hold(self, job_id: str, allocation: Allocation) -> None:
        """Give a job these free GPUs."""
        self.nodes.take(allocation)
        self.held[job_id] = allocation
        self.services.gpus[self.service[job_id].row] = allocation.gpus

    def hold_again(self, job_id: str, allocation: Allocation) -> None:
        """Release a job's GPUs and give it the same ones: it is then the last one that got GPUs."""
        self.release(job_id)
        self.hold(job_id, allocation)

    def release(self, job_id: str) -> None:
        """Release a job's GPUs, if it has any."""
        held = self.held.pop(job_id, None)
        if held is not None:
            self.nodes.give(held)
            self.services.gpus[self.service[job_id].row] = 0

    def hold_all(self, given: Mapping[str, Allocation]) -> None:
        """Do :meth:`hold` for many jobs without GPUs."""
        self.nodes.take_all(given.values())
        self.held.update(given)
        self.note_gpus(given, [allocation.gpus for allocation in given.values()])

    def release_all(self, job_ids: Sequence[str]) -> None:
        """Do :meth:`release` for many jobs that have GPUs."""
        self.nodes.give_all(map(self.held.pop, job_ids))
        self.note_gpus(job_ids, 0)

    def note_gpus(self, job_ids: Iterable[str], gpus: list[int] | int) -> None:
        """Note how many GPUs jobs have, for their service."""
        self.services.gpus[[service.row for service in map(self.service.__getitem__, job_ids)]] = gpus

    def _serve(self, now_s: float) -> None:
        """Add the service since the last plan of the jobs that had GPUs, whatever the number of the others."""
        if self._last_plan_s is None:  # nobody has waited for a plan before
            np.maximum(self.services.waits_from_s, now_s, out=self.services.waits_from_s)
        elapsed_s = 0.0 if self._last_plan_s is None else max(now_s - self._last_plan_s, 0.0)
        self._last_plan_s = now_s
        self.services.serve(now_s, elapsed_s)
