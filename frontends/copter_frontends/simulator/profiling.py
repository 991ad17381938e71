"""Profiling that occupies GPUs: before a job joins, its steps are measured on one GPU of every type.

A *probe* is a job with one reserved GPU, which the policy treats like any other job. It measures waiting jobs one after
another while its rounds have time. A job joins when it has been measured on every type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from copter_frontends.simulator.errors import SimulationError
from copter_frontends.vocabulary import Allocation, Job
from copter_frontends.vocabulary.semantics import Semantics

MOST_ELSEWHERE = 10  # the run stops if a probe has had other GPUs than it reserved in more rounds than this


@dataclass(slots=True)
class Probe:
    """One GPU that measures jobs: the jobs' rows, the remaining rounds, and the rounds on other GPUs."""

    job: Job
    rows: tuple[int, ...]
    rounds: int
    elsewhere: int = 0


class ProfilingQueue:
    """Jobs waiting to be measured, and current measurements.

    Parameters
    ----------
    capacity : mapping of GPU type to int
    semantics : Semantics
        Its `profiling_s` and `profiling_share` are used.
    round_s : float
    """

    def __init__(self, capacity: Mapping[str, int], semantics: Semantics, round_s: float) -> None:
        share, seconds = semantics.profiling_share, max(semantics.profiling_s, 1e-9)
        if share is None:
            raise SimulationError("profiling takes no GPUs under these semantics: profiling_share is None")
        self._most = {kind: max(1, math.floor(share * gpus)) for kind, gpus in capacity.items() if gpus}
        self._each = max(1, math.floor(round_s / seconds))
        self._rounds = max(1, math.ceil(seconds / round_s))
        self._waiting: dict[str, list[int]] = {kind: [] for kind in self._most}
        self._missing: dict[int, set[str]] = {}
        self._jobs: dict[int, Job] = {}
        self._ready: list[int] = []
        self._count = 0
        self.probes: dict[str, Probe] = {}

    def __len__(self) -> int:
        """Number of jobs that have not joined."""
        return len(self._missing) + len(self._ready)

    def enter(self, row: int, job: Job, kinds: Iterable[str]) -> None:
        """Queue a job; it is ready at once if it needs no measurement."""
        wanted = [kind for kind in kinds if kind in self._waiting]
        if not wanted:
            self._ready.append(row)
            return
        self._missing[row], self._jobs[row] = set(wanted), job
        for kind in wanted:
            self._waiting[kind].append(row)

    def take_ready(self) -> list[int]:
        """Remove and return the rows measured on all types, in order of arrival."""
        ready, self._ready = sorted(self._ready), []
        return ready

    def new_probes(self) -> list[Job]:
        """Return probes for waiting jobs, up to each type's share of GPUs; :meth:`refused` withdraws one."""
        made = []
        for kind, rows in self._waiting.items():
            free = self._most[kind] - sum(probe.job.reservation == (kind, 1) for probe in self.probes.values())
            while rows and free > 0:
                mine, rows[:] = tuple(rows[: self._each]), rows[self._each :]
                first = self._jobs[mine[0]]
                job = Job(
                    id=f"profiling {self._count} of {first.id}",
                    submit_s=first.submit_s,
                    application=first.application,
                    preemptible=False,
                    reservation=(kind, 1),
                )
                self.probes[job.id] = Probe(job, mine, self._rounds)
                self._count, free = self._count + 1, free - 1
                made.append(job)
        return made

    def refused(self, probe_id: str) -> None:
        """Withdraw a probe for which the policy had no room; its jobs return to the head of the queue."""
        probe = self.probes.pop(probe_id)
        kind = self._kind(probe)
        self._waiting[kind][:0] = probe.rows

    def end_round(self, allocations: Mapping[str, Allocation]) -> list[str]:
        """Record a round with these allocations; returns the ids of finished probes.

        A round on another GPU measures nothing; this happens if a reservation must wait for jobs in checkpoint-restore.

        Raises
        ------
        SimulationError
            If a probe has had other GPUs than its own in too many rounds.
        """
        done = []
        for name, probe in list(self.probes.items()):
            given = allocations.get(name)
            if given is None:
                continue
            if (given.gpu_type, given.gpus) != probe.job.reservation:
                probe.elsewhere += 1
                if probe.elsewhere > MOST_ELSEWHERE:
                    raise SimulationError(
                        f"{name!r} reserves a GPU of {self._kind(probe)!r} and has had others in {probe.elsewhere} "
                        "rounds: profiling_share needs a policy that keeps reservations"
                    )
                continue
            probe.rounds -= 1
            if probe.rounds > 0:
                continue
            done.append(name)
            del self.probes[name]
            for row in probe.rows:
                left = self._missing[row]
                left.discard(self._kind(probe))
                if not left:
                    del self._missing[row], self._jobs[row]
                    self._ready.append(row)
        return done

    @staticmethod
    def _kind(probe: Probe) -> str:
        if probe.job.reservation is None:
            raise SimulationError(f"{probe.job.id!r} has no reservation")
        return probe.job.reservation[0]
