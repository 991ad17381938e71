"""The paper's opponents as round-based policies: a job stays on the GPUs on which it starts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hare.gang_policy import ROUND_S, GangPolicy
from copter_frontends.policies.hare.instance import Floats, HareInstance
from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.schedule import gpu_type_of
from copter_frontends.policy_kit import Choice, Wanted, requested_gpus
from copter_frontends.vocabulary import Cluster
from copter_papers.hare.opponents import RULES


class OpponentPolicy(GangPolicy):
    """One of Hare's opponents, in the simulator's rounds.

    As in :class:`.HarePolicy`, a job is one chunk with a task per requested GPU, all on one type (hare.md, HR31 with as
    many GPUs as tasks). The rule of :data:`.RULES` decides which waiting jobs start now; a job that has GPUs keeps
    them.

    Parameters
    ----------
    cluster : Cluster
        It is read, not changed.
    scheme : str
        A key of :data:`.RULES`.
    goodput : GoodputModel, optional
        Model whose applications are used.
    round_s : float
        Seconds between plans.
    weights : mapping of job id to float, optional
        w_n, used by Sched_Homo; 1 for jobs that are not listed.

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
        super().__init__(cluster, goodput, round_s, weights)
        self.scheme = scheme

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Call the rule until it starts no further job."""
        wanted: Wanted = {j: (held.gpu_type, held.gpus) for j, held in self.held.items() if j not in self.pins}
        jobs = [job for job_id in self.queue() if job_id not in self.held and (job := self._left(job_id))]
        if not jobs:
            return Choice(wanted)
        instance = HareInstance.of(jobs, self.capacity())
        rule, busy_s, waiting = RULES[self.scheme](instance, True), self._busy_s(), list(range(len(jobs)))
        kind = gpu_type_of(instance)
        while waiting and (result := rule(waiting, busy_s)) is not None:
            at, gpus = result
            waiting.remove(at)
            on = instance.gpu_types[int(kind[gpus[0]])]
            wanted[jobs[at].id], busy_s[gpus] = (on, len(gpus)), jobs[at].train_s[on]
        return Choice(wanted)

    def _left(self, job_id: str) -> HareJob | None:
        """Return a job with its remaining work as one round; None if no type can run it."""
        gpus = requested_gpus(self.jobs[job_id])
        seconds = {k: left for k, left in self.seconds_left(job_id).items() if self.nodes.capacity(k) >= gpus}
        return HareJob(job_id, 1, gpus, seconds, weight=self.weight(job_id)) if seconds else None

    def _busy_s(self) -> Floats:
        """Return the seconds until each GPU is idle, by type; zero if idle now.

        If a pin puts a job on a type with unknown speed, the speed on its fastest type counts.
        """
        busy = {kind: np.zeros(gpus) for kind, gpus in self.capacity().items()}
        first = dict.fromkeys(busy, 0)
        for job_id, held in self.held.items():
            left, kind, at = self.seconds_left(job_id), held.gpu_type, first[held.gpu_type]
            busy[kind][at : at + held.gpus] = left.get(kind, min(left.values()))
            first[kind] += held.gpus
        return np.concatenate(list(busy.values()))
