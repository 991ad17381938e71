"""Configurations: the bundles of GPUs that a job may be given (thesis 3.3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from copter_frontends.vocabulary.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Configuration:
    """`gpus` GPUs of `gpu_type` on `nodes` nodes: the triple (n, r, t) of thesis 3.3.3."""

    nodes: int
    gpus: int
    gpu_type: str


def configurations_of(cluster: Cluster, max_gpus: int | None = None) -> list[Configuration]:
    """List the configurations of a cluster: powers of two within a node, then whole nodes.

    A node whose size R is not a power of two offers every power of two below R, and R itself.

    Parameters
    ----------
    cluster : Cluster
    max_gpus : int, optional
        Largest number of GPUs (the *capped* mode; 64 in Sia's public simulator). By default all whole-node sizes up to
        the cluster's are listed (the *full* mode).

    Returns
    -------
    list of Configuration
        Configurations by GPU type in the cluster's order, then by size.
    """
    result: list[Configuration] = []
    for name, kind in cluster.types.items():
        nodes, per_node = len(cluster.nodes_of(name)), kind.gpus_per_node
        if nodes == 0:
            continue
        sizes = [2**k for k in range(per_node.bit_length()) if 2**k < per_node]
        group = [Configuration(1, size, name) for size in sizes]
        group += [Configuration(n, n * per_node, name) for n in range(1, nodes + 1)]
        result += [c for c in group if max_gpus is None or c.gpus <= max_gpus]
    return result


def configurations_for(configurations: Sequence[Configuration], gpus: int) -> list[int]:
    """Return the numbers of the configurations for a job with a fixed number of GPUs: of each type, the smallest one
    with enough GPUs.
    """
    best: dict[str, int] = {}
    for at, place in enumerate(configurations):
        if place.gpus >= gpus:
            kept = best.get(place.gpu_type)
            if kept is None or place.gpus < configurations[kept].gpus:
                best[place.gpu_type] = at
    return list(best.values())
