"""Task times corrected by a history of measured ones, which also serves unknown models (docs/papers/hare.md, HR30)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from copter_frontends.goodput import UnknownApplicationError
from copter_frontends.policies.hare.task_times import JobTimes, TaskTimes
from copter_frontends.policy_kit import SeenTimes, requested_gpus
from copter_frontends.vocabulary import Allocation, Cluster, Job

BELIEVED = 0.15  # declared times are kept up to this relative difference from the measured ones
ASSUMED_S = 1.0  # seconds of a round of an unknown model before the first measurement


@dataclass(slots=True)
class Window:
    """A time in which a job keeps its GPUs: its start, the share of the job's time done then, and a restart to come."""

    held: Allocation
    start_s: float
    done: float
    restart_s: float


@dataclass(slots=True)
class SeenTaskTimes:
    """A source of task times that learns while jobs run.

    A measurement is the time of a job's rounds while it has its requested GPUs, all of one type. It is kept by model,
    batch size, GPU type and GPUs. Types that were not measured get the mean ratio of measured and declared times.

    Parameters
    ----------
    declared : TaskTimes
    seen : SeenTimes
    cluster : Cluster
    """

    declared: TaskTimes
    seen: SeenTimes
    cluster: Cluster
    _windows: dict[str, Window] = field(default_factory=dict)

    def of(self, job: Job) -> JobTimes:
        """Return a job's times, corrected by measured ones; an unmeasured, unknown model has equal times on all types.

        Raises
        ------
        UnknownApplicationError
            If the model is unknown, and the job's work too.
        """
        times = self._declared(job)
        here = [kind for kind in times.train_s if kind in self.cluster.types]
        known = {kind: self._measured_s(job, kind, times.rounds) for kind in here}
        ratio = {
            kind: seconds / (times.train_s[kind] + times.sync_s[kind])
            for kind, seconds in known.items()
            if seconds is not None
        }
        if not ratio or all(abs(each - 1.0) <= BELIEVED for each in ratio.values()):
            return times
        mean = sum(ratio.values()) / len(ratio)
        return replace(
            times,
            train_s={kind: seconds * ratio.get(kind, mean) for kind, seconds in times.train_s.items()},
            sync_s={kind: seconds * ratio.get(kind, mean) for kind, seconds in times.sync_s.items()},
        )

    def kinds(self, job: Job) -> Collection[str]:
        """Return the GPU types on which a job's tasks run, as declared."""
        return self._declared(job).train_s.keys()

    def work(self, job: Job) -> float:
        """Return a job's units of work, as declared; for an unknown model its ``work_samples``."""
        try:
            return self.declared.work(job)
        except UnknownApplicationError:
            return float(job.work_samples or 0.0)

    def time_done(self, job: Job, kind: str, progress: float) -> float:
        """Return the share of a job's time that has passed at a progress; an unknown model's rounds count as equal."""
        try:
            return self.declared.time_done(job, kind, progress)
        except UnknownApplicationError:
            return progress

    def measured(self, job: Job) -> bool:
        """Return whether a job like this one was measured on some type."""
        return any(self.seen.seconds(job, kind, requested_gpus(job)) is not None for kind in self.kinds(job))

    def begin(self, job: Job, times: JobTimes, held: Allocation, now_s: float, progress: float) -> None:
        """Begin a measurement if a job's GPUs have changed, and are those that a measurement needs.

        Parameters
        ----------
        job : Job
        times : JobTimes
            The job's current times.
        held : Allocation
            The job's GPUs from now on.
        now_s, progress : float
        """
        window = self._windows.get(job.id)
        if window is not None and window.held == held:
            return
        self._windows.pop(job.id, None)
        if len(held.by_type) == 1 and held.gpus == requested_gpus(job):
            done = self.time_done(job, held.gpu_type, progress)
            self._windows[job.id] = Window(held, now_s, done, times.restart_s)

    def measure(
        self, job: Job, times: JobTimes, held: Allocation | None, now_s: float, progress: float, shortest_s: float
    ) -> bool:
        """Measure a job that has had its GPUs for long enough; returns whether its current times are wrong now.

        Parameters
        ----------
        job, times, now_s, progress
            See :meth:`begin`.
        held : Allocation or None
            The job's GPUs until now.
        shortest_s : float
            Least seconds of training in a measurement.
        """
        window = self._windows.get(job.id)
        if window is None or held != window.held:
            self._windows.pop(job.id, None)
            return False
        done = self.time_done(job, held.gpu_type, progress)
        trained_s = now_s - window.start_s - window.restart_s
        if trained_s < shortest_s or not window.done < done < 1.0:
            return False
        self.seen.note(job, held.gpu_type, held.gpus, trained_s / (done - window.done) / self.work(job))
        self._windows[job.id] = Window(held, now_s, done, 0.0)
        return self._differs(job, times)

    def _differs(self, job: Job, times: JobTimes) -> bool:
        """Return whether a job's times are no longer these."""
        now = self.of(job)
        return any(
            abs((now.train_s[kind] + now.sync_s[kind]) / (seconds + times.sync_s[kind]) - 1.0) > BELIEVED
            for kind, seconds in times.train_s.items()
        )

    def forget(self, job_id: str) -> None:
        """Delete a job's current measurement; what was measured stays."""
        self._windows.pop(job_id, None)

    def _declared(self, job: Job) -> JobTimes:
        try:
            return self.declared.of(job)
        except UnknownApplicationError:
            if not (job.work_samples or 0.0) > 0:
                raise
        rounds = max(round(float(job.work_samples or 0.0) / requested_gpus(job)), 1)
        kinds = self.cluster.types
        return JobTimes(rounds, dict.fromkeys(kinds, ASSUMED_S), dict.fromkeys(kinds, 0.0))

    def _measured_s(self, job: Job, kind: str, rounds: int) -> float | None:
        """Return the measured seconds of a round on the job's GPUs of a type."""
        tasks, size = requested_gpus(job), self.cluster.types[kind].gpus_per_node
        known = self.seen.estimate(job, kind, tasks, size)
        return None if known is None else known * self.work(job) / rounds
