"""First come, first served: rigid jobs, started in order of submission and never moved (papers/baselines.md, B2)."""

from __future__ import annotations

from copter_frontends.policy_kit import CanRun, Choice, RoundPolicy, requested_gpus
from copter_frontends.vocabulary import Allocation, CapacityInUseError, Cluster, Job


class FifoPolicy(RoundPolicy):
    """First-come-first-served scheduling of rigid jobs, as the papers' YARN capacity-scheduler baseline.

    A job gets exactly the GPUs that its user asked for (kept within its `min_gpus` and `max_gpus`), all of one type, on
    the fewest nodes possible, and keeps them to its end. Among the types with room it goes to the one with the most
    free GPUs; ties go to the cluster's order. It knows nothing of speeds.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    backfill : bool
        Whether jobs that fit may pass a job that does not. Without it the first job that does not fit holds the queue,
        which is the rule of the papers' YARN-CS.
    round_s : float
        Seconds between plans.
    can_run : callable (job, GPU type, GPUs) -> bool, optional
        Says where a job can run at all; by default anywhere.
    """

    def __init__(
        self, cluster: Cluster, backfill: bool = True, round_s: float = 60.0, can_run: CanRun | None = None
    ) -> None:
        super().__init__(cluster, round_s, can_run)
        self.backfill = backfill

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
        """Nothing is stopped for a pin: CapacityInUseError if the GPUs are not free."""
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
