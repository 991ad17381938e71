"""Ways to run a job: GPU types and numbers of GPUs, and how long each takes (docs/papers/chronus.md, C2)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf

from copter_frontends.policies.chronus.job_book import Mode
from copter_frontends.policies.chronus.mode_times import ModeTimes
from copter_frontends.policies.chronus.rounding import friendly_sizes, round_up
from copter_frontends.policy_kit import (
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


@dataclass(frozen=True, slots=True)
class Speeds:
    """A job's rates on its requested GPUs, at its arrival.

    Attributes
    ----------
    gpus : int
    rates : dict of GPU type to float
        Rates on the types that can run the job.
    whole_s : float
        Seconds for its whole work on its fastest type; infinite if no type can run it.
    """

    job: Job
    gpus: int
    rates: dict[str, float]
    whole_s: float


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
    _speeds: dict[str, Speeds] = field(default_factory=dict)
    _times: dict[Hashable, ModeTimes] = field(default_factory=dict)
    _alike: dict[tuple[Shape, int], dict[str, float]] = field(default_factory=dict)  # rates on so many GPUs
    _timed: TimedThroughputs | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        # the test inspects every method of the class; done here once, not for every job
        if isinstance(self.throughputs, TimedThroughputs):
            object.__setattr__(self, "_timed", self.throughputs)

    def speeds(self, job: Job) -> Speeds:
        """Return a job's rates, cached; raises InvalidJobError if one is negative or not finite."""
        known = self._speeds.get(job.id)
        if known is None or known.job is not job:
            gpus = requested_gpus(job)
            rates = self._rates(job, gpus)
            whole_s = self.throughputs.work(job) / max(rates.values()) if rates else inf
            known = self._speeds[job.id] = Speeds(job, gpus, rates, whole_s)
        return known

    def _rates(self, job: Job, gpus: int) -> dict[str, float]:
        """Return a job's rates by GPU type; of jobs alike they are checked once."""
        alike = isinstance(self.throughputs, GoodputThroughputs) and job.own_goodput is None
        key = job.shape, gpus
        known = self._alike.get(key) if alike else None
        if known is None:
            kinds = self.nodes.types
            every = rates_at_start(self.throughputs, job, kinds, gpus)
            if not all(0 <= rate < inf for rate in every):
                every = [checked_rate(self.throughputs, job, kind, gpus) for kind in kinds]
            known = {kind: rate for kind, rate in zip(kinds, every, strict=True) if rate > 0}
            if alike:
                if len(self._alike) >= MOST_RATES:
                    self._alike.clear()
                self._alike[key] = known
        return known

    def __call__(self, job: Job, gpu_type: str, gpus: int) -> bool:
        """Return whether a job runs on this many GPUs of a type; see `RunsWith`."""
        speeds = self.speeds(job)
        if gpus == speeds.gpus:
            return gpu_type in speeds.rates
        return checked_rate(self.throughputs, job, gpu_type, gpus) > 0

    def forget(self, job_id: str) -> None:
        """Delete the data of a job."""
        self._speeds.pop(job_id, None)

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
        speeds = self.speeds(job)
        whole_s = speeds.whole_s
        if len(self.seen) and speeds.rates:
            whole_s = min(self.seconds(job, kind, speeds.gpus, rate) for kind, rate in speeds.rates.items())
        return (1.0 - progress) * whole_s if whole_s < inf else inf

    def modes_of(self, job: Job) -> tuple[Mode, ...]:
        """Return the ways to run a job: one per GPU type, and per number of GPUs for an elastic job."""
        speeds, restart_s, work = self.speeds(job), self.restart_s(job), self.throughputs.work(job)
        if len(self.seen) or (self.elastic and job.gpus is None):
            return self._every_mode(job, speeds, restart_s)
        result = []
        for number, kind in enumerate(self.nodes.types):
            rate = speeds.rates.get(kind)
            if rate is not None:
                taken = round_up(speeds.gpus, self.nodes.node_gpus(kind)) if self.round_up else speeds.gpus
                result.append(Mode(number, speeds.gpus, taken, work / rate, restart_s))
        return tuple(result)

    def _every_mode(self, job: Job, speeds: Speeds, restart_s: float) -> tuple[Mode, ...]:
        """Return the modes of a job whose time was measured, or whose number of GPUs is free."""
        result = []
        for number, kind in enumerate(self.nodes.types):
            for gpus in self._counts(job, kind):
                same = gpus == speeds.gpus
                rate = speeds.rates.get(kind, 0.0) if same else self.throughputs.rate(job, kind, gpus)
                if rate > 0:
                    taken = round_up(gpus, self.nodes.node_gpus(kind)) if self.round_up else gpus
                    result.append(Mode(number, gpus, taken, self.seconds(job, kind, gpus, rate), restart_s))
        return tuple(result)

    def _counts(self, job: Job, kind: str) -> list[int]:
        """Return the GPU counts of a job: its request, or for elastic jobs the sizes in its range that consolidate."""
        wanted, size = requested_gpus(job), self.nodes.node_gpus(kind)
        if not self.elastic or job.gpus is not None:
            return [wanted]
        most = min(job.max_gpus or wanted, self.nodes.capacity(kind))
        sizes = [*friendly_sizes(size), *range(2 * size, most + 1, size)]
        return [wanted, *(gpus for gpus in sizes if job.min_gpus <= gpus <= most and gpus != wanted)]
