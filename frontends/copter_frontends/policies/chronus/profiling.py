"""Profiling on every GPU type: which type and GPUs a job is profiled on, and what was measured (C21)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from copter_frontends.policies.chronus.job_modes import JobModes
from copter_frontends.policies.chronus.options import Ints
from copter_frontends.policies.chronus.profiler import Profiler
from copter_frontends.policy_kit import BookedService, Wanted, requested_gpus
from copter_frontends.vocabulary import Job

PROFILED_NODES = 2  # profiles run on at most so many nodes; speeds on more nodes are extrapolated


@dataclass(slots=True)
class Profiling:
    """Profilers of all GPU types, and the measurements of jobs.

    A job is profiled on one of the types that can run it and where jobs like it were not measured, the one with the
    shortest queue. A job of one or two nodes is profiled on its GPUs, a larger one on two nodes and then on one.

    Parameters
    ----------
    profiler : Profiler or None
        Profiler of the first type, and settings of the others; None to profile no job.
    modes : JobModes
        Where measurements are kept.
    """

    profiler: Profiler | None
    modes: JobModes
    by_type: dict[str, Profiler] = field(init=False)
    _of: dict[str, str] = field(default_factory=dict)  # GPU type by job id
    _before: dict[str, float] = field(default_factory=dict)  # progress before the current profile, by job id

    def __post_init__(self) -> None:
        first = self.profiler
        kinds = () if first is None else self.modes.nodes.types
        self.by_type = {kind: first if k == 0 else first.on_another_type() for k, kind in enumerate(kinds) if first}

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._of

    @property
    def jobs(self) -> Collection[str]:
        """Return the jobs that are profiled or wait for it."""
        return self._of.keys()

    @property
    def running(self) -> bool:
        """Return whether some job is being profiled."""
        return any(profiler.running for profiler in self.by_type.values())

    def submit(self, job: Job) -> bool:
        """Queue a job for its profile; returns False if it needs none, or no type can profile it."""
        choices = [
            (profiler.load / self.modes.nodes.capacity(kind), number, kind, counts)
            for number, (kind, profiler) in enumerate(self.by_type.items())
            if (counts := self._counts(job, kind, profiler))
        ]
        if not choices:
            return False
        *_, kind, counts = min(choices)
        self.by_type[kind].submit(job.id, counts[0], job.submit_s, tuple(counts[1:]))
        self._of[job.id], self._before[job.id] = kind, 0.0
        return True

    def withdraw(self, job_id: str) -> None:
        """Remove a job that has ended or was cancelled."""
        kind = self._of.pop(job_id, None)
        if kind is not None:
            self.by_type[kind].withdraw(job_id)
            del self._before[job_id]

    def step(
        self, now_s: float, promised: Iterable[int], jobs: Mapping[str, Job], service: Mapping[str, BookedService]
    ) -> list[tuple[Job, float | None]]:
        """Run a round on every type; returns the jobs whose profiles are done, and those that need none any more.

        Parameters
        ----------
        now_s : float
        promised : iterable of int
            Most GPUs of each type that are promised in one lease.
        jobs, service : mappings of job id to Job and Service

        Returns
        -------
        list of (Job, float or None)
            Jobs with their measured over their declared time; None if the profile contains no information.
        """
        result = []
        for (kind, profiler), reserved in zip(self.by_type.items(), promised, strict=True):
            size, most = self.modes.nodes.node_gpus(kind), self.modes.nodes.capacity(kind)
            for job_id, (gpus, ran_s) in profiler.ended(now_s).items():
                progress = self._before[job_id], service[job_id].progress
                self.modes.note_profile(jobs[job_id], kind, gpus, ran_s, progress)
                self._before[job_id] = progress[1]
            known = [job_id for job_id in profiler.queue if not self._counts(jobs[job_id], kind, profiler)]
            for job_id in known:
                profiler.withdraw(job_id)
            for job_id in [*known, *profiler.step(now_s, size, (most - int(reserved)) // size * size)]:
                del self._of[job_id], self._before[job_id]
                result.append((jobs[job_id], self.modes.measured(jobs[job_id], kind, requested_gpus(jobs[job_id]))))
        return result

    def wanted(self, left: dict[str, int], pins: Collection[str]) -> Wanted:
        """Return GPU type and GPUs of the jobs being profiled; subtracts the profilers' GPUs from `left`."""
        chosen: Wanted = {}
        for kind, profiler in self.by_type.items():
            chosen.update(profiler.wanted(kind, left, pins))
        return chosen

    def aside(self) -> Ints:
        """Return the GPUs of each type that are reserved for profiles."""
        sizes = [max(profiler.target, profiler.gpus) for profiler in self.by_type.values()]
        return np.array(sizes or [0] * len(self.modes.nodes.types), dtype=np.int64)

    def _counts(self, job: Job, kind: str, profiler: Profiler) -> Sequence[int]:
        """Return the GPUs of a job's profiles on a type; none if it does not run there or its times are known."""
        nodes, asked = self.modes.nodes, requested_gpus(job)
        size, most = nodes.node_gpus(kind), min(PROFILED_NODES, profiler.nodes or PROFILED_NODES)
        if asked > nodes.capacity(kind) or not self.modes(job, kind, asked):
            return ()
        if not profiler.every and self.modes.seen.estimate(job, kind, asked, size) is not None:
            return ()
        if asked <= most * size:
            return (asked,)
        every = [count for count in (2 * size, size)[-most:] if self.modes(job, kind, count)]
        return every if profiler.every else [n for n in every if self.modes.seen.seconds(job, kind, n) is None]
