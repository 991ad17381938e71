"""The profiler: first come, first served, for a fixed time each, in a part of the cluster sized by arrivals (C21)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import ceil, inf

from copter.runtime.errors import SettingsError
from copter_frontends.policy_kit import Wanted

HOUR_S = 3600.0  # seconds between two choices of the profiler's size, each based on the arrivals since the last
SAME_S = 1e-3  # seconds: times that differ by less are equal


@dataclass(frozen=True, slots=True)
class Probe:
    """A job to be profiled.

    Attributes
    ----------
    job_id, user : str
    gpus : int
        GPUs of its next profile.
    submit_s : float
    then : tuple of int
        GPUs of its further profiles.
    first : bool
        Whether it was not profiled before.
    """

    job_id: str
    user: str
    gpus: int
    submit_s: float
    then: tuple[int, ...] = ()
    first: bool = True


class Profiler:
    """Runs jobs for a while before they are scheduled; short and failing jobs end in the profiler.

    It profiles on one GPU type (:class:`.Profiling` has one for each).

    Parameters
    ----------
    profile_s : float
        T_profile.
    most_user_gpus : int, optional
        Submission control: one user's jobs may start within `profile_s` on at most so many GPUs; None for no limit. A
        larger job starts alone.
    nodes : int, optional
        A fixed size in nodes; by default it follows the arrivals of the last hour: C >= lambda T.
    users : mapping of job id to str, optional
        User of each job; a job not listed counts as a user of its own.
    headroom : float
        The size that follows the arrivals is `headroom` times lambda T. At 1, the paper's least, the queue is just
        stable.
    every : bool
        Whether to profile every job, as in the paper, even if the times of jobs like it were measured.

    Attributes
    ----------
    gpus : int
        Size at the last step, in GPUs.
    target : int
        Size that it should have; it does not get GPUs promised to others.
    waits_s : list of float
        Seconds that each job waited for its profiling to start.
    """

    def __init__(
        self,
        profile_s: float = 300.0,
        most_user_gpus: int | None = 24,
        nodes: int | None = None,
        users: Mapping[str, str] | None = None,
        headroom: float = 1.0,
        every: bool = False,
    ) -> None:
        if not 1.0 <= headroom < inf:
            raise SettingsError(
                f"headroom is {headroom}, must be finite and >= 1: the queue grows without end below it"
            )
        if (
            not profile_s > 0
            or (most_user_gpus is not None and most_user_gpus < 1)
            or (nodes is not None and nodes < 1)
        ):
            raise SettingsError(
                f"profile_s is {profile_s}, most_user_gpus {most_user_gpus}, nodes {nodes}: all must be positive"
            )
        self.profile_s, self.most_user_gpus, self.nodes = profile_s, most_user_gpus, nodes
        self.headroom, self.every = headroom, every
        self.users = dict(users or {})
        self.queue: dict[str, Probe] = {}
        self.running: dict[str, tuple[Probe, float]] = {}
        self.gpus = self.target = 0
        self.waits_s: list[float] = []
        self._arrived: list[tuple[float, int]] = []
        self._sized_s: float | None = None
        self._starts: list[tuple[float, str, int]] = []

    def __contains__(self, job_id: str) -> bool:
        return job_id in self.queue or job_id in self.running

    def on_another_type(self) -> Profiler:
        """Return a profiler with the same settings, which counts users' GPUs and waits together with this one."""
        other = Profiler(self.profile_s, self.most_user_gpus, self.nodes, headroom=self.headroom, every=self.every)
        other.users, other.waits_s, other._starts = self.users, self.waits_s, self._starts
        return other

    @property
    def load(self) -> int:
        """Return the GPUs of the queued and the running jobs."""
        return sum(probe.gpus for probe in (*self.queue.values(), *(probe for probe, _ in self.running.values())))

    def submit(self, job_id: str, gpus: int, submit_s: float, then: tuple[int, ...] = ()) -> None:
        """Queue a job for a profile on this many GPUs, and for further ones."""
        self.queue[job_id] = Probe(job_id, self.users.get(job_id, job_id), gpus, submit_s, then)
        self._arrived.append((submit_s, gpus))

    def withdraw(self, job_id: str) -> None:
        """Remove a job that has ended or was cancelled."""
        self.queue.pop(job_id, None)
        self.running.pop(job_id, None)

    def ended(self, now_s: float) -> dict[str, tuple[int, float]]:
        """Return GPUs and seconds, by job id, of the profiles that the next step at this time will end."""
        ran = {job_id: (probe.gpus, now_s - start_s) for job_id, (probe, start_s) in self.running.items()}
        return {job_id: each for job_id, each in ran.items() if each[1] >= self.profile_s - SAME_S}

    def step(self, now_s: float, node_gpus: int, most_gpus: int) -> list[str]:
        """Start a round: end profiles, resize, start profiles; returns the jobs whose last profile is done.

        A job with a further profile goes to the head of the queue.

        Parameters
        ----------
        now_s : float
        node_gpus : int
            GPUs of a node.
        most_gpus : int
            Most GPUs for profiling, namely those not promised to any job.
        """
        again, done = dict[str, Probe](), []
        for job_id in self.ended(now_s):
            probe, _ = self.running.pop(job_id)
            if probe.then:
                again[job_id] = replace(probe, gpus=probe.then[0], then=probe.then[1:], first=False)
                self._arrived.append((now_s, probe.then[0]))
            else:
                done.append(job_id)
        self.queue = {**again, **self.queue}
        used = sum(probe.gpus for probe, _ in self.running.values())
        self.target = max(self._wanted(now_s, node_gpus), used)
        self.gpus = min(self.target, max(most_gpus, used))
        self._starts[:] = [start for start in self._starts if now_s - start[0] < self.profile_s - SAME_S]
        for job_id, probe in list(self.queue.items()):
            if used + probe.gpus > self.gpus:
                break  # first come, first served
            if not self._may_start(probe):
                continue
            used += probe.gpus
            del self.queue[job_id]
            self.running[job_id] = (probe, now_s)
            self._starts.append((now_s, probe.user, probe.gpus))
            if probe.first:
                self.waits_s.append(max(now_s - probe.submit_s, 0.0))
        return done

    def wanted(self, gpu_type: str, left: dict[str, int], pins: Collection[str]) -> Wanted:
        """Return GPU type and GPUs of the jobs being profiled, and subtract all of the profiler's GPUs from `left`."""
        chosen: Wanted = {}
        for job_id, (probe, _) in self.running.items():
            if job_id not in pins and probe.gpus <= left[gpu_type]:
                chosen[job_id] = (gpu_type, probe.gpus)
                left[gpu_type] -= probe.gpus
        idle = self.gpus - sum(probe.gpus for probe, _ in self.running.values())
        left[gpu_type] = max(left[gpu_type] - max(idle, 0), 0)
        return chosen

    def _may_start(self, probe: Probe) -> bool:
        """Return whether the user's recently started profiles leave GPUs for this one (submission control, 3.2.1)."""
        before = sum(gpus for _, user, gpus in self._starts if user == probe.user)
        return self.most_user_gpus is None or before == 0 or before + probe.gpus <= self.most_user_gpus

    def _wanted(self, now_s: float, node_gpus: int) -> int:
        """Return the profiler's GPUs in whole nodes: set hourly from recent arrivals, enough for the queue's first
        job.
        """
        if self.nodes is not None:
            return self.nodes * node_gpus
        first = next((probe.gpus for probe in self.queue.values()), 0)
        size = max(self.gpus, first)
        if self._sized_s is None or now_s - self._sized_s >= HOUR_S - SAME_S:
            self._sized_s = now_s
            self._arrived = [each for each in self._arrived if now_s - each[0] <= HOUR_S]
            rate = sum(gpus for _, gpus in self._arrived) / HOUR_S  # GPUs per second
            size = max(ceil(self.headroom * rate * self.profile_s), first)
        return -(-size // node_gpus) * node_gpus
