"""Speeds as the Hops policy asks for them, and their implementation by a goodput model (HP8)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol, runtime_checkable

from copter_frontends.policy_kit import GoodputThroughputs
from copter_frontends.simulator.goodput_source import GoodputSource, row_of, same_model_for
from copter_frontends.vocabulary import Cluster, Configuration, Job


@runtime_checkable
class PlacedThroughputs(Protocol):
    """Speeds of jobs by type, GPUs, servers used, and the servers themselves."""

    @property
    def version(self) -> int:
        """A number that changes whenever an answer may have changed."""

    def key(self, job: Job) -> Hashable:
        """Jobs with equal keys are equally fast everywhere."""

    def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: Sequence[str]) -> float:
        """Samples per second of the whole job on `gpus` GPUs over `nodes` of these like servers; 0: cannot run."""

    def work(self, job: Job) -> float:
        """Samples of the whole job."""

    def server_speed(self, gpu_type: str, server: str) -> float:
        """How fast a server is relative to its type; 1 where nothing is known."""


@runtime_checkable
class LearnedThroughputs(PlacedThroughputs, Protocol):
    """Speeds that change as jobs run, and say which did.

    The rates of jobs that are not said to have changed are in proportion to the mean speed of the servers asked about.
    """

    @property
    def speeds_version(self) -> int:
        """The version at which a server's speed changed last."""

    def changed_since(self, version: int) -> frozenset[Hashable]:
        """Keys of the jobs whose answers have changed since that version, but for servers' speeds."""

    def seen_on(self, servers: Iterable[tuple[str, str]]) -> frozenset[Hashable]:
        """Keys of the jobs that have been seen on one of these (GPU type, server)."""


class ModelledThroughputs:
    """Speeds of a goodput model, which knows types and nodes but no single servers.

    Parameters
    ----------
    cluster : Cluster
        Read once.
    model : GoodputSource
    """

    def __init__(self, cluster: Cluster, model: GoodputSource) -> None:
        self._plain = GoodputThroughputs(cluster, model)
        self._model = model
        self._sources: dict[Configuration, GoodputSource] = {}
        self._known: dict[tuple[Hashable, ...], float] = {}
        self.version = 0

    def key(self, job: Job) -> Hashable:
        """The job's shape."""
        return job.shape

    def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: Sequence[str]) -> float:
        """Samples per second at the beginning of training."""
        key = (job.shape, gpu_type, gpus, nodes)
        if key not in self._known:
            where = Configuration(nodes, gpus, gpu_type)
            if where not in self._sources:
                self._sources[where] = same_model_for(self._model, [where])
            self._known[key] = float(row_of(self._sources[where], job, 0.0)[0])
        return self._known[key]

    def work(self, job: Job) -> float:
        """Samples of the whole job."""
        return self._plain.work(job)

    def server_speed(self, gpu_type: str, server: str) -> float:
        """All servers of a type are alike here."""
        return 1.0
