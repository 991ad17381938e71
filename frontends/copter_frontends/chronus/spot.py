"""The spot cluster: best-effort jobs in the GPUs not used by leases and profiling (section 3.3.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from copter_frontends.chronus.job_modes import JobModes
from copter_frontends.policy_kit import Service, Wanted
from copter_frontends.vocabulary import Allocation, Job


@dataclass(frozen=True, slots=True)
class SpotCluster:
    """Orders jobs by shortest remaining time, SLO jobs without a promise that may still meet a deadline first.

    Guaranteed jobs that wait for their leases come last.

    Parameters
    ----------
    modes : JobModes
    """

    modes: JobModes

    def wanted(
        self,
        waiting: Sequence[Job],
        promised: Collection[str],
        left: dict[str, int],
        held: Mapping[str, Allocation],
        service: Mapping[str, Service],
        due_s: Mapping[str, float],
    ) -> Wanted:
        """Return GPU type and GPUs of best-effort jobs: the fastest type with room, and the current type among equals.

        Parameters
        ----------
        waiting : sequence of Job
            Waiting jobs; among equals the first comes first.
        promised : collection of str
            The waiting jobs that have future leases.
        left : dict of GPU type to int
            Remaining GPUs; assigned GPUs are subtracted.
        held : mapping of job id to Allocation
        service : mapping of job id to Service
        due_s : mapping of job id to float
            Seconds to the last deadline of each SLO job without a promise; jobs that can still meet it come first.
        """
        chosen: Wanted = {}
        if not any(left.values()):
            return chosen
        left_s = {job.id: self.modes.remaining_s(job, service[job.id].progress) for job in waiting}

        def turn(job: Job) -> tuple[bool, bool, float]:
            late = left_s[job.id] + self.modes.restart_s(job) > due_s.get(job.id, 0.0)
            return job.id in promised, late, left_s[job.id]

        for job in sorted(waiting, key=turn):
            had, speeds = held.get(job.id), self.modes.speeds(job)
            gpus, same = speeds.gpus, None if had is None else had.gpu_type
            room = [(rate, kind == same, kind) for kind, rate in speeds.rates.items() if gpus <= left[kind]]
            if room:
                best = max(room, key=lambda each: each[:2])[2]
                chosen[job.id] = (best, gpus)
                left[best] -= gpus
        return chosen
