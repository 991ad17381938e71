"""The paper's opponents as round-based policies: a job starts where its scheduler says, and stays there to its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from copter.errors import SettingsError
from copter_frontends.baselines.base import BaselinePolicy, Choice, Wanted, requested_gpus
from copter_frontends.goodput import GoodputModel
from copter_frontends.hare.facts import check_progress, checked_weights
from copter_frontends.hare.instance import Floats, HareInstance
from copter_frontends.hare.job import HareJob
from copter_frontends.hare.opponents import RULES
from copter_frontends.hare.policy import LEAST_LEFT, ROUND_S
from copter_frontends.hare.schedule import gpu_type_of
from copter_frontends.hare.speeds import Speeds
from copter_frontends.vocabulary import Cluster, InvalidClusterError, Job


class OpponentPolicy(BaselinePolicy):
    """One of Hare's opponents on the simulator's round clock (a :class:`.SchedulingPolicy`).

    As for :class:`.HarePolicy` a job is one chunk of as many tasks as its user asked for GPUs, all on one type
    (docs/hare.md, HR23 with as many GPUs as tasks). The scheduler of :data:`.RULES` is asked which of the waiting jobs
    start now; a job that has GPUs keeps them.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    scheme : str
        A key of :data:`.RULES`.
    goodput : GoodputModel, optional
        Its applications are used.
    round_s : float
        Seconds between plans.
    weights : mapping of job id to float, optional
        w_n, which Sched_Homo looks at; one where it is silent.

    Raises
    ------
    SettingsError
        If the scheme is not known.
    InvalidClusterError
        If the cluster has no GPUs.
    InvalidDataError
        If a weight is not finite and above zero.
    """

    def __init__(
        self,
        cluster: Cluster,
        scheme: str,
        goodput: GoodputModel | None = None,
        *,
        round_s: float = ROUND_S,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        if scheme not in RULES:
            raise SettingsError(f"scheme is {scheme!r}, must be one of {', '.join(RULES)}")
        if cluster.gpus == 0:
            raise InvalidClusterError("the cluster has no GPUs: give at least one type a node")
        super().__init__(cluster, round_s, self._runs)
        self.scheme, self.weights = scheme, checked_weights(weights)
        self.speeds = Speeds(cluster, goodput.applications if goodput else None)

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """As the baselines; InvalidDataError for a progress that is no fraction from 0 to 1."""
        check_progress(job_id, what_changed)
        super().update_job(job_id, **what_changed)

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Ask the scheduler until it starts nothing more."""
        wanted: Wanted = {j: (held.gpu_type, held.gpus) for j, held in self.held.items() if j not in self.pins}
        jobs = [job for job_id in self.queue() if job_id not in self.held and (job := self._left(self.jobs[job_id]))]
        if not jobs:
            return Choice(wanted)
        instance = HareInstance.of(jobs, {kind: self.nodes.capacity(kind) for kind in self.nodes.types})
        rule, busy_s, waiting = RULES[self.scheme](instance, True), self._busy_s(), list(range(len(jobs)))
        kind = gpu_type_of(instance)
        while waiting and (found := rule(waiting, busy_s)) is not None:
            at, gpus = found
            waiting.remove(at)
            on = instance.gpu_types[int(kind[gpus[0]])]
            wanted[jobs[at].id], busy_s[gpus] = (on, len(gpus)), jobs[at].train_s[on]
        return Choice(wanted)

    def _left(self, job: Job) -> HareJob | None:
        """What is left of a job, as one round; None where it fits on no type any more."""
        gpus, left = requested_gpus(job), max(1.0 - self.service[job.id].progress, LEAST_LEFT)
        seconds = {
            kind: left * whole for kind, whole in self.speeds.seconds(job).items() if self.nodes.capacity(kind) >= gpus
        }
        return HareJob(job.id, 1, gpus, seconds, weight=self.weights.get(job.id, 1.0)) if seconds else None

    def _busy_s(self) -> Floats:
        """Seconds until each GPU is idle, by type; zero where it is."""
        found = []
        for kind in self.nodes.types:
            held = [(j, a.gpus) for j, a in self.held.items() if a.gpu_type == kind]
            busy = [np.full(gpus, self._seconds_left(j, kind)) for j, gpus in held]
            busy.append(np.zeros(self.nodes.capacity(kind) - sum(gpus for _, gpus in held)))
            found += busy
        return np.concatenate(found)

    def _seconds_left(self, job_id: str, kind: str) -> float:
        """Of a job that has GPUs; a pin can have put it where its speed is not known: then as on its fastest type."""
        seconds = self.speeds.seconds(self.jobs[job_id])
        left = max(1.0 - self.service[job_id].progress, LEAST_LEFT)
        return left * seconds.get(kind, min(seconds.values()))

    def _runs(self, job: Job, gpu_type: str, gpus: int) -> bool:
        return gpu_type in self.speeds.seconds(job)
