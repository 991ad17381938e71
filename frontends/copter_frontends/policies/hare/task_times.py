"""Task times of jobs on each GPU type, for the paper's models or any application (hare.md, HR28)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from copter_frontends.policies.hare.switching import model_of
from copter_frontends.policy_kit import Course, TrainingThroughputs, requested_gpus, share_of_time
from copter_frontends.simulator.goodput_source import GoodputSource
from copter_frontends.vocabulary import Cluster, InvalidJobError, Job, Shape

ROUND_S = 20.0  # seconds of the rounds assumed for an application, on its fastest type (HR28)


@dataclass(frozen=True, slots=True)
class JobTimes:
    """Task times of one job.

    Attributes
    ----------
    rounds : int
        Number of rounds of the whole job.
    train_s, sync_s : mapping of GPU type to float
        Times of a task; a type that is not listed cannot run it.
    restart_s : float
        Seconds that a change of GPUs costs the job.
    course : Course or None
        Distribution of its time over its work; None if it is even.
    """

    rounds: int
    train_s: Mapping[str, float]
    sync_s: Mapping[str, float]
    restart_s: float = 0.0
    course: Course | None = None

    def rounds_done(self, progress: float) -> float:
        """Return the rounds done at a progress, measured in time, since phases of training differ in speed."""
        return self.rounds * (progress if self.course is None else share_of_time(self.course, progress))


class TaskTimes(Protocol):
    """Interface of a source of task times."""

    def of(self, job: Job) -> JobTimes:
        """Return a job's times; raises InvalidJobError for an unknown application."""

    def kinds(self, job: Job) -> Collection[str]:
        """Return the GPU types on which a job's tasks run."""

    def work(self, job: Job) -> float:
        """Return a job's units of work."""

    def time_done(self, job: Job, kind: str, progress: float) -> float:
        """Return the share of a job's time on its requested GPUs of a type that has passed at a progress."""


class ModelTaskTimes:
    """Task times of the paper's eight models (Table 3); one unit of a job's ``work_samples`` is one task."""

    def of(self, job: Job) -> JobTimes:
        """Return the model's task times; raises InvalidJobError for a model other than the eight."""
        known = model_of(job.application)
        rounds = max(round((job.work_samples or 0.0) / requested_gpus(job)), 1)
        train = {kind: known.train_s(kind) for kind in known.speed}
        return JobTimes(rounds, train, dict.fromkeys(train, known.sync_s()))

    def kinds(self, job: Job) -> Collection[str]:
        """Return the GPU types for which the job's model has a speed."""
        return model_of(job.application).speed.keys()

    def work(self, job: Job) -> float:
        """Return the job's number of tasks, at least 1."""
        return max(job.work_samples or 0.0, 1.0)

    def time_done(self, job: Job, kind: str, progress: float) -> float:
        """Return the progress itself: all rounds take equally long."""
        return progress


class GoodputTaskTimes:
    """Task times of any application of a goodput model: a round has a task per requested GPU.

    On as many GPUs of one type as requested, a round takes the time of the model. The time that one GPU takes for its
    share of the work without others is training, the rest is synchronisation.

    Parameters
    ----------
    cluster : Cluster
    model : GoodputSource
    """

    def __init__(self, cluster: Cluster, model: GoodputSource) -> None:
        self._rates, self._kinds = TrainingThroughputs(cluster, model), tuple(cluster.types)
        self._known: dict[tuple[Shape, int], _Unit] = {}

    def of(self, job: Job) -> JobTimes:
        """Return a job's task times; raises InvalidJobError if its application has no model or runs nowhere."""
        unit, work = self._unit(job), self._rates.work(job)
        rounds = max(round(work * unit.shortest_s / ROUND_S), 1)
        scale = work / rounds
        return JobTimes(
            rounds,
            {kind: scale * seconds for kind, seconds in unit.train_s.items()},
            {kind: scale * seconds for kind, seconds in unit.sync_s.items()},
            self._rates.restart_s(job),
            unit.course,
        )

    def kinds(self, job: Job) -> Collection[str]:
        """Return the GPU types on which a job's tasks run; errors as in :meth:`of`."""
        return self._unit(job).train_s.keys()

    def work(self, job: Job) -> float:
        """Return a job's units of work by the goodput model."""
        return self._rates.work(job)

    def time_done(self, job: Job, kind: str, progress: float) -> float:
        """Return the share of a job's time on its requested GPUs of a type that has passed at a progress."""
        return self._rates.time_done(job, kind, requested_gpus(job), progress)

    def _unit(self, job: Job) -> _Unit:
        """Return the times of a unit of work, cached for jobs of equal shape and requested GPUs."""
        key = job.shape, requested_gpus(job)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._new_unit(job, key[1])
        return known

    def _new_unit(self, job: Job, tasks: int) -> _Unit:
        whole, train, work = {}, {}, self._rates.work(job)
        for kind in self._kinds:
            rate, alone = (self._rates.rate(job, kind, gpus) for gpus in (tasks, 1))
            if rate > 0:
                whole[kind] = 1.0 / rate
                train[kind] = min(1.0 / alone / tasks, whole[kind]) if alone > 0 else whole[kind]
        if not whole or not work > 0:
            raise InvalidJobError(f"job {job.id!r}: its {tasks} GPUs run on none of {', '.join(self._kinds)}")
        fastest = min(whole, key=whole.__getitem__)
        sync = {kind: seconds - train[kind] for kind, seconds in whole.items()}
        return _Unit(train, sync, whole[fastest], self._rates.course(job, fastest, tasks))


@dataclass(frozen=True, slots=True)
class _Unit:
    """Seconds of a unit of work as tasks on each type (training, synchronising), their least sum, and their course."""

    train_s: Mapping[str, float]
    sync_s: Mapping[str, float]
    shortest_s: float
    course: Course
