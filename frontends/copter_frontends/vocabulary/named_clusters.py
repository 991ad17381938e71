"""Clusters by name, by size, and from YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from copter_frontends.vocabulary import Cluster, InvalidClusterError
from copter_frontends.vocabulary.yaml_files import Check, load_yaml, read_count, read_entries, read_word

SCALED_TYPES = ("t4", "rtx", "quad", "v100", "a100", "p100", "k80")
"""GPU types of :func:`scaled_cluster`, in order."""

SCALED_GPUS_PER_NODE = 8  # GPUs on each node of a cluster made by --gpus

TYPE_FIELDS: Mapping[str, Check] = {
    "name": read_word,
    "gpus_per_node": partial(read_count, least=1),
    "nodes": partial(read_count, least=0),
}
"""Fields of a GPU type in a cluster's file."""

# Type name -> (nodes, GPUs per node), as stated in the papers.
NAMED_CLUSTERS: dict[str, dict[str, tuple[int, int]]] = {
    # Sia 3.4.3: heterogeneous, homogeneous and physical settings.
    "sia-het": {"t4": (6, 4), "rtx": (3, 8), "a100": (2, 8)},
    "sia-hom": {"t4": (16, 4)},
    "sia-physical": {"rtx": (3, 8), "a100": (2, 8), "quad": (1, 4)},
    # Hadar IV: 15 nodes, 20 GPUs of each type; nodes are assumed equal, with 4 GPUs each.
    "hadar-60": {"v100": (5, 4), "p100": (5, 4), "k80": (5, 4)},
    # Hops 5: as in the paper's list, GPUs of one kind in different servers are different resource types.
    "hops-64": {"gtx1080ti": (2, 8), "titanxp": (4, 8), "rtx3090-w780": (2, 4), "rtx3090-yk8100": (2, 4)},
    "hops-512": {
        "gtx1080ti": (16, 8),
        "titanxp": (16, 8),
        "rtx3090-w780": (16, 8),
        "rtx3090-yk8100-8g": (8, 8),
        "rtx3090-yk8100-10g": (8, 8),
    },
    # Chronus 4.1: homogeneous, 8 GPUs per node. The paper does not name the GPU; v100 is used, for which there are
    # throughput models.
    "chronus-96x8": {"v100": (96, 8)},
    "chronus-120x8": {"v100": (120, 8)},
    # Hare 7.1: 15 GPUs of four types on 4 cloud instances, one instance per type.
    "hare-15": {"v100": (1, 8), "t4": (1, 4), "k80": (1, 1), "m60": (1, 2)},
}
"""The papers' own clusters."""


def named_cluster(name: str) -> Cluster:
    """Make one of the papers' clusters.

    Raises
    ------
    InvalidClusterError
        If no cluster has this name; the message lists the names.
    """
    if name not in NAMED_CLUSTERS:
        near = get_close_matches(name, NAMED_CLUSTERS, n=1)
        meant = f"; did you mean {near[0]}?" if near else ";"
        raise InvalidClusterError(
            f"no cluster is named {name!r}{meant} there are {', '.join(NAMED_CLUSTERS)}, or give a .yaml file"
        )
    return Cluster.of(NAMED_CLUSTERS[name])


def scaled_cluster(gpus: int) -> Cluster:
    """Make a cluster of about `gpus` GPUs: nodes of 8, divided as evenly as possible among seven types.

    The number of nodes is `gpus` / 8, rounded to the nearest (a half goes up). With fewer than seven nodes the first
    types get one node each and the others are left out.

    Parameters
    ----------
    gpus : int
        8 or more.

    Raises
    ------
    InvalidClusterError
        If `gpus` is smaller than one node.
    """
    if gpus < SCALED_GPUS_PER_NODE:
        raise InvalidClusterError(
            f"a cluster of {gpus} GPUs is smaller than one node: give {SCALED_GPUS_PER_NODE} GPUs or more"
        )
    nodes = (2 * gpus + SCALED_GPUS_PER_NODE) // (2 * SCALED_GPUS_PER_NODE)
    share, extra = divmod(nodes, len(SCALED_TYPES))
    counts = {name: share + (i < extra) for i, name in enumerate(SCALED_TYPES)}
    return Cluster.of({name: (count, SCALED_GPUS_PER_NODE) for name, count in counts.items() if count})


def read_cluster(path: str | Path) -> Cluster:
    """Read a cluster from a YAML file.

    The file holds one list, ``types``, whose entries have exactly ``name``, ``gpus_per_node`` and ``nodes``::

        types:
          - {name: a100, gpus_per_node: 8, nodes: 2}
          - {name: t4, gpus_per_node: 4, nodes: 6}

    Raises
    ------
    InvalidClusterError
        If the file cannot be read or is not such a file; the message names the file and the field.
    """
    content = load_yaml(path)
    if not isinstance(content, dict) or set(content) != {"types"}:
        raise InvalidClusterError(f"{path}: the file must hold one list named 'types', and nothing else")
    entries = content["types"]
    if not isinstance(entries, list) or not entries:
        raise InvalidClusterError(f"{path}: 'types' must be a list with at least one GPU type")
    counts: dict[str, tuple[int, int]] = {}
    for where, fields in read_entries(path, "types", entries, TYPE_FIELDS):
        name = fields["name"]
        if name in counts:
            raise InvalidClusterError(f"{where}.name: {name!r} is there twice")
        counts[name] = (fields["nodes"], fields["gpus_per_node"])
    if not any(nodes for nodes, _ in counts.values()):
        raise InvalidClusterError(f"{path}: types: no type has a node; give at least one type a 'nodes' of 1 or more")
    return Cluster.of(counts)


def cluster_from(text: str) -> Cluster:
    """Return the cluster named on a command line: a YAML file if the name ends so, otherwise one of the papers'."""
    return named_cluster(text) if not text.endswith((".yaml", ".yml")) else read_cluster(text)
