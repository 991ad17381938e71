"""A drop-in replacement of the policy in Sia's simulator: ``optimize(jobs, nodes, base_allocations)`` per GPU type."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from copter_serve.adapters.adaptdl import GPU, AdaptDLPolicy, JobInfo, NodeInfo

Placement = tuple[str | None, Sequence[Hashable]]
Speed = Callable[[int, int], float]


@dataclass(slots=True)
class _Told:
    """A job in the form that :class:`.AdaptDLPolicy` expects; one replica is one GPU."""

    resources: Mapping[str, int]
    speedup_fn: Any  # a :data:`Speed` for each type
    max_replicas: int | Mapping[str, int]
    min_replicas: int | Mapping[str, int]
    preemptible: bool


class SiaSimulatorPolicy:
    """Allocates GPUs by the sum of the jobs' goodputs, in the calling convention of Sia's simulator.

    The simulator's ``Cluster`` checks its policy's class, so derive from both: ``class Copter(SiaSimulatorPolicy,
    SiaPolicy)``. It calls ``populate_valid_configs`` once and ``optimize`` in each round.

    Parameters
    ----------
    restart_penalty : float
        See :class:`.AllocationPolicy`: a share of an option's worth, not seconds as in Sia.
    """

    def __init__(self, restart_penalty: float = 0.1) -> None:
        self._most_nodes: dict[str, int] = {}
        self._policy = AdaptDLPolicy(GPU, type_of=lambda key, node: str(key[0]), restart_penalty=restart_penalty)  # type: ignore[index]

    def populate_valid_configs(
        self,
        cluster_num_nodes: Mapping[str, int],
        cluster_num_gpus: Mapping[str, int],
        cluster_max_physical_nnodes: Mapping[str, int] | None = None,
    ) -> None:
        """Set the GPU types: nodes, GPUs per node, and the largest number of nodes a job may use."""
        limits = cluster_max_physical_nnodes or cluster_num_nodes
        self._most_nodes = {kind: limits[kind] * cluster_num_gpus[kind] for kind in cluster_num_gpus}  # in GPUs

    def optimize(
        self,
        jobs: Mapping[Hashable, Any],
        nodes: Mapping[str, Mapping[Hashable, NodeInfo]],
        base_allocations: Mapping[Hashable, Placement],
    ) -> dict[Hashable, Placement]:
        """Decide a round.

        Parameters
        ----------
        jobs : mapping of job name to JobInfo
            The simulator's jobs, with ``speedup_fn``, ``min_replicas``, ``max_replicas`` and ``scale_unit`` by GPU
            type.
        nodes : mapping of GPU type to {node number: NodeInfo}
        base_allocations : mapping of job name to (GPU type, list of node number)

        Returns
        -------
        dict of job name to (GPU type, list of node number)
            Type and a node for each GPU; (None, ()) for a job without GPUs.
        """
        flat: dict[Hashable, NodeInfo] = {
            (kind, number): node for kind, there in nodes.items() for number, node in there.items()
        }
        told: dict[Hashable, JobInfo] = {name: self._job(job, nodes) for name, job in jobs.items()}
        base = {
            name: [(kind, number) for number in numbers]
            for name, (kind, numbers) in base_allocations.items()
            if kind is not None
        }
        template = next(iter(flat.values()), None)
        if template is None:
            return dict.fromkeys(jobs, (None, ()))
        given, _ = self._policy.optimize(told, flat, base, template)
        return {name: self._placement(given[name]) for name in jobs}

    # Inside -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _placement(given: Sequence[Any]) -> Placement:
        """Return (type, node numbers) of a list of (type, node number)."""
        return (given[0][0], [number for _, number in given]) if given else (None, ())

    def _job(self, job: Any, nodes: Mapping[str, Any]) -> _Told:
        """Convert a job to GPUs; on a type without known goodput it may use one unit, as in Sia."""
        units = {kind: _of(getattr(job, "scale_unit", 1), kind) for kind in nodes}
        speeds: dict[str, Speed] = {}
        for kind in nodes:
            goodput = job.speedup_fn.get(kind)
            if goodput is not None:
                speeds[kind] = _in_gpus(getattr(goodput, "get_goodput", goodput), units[kind])
        lowest = min((speed(1, units[kind]) for kind, speed in speeds.items()), default=1.0) or 1.0
        for kind in nodes:
            speeds.setdefault(kind, _one_unit(units[kind], lowest))
        return _Told(
            {GPU: 1},
            speeds,
            {
                kind: min(_of(job.max_replicas, kind) * units[kind], self._most_nodes.get(kind, 1 << 30))
                for kind in nodes
            },
            {kind: _of(job.min_replicas, kind) * units[kind] for kind in nodes},
            bool(job.preemptible) and not getattr(job, "scaling_underway", False),
        )


def _of(value: int | Mapping[str, int], kind: str) -> int:
    return int(value[kind]) if isinstance(value, Mapping) else int(value)


def _in_gpus(goodput: Speed, unit: int) -> Speed:
    """Return the goodput as a function of GPUs, where `unit` GPUs make one replica."""
    return lambda nodes, gpus: 0.0 if gpus % unit else float(goodput(min(nodes, gpus // unit), gpus // unit))


def _one_unit(unit: int, worth: float) -> Speed:
    return lambda nodes, gpus: worth if gpus == unit else 0.0
