"""3Sigma: a program over runtime distributions chooses start times; jobs are never stopped (Park et al., EuroSys
'18).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from copter import Model, Session
from copter.runtime.errors import SettingsError
from copter_frontends.policies.baselines.srtf import SpeedAwarePolicy
from copter_frontends.policy_kit import Choice, Throughputs, requested_gpus
from copter_frontends.policy_kit.deadlines import Rewards
from copter_frontends.vocabulary import Cluster, Job
from copter_papers.opponents.deadline_jobs import DeadlineJobs

Floats = NDArray[np.float64]
NEVER_S = 1e12  # runtime in seconds (30,000 years) used for a job that cannot run on any type
LATER = 0.005  # share of its value that a job loses per slot, so that of equal starts the earliest is chosen
BEST_EFFORT_VALUE = 1.0  # value of a best-effort job that starts now; it falls in proportion to the wait


class ThreeSigmaPolicy(DeadlineJobs, SpeedAwarePolicy):
    """Chooses waiting jobs by expected reward under a normal runtime distribution (papers/chronus.md, C25).

    In every cycle each waiting SLO job may be planned to start in one of the next slots. The value of a start is the
    job's reward times the probability that it then ends by its first deadline. Its usage of a later slot is its GPUs
    times the probability that it still runs. Jobs planned for the first slot start. SLO jobs are never stopped;
    best-effort jobs are stopped if their GPUs are needed.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    throughputs : Throughputs
    rewards : mapping of job id to StepReward, or callable (Job), optional
    sigma : float
        Relative standard deviation of runtimes.
    slots, slot_s : int, float
        Number of slots and their length in seconds.
    most_jobs : int
        Most waiting SLO jobs in one program: the most urgent ones.
    round_s : float
    """

    def __init__(
        self,
        cluster: Cluster,
        throughputs: Throughputs,
        rewards: Rewards | None = None,
        sigma: float = 0.1,
        slots: int = 8,
        slot_s: float = 1200.0,
        most_jobs: int = 64,
        round_s: float = 60.0,
    ) -> None:
        super().__init__(cluster, throughputs, round_s)
        if not (sigma > 0 and slots >= 1 and slot_s > 0 and most_jobs >= 1):
            raise SettingsError(
                f"sigma is {sigma}, slots {slots}, slot_s {slot_s}, most_jobs {most_jobs}: all must be positive"
            )
        self.take_rewards(rewards)
        self.sigma, self.slots, self.slot_s, self.most_jobs = sigma, slots, slot_s, most_jobs

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Keep running SLO jobs, start those that the program selects, then fill with best effort."""
        slo = [j for j in self.queue() if j in self.rewards and j not in self.pins]
        chosen = self.down_the_list([j for j in slo if j in self.held])
        left = self.room()
        for kind, gpus in chosen.values():
            left[kind] -= gpus
        waiting = sorted((j for j in slo if j not in chosen), key=self.deadline_s)[: self.most_jobs]
        starts, objective, bound = self._starts(waiting, list(chosen), left, now_s)
        sure = sum(float(self._worth(job_id, now_s, np.zeros(1))[0]) for job_id in chosen)
        objective, bound = objective + sure, bound + sure
        best_effort = sorted((j for j in self.queue() if j not in self.rewards), key=lambda j: j not in self.held)
        return Choice(self.down_the_list([*chosen, *starts, *best_effort]), objective=objective, bound=bound)

    def kinds(self, job: Job, left: Mapping[str, int]) -> list[str]:
        """Return the current type of a running SLO job, which is not moved; otherwise the fastest types first."""
        held = self.held.get(job.id) if job.id in self.rewards else None
        return sorted(super().kinds(job, left), key=lambda kind: held is not None and kind != held.gpu_type)

    def _starts(
        self, waiting: list[str], running: list[str], left: Mapping[str, int], now_s: float
    ) -> tuple[list[str], float, float]:
        """Return (jobs to start now, the program's value, its bound)."""
        ahead_s: Floats = (self.slot_s * np.arange(self.slots)).astype(np.float64)
        total = float(sum(self.nodes.capacity(kind) for kind in self.nodes.types))
        free = np.full(self.slots, total) - (total - sum(left.values()))
        for job_id in running:
            gpus = requested_gpus(self.jobs[job_id])
            free += gpus * (1.0 - self._still_runs(job_id, ahead_s))
        model = Model(sense="max")
        for slot in range(self.slots):
            model.add_resource(slot, max(float(free[slot]), 0.0))
        for job_id in waiting:
            value = self._worth(job_id, now_s, ahead_s)
            lag_s: Floats = ahead_s[:, None] - ahead_s[None, :]  # [slot, start]
            use = np.where(lag_s >= 0, self._still_runs(job_id, np.maximum(lag_s, 0.0)), 0.0)
            gpus = requested_gpus(self.jobs[job_id])
            usage = {slot: gpus * np.where(use[slot] > 1e-3, use[slot], 0.0) for slot in range(self.slots)}
            model.add_request(job_id, value * (1.0 - LATER * np.arange(self.slots)), usage, integer=True)
        if not waiting:
            return [], 0.0, 0.0
        plan = Session(model).solve_integer()
        if not plan:  # nothing starts; what runs is not part of the model
            return [], 0.0, 0.0
        first = [job_id for job_id in waiting if plan.column(job_id) == 0]
        return first, float(plan.objective), float(plan.bound)

    def _worth(self, job_id: str, now_s: float, ahead_s: Floats) -> Floats:
        """Return the expected reward of a start after these seconds, or of a running job, by the probability to end
        in time.
        """
        ends_s = self.deadline_s(job_id) - now_s - ahead_s
        value = self.rewards[job_id].steps[0][1] * (1.0 - self._still_runs(job_id, ends_s))
        return np.asarray(np.maximum(value, BEST_EFFORT_VALUE / (1.0 + np.arange(len(ahead_s)))))

    def _still_runs(self, job_id: str, after_s: Floats) -> Floats:
        """Return the probability that a job that starts or continues now runs longer than `after_s`."""
        job = self.jobs[job_id]
        rate = self.best_rate(job)
        mean_s = self.work_left(job) / rate if rate > 0 else NEVER_S
        return np.asarray(ndtr((mean_s - after_s) / max(self.sigma * mean_s, 1.0)))
