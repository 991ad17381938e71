"""The scheduler's side of a cluster, in a process of its own: a policy that is told of deltas and asked for plans."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from copter.errors import CopterError
from copter_frontends.allocation import AllocationPolicy
from copter_frontends.policy_kit import Attained, LpPolicy, RoundPolicy
from copter_frontends.serve.cluster_state import Change, ClusterState
from copter_frontends.serve.job_record import JobRecord
from copter_frontends.serve.plan_book import Allocations
from copter_frontends.serve.policies import make_policy
from copter_frontends.vocabulary import Allocation, Plan

MOST_SKIPPED = 1000  # named in a plan


class Scheduler:
    """A policy with the jobs, nodes and pins of a :class:`.ClusterState`.

    Parameters
    ----------
    state : ClusterState
        Copied into the policy; from then on :meth:`take` brings the deltas, to both.
    allocations : mapping of job id to allocation
        What jobs hold now; they are told to the policy as pins that end at once.
    version : int
        Number of the last plan.
    attained : mapping of job id to Attained, optional
        What jobs have had up to `now_s`, for policies that go by it.
    now_s : float
        Seconds since the cluster was made.
    """

    def __init__(
        self,
        state: ClusterState,
        allocations: Allocations,
        version: int,
        attained: Mapping[str, Attained] | None = None,
        now_s: float = 0.0,
    ) -> None:
        self.state, self.version = state, version
        self.policy = make_policy(state.record, state.cluster(), state.jobs)
        self.refused: dict[str, str] = {}
        self._waiting: set[str] = set()  # jobs that the policy refused, to be offered again when GPUs come
        self._known: set[str] = set()
        self._sent: Allocations = {}
        for job in state.jobs.values():
            self._add(job)
        self._adopt(allocations)
        for job_id, (kind, nodes) in state.pins.items():
            self._pin(job_id, Allocation(kind, sum(gpus for _, gpus in nodes), nodes))
        if attained is not None and isinstance(self.policy, RoundPolicy):
            self.policy.resume(now_s, attained)

    # Deltas -------------------------------------------------------------------------------------------------------

    def take(self, change: Change) -> None:
        """Do a resolved delta. What the policy refuses of it stands in the next plan's ``skipped``."""
        self.state.apply(change)
        for job_id in change.get("remove_jobs", ()):
            self._remove(job_id)
        for kind, names in change.get("remove_nodes", {}).items():
            self.policy.remove_resources(kind, len(names) * self.state.node_gpus[kind], names)
        added = change.get("add_nodes", {})
        for kind, names in added.items():
            self.policy.add_resources(kind, len(names) * self.state.node_gpus[kind], names)
        for told in change.get("add_jobs", ()):
            self._add(self.state.jobs[told["id"]])
        for told in change.get("change_jobs", ()):
            self._update(told["id"], {name: value for name, value in told.items() if name != "id"})
        for job_id in change.get("throughputs", ()):
            self._measure(job_id)
        if added:
            for job_id in sorted(self._waiting):
                self._add(self.state.jobs[job_id])
        for job_id, told in change.get("pins", {}).items():
            self._pin(job_id, None if told is None else allocation_of(told))

    def _add(self, job: JobRecord) -> None:
        try:
            if isinstance(self.policy, AllocationPolicy):
                self.policy.add_job(job.job(), job.throughputs or None, job.weight)
            else:
                self.policy.add_job(job.job())
        except CopterError as error:
            self.refused[job.id] = str(error)
            self._waiting.add(job.id)
            return
        self._known.add(job.id)
        self._waiting.discard(job.id)
        self.refused.pop(job.id, None)
        if job.progress or job.restarts:
            self._update(job.id, {"progress": job.progress, "restarts": job.restarts})

    def _remove(self, job_id: str) -> None:
        if job_id in self._known:
            self.policy.remove_job(job_id)
            self._known.discard(job_id)
        self._waiting.discard(job_id)
        self.refused.pop(job_id, None)

    def _update(self, job_id: str, facts: dict[str, Any]) -> None:
        if not isinstance(self.policy, AllocationPolicy):
            facts.pop("weight", None)  # other policies know no weights
        if job_id not in self._known or not facts:
            return
        try:
            self.policy.update_job(job_id, **facts)
        except CopterError as error:
            self.refused[job_id] = str(error)

    def _measure(self, job_id: str) -> None:
        """Tell the policy of a job's throughputs; those that ask for them each round know already."""
        if job_id in self._waiting:
            self._add(self.state.jobs[job_id])
            return
        if not isinstance(self.policy, AllocationPolicy):
            return
        self._update(job_id, {"rates": self.state.jobs[job_id].throughputs})

    def _pin(self, job_id: str, allocation: Allocation | None) -> None:
        if job_id not in self._known:
            return
        try:
            self.policy.pin(job_id, allocation)
        except CopterError as error:
            self.refused[job_id] = str(error)
        else:
            self.refused.pop(job_id, None)

    def _adopt(self, allocations: Allocations) -> None:
        """Tell the policy what jobs hold: a pin, and its end."""
        adopted = []
        for job_id, told in allocations.items():
            if job_id in self._known:
                with suppress(CopterError):  # a policy that cannot keep it plans the job afresh
                    self.policy.pin(job_id, allocation_of(told))
                    adopted.append(job_id)
        for job_id in adopted:
            self.policy.pin(job_id, None)
        self._sent = dict(allocations)

    # Rounds -------------------------------------------------------------------------------------------------------

    def plan(self, now_s: float) -> dict[str, Any]:
        """The next plan: its header, the allocations that are new or others, the jobs that stop."""
        started = time.perf_counter()
        plan = self.policy.plan(now_s, self.state.record.deadline_s)
        now = {job_id: document_of(given) for job_id, given in plan.allocations.items()}
        changed = {job_id: given for job_id, given in now.items() if self._sent.get(job_id) != given}
        stopped = [job_id for job_id in self._sent if job_id not in now]
        self._sent = now
        self.version += 1
        return {
            "header": self._header(plan, now_s, time.perf_counter() - started),
            "set": changed,
            "stop": stopped,
        }

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
        """Why a job got what it got, in the last solved program; LookupError where nothing can be said."""
        if job_id in self.refused:
            raise LookupError(f"the policy takes no part of job {job_id!r}: {self.refused[job_id]}")
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


def allocation_of(told: Mapping[str, Any]) -> Allocation:
    """An allocation from its document."""
    nodes = tuple(sorted(told["nodes"].items()))
    mixture = tuple(told["mixture"].items()) if told.get("mixture") else ()
    return Allocation(told["gpu_type"], sum(gpus for _, gpus in nodes), nodes, mixture)


def document_of(given: Allocation) -> dict[str, Any]:
    """An allocation as JSON has it."""
    found: dict[str, Any] = {"gpu_type": given.gpu_type, "gpus": given.gpus, "nodes": dict(given.nodes)}
    if given.mixture:
        found["mixture"] = dict(given.mixture)
    return found
