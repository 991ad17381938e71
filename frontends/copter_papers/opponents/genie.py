"""GENIE: least laxity first, on the fewest GPUs that meet the deadline (Chen et al., TPDS '19; papers/chronus.md,
C24).
"""

from __future__ import annotations

from collections.abc import Iterable

from copter_frontends.policies.baselines.srtf import SpeedAwarePolicy
from copter_frontends.policy_kit import Choice, Throughputs, requested_gpus
from copter_frontends.policy_kit.deadlines import Rewards
from copter_frontends.vocabulary import Cluster, Job
from copter_papers.opponents.deadline_jobs import DeadlineJobs


class GeniePolicy(DeadlineJobs, SpeedAwarePolicy):
    """Elastic jobs with deadlines: the scheduler chooses the number of GPUs; best-effort jobs come last.

    Laxity is the time to the first deadline less the job's remaining time on its requested GPUs. In the order of
    laxity, each SLO job gets the fewest GPUs, from half to twice its request, with which it ends in time; jobs that
    cannot end in time come last. Running SLO jobs are not stopped: in the paper's comparison only Chronus stops them
    (section 5.4).

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    throughputs : Throughputs
    rewards : mapping of job id to StepReward, or callable (Job), optional
    round_s, restart_s : float
        Seconds between plans, and seconds of a change of GPUs.
    widest : int
        Most GPUs of a job, as a multiple (1 or 2) of its request. Use more than 1 only if the rates show the true
        effect of more GPUs.
    preempts : bool
        Whether SLO jobs of smaller laxity may stop others.
    """

    def __init__(
        self,
        cluster: Cluster,
        throughputs: Throughputs,
        rewards: Rewards | None = None,
        round_s: float = 60.0,
        restart_s: float = 30.0,
        widest: int = 1,
        preempts: bool = False,
    ) -> None:
        super().__init__(cluster, throughputs, round_s)
        self.take_rewards(rewards)
        self.restart_s, self.widest, self.preempts = restart_s, widest, preempts

    def sizes(self, job: Job) -> Iterable[int]:
        """Return the GPU counts to try: the job's request, half of it, and its maximum."""
        wanted = requested_gpus(job)
        range_ = (job.min_gpus, job.max_gpus or self.widest * wanted)
        return (
            wanted,
            *(g for g in (wanted // 2, self.widest * wanted) if range_[0] <= g <= range_[1] and g not in (0, wanted)),
        )

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Rank running SLO jobs, those that can meet their deadline by laxity, those that cannot, then best effort."""
        left, chosen = self.room(), {}
        for job_id, held in self.held.items():
            if not self.preempts and job_id in self.rewards and job_id not in self.pins:
                chosen[job_id] = (held.gpu_type, held.gpus)
                left[held.gpu_type] -= held.gpus
        for job_id in self.ranking(now_s):
            if job_id in self.pins or job_id in chosen:
                continue
            for kind, gpus in self._offers(job_id, now_s):
                if gpus <= left[kind]:
                    left[kind] -= gpus
                    chosen[job_id] = (kind, gpus)
                    break
        return Choice(chosen)

    def ranking(self, now_s: float) -> list[str]:
        """Return the jobs in the order in which they are served."""

        def key(job_id: str) -> tuple[int, float]:
            if job_id not in self.rewards:
                return 2, float(job_id not in self.held)
            laxity_s = (self.deadline_s(job_id) - now_s) - self._takes_s(job_id, requested_gpus(self.jobs[job_id]))
            best_s = (self.deadline_s(job_id) - now_s) - self._takes_s(job_id, max(self.sizes(self.jobs[job_id])))
            return (0, laxity_s) if best_s >= 0 else (1, -laxity_s)

        return sorted(self.queue(), key=key)

    def _takes_s(self, job_id: str, gpus: int) -> float:
        job, held = self.jobs[job_id], self.held.get(job_id)
        progress = self.service[job_id].progress
        rate = max(self.throughputs.rate(job, kind, gpus, progress) for kind in self.nodes.types)
        moving_s = 0.0 if held is not None and held.gpus == gpus else self.restart_s
        return self.work_left(job) / rate + moving_s if rate > 0 else float("inf")

    def _offers(self, job_id: str, now_s: float) -> list[tuple[str, int]]:
        """Return (type, GPUs) to try: the current ones if they meet the deadline, then the fewest that do, then the
        request.
        """
        job, held = self.jobs[job_id], self.held.get(job_id)
        wanted = requested_gpus(job)
        sizes = [wanted]
        if job_id in self.rewards:
            left_s = self.deadline_s(job_id) - now_s
            enough = sorted(g for g in self.sizes(job) if self._takes_s(job_id, g) <= left_s)
            kept = [held.gpus] if held is not None and held.gpus in enough else []
            sizes = list(dict.fromkeys(kept + enough + [wanted]))
        return [(kind, g) for g in sizes for kind in self.kinds(job, self.room()) if self.can_run(job, kind, g)]
