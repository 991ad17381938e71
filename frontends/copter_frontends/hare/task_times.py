"""How long a job's tasks take on each GPU type: of the paper's models, or of any application (hare.md, HR26)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from copter_frontends.hare.switching import model_of
from copter_frontends.policy_kit import TrainingThroughputs, requested_gpus
from copter_frontends.simulator.goodput_source import GoodputSource
from copter_frontends.vocabulary import Cluster, InvalidJobError, Job, Shape

ROUND_S = 20.0  # seconds of a made-up round on an application's fastest type (HR26)


@dataclass(frozen=True, slots=True)
class JobTimes:
    """Times of one job.

    Attributes
    ----------
    rounds : int
        Of the whole job.
    train_s, sync_s : mapping of GPU type to float
        Of a task; a type that is absent cannot run it.
    restart_s : float
        What other GPUs cost the job.
    """

    rounds: int
    train_s: Mapping[str, float]
    sync_s: Mapping[str, float]
    restart_s: float = 0.0


class TaskTimes(Protocol):
    """Where task times come from."""

    def of(self, job: Job) -> JobTimes:
        """A job's times; InvalidJobError where nothing is known of its application."""

    def rounds_done(self, job: Job, progress: float) -> float:
        """Rounds that are done at a progress, a fraction of the last one included."""


class ModelTaskTimes:
    """The paper's eight models (Table 3): a sample is a task."""

    def of(self, job: Job) -> JobTimes:
        """As :class:`TaskTimes` says; InvalidJobError for a model that is none of the eight."""
        known = model_of(job.application)
        rounds = max(round((job.work_samples or 0.0) / requested_gpus(job)), 1)
        train = {kind: known.train_s(kind) for kind in known.speed}
        return JobTimes(rounds, train, dict.fromkeys(train, known.sync_s()))

    def rounds_done(self, job: Job, progress: float) -> float:
        """As :class:`TaskTimes` says."""
        return self.of(job).rounds * progress


class GoodputTaskTimes:
    """Any application of a goodput model: as many tasks a round as GPUs are asked for, training and then synchronising.

    On as many GPUs of one type the rounds take what the model says of the job there. What one GPU alone would take for
    all tasks is training; what the model has beyond is synchronisation.

    Parameters
    ----------
    cluster : Cluster
    model : GoodputSource
    """

    def __init__(self, cluster: Cluster, model: GoodputSource) -> None:
        self._rates, self._kinds = TrainingThroughputs(cluster, model), tuple(cluster.types)
        self._known: dict[tuple[Shape, int, float], JobTimes] = {}

    def of(self, job: Job) -> JobTimes:
        """As :class:`TaskTimes` says; InvalidJobError for an application without a model, or that runs nowhere."""
        tasks, work = requested_gpus(job), self._rates.work(job)
        key = job.shape, tasks, work
        if key not in self._known:
            self._known[key] = self._new(job, tasks, work)
        return self._known[key]

    def rounds_done(self, job: Job, progress: float) -> float:
        """As :class:`TaskTimes` says, by time: phases of training differ in speed."""
        times = self.of(job)
        fastest = min(times.train_s, key=lambda kind: times.train_s[kind] + times.sync_s[kind])
        return times.rounds * self._rates.time_done(job, fastest, requested_gpus(job), progress)

    def _new(self, job: Job, tasks: int, work: float) -> JobTimes:
        whole, train = {}, {}
        for kind in self._kinds:
            rate, alone = (self._rates.rate(job, kind, gpus) for gpus in (tasks, 1))
            if rate > 0:
                whole[kind] = work / rate
                train[kind] = min(work / alone / tasks, whole[kind]) if alone > 0 else whole[kind]
        if not whole:
            raise InvalidJobError(f"job {job.id!r}: its {tasks} GPUs run on none of {', '.join(self._kinds)}")
        rounds = max(round(min(whole.values()) / ROUND_S), 1)
        return JobTimes(
            rounds,
            {kind: seconds / rounds for kind, seconds in train.items()},
            {kind: (seconds - train[kind]) / rounds for kind, seconds in whole.items()},
            self._rates.restart_s(job),
        )
