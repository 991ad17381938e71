"""First come, first served: rigid jobs, started in order of submission and never moved (papers/baselines.md, B2)."""

from __future__ import annotations

from copter_frontends.policy_kit import CanRun, Choice, RoundPolicy, requested_gpus
from copter_frontends.vocabulary import Allocation, CapacityInUseError, Cluster, Job


class FifoPolicy(RoundPolicy):
    """First-come-first-served scheduling of rigid jobs, like the papers' baseline YARN capacity scheduler.

    A job gets exactly its requested GPUs (within `min_gpus` and `max_gpus`), all of one type, on as few nodes as
    possible, and keeps them to its end. Of the types with room it gets the one with the most free GPUs, ties in the
    cluster's order. Speeds are not used.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    backfill : bool
        Whether jobs that fit may overtake a job that does not. Otherwise the first job that does not fit blocks the
        queue, as in the papers' YARN-CS.
    round_s : float
        Seconds between plans.
    can_run : callable (job, GPU type, GPUs) -> bool, optional
        Whether a job can run somewhere; by default always.
    """

    def __init__(
        self, cluster: Cluster, backfill: bool = True, round_s: float = 60.0, can_run: CanRun | None = None
    ) -> None:
        super().__init__(cluster, round_s, can_run)
        self.backfill = backfill

    stops_jobs = False

    @property
    def waiting_bound(self) -> str:
        """The bound of strict order: no job overtakes one that does not fit."""
        return super().waiting_bound if self.backfill else "the running times of the jobs submitted before"

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Start the jobs that fit, in order of submission. The deadline is unused, because there is no search."""
        full: set[tuple[str, int]] = set()  # (type, GPUs) for which there is no room
        for job_id in [j for j in self.queue() if j not in self.held]:
            result = self._place(self.jobs[job_id], full)
            if result is not None:
                self.hold(job_id, result)
            elif not self.backfill:
                break
        return Choice({j: (held.gpu_type, held.gpus) for j, held in self.held.items() if j not in self.pins})

    def make_room(self, job_id: str, allocation: Allocation) -> None:
        """Raise CapacityInUseError unless the GPUs are free: no job is stopped for a pin."""
        short = self.nodes.short_of(allocation)
        if short:
            raise CapacityInUseError(f"cannot pin job {job_id!r}: other jobs use the GPUs of {', '.join(short)}")

    def _place(self, job: Job, full: set[tuple[str, int]]) -> Allocation | None:
        gpus = requested_gpus(job)
        kinds = [k for k in self.nodes.types if (k, gpus) not in full and self.can_run(job, k, gpus)]
        for kind in sorted(kinds, key=lambda k: -self.nodes.free(k)):
            shares = self.nodes.find(kind, gpus)
            if shares is not None:
                return Allocation(kind, gpus, shares)
            full.add((kind, gpus))
        return None
