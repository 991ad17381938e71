"""Ways to run a job: GPU types and numbers of GPUs, and how long each takes (docs/papers/chronus.md, C2)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import inf

from copter_frontends.policies.chronus.mode import Mode
from copter_frontends.policies.chronus.mode_times import ModeTimes
from copter_frontends.policies.chronus.rounding import friendly_sizes, round_up
from copter_frontends.policy_kit import (
    GIVEN,
    GoodputThroughputs,
    NodeInventory,
    SeenTimes,
    Throughputs,
    TimedThroughputs,
    checked_rate,
    rates_at_start,
    requested_gpus,
)
from copter_frontends.policy_kit.throughputs import MOST_RATES
from copter_frontends.vocabulary import Job, Shape

BELIEVED = 0.15  # a profile confirms the declared rate up to this relative difference; a restart alone causes 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """What jobs of one shape and one number of requested GPUs share.

    Attributes
    ----------
    gpus : int
    rates : dict of GPU type to float
        Rates on these GPUs at arrival, on the types that can run the jobs.
    restart_s : float
        Seconds of one start, 0 if they are unknown.
    ways : tuple of (number of the GPU type, GPUs taken, rate)
    """

    gpus: int
    rates: dict[str, float]
    restart_s: float
    ways: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, slots=True)
class JobModes:
    """Makes the modes of jobs.

    Parameters
    ----------
    nodes : NodeInventory
    throughputs : Throughputs
    round_up, elastic : bool
        See :class:`.ChronusPolicy`.
    """

    nodes: NodeInventory
    throughputs: Throughputs
    round_up: bool
    elastic: bool
    seen: SeenTimes = field(default_factory=SeenTimes)
    """Measured times of the jobs that were profiled, and of jobs like them."""
    _times: dict[Hashable, ModeTimes] = field(default_factory=dict)
    _shared: dict[tuple[Shape, int], Alike] = field(default_factory=dict)
    _own: dict[str, tuple[Job, Alike]] = field(default_factory=dict)  # of jobs that are like no other
    _timed: TimedThroughputs | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        # the test inspects every method of the class; done here once, not for every job
        if isinstance(self.throughputs, TimedThroughputs):
            object.__setattr__(self, "_timed", self.throughputs)

    def alike(self, job: Job) -> Alike:
        """Return what a job shares with jobs like it, cached; raises InvalidJobError for an invalid rate."""
        gpus = requested_gpus(job)
        if job.own_goodput is not None or not isinstance(self.throughputs, GoodputThroughputs):
            known = self._own.get(job.id)
            if known is None or known[0] is not job:
                known = self._own[job.id] = job, self._made(job, gpus)
            return known[1]
        key = job.shape, gpus
        shared = self._shared.get(key)
        if shared is None:
            if len(self._shared) >= MOST_RATES:
                self._shared.clear()
            shared = self._shared[key] = self._made(job, gpus)
        return shared

    def alike_of(self, jobs: Sequence[Job]) -> list[Alike]:
        """Return :meth:`alike` of each job; looked up once for jobs that are given equal."""
        if not isinstance(self.throughputs, GoodputThroughputs):
            return [self.alike(job) for job in jobs]
        known = dict[tuple[object, ...], Alike]()
        result = []
        for job in jobs:
            if job.goodput is not None:
                result.append(self.alike(job))
                continue
            key = GIVEN(job)
            shared = known.get(key)
            if shared is None:
                shared = known[key] = self.alike(job)
            result.append(shared)
        return result

    def work_of(self, jobs: Sequence[Job]) -> list[float]:
        """Return the work of each job."""
        if isinstance(self.throughputs, GoodputThroughputs):
            return self.throughputs.work_of(jobs)
        return [self.throughputs.work(job) for job in jobs]

    def _made(self, job: Job, gpus: int) -> Alike:
        """Return a job's rates by GPU type, and what follows from them."""
        kinds = self.nodes.types
        every = rates_at_start(self.throughputs, job, kinds, gpus)
        if not all(0 <= rate < inf for rate in every):
            every = [checked_rate(self.throughputs, job, kind, gpus) for kind in kinds]
        rates = {kind: rate for kind, rate in zip(kinds, every, strict=True) if rate > 0}
        ways = [
            (number, round_up(gpus, self.nodes.node_gpus(kind)) if self.round_up else gpus, rates[kind])
            for number, kind in enumerate(kinds)
            if kind in rates
        ]
        return Alike(gpus, rates, self.restart_s(job), tuple(ways))

    def __call__(self, job: Job, gpu_type: str, gpus: int) -> bool:
        """Return whether a job runs on this many GPUs of a type; see `RunsWith`."""
        alike = self.alike(job)
        if gpus == alike.gpus:
            return gpu_type in alike.rates
        return checked_rate(self.throughputs, job, gpu_type, gpus) > 0

    def forget(self, job_id: str) -> None:
        """Delete the data of a job."""
        self._own.pop(job_id, None)

    def seconds(self, job: Job, kind: str, gpus: int, rate: float) -> float:
        """Return the seconds for a job's whole work: as declared, or as measured if they differ by much."""
        ratio = self.measured(job, kind, gpus) if len(self.seen) else None
        believed = ratio is None or abs(ratio - 1.0) <= BELIEVED
        return self.throughputs.work(job) / rate * (1.0 if believed or ratio is None else ratio)

    def measured(self, job: Job, kind: str, gpus: int) -> float | None:
        """Return a job's measured over its declared time on these GPUs; None if nothing was measured of it.

        Where these GPUs were not measured, it is the mean ratio of those that were.
        """
        rate = self.throughputs.rate(job, kind, gpus)
        known = self.seen.estimate(job, kind, gpus, self.nodes.node_gpus(kind))
        if known is not None:
            return known * rate
        ratios = []
        for other in self.nodes.types:
            size = self.nodes.node_gpus(other)
            for count in {gpus, size, 2 * size}:
                known = self.seen.seconds(job, other, count)
                if known is not None:
                    ratios.append(known * self.throughputs.rate(job, other, count))
        return sum(ratios) / len(ratios) if ratios else None

    def restart_s(self, job: Job) -> float:
        """Return the seconds of one start of the job, 0 if they are unknown."""
        return 0.0 if self._timed is None else self._timed.restart_s(job)

    def time_done(self, job: Job, kind: str, gpus: int, progress: float) -> float:
        """Return the fraction of a job's time that has passed (C5): leases are time, and phases differ in speed."""
        return progress if self._timed is None else self._timed.time_done(job, kind, gpus, progress)

    def times_of(self, job: Job, modes: tuple[Mode, ...]) -> ModeTimes:
        """Return how the job's time passes in these modes, cached for similar jobs."""
        if self._timed is None or not modes:
            return ModeTimes.even(len(modes))
        key = job.shape, tuple([(mode.kind, mode.gpus) for mode in modes])
        known = self._times.get(key)
        if known is None:
            kinds = list(self.nodes.types)
            courses = [self._timed.course(job, kinds[mode.kind], mode.gpus) for mode in modes]
            known = self._times[key] = ModeTimes.of(courses)
        return known

    def note_profile(self, job: Job, kind: str, gpus: int, ran_s: float, progress: tuple[float, float]) -> None:
        """Record a profile, from its seconds and the job's progress before and after; one without progress is ignored.

        The start time is subtracted if it is known. Otherwise it counts as training, so that the profile may make the
        job seem slower than it is, but never faster.
        """
        before, after = (self.time_done(job, kind, gpus, each) for each in progress)
        trained_s = ran_s - self.restart_s(job)
        if progress[1] < 1.0 and after > before and trained_s > 0:
            self.seen.note(job, kind, gpus, trained_s / (after - before) / self.throughputs.work(job))

    def remaining_s(self, job: Job, progress: float) -> float:
        """Return the seconds of a job's remaining work on its fastest type."""
        alike = self.alike(job)
        whole_s = self.throughputs.work(job) / max(alike.rates.values()) if alike.rates else inf
        if len(self.seen) and alike.rates:
            whole_s = min(self.seconds(job, kind, alike.gpus, rate) for kind, rate in alike.rates.items())
        return (1.0 - progress) * whole_s if whole_s < inf else inf

    def modes_of(self, job: Job) -> tuple[Mode, ...]:
        """Return the ways to run a job: one per GPU type, and per number of GPUs for an elastic job."""
        alike = self.alike(job)
        if len(self.seen) or (self.elastic and job.gpus is None):
            return self._every_mode(job, alike)
        work, gpus, restart_s = self.throughputs.work(job), alike.gpus, alike.restart_s
        return tuple([Mode(kind, gpus, taken, work / rate, restart_s) for kind, taken, rate in alike.ways])

    def ways_of(
        self, jobs: Sequence[Job], known: tuple[Sequence[Alike], Sequence[float]] | None = None
    ) -> list[tuple[tuple[Mode, ...], ModeTimes]]:
        """Return :meth:`modes_of` and :meth:`times_of` of each job; what jobs alike share is looked up once, and not
        again if :meth:`alike_of` and :meth:`work_of` of these jobs are `known`.
        """
        if len(self.seen) or self.elastic:
            every = [(job, self.modes_of(job)) for job in jobs]
            return [(modes, self.times_of(job, modes)) for job, modes in every]
        times = dict[int, ModeTimes]()  # by what jobs share: without elastic jobs that is their GPUs on every type
        result = []
        of_jobs, works = (self.alike_of(jobs), self.work_of(jobs)) if known is None else known
        for job, alike, work in zip(jobs, of_jobs, works, strict=True):
            gpus, restart_s = alike.gpus, alike.restart_s
            modes = tuple([Mode(kind, gpus, taken, work / rate, restart_s) for kind, taken, rate in alike.ways])
            own = times.get(id(alike))
            if own is None:
                own = times[id(alike)] = self.times_of(job, modes)
            result.append((modes, own))
        return result

    def _every_mode(self, job: Job, alike: Alike) -> tuple[Mode, ...]:
        """Return the modes of a job whose time was measured, or whose number of GPUs is free."""
        result = []
        for number, kind in enumerate(self.nodes.types):
            for gpus in self._counts(job, kind):
                same = gpus == alike.gpus
                rate = alike.rates.get(kind, 0.0) if same else self.throughputs.rate(job, kind, gpus)
                if rate > 0:
                    taken = round_up(gpus, self.nodes.node_gpus(kind)) if self.round_up else gpus
                    result.append(Mode(number, gpus, taken, self.seconds(job, kind, gpus, rate), alike.restart_s))
        return tuple(result)

    def _counts(self, job: Job, kind: str) -> list[int]:
        """Return the GPU counts of a job: its request, or for elastic jobs the sizes in its range that consolidate."""
        wanted, size = requested_gpus(job), self.nodes.node_gpus(kind)
        if not self.elastic or job.gpus is not None:
            return [wanted]
        most = min(job.max_gpus or wanted, self.nodes.capacity(kind))
        sizes = [*friendly_sizes(size), *range(2 * size, most + 1, size)]
        return [wanted, *(gpus for gpus in sizes if job.min_gpus <= gpus <= most and gpus != wanted)]
