"""Throughput of any configuration, from the database's layers top-down (section 3.5; HP7)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from copter_frontends.hops.database import ThroughputDatabase
from copter_frontends.hops.errors import ThroughputError
from copter_frontends.hops.iteration_time import IterationTimes
from copter_frontends.vocabulary import InvalidJobError, Job


class ThroughputEstimator:
    """Estimates throughputs: the server's own records, else the type's, else the theory (a PlacedThroughputs).

    A rate from the type or theory layer is multiplied, for one server, by how fast that server has been relative to
    its type, over all jobs. A job that was never profiled on a type cannot run there.

    Parameters
    ----------
    database : ThroughputDatabase
    by_application : bool
        Keep records by application, so that a job profits from those before it; else by job id.
    """

    def __init__(self, database: ThroughputDatabase | None = None, by_application: bool = True) -> None:
        self.database = database or ThroughputDatabase()
        self.by_application = by_application
        self._seen = -1
        self._known: dict[tuple[str, str, str, int, int], float] = {}
        self._speeds: dict[tuple[str, str], float] = {}

    @property
    def version(self) -> int:
        """Writes to the database so far."""
        return self.database.version

    def key(self, job: Job) -> Hashable:
        """What the job's records go by: its application or its id."""
        return self._key(job)

    # What was measured --------------------------------------------------------------------------------------------

    def profile(self, job: Job, parts: Mapping[str, IterationTimes]) -> None:
        """Write down what profiling a job for a few iterations on each GPU type gave."""
        for gpu_type, each in parts.items():
            self.database.set_theory(self._key(job), gpu_type, each)

    def observe(self, job: Job, gpu_type: str, placement: Mapping[str, int], rate: float) -> None:
        """Take in a measured rate, samples per second of a whole job on {server: GPUs}; ThroughputError if not > 0."""
        gpus = sum(placement.values())
        if not placement or min(placement.values()) < 1:
            raise ThroughputError(
                f"job {job.id!r}: the placement {dict(placement)} must give each server a GPU or more"
            )
        self.database.record(self._key(job), gpu_type, tuple(sorted(placement)), gpus, rate / gpus)

    # Estimates ----------------------------------------------------------------------------------------------------

    def per_gpu(self, job: Job, gpu_type: str, server: str, gpus: int, nodes: int) -> float:
        """Samples per second of one GPU of a job that has `gpus` on `nodes` servers, this one of them; 0: none known.

        Three layers, top first (Figure 3); what the lower two say is for an average server of the type.
        """
        self._refresh()
        key = (self._key(job), gpu_type, server, gpus, nodes)
        if key not in self._known:
            self._known[key] = self._read(*key)
        return self._known[key]

    def throughput(self, job: Job, gpu_type: str, placement: Mapping[str, int]) -> float:
        """Samples per second of a configuration {server: GPUs}: the slowest server's GPUs set the pace."""
        gpus = sum(placement.values())
        return min(self.per_gpu(job, gpu_type, server, gpus, len(placement)) for server in placement) * gpus

    def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: Sequence[str]) -> float:
        """Mean over like servers of what the job does on them, samples per second."""
        if not servers:
            return 0.0
        self._refresh()
        records = [r for s in servers if (r := self._server_record(job, gpu_type, s, gpus, nodes)) is not None]
        if records:
            return gpus * sum(records) / len(records)
        return gpus * sum(self.per_gpu(job, gpu_type, s, gpus, nodes) for s in servers) / len(servers)

    def work(self, job: Job) -> float:
        """Samples of the whole job; InvalidJobError if it does not say."""
        if job.work_samples is None:
            raise InvalidJobError(f"job {job.id!r}: its work is not known; give work_samples")
        return job.work_samples

    def server_speed(self, gpu_type: str, server: str) -> float:
        """How fast a server has been relative to its type, 1 if nothing ran there."""
        self._refresh()
        return self._speeds.get((gpu_type, server), 1.0)

    # Inside -------------------------------------------------------------------------------------------------------

    def _key(self, job: Job) -> str:
        return job.application if self.by_application else job.id

    def _refresh(self) -> None:
        if self._seen != self.database.version:
            self._seen = self.database.version
            self._known.clear()
            self._speeds = self.database.server_ratios()

    def _server_record(self, job: Job, gpu_type: str, server: str, gpus: int, nodes: int) -> float | None:
        return self.database.on_server(self._key(job), gpu_type, server, gpus, nodes)

    def _read(self, key: str, gpu_type: str, server: str, gpus: int, nodes: int) -> float:
        result = self.database.on_server(key, gpu_type, server, gpus, nodes)
        if result is not None:
            return result
        result = self.database.on_type(key, gpu_type, gpus, nodes)
        if result is None:
            parts = self.database.theory(key, gpu_type)
            result = 0.0 if parts is None else parts.throughput(gpus, nodes)
        return result * self._speeds.get((gpu_type, server), 1.0)
