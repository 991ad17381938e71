"""The spot cluster: what leases and profiling leave, for best effort (section 3.3.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from copter_frontends.chronus.job_modes import JobModes
from copter_frontends.policy_kit import CanRun, Service, Throughputs, Wanted, requested_gpus
from copter_frontends.vocabulary import Allocation, Job


@dataclass(frozen=True, slots=True)
class SpotCluster:
    """Shortest remaining time first; guaranteed jobs that wait for their leases come last.

    Parameters
    ----------
    throughputs : Throughputs
    modes : JobModes
    can_run : callable (job, GPU type, GPUs) -> bool
    """

    throughputs: Throughputs
    modes: JobModes
    can_run: CanRun

    def wanted(
        self,
        waiting: Iterable[Job],
        promised: Collection[str],
        left: dict[str, int],
        held: Mapping[str, Allocation],
        service: Mapping[str, Service],
    ) -> Wanted:
        """What jobs run on: their fastest type with room, the one that they have among equals.

        Parameters
        ----------
        waiting : iterable of Job
            In the order in which ties are decided.
        promised : collection of str
            Those of them that have leases to come.
        left : dict of GPU type to int
            GPUs left; what is given is taken off.
        held : mapping of job id to Allocation
        service : mapping of job id to Service
        """
        chosen: Wanted = {}
        if not any(left.values()):
            return chosen
        left_s = {job.id: self.modes.remaining_s(job, service[job.id].progress) for job in waiting}
        for job in sorted(waiting, key=lambda job: (job.id in promised, left_s[job.id])):
            had, gpus = held.get(job.id), requested_gpus(job)
            kinds = [kind for kind in left if gpus <= left[kind] and self.can_run(job, kind, gpus)]
            if kinds:
                rate = {kind: self.throughputs.rate(job, kind, gpus) for kind in kinds}
                same = None if had is None else had.gpu_type
                best = max(kinds, key=lambda kind: (rate[kind], kind == same))
                chosen[job.id] = (best, gpus)
                left[best] -= gpus
        return chosen
