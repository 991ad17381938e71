"""The scheduler of a cluster, in its own process: a policy that receives deltas and makes plans."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from math import inf
from typing import Any

from copter.runtime.clock import CLOCK
from copter.runtime.errors import CopterError
from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.policy_kit import LpPolicy, RoundPolicy
from copter_frontends.replay.what_if.change import Change
from copter_frontends.replay.what_if.round import Answer, Planned, copied
from copter_frontends.vocabulary import Allocation, Plan, PlanStatus, SchedulingPolicy
from copter_serve.allocation import AllocationPolicy
from copter_serve.service.attained import AttainedBook
from copter_serve.service.cluster_state import Change as DeltaDone
from copter_serve.service.cluster_state import ClusterState
from copter_serve.service.delta import Delta
from copter_serve.service.job_record import JobRecord
from copter_serve.service.plan_book import Allocations, lost_by
from copter_serve.service.policies import make_policy
from copter_serve.service.problems import Problem
from copter_serve.service.start_times import wait_lines, waits_between

LOG = logging.getLogger("copter.serve")

MOST_SKIPPED = 1000  # most skipped jobs named in a plan


class Scheduler:
    """A policy with the jobs, nodes and pins of a :class:`.ClusterState`.

    A policy that fails in a plan or an edit is made anew from the state. If the new one fails too, the jobs added or
    changed since the last successful plan are set aside and listed in ``skipped``. If that fails as well, the last plan
    stays in force without departed jobs and nodes, and ``failure`` says why.

    Parameters
    ----------
    state : ClusterState
        Copied into the policy; later deltas reach both by :meth:`take`.
    allocations : mapping of job id to allocation
        Present allocations of the jobs; the policy gets them as pins that are removed at once.
    version : int
        Number of the last plan.
    attained : AttainedBook, optional
        GPU time of the jobs up to `now_s`, for policies that use it; it is kept up to date.
    now_s : float
        Seconds since the cluster was created.

    Attributes
    ----------
    policy : SchedulingPolicy or None
        None before the cluster has its first node, and after a failure until the next plan.
    failure : str or None
        Why the last plan is not the policy's own; None if it is.
    """

    def __init__(
        self,
        state: ClusterState,
        allocations: Allocations,
        version: int,
        attained: AttainedBook | None = None,
        now_s: float = 0.0,
    ) -> None:
        self.state, self.version = state, version
        self.attained = AttainedBook() if attained is None else attained
        self.policy: SchedulingPolicy | None = None
        self.failure: str | None = None
        self.refused: dict[str, str] = {}
        self._aside: dict[str, str] = {}  # jobs with which the policy fails, and the errors
        self._fresh = state.jobs.keys() - allocations.keys()  # jobs added or changed since the last successful plan
        self._waiting: set[str] = set()  # jobs that the policy refused, offered again when GPUs are added
        self._known: set[str] = set()
        self._sent: Allocations = dict(allocations)
        self._lost: set[str] = set()  # jobs of the last plan whose GPUs deltas took away: the next plan names them
        try:
            self._begin(now_s)
        except Exception as error:
            self._end(error)

    def _begin(self, now_s: float) -> None:
        """Create the policy from the state; there is none while the cluster has no node."""
        self.policy, self._waiting, self._known = None, set(), set()
        self.refused = {name: f"the policy fails with it: {reason}" for name, reason in self._aside.items()}
        if not self.state.type_of_node:
            return
        policy = make_policy(self.state.record, self.state.cluster(), self.state.jobs)
        for job in self.state.jobs.values():
            if job.id not in self._aside:
                self._add(policy, job)
        self._adopt(policy)
        for job_id, (kind, nodes) in self.state.pins.items():
            self._pin(policy, job_id, Allocation(kind, sum(gpus for _, gpus in nodes), nodes))
        if isinstance(policy, RoundPolicy):
            policy.resume(now_s, {name: had for name, had in self.attained.at(now_s).items() if name in self._known})
        self.policy = policy

    def _end(self, error: Exception) -> None:
        """Drop a policy that failed."""
        self.policy = None
        LOG.error("the policy %s failed", self.state.record.policy, exc_info=error)

    # Deltas -------------------------------------------------------------------------------------------------------

    def take(self, change: DeltaDone) -> None:
        """Apply a resolved delta; jobs that the policy refuses are listed as ``skipped`` in the next plan."""
        self.state.apply(change)
        gone = change.get("remove_jobs", ())
        self.attained.forget(gone)
        self._fresh.difference_update(gone)
        self._lost.update(lost_by(change, self._sent))
        come = [told["id"] for name in ("add_jobs", "change_jobs") for told in change.get(name, ())]
        come += [*change.get("throughputs", ()), *change.get("pins", ())]
        self._fresh.update(come)
        back = [name for name in dict.fromkeys([*gone, *come]) if self._aside.pop(name, None) is not None]
        if self.policy is None:
            return  # the next plan makes the policy from the state
        try:
            self._tell(self.policy, change, back)
        except Exception as error:
            self._end(error)

    def _tell(self, policy: SchedulingPolicy, change: DeltaDone, back: Collection[str]) -> None:
        """Pass a delta to the policy; jobs of `back` had been set aside and are offered again."""
        for job_id in change.get("remove_jobs", ()):
            if job_id in self._known:
                policy.remove_job(job_id)
            self._known.discard(job_id)
            self._waiting.discard(job_id)
            self.refused.pop(job_id, None)
        for kind, names in change.get("remove_nodes", {}).items():
            policy.remove_resources(kind, len(names) * self.state.node_gpus[kind], names)
        added = change.get("add_nodes", {})
        for kind, names in added.items():
            policy.add_resources(kind, len(names) * self.state.node_gpus[kind], names)
        for told in change.get("add_jobs", ()):
            self._add(policy, self.state.jobs[told["id"]])
        for job_id in back:
            if job_id in self.state.jobs and job_id not in self._known:
                self._add(policy, self.state.jobs[job_id])
        for told in change.get("change_jobs", ()):
            self._update(policy, told["id"], {name: value for name, value in told.items() if name != "id"})
        for job_id in change.get("throughputs", ()):
            self._measure(policy, job_id)
        if added:
            for job_id in sorted(self._waiting):
                self._add(policy, self.state.jobs[job_id])
        for job_id, pin in change.get("pins", {}).items():
            self._pin(policy, job_id, None if pin is None else allocation_of(pin))

    def _add(self, policy: SchedulingPolicy, job: JobRecord) -> None:
        try:
            if isinstance(policy, AllocationPolicy):
                policy.add_job(job.job(), job.throughputs or None, job.weight)
            else:
                policy.add_job(job.job())
        except CopterError as error:
            self.refused[job.id] = str(error)
            self._waiting.add(job.id)
            return
        self._known.add(job.id)
        self._waiting.discard(job.id)
        self.refused.pop(job.id, None)
        if job.progress or job.restarts:
            self._update(policy, job.id, {"progress": job.progress, "restarts": job.restarts})

    def _update(self, policy: SchedulingPolicy, job_id: str, facts: dict[str, Any]) -> None:
        if not isinstance(policy, AllocationPolicy):
            facts.pop("weight", None)  # other policies have no weights
        if job_id not in self._known or not facts:
            return
        try:
            policy.update_job(job_id, **facts)
        except CopterError as error:
            self.refused[job_id] = str(error)

    def _measure(self, policy: SchedulingPolicy, job_id: str) -> None:
        """Pass a job's throughputs to the policy, unless the policy reads them every round."""
        if job_id in self._waiting:
            self._add(policy, self.state.jobs[job_id])
        elif isinstance(policy, AllocationPolicy):
            self._update(policy, job_id, {"rates": self.state.jobs[job_id].throughputs})

    def _pin(self, policy: SchedulingPolicy, job_id: str, allocation: Allocation | None) -> None:
        if job_id not in self._known:
            return
        try:
            policy.pin(job_id, allocation)
        except CopterError as error:
            self.refused[job_id] = str(error)
        else:
            self.refused.pop(job_id, None)

    def _adopt(self, policy: SchedulingPolicy) -> None:
        """Pass the jobs' current allocations to the policy, by pinning and unpinning."""
        adopted = []
        for job_id, told in self._sent.items():
            if job_id in self._known:
                with suppress(CopterError):  # a policy that cannot keep the allocation plans the job anew
                    policy.pin(job_id, allocation_of(told))
                    adopted.append(job_id)
        for job_id in adopted:
            policy.pin(job_id, None)

    # Rounds -------------------------------------------------------------------------------------------------------

    def plan(self, now_s: float) -> dict[str, Any]:
        """Return the next plan: its header, new or changed allocations, stopped jobs."""
        started = CLOCK.get().monotonic()
        plan = self._plan(now_s)
        now = {job_id: document_of(given) for job_id, given in plan.allocations.items()}
        changed = {
            job_id: given for job_id, given in now.items() if self._sent.get(job_id) != given or job_id in self._lost
        }
        stopped = [job_id for job_id in self._sent if job_id not in now]
        for job_id in stopped:
            self.attained.end(job_id, now_s)
        for job_id, given in changed.items():
            self.attained.give(job_id, given, now_s)
        self._sent = now
        self._lost.clear()
        self.version += 1
        return {
            "header": self._header(plan, now_s, CLOCK.get().monotonic() - started),
            "set": changed,
            "stop": stopped,
        }

    def _plan(self, now_s: float) -> Plan:
        """Return the policy's plan; if it fails, that of a new policy without the new jobs, or the rest of the last
        plan.
        """
        try:
            return self._policys_plan(now_s)
        except Exception as error:
            self._end(error)
            why = f"{type(error).__name__}: {error}"
        before = dict(self._aside)
        for suspects in (set(), self._fresh - self.state.pins.keys()):
            self._aside.update(dict.fromkeys(suspects, why))
            try:
                return self._policys_plan(now_s)
            except Exception as error:
                self._end(error)
        self._aside, self.failure = before, why
        return self._last_plan()

    def _policys_plan(self, now_s: float) -> Plan:
        if self.policy is None:
            self._begin(now_s)
        plan = Plan({}, status=PlanStatus.OPTIMAL)  # the plan of a cluster without nodes
        if self.policy is not None:
            plan = self.policy.plan(now_s, self.state.record.deadline_s)
        self.failure = None
        self._fresh.clear()
        return plan

    def _last_plan(self) -> Plan:
        """Return the pins, and the part of the last plan that fits beside them on existing nodes."""
        free = {node: self.state.node_gpus[kind] for node, kind in self.state.type_of_node.items()}
        pins = {
            job_id: Allocation(kind, sum(gpus for _, gpus in nodes), nodes)
            for job_id, (kind, nodes) in self.state.pins.items()
        }
        others = self._sent.keys() & self.state.jobs.keys() - pins.keys()
        last = {name: allocation_of(told) for name, told in self._sent.items() if name in others}
        kept: dict[str, Allocation] = {}
        for job_id, given in (*pins.items(), *last.items()):
            if all(free.get(node, 0) >= gpus for node, gpus in given.nodes):
                kept[job_id] = given
                for node, gpus in given.nodes:
                    free[node] -= gpus
        stopped = tuple(name for name in self._sent if name not in kept)
        return Plan(kept, stop=stopped, bound=inf, gap=inf, status=PlanStatus.KEPT_PREVIOUS)

    def _header(self, plan: Plan, now_s: float, seconds: float) -> dict[str, Any]:
        skipped = {**plan.skipped, **self.refused}
        used = dict.fromkeys(self.state.node_gpus, 0)
        for given in plan.allocations.values():
            for kind, gpus in given.by_type.items():
                used[kind] = used.get(kind, 0) + gpus
        return {
            "version": self.version,
            "sequence": self.state.sequence,
            "computed_s": now_s,
            "status": plan.status.value,
            "failure": self.failure,
            "objective": plan.objective,
            "bound": plan.bound,
            "gap": plan.gap,
            "prices": {kind: price + 0.0 for kind, price in plan.prices.items()},
            "capacity": self.state.capacity(),
            "used": used,
            "jobs": len(self.state.jobs),
            "running": len(plan.allocations),
            "changes": {"start": len(plan.start), "move": len(plan.move), "stop": len(plan.stop)},
            "fractional_jobs": plan.fractional_jobs,
            "skipped": dict(sorted(skipped.items())[:MOST_SKIPPED]),
            "skipped_count": len(skipped),
            "round_s": seconds,
            "timings": {stage: spent for stage, spent in plan.timings.items() if stage != "observe"},
        }

    def explain(self, job_id: str) -> dict[str, Any]:
        """Explain a job's allocation in the last solved program; raises LookupError if there is no explanation."""
        if job_id in self.refused:
            raise LookupError(f"the policy takes no part of job {job_id!r}: {self.refused[job_id]}")
        if self.policy is None:
            raise LookupError("there is no plan of the policy yet; ask again after the next")
        if isinstance(self.policy, ChronusPolicy):
            if job_id not in self.policy.jobs:
                raise LookupError(f"job {job_id!r} is not known")
            return self.policy.explained(job_id)
        if not isinstance(self.policy, LpPolicy):
            raise LookupError(
                f"the policy {self.state.record.policy!r} solves no linear program that could explain a job"
            )
        solution = self.policy.last_solution
        if solution is None:
            raise LookupError("there is no plan yet; ask again after the first")
        try:
            return solution.explain(job_id).as_dict()
        except CopterError as error:
            raise LookupError(f"job {job_id!r} is not in the program of the last plan: {error}") from None

    def quote(self, told: Any, now_s: float) -> dict[str, Any]:
        """Return what a job would be promised if it came now, and deadlines that could be; nothing is committed.

        A copy of the scheduler takes the job.

        Parameters
        ----------
        told : object
            The job, as in a delta's ``add_jobs``.

        Raises
        ------
        Problem
            If the job is not a valid new one, or the policy refuses it.
        LookupError
            If the policy promises no deadlines.
        """
        if not isinstance(self.policy, ChronusPolicy):
            raise LookupError(f"the policy {self.state.record.policy!r} promises no deadlines, or has no plan yet")
        delta = Delta.read({"add_jobs": [told]})
        after, (job_id,) = copied(self), delta.add_jobs
        after.take(after.state.resolve(delta, now_s))
        if not isinstance(after.policy, ChronusPolicy) or job_id in after.refused:
            raise Problem(422, f"the policy refuses it: {after.refused.get(job_id, 'it fails')}", "/add_jobs/0")
        return after.policy.explained(job_id)

    def what_if(self, text: str, now_s: float) -> dict[str, Any]:
        """Return the effect of a change on the present plan; this scheduler is not changed in any way.

        Two copies of the scheduler plan, one of them after the change.

        Raises
        ------
        WhatIfError, Problem
            If the change cannot be read or does not fit the cluster.
        LookupError
            If the policy fails in one of the copies.
        """
        delta = Delta.read(Change.read(text).delta(self.state.capacity()))
        before, after = copied(self), copied(self)
        after.take(after.state.resolve(delta, now_s))
        try:
            old, new = (Planned.of(each._policys_plan(now_s), each.policy) for each in (before, after))
        except Exception as error:
            raise LookupError(f"the policy fails: {type(error).__name__}: {error}") from error
        answer = Answer.of(text, old, new, (len(before.state.jobs), len(after.state.jobs)))
        refused = {name: why for name, why in after.refused.items() if name not in self.refused}
        waits = waits_between((before.state, _held_in(old.plan)), (after.state, _held_in(new.plan)))
        text_of_all = "\n".join([answer.as_text(), *wait_lines(waits)])
        return {**answer.as_dict(), "refused": refused, "waits": waits, "text": text_of_all}


def _held_in(plan: Plan) -> dict[str, dict[str, int]]:
    """Return the GPUs of each type that each job of a plan has."""
    return {job: dict(each.mixture) or {each.gpu_type: each.gpus} for job, each in plan.allocations.items()}


def allocation_of(told: Mapping[str, Any]) -> Allocation:
    """Return an allocation from its document."""
    nodes = tuple(sorted(told["nodes"].items()))
    mixture = tuple(told["mixture"].items()) if told.get("mixture") else ()
    return Allocation(told["gpu_type"], sum(gpus for _, gpus in nodes), nodes, mixture)


def document_of(given: Allocation) -> dict[str, Any]:
    """Return an allocation as a JSON document."""
    found: dict[str, Any] = {"gpu_type": given.gpu_type, "gpus": given.gpus, "nodes": dict(given.nodes)}
    if given.mixture:
        found["mixture"] = dict(given.mixture)
    return found
