"""The interface by which the Hops policy reads speeds, and its implementation by a goodput model (HP8)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol, runtime_checkable

from copter_frontends.policy_kit import GoodputThroughputs
from copter_frontends.simulator.goodput_source import GoodputSource, row_of, same_model_for
from copter_frontends.vocabulary import Cluster, Configuration, Job


@runtime_checkable
class PlacedThroughputs(Protocol):
    """Interface: speeds of jobs by type, GPUs, number of servers, and the servers themselves."""

    @property
    def version(self) -> int:
        """A number that changes whenever a result may have changed."""

    def key(self, job: Job) -> Hashable:
        """Return a key; jobs with equal keys are equally fast everywhere."""

    def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: Sequence[str]) -> float:
        """Return samples per second of the job on `gpus` GPUs over `nodes` of these similar servers; 0 if it cannot
        run.
        """

    def work(self, job: Job) -> float:
        """Samples of the whole job."""

    def server_speed(self, gpu_type: str, server: str) -> float:
        """Return a server's speed relative to its type; 1 if unknown."""


@runtime_checkable
class LearnedThroughputs(PlacedThroughputs, Protocol):
    """Interface: speeds that change as jobs run, with a report of the changes.

    The rates of jobs that are not reported as changed are proportional to the mean speed of the given servers.
    """

    @property
    def speeds_version(self) -> int:
        """Version at which a server's speed last changed."""

    def changed_since(self, version: int) -> frozenset[Hashable]:
        """Return keys of jobs whose results have changed since a version, other than by servers' speeds."""

    def seen_on(self, servers: Iterable[tuple[str, str]]) -> frozenset[Hashable]:
        """Return keys of jobs observed on one of these (GPU type, server)."""


class ModelledThroughputs:
    """Speeds of a goodput model, which distinguishes types and numbers of nodes but not single servers.

    Parameters
    ----------
    cluster : Cluster
        Cluster; read once.
    model : GoodputSource
    """

    def __init__(self, cluster: Cluster, model: GoodputSource) -> None:
        self._plain = GoodputThroughputs(cluster, model)
        self._model = model
        self._sources: dict[Configuration, GoodputSource] = {}
        self._known: dict[tuple[Hashable, ...], float] = {}
        self.version = 0

    def key(self, job: Job) -> Hashable:
        """Return the job's shape."""
        return job.shape

    def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: Sequence[str]) -> float:
        """Return samples per second at the beginning of training."""
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
        """Return 1: all servers of a type are equal in the model."""
        return 1.0
