"""Reader of cluster events from a YAML file, for the option ``--events``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from copter_frontends.simulator.cluster_events import ClusterEvent, in_order, random_failures
from copter_frontends.vocabulary import Cluster, InvalidClusterError
from copter_frontends.vocabulary.yaml_files import (
    LARGEST,
    check_fields,
    load_yaml,
    read_count,
    read_positive,
    read_word,
)

LISTS = ("events", "random_failures")
MOST_DRAWN = 1_000_000  # most failures drawn for all nodes together
MOST_SEED = 2**63  # seeds are below this
DRAWN = ("hours", "mean_hours_between", "mean_repair_hours")


def read_events(path: str | Path, cluster: Cluster) -> list[ClusterEvent]:
    """Read a cluster's events from a YAML file.

    The file has a list ``events``, or a mapping ``random_failures``, or both::

        events:
          - {time_s: 3600, what: fail, gpu_type: t4, nodes: [t4-0]}
          - {time_s: 7200, what: repair, gpu_type: t4, nodes: [t4-0]}
          - {time_s: 9000, what: add, gpu_type: a100, count: 2}
          - {time_s: 9900, what: remove, gpu_type: a100, nodes: [a100-2]}
        random_failures: {hours: 24, mean_hours_between: 500, mean_repair_hours: 2, seed: 0}

    A node's name is its type and a number from 0; added nodes get such names unless names are given.

    Parameters
    ----------
    path : str or Path
    cluster : Cluster
        Cluster at the start of the run; types and nodes are checked against it.

    Returns
    -------
    list of ClusterEvent
        In order of time.

    Raises
    ------
    InvalidClusterError, UnknownGpuTypeError
        If the file cannot be read or an entry is wrong; the message names the first wrong entry.
    """
    content = load_yaml(path)
    if not isinstance(content, dict) or not content or set(content) - set(LISTS):
        raise InvalidClusterError(f"{path}: the file must hold 'events', 'random_failures' or both, and nothing else")
    entries = content.get("events", [])
    if not isinstance(entries, list):
        raise InvalidClusterError(f"{path}: 'events' must be a list")
    numbered = [(f"{path}: events[{i}]", _read_event(f"{path}: events[{i}]", e)) for i, e in enumerate(entries)]
    events = [event for _, event in numbered]
    _check_nodes(numbered, cluster)
    if "random_failures" in content:
        events += _draw(f"{path}: random_failures", content["random_failures"], cluster)
    return in_order(events)


def _read_event(where: str, entry: Any) -> ClusterEvent:
    fields = check_fields(where, entry, ("time_s", "what", "gpu_type"), ("nodes", "count"))
    time_s, names = fields["time_s"], fields.get("nodes", [])
    if not isinstance(time_s, int | float) or isinstance(time_s, bool) or not abs(time_s) <= LARGEST:
        raise InvalidClusterError(f"{where}.time_s: must be a number of seconds, not {time_s!r}")
    if not isinstance(names, list):
        raise InvalidClusterError(f"{where}.nodes: must be a list of names, not {names!r}")
    nodes = tuple(read_word(f"{where}.nodes[{i}]", name) for i, name in enumerate(names))
    kind, count = (
        read_word(f"{where}.gpu_type", fields["gpu_type"]),
        read_count(f"{where}.count", fields.get("count", 0), 0),
    )
    try:
        return ClusterEvent(float(time_s), read_word(f"{where}.what", fields["what"]), kind, nodes, count)  # type: ignore[arg-type]
    except InvalidClusterError as error:
        raise InvalidClusterError(f"{where}: {error}") from None


def _check_nodes(numbered: list[tuple[str, ClusterEvent]], cluster: Cluster) -> None:
    """Apply the events in order to a copy of the cluster; raises if one names an unknown node."""
    later, seen = cluster.copy(), {name: node.gpu_type for name, node in cluster.nodes.items()}
    where_of = {id(event): where for where, event in numbered}
    for event in in_order([event for _, event in numbered]):
        where = where_of[id(event)]
        if event.gpu_type not in later.types:
            raise InvalidClusterError(
                f"{where}.gpu_type: unknown GPU type {event.gpu_type!r}; the cluster has: {', '.join(later.types)}"
            )
        if event.what == "add":
            added = (
                [node.id for node in later.add_nodes(event.gpu_type, event.count)] if not event.nodes else event.nodes
            )
            seen.update(dict.fromkeys(added, event.gpu_type))
        strange = [name for name in event.nodes if seen.get(name) != event.gpu_type]
        if strange:
            known = [name for name, kind in seen.items() if kind == event.gpu_type]
            raise InvalidClusterError(
                f"{where}.nodes: {event.gpu_type!r} has no node {strange[0]!r} at {event.time_s:g} s; "
                f"it has {known[0]} to {known[-1]}"
                if known
                else f"{where}.nodes: {event.gpu_type!r} has no nodes"
            )


def _draw(where: str, entry: Any, cluster: Cluster) -> list[ClusterEvent]:
    fields = check_fields(where, entry, DRAWN, ("seed",))
    hours, between, repair = (read_positive(f"{where}.{name}", fields[name]) for name in DRAWN)
    expected = len(cluster.nodes) * (hours / (between + repair))
    if expected > MOST_DRAWN:
        raise InvalidClusterError(
            f"{where}.hours: about {expected:.2g} failures in {hours:g} hours, at most {MOST_DRAWN:,} are drawn"
        )
    seed = read_count(f"{where}.seed", fields.get("seed", 0), 0, MOST_SEED)
    return random_failures(cluster, hours, between, repair, seed)
