"""Estimates of the throughput of any configuration, from the database's layers top-down (section 3.5; HP7)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from copter_frontends.policies.hops.database import ThroughputDatabase
from copter_frontends.policies.hops.errors import ThroughputError
from copter_frontends.policies.hops.iteration_time import IterationTimes
from copter_frontends.policies.hops.records import Records
from copter_frontends.vocabulary import InvalidJobError, Job

MOST_ENDED = 4096  # ended jobs whose records are kept; the oldest is dropped first


class ThroughputEstimator:
    """Estimates throughputs from the server's own records, else the type's, else the theory (a PlacedThroughputs).

    A rate from the type or theory layer is multiplied by the server's speed relative to its type, over all jobs (HP9).
    A job that was never profiled on a type cannot run there.

    Parameters
    ----------
    database : ThroughputDatabase
    by_application : bool
        Whether to keep records by application, so that jobs profit from earlier ones, instead of by job id.
    """

    def __init__(self, database: ThroughputDatabase | None = None, by_application: bool = True) -> None:
        self.database = database or ThroughputDatabase()
        self.by_application = by_application
        self._seen = -1
        self._records = Records(self._profiled)
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._parts: dict[tuple[str, str], IterationTimes | None] = {}

    @property
    def version(self) -> int:
        """Number of changes of estimates; an observation that confirms an estimate does not count."""
        return self._settled().changes

    @property
    def speeds_version(self) -> int:
        """Version at which a server's speed last changed."""
        return self._settled().speeds_changed

    def changed_since(self, version: int) -> frozenset[Hashable]:
        """Return keys of jobs whose own records or servers have changed since a version.

        On a group of equal servers, the rates of all other jobs are proportional to the mean of these servers' speeds.
        """
        return frozenset(key for key, change in self._settled().changed.items() if change > version)

    def seen_on(self, servers: Iterable[tuple[str, str]]) -> frozenset[Hashable]:
        """Return keys of jobs with own records on one of these (GPU type, server)."""
        return frozenset(self._current().jobs_on(servers))

    def key(self, job: Job) -> Hashable:
        """Return the key of the job's records: its application or its id."""
        return self._key(job)

    # Measurements --------------------------------------------------------------------------------------------

    def profile(self, job: Job, parts: Mapping[str, IterationTimes]) -> None:
        """Store a job's profile from a few iterations on each GPU type."""
        records, key = self._current(), self._key(job)
        for gpu_type, each in parts.items():
            self.database.set_theory(key, gpu_type, each)
            self._parts[key, gpu_type] = each
            self._seen = self.database.version
        records.moved(key)

    def observe(self, job: Job, gpu_type: str, placement: Mapping[str, int], rate: float) -> None:
        """Record a measured rate, samples per second of a whole job on {server: GPUs}; raises ThroughputError if
        not > 0.
        """
        gpus = sum(placement.values())
        if not placement or min(placement.values()) < 1:
            raise ThroughputError(
                f"job {job.id!r}: the placement {dict(placement)} must give each server a GPU or more"
            )
        records, key, servers = self._current(), self._key(job), tuple(sorted(placement))
        self.database.record(key, gpu_type, servers, gpus, rate / gpus)
        records.add(key, gpu_type, servers, gpus, rate / gpus)
        self._seen = self.database.version

    def began(self, job_id: str) -> None:
        """Note that a job has arrived, or arrived again; its records stay."""
        self._ended.pop(job_id, None)

    def ended(self, job_id: str) -> None:
        """Note that a job has left: its records are kept for a while as evidence about servers; records by
        application stay.
        """
        if self.by_application:
            return
        self._ended[job_id] = None
        if len(self._ended) > MOST_ENDED:
            oldest, _ = self._ended.popitem(last=False)
            self._current().forget(oldest)
            for key in [key for key in self._parts if key[0] == oldest]:
                del self._parts[key]
            self.database.forget(oldest)
            self._seen = self.database.version

    # Estimates ----------------------------------------------------------------------------------------------------

    def per_gpu(self, job: Job, gpu_type: str, server: str, gpus: int, nodes: int) -> float:
        """Return samples per second of one GPU of a job with `gpus` on `nodes` servers including this one; 0 if
        unknown.

        Three layers are read, top first (Figure 3); the lower two describe an average server of the type.
        """
        records, key = self._settled(), self._key(job)
        result = records.on_server(key, gpu_type, server, gpus, nodes)
        return self._below(key, gpu_type, gpus, nodes) * records.speed(gpu_type, server) if result is None else result

    def throughput(self, job: Job, gpu_type: str, placement: Mapping[str, int]) -> float:
        """Return samples per second of a configuration {server: GPUs}; the slowest server determines the speed."""
        gpus = sum(placement.values())
        return min(self.per_gpu(job, gpu_type, server, gpus, len(placement)) for server in placement) * gpus

    def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: Sequence[str]) -> float:
        """Return the job's mean samples per second over similar servers."""
        return self.rates(job)(gpu_type, gpus, nodes, servers)

    def rates(self, job: Job) -> Callable[[str, int, int, Sequence[str]], float]:
        """Return :meth:`rate` of one job as a function of (GPU type, GPUs, nodes, servers), for many calls."""
        records, key = self._settled(), self._key(job)
        below: dict[tuple[str, int, int], float] = {}

        def rate(gpu_type: str, gpus: int, nodes: int, servers: Sequence[str]) -> float:
            if not servers:
                return 0.0
            result = records.mean_on(key, gpu_type, servers, gpus, nodes)
            if result is None:
                at = (gpu_type, gpus, nodes)
                if at not in below:
                    below[at] = self._below(key, gpu_type, gpus, nodes)
                result = below[at] * records.mean_speed(gpu_type, servers)
            return gpus * result

        return rate

    def work(self, job: Job) -> float:
        """Return the number of samples of the whole job; raises InvalidJobError if the job has none."""
        if job.work_samples is None:
            raise InvalidJobError(f"job {job.id!r}: its work is not known; give work_samples")
        return job.work_samples

    def server_speed(self, gpu_type: str, server: str) -> float:
        """Return a server's speed relative to its type; 1 without observations."""
        return self._settled().speed(gpu_type, server)

    # Inside -------------------------------------------------------------------------------------------------------

    def _key(self, job: Job) -> str:
        return job.application if self.by_application else job.id

    def _current(self) -> Records:
        """Return the records, reloaded if another process has written to the database."""
        if self._seen != self.database.version:
            self._seen = self.database.version
            self._parts.clear()
            self._records.load(self.database.all_measured())
        return self._records

    def _settled(self) -> Records:
        """Return the records with up-to-date server speeds."""
        records = self._current()
        records.settle()
        return records

    def _below(self, key: str, gpu_type: str, gpus: int, nodes: int) -> float:
        """Return the rate from the type layer or the theory; 0 if the job was never profiled on the type."""
        result = self._records.on_average(key, gpu_type, gpus, nodes)
        if result is not None:
            return result
        parts = self._theory(key, gpu_type)
        return 0.0 if parts is None else parts.throughput(gpus, nodes)

    def _profiled(self, key: str, gpu_type: str, gpus: int) -> float | None:
        """Return per-GPU throughput on one server from the profile; None without one."""
        parts = self._theory(key, gpu_type)
        return None if parts is None else parts.throughput(gpus, 1)

    def _theory(self, key: str, gpu_type: str) -> IterationTimes | None:
        """Return the job's profile on the type; None without one."""
        if (key, gpu_type) not in self._parts:
            self._parts[key, gpu_type] = self.database.theory(key, gpu_type)
        return self._parts[key, gpu_type]
