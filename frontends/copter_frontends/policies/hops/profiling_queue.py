"""The profiling queue: new jobs first run a few iterations on one GPU of every type (section 3.2; HP12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, Protocol, runtime_checkable

from copter_frontends.policies.hops.errors import ThroughputError
from copter_frontends.policies.hops.estimator import ThroughputEstimator
from copter_frontends.policies.hops.iteration_time import IterationTimes
from copter_frontends.policies.hops.policy import HopsPolicy
from copter_frontends.policies.hops.profiling import profile_by_gpu
from copter_frontends.policies.hops.requirements import RequirementSet, requirements_of
from copter_frontends.vocabulary import Allocation, CapacityInUseError, DuplicateJobError, InvalidJobError, Job, Plan

Truth = Mapping[str, Mapping[str, IterationTimes]]
PROBE = "(profiling)"  # application of a probe, whose rates do not matter because it is pinned


@runtime_checkable
class IterationModel(Protocol):
    """Interface of a goodput model of jobs whose iterations can be measured."""

    def iteration_times(self) -> Truth:
        """Return the true parts of an iteration by application and GPU type."""


@dataclass(slots=True)
class Entry:
    """A job waiting for its profile: requirements, GPU types still to start, and running probes."""

    job: Job
    requirements: RequirementSet | None
    to_begin: list[str]
    probes: dict[str, float] = field(default_factory=dict)  # id -> time at which the probe ends


class ProfilingQueue:
    """A Hops policy that profiles new jobs first.

    At the start of a round, probes take one GPU of every GPU type (``gpu`` of ``gpu-server``) for whole rounds: an idle
    one, or one of the smallest job that may be stopped. The other GPUs are planned. A job joins when all its probes
    have ended; only then does the estimator have its application's profile.

    Parameters
    ----------
    policy : HopsPolicy
    estimator : ThroughputEstimator
        The policy's estimator.
    truth : mapping of application to mapping of type to IterationTimes
        True times, which the probes measure.
    iterations : int
        Iterations of a profiling run on one GPU.
    each : bool
        Whether every job is profiled, or only the first of each application.
    start_s : float
        Seconds before the first iteration.
    seed : int

    Attributes
    ----------
    probing : list of int
        Number of GPUs of probes at each plan.
    """

    def __init__(
        self,
        policy: HopsPolicy,
        estimator: ThroughputEstimator,
        truth: Truth,
        iterations: int = 50,
        each: bool = False,
        start_s: float = 30.0,
        seed: int = 0,
    ) -> None:
        if iterations < 1 or not start_s >= 0:
            raise ThroughputError(f"profiling: iterations is {iterations} and start_s {start_s}; must be >= 1 and >= 0")
        self._policy, self._estimator, self._truth = policy, estimator, truth
        self.iterations, self.each, self.start_s, self.seed = iterations, each, start_s, seed
        self.probing: list[int] = []
        self._entries: list[Entry] = []
        self._known: set[str] = set()  # applications with a profile in the estimator
        self._behind: dict[str, list[Entry]] = {}  # jobs that wait for the profile of another job of their application
        self._kinds: dict[str, list[str]] = {}
        for kind in policy.nodes.types:
            self._kinds.setdefault(kind.partition("-")[0], []).append(kind)
        estimator.profile(Job("probe", PROBE), next(iter(truth.values())))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    @property
    def waiting(self) -> int:
        """Number of jobs that have not joined."""
        return len(self._all())

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job, requirements: RequirementSet | Iterable[int] | None = None) -> None:
        """Queue a job for profiling, or add it at once if its application's profile is known.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If the id is already known; if probes cannot run its application, or its requirements fit nowhere.
        """
        wanted = requirements
        if wanted is not None and not isinstance(wanted, RequirementSet):
            wanted = RequirementSet.of(wanted)
        if job.id in self._policy.jobs or any(job.id == entry.job.id for entry in self._all()):
            raise DuplicateJobError(f"job {job.id!r} is in the queue already; remove it first")
        if job.application not in self._truth:
            raise InvalidJobError(f"job {job.id!r}: {job.application!r} cannot be profiled; known: {list(self._truth)}")
        gpus = {kind: self._policy.nodes.capacity(kind) for kind in self._policy.nodes.types}
        (wanted or requirements_of(job)).check_within(job.id, gpus)
        entry = Entry(job, wanted, list(self._kinds))
        if not self.each and job.application in self._known:
            self._policy.add_job(job, wanted)
        elif not self.each and job.application in self._behind:
            self._behind[job.application].append(entry)
        else:
            self._entries.append(entry)
            self._behind.setdefault(job.application, [])

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Pass updates of an admitted job on."""
        self._policy.update_job(job_id, **what_changed)

    def remove_job(self, job_id: str) -> None:
        """Delete a job; a waiting one only leaves the queue."""
        for entries in (self._entries, *self._behind.values()):
            for entry in entries:
                if entry.job.id == job_id:
                    entries.remove(entry)
                    for probe in entry.probes:
                        self._policy.remove_job(probe)
                    return
        self._policy.remove_job(job_id)

    # The round ----------------------------------------------------------------------------------------------------

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """End finished probes, start others, and plan the remaining GPUs."""
        for entry in list(self._entries):
            for probe in [probe for probe, end_s in entry.probes.items() if end_s <= now_s + 1e-6]:
                self._policy.remove_job(probe)
                del entry.probes[probe]
            if not entry.to_begin and not entry.probes:
                self._entries.remove(entry)
                self._join(entry)
        for entry in self._entries:
            entry.to_begin = [gpu for gpu in entry.to_begin if not self._begin(entry, gpu, now_s)]
        plan = self._policy.plan(now_s, deadline_s)
        probes = {probe for entry in self._entries for probe in entry.probes}
        self.probing.append(len(probes))
        return replace(
            plan,
            allocations={job: given for job, given in plan.allocations.items() if job not in probes},
            start=tuple(job for job in plan.start if job not in probes),
        )

    def seconds(self, application: str, gpu: str) -> float:
        """Return the length of a profiling run on a GPU type, for its slowest server."""
        parts = self._truth[application]
        return self.start_s + self.iterations * max(parts[kind].seconds(1, 1) for kind in self._kinds[gpu])

    # Inside -------------------------------------------------------------------------------------------------------

    def _all(self) -> list[Entry]:
        return [entry for entries in (self._entries, *self._behind.values()) for entry in entries]

    def _join(self, entry: Entry) -> None:
        name = entry.job.application
        if name not in self._known:
            gpus = {kind: self._policy.nodes.capacity(kind) for kind in self._policy.nodes.types}
            seed = self.seed + len(self._known)
            profile_by_gpu(self._estimator, {name: self._truth[name]}, gpus, seed, self.iterations)
            self._known.add(name)
        for each in (entry, *self._behind.pop(name, [])):
            self._policy.add_job(each.job, each.requirements)

    def _begin(self, entry: Entry, gpu: str, now_s: float) -> bool:
        """Give a job's probe a GPU; returns whether one was available."""
        policy = self._policy
        probe = f"profiling {entry.job.id} on {gpu}"
        rounds = ceil(self.seconds(entry.job.application, gpu) / policy.round_s)
        for kind, node in self._places(gpu):
            policy.add_job(Job(probe, PROBE, now_s, work_samples=1.0), [1])
            try:
                policy.pin(probe, Allocation(kind, 1, ((node, 1),)))
            except CapacityInUseError:
                policy.remove_job(probe)
                continue
            entry.probes[probe] = now_s + rounds * policy.round_s
            return True
        return False

    def _places(self, gpu: str) -> list[tuple[str, str]]:
        """Return (type, node) candidates for a probe: nodes with an idle GPU, fullest first, otherwise by smallest
        job.
        """
        policy = self._policy
        smallest: dict[str, int] = {}
        for job, held in policy.held.items():
            if job not in policy.pins:
                for node, _ in held.nodes:
                    smallest[node] = min(smallest.get(node, held.gpus), held.gpus)
        found: list[tuple[int, int, str, str]] = []
        for kind in self._kinds[gpu]:
            for node, free in policy.nodes.free_by_node(kind).items():
                if free or node in smallest:
                    found.append((0, free, kind, node) if free else (1, smallest[node], kind, node))
        return [(kind, node) for _, _, kind, node in sorted(found)]
