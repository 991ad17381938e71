"""Ageing: a bound on waiting for any policy, by turns for the jobs that have waited longest (B46)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from copter.runtime.errors import SettingsError
from copter_frontends.policy_kit.node_inventory import NodeInventory
from copter_frontends.policy_kit.throughputs import requested_gpus
from copter_frontends.vocabulary import (
    Allocation,
    Cluster,
    FrontendError,
    Job,
    Plan,
    SchedulingPolicy,
    UnknownJobError,
    at_once,
    tell_jobs,
    tell_progress,
)

TURN_SHARE = 0.25  # seconds of a turn, as a share of the wait before it
TURN_ROUNDS = 4  # least rounds of a turn, so that a job gets past its restart


@dataclass(frozen=True, slots=True)
class Turn:
    """GPUs that a job keeps until a time."""

    allocation: Allocation
    until_s: float


class Ageing:
    """A policy with a bound on waiting: a job that has waited for `after_s` seconds gets GPUs for a turn.

    Turns are given in order of waiting, by pins of the policy, which plans all other GPUs. A job whose GPUs are in
    other turns keeps its place: no job that has waited less overtakes it. So a job waits for at most `after_s`, and a
    turn and a round for each job that has waited longer (B46).

    Parameters
    ----------
    policy : SchedulingPolicy
        It must stop other jobs for a pin.
    cluster : Cluster
        Read, never changed.
    after_s : float
        Seconds of waiting after which a job gets a turn.
    """

    def __init__(self, policy: SchedulingPolicy, cluster: Cluster, after_s: float) -> None:
        if not after_s > 0:
            raise SettingsError(f"ageing after {after_s} s: must be more than 0 s")
        self.policy, self.after_s = policy, after_s
        self._nodes = NodeInventory(cluster)
        self._jobs: dict[str, Job] = {}
        self._came: dict[str, int] = {}  # by job, the number of entries that were made before it came
        self._since: dict[str, tuple[float, int, str]] = {}  # entry of each job without GPUs: time from which it waits
        self._waits: list[tuple[float, int, str]] = []  # heap of entries, also of jobs that have GPUs or left since
        self._noted = 0  # entries made so far: among equal times, the one made first is first
        self._held: dict[str, Allocation] = {}
        self._pins: dict[str, Allocation] = {}  # those of the caller
        self._turns: dict[str, Turn] = {}

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the policy: its figures, its linear program."""
        if name.startswith("__") or "policy" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.policy, name)

    @property
    def turn_s(self) -> float:
        """Seconds of a turn."""
        return max(TURN_SHARE * self.after_s, TURN_ROUNDS * self.policy.round_s)

    @property
    def waiting_bound(self) -> str:
        """The bound in words."""
        running = "" if self.policy.stops_jobs else ", once running jobs end"
        return f"{self.after_s / 3600.0:g} h, and a turn for each job that has waited longer{running}"

    @property
    def round_s(self) -> float:
        """Seconds between plans."""
        return self.policy.round_s

    @round_s.setter
    def round_s(self, seconds: float) -> None:
        self.policy.round_s = seconds

    # Changes ------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Add a job to the policy; it waits from its submission on."""
        self.policy.add_job(job)
        self._note(job)

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Do :meth:`add_job` for each job, in one call of the policy if it has one; on an error none is added."""
        add_jobs, added = at_once(self.policy, "add_jobs", "add_job"), list[str]()
        if add_jobs is not None:
            add_jobs(jobs)
        else:
            try:
                for job in jobs:
                    self.policy.add_job(job)
                    added.append(job.id)
            except Exception:
                for job_id in reversed(added):
                    self.policy.remove_job(job_id)
                raise
        for job in jobs:
            self._note(job)

    def _note(self, job: Job) -> None:
        self._jobs[job.id], self._came[job.id] = job, self._noted
        self._wait(job.id, job.submit_s)

    def _wait(self, job_id: str, since_s: float) -> None:
        """Note that a job waits from this time on."""
        self._since[job_id] = since_s, self._noted, job_id
        heappush(self._waits, self._since[job_id])
        self._noted += 1

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Tell the policy of a change."""
        self.policy.update_job(job_id, **what_changed)

    def update_jobs(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Do :meth:`update_job` for each job, in one call of the policy if it has one."""
        tell_jobs(self.policy, told)

    def update_progress(self, progress: Mapping[str, float]) -> None:
        """Set the progress of many jobs, in one call of the policy if it has one."""
        tell_progress(self.policy, progress)

    def remove_job(self, job_id: str) -> None:
        """Remove a job from the policy and end its turn."""
        self.policy.remove_job(job_id)
        self._forget(job_id)

    def remove_jobs(self, job_ids: Sequence[str]) -> None:
        """Do :meth:`remove_job` for each job; if one is unknown, none is removed."""
        for job_id in job_ids:
            if job_id not in self._jobs:
                raise UnknownJobError(f"there is no job {job_id!r}")
        remove_jobs = at_once(self.policy, "remove_jobs", "remove_job")
        if remove_jobs is not None:
            remove_jobs(job_ids)
        for job_id in dict.fromkeys(job_ids):
            if remove_jobs is None:
                self.policy.remove_job(job_id)
            self._forget(job_id)

    def _forget(self, job_id: str) -> None:
        for each in (self._jobs, self._came, self._since, self._pins, self._turns, self._held):
            each.pop(job_id, None)

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add GPUs to the policy."""
        names = tuple(nodes)
        self.policy.add_resources(gpu_type, count, names)
        self._nodes.add(gpu_type, count, names)

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Remove GPUs from the policy; turns on them end."""
        names = tuple(nodes)
        on = {node for pin in self._pins.values() for node, _ in pin.nodes}
        gone = set(self._nodes.choose(gpu_type, count, names, on))
        for job_id, turn in list(self._turns.items()):
            if any(node in gone for node, _ in turn.allocation.nodes):
                self._end(job_id)
        self.policy.remove_resources(gpu_type, count, tuple(sorted(gone)))
        self._nodes.drop(gpu_type, gone)

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Pin a job to an allocation; after the pin a turn that goes on keeps its own."""
        turn = self._turns.get(job_id)
        if allocation is None:
            self._pins.pop(job_id, None)
            self.policy.pin(job_id, None if turn is None else turn.allocation)
            return
        self.policy.pin(job_id, allocation)
        self._pins[job_id] = allocation

    # The round ----------------------------------------------------------------------------------------------------

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Give turns to the jobs that have waited for too long, then let the policy plan the rest."""
        for job_id in [name for name, turn in self._turns.items() if turn.until_s <= now_s]:
            self._end(job_id)
        self._give_turns(now_s)
        plan = self.policy.plan(now_s, deadline_s)
        for job_id in plan.allocations:
            self._since.pop(job_id, None)
        stopped = [job_id for job_id in self._held if job_id not in plan.allocations]
        for job_id in sorted(stopped, key=self._came.__getitem__):
            self._wait(job_id, now_s)
        self._held = dict(plan.allocations)
        return plan

    def _end(self, job_id: str) -> None:
        del self._turns[job_id]
        if job_id not in self._pins:
            self.policy.pin(job_id, None)

    def _give_turns(self, now_s: float) -> None:
        """Give turns in order of waiting, until one must wait for the turns of others."""
        again = list[tuple[float, int, str]]()  # jobs that wait on unless the plan has GPUs for them
        while self._waits and now_s - self._waits[0][0] >= self.after_s:
            first = heappop(self._waits)
            job_id = first[2]
            if self._since.get(job_id) != first:
                continue
            again.append(first)
            given = self._place(job_id)
            if given is not None:
                self._turns[job_id] = Turn(given, now_s + self.turn_s)
            elif self._turns and self._runs_without_turns(job_id):
                break
        for each in again:
            heappush(self._waits, each)

    def _place(self, job_id: str) -> Allocation | None:
        """Pin a job to GPUs, free ones if there are any; None if the policy accepts no pin."""
        for others in (True, False):
            for allocation in self._candidates(self._jobs[job_id], self._taken(others)):
                try:
                    self.policy.pin(job_id, allocation)
                except FrontendError:
                    continue
                return allocation
        return None

    def _candidates(self, job: Job, taken: Sequence[Allocation]) -> Iterator[Allocation]:
        """Yield what a job could get beside other allocations: as many GPUs as it asked for, or its least number."""
        for allocation in taken:
            self._nodes.take(allocation)
        try:
            sizes = dict.fromkeys((requested_gpus(job), job.min_gpus if job.gpus is None else job.gpus))
            found = [
                Allocation(kind, gpus, shares)
                for gpus in sizes
                for kind in sorted(self._nodes.types, key=lambda kind: -self._nodes.free(kind))
                if (shares := self._nodes.find(kind, gpus, split=True)) is not None
            ]
        finally:
            for allocation in taken:
                self._nodes.give(allocation)
        yield from found

    def _taken(self, others: bool) -> list[Allocation]:
        """Return what is in pins, turns and jobs that may not be stopped; with `others`, all that is held."""
        fixed = {name: turn.allocation for name, turn in self._turns.items()} | self._pins
        for name, held in self._held.items():
            job = self._jobs.get(name)
            there = all(self._nodes.has(kind, node) for kind in (held.gpu_type,) for node, _ in held.nodes)
            if there and name not in fixed and (others or job is None or not job.preemptible) and not held.mixture:
                fixed[name] = held
        return list(self._fitting(fixed.values()))

    def _fitting(self, allocations: Iterable[Allocation]) -> Iterator[Allocation]:
        """Yield the allocations that fit beside those before them: a job's next GPUs may overlap another's last."""
        used: dict[str, int] = {}
        for each in allocations:
            room = self._nodes.free_by_node(each.gpu_type)
            if all(used.get(node, 0) + gpus <= room.get(node, 0) for node, gpus in each.nodes):
                for node, gpus in each.nodes:
                    used[node] = used.get(node, 0) + gpus
                yield each

    def _runs_without_turns(self, job_id: str) -> bool:
        """Whether a job would fit if no other job had a turn."""
        job = self._jobs[job_id]
        least = job.min_gpus if job.gpus is None else job.gpus
        return any(least <= self._nodes.capacity(kind) for kind in self._nodes.types)
