"""Deltas: changes of a cluster, read from a document and checked independently of the cluster's state."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from copter_serve.service.fields import at, count, identifier, listing, mapping
from copter_serve.service.job_record import JobRecord, read_change, read_table
from copter_serve.service.problems import invalid

FIELDS = frozenset(
    {"id", "add_jobs", "change_jobs", "remove_jobs", "throughputs", "set_capacity", "add_nodes", "remove_nodes", "pins"}
)
PAUSE_EVERY = 50  # entries read before other tasks get the processor

Pin = tuple[str, tuple[tuple[str, int], ...]]
"""(GPU type, ((node, GPUs), ...))."""


@dataclass(slots=True)
class Delta:
    """Contents of a delta.

    Attributes
    ----------
    id : str or None
        The sender's own id. A delta with an already accepted id is acknowledged again, but not applied again.
    content : str or None
        Digest of the document if it has an id; the same id with other content is refused.
    add_jobs, change_jobs : dict of job id to JobRecord, or to what changes
    remove_jobs, remove_nodes : list of str
    throughputs : dict of job id to {GPU type: {GPUs: units per second}}
        Measured rates.
    set_capacity : dict of GPU type to GPUs
    add_nodes : dict of GPU type to node ids
    pins : dict of job id to (GPU type, nodes), or None to unpin
    """

    id: str | None = None
    content: str | None = None
    add_jobs: dict[str, JobRecord] = field(default_factory=dict)
    change_jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    remove_jobs: list[str] = field(default_factory=list)
    throughputs: dict[str, dict[str, dict[int, float]]] = field(default_factory=dict)
    set_capacity: dict[str, int] = field(default_factory=dict)
    add_nodes: dict[str, list[str]] = field(default_factory=dict)
    remove_nodes: list[str] = field(default_factory=list)
    pins: dict[str, Pin | None] = field(default_factory=dict)

    @classmethod
    def read(cls, value: Any) -> Delta:
        """Read a delta from a document; raises Problem 422."""
        steps = cls.reading(value)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                found: Delta = done.value
                return found

    @classmethod
    def reading(cls, value: Any) -> Generator[None, None, Delta]:
        """Do :meth:`read` with pauses, so that a large delta does not block the service."""
        told = mapping("", value, FIELDS)
        delta = cls()
        if "id" in told:
            delta.id, delta.content = identifier("/id", told["id"]), _digest(told)
        for k, entry in enumerate(listing("/add_jobs", told.get("add_jobs", []))):
            job = JobRecord.read(f"/add_jobs/{k}", entry)
            _once(f"/add_jobs/{k}/id", job.id, delta.add_jobs)
            delta.add_jobs[job.id] = job
            if k % PAUSE_EVERY == PAUSE_EVERY - 1:
                yield
        for k, entry in enumerate(listing("/change_jobs", told.get("change_jobs", []))):
            change = read_change(f"/change_jobs/{k}", entry)
            _once(f"/change_jobs/{k}/id", change["id"], delta.change_jobs)
            delta.change_jobs[change["id"]] = change
            if k % PAUSE_EVERY == PAUSE_EVERY - 1:
                yield
        delta.remove_jobs = _names("/remove_jobs", told.get("remove_jobs", []))
        for k, (job_id, table) in enumerate(mapping("/throughputs", told.get("throughputs", {})).items()):
            delta.throughputs[job_id] = read_table(at("/throughputs", job_id), table)
            if k % PAUSE_EVERY == PAUSE_EVERY - 1:
                yield
        for kind, gpus in mapping("/set_capacity", told.get("set_capacity", {})).items():
            delta.set_capacity[kind] = count(at("/set_capacity", kind), gpus, 0)
        seen: dict[str, None] = {}
        for kind, names in mapping("/add_nodes", told.get("add_nodes", {})).items():
            place = at("/add_nodes", kind)
            delta.add_nodes[kind] = _names(place, names)
            for name in delta.add_nodes[kind]:
                _once(place, name, seen)
                seen[name] = None
        delta.remove_nodes = _names("/remove_nodes", told.get("remove_nodes", []))
        for job_id, pin in mapping("/pins", told.get("pins", {})).items():
            delta.pins[job_id] = None if pin is None else read_pin(at("/pins", job_id), pin)
        return delta


def read_pin(where: str, value: Any) -> Pin:
    """Read GPUs of one type on named nodes."""
    told = mapping(where, value, ("gpu_type", "nodes"), ("gpu_type", "nodes"))
    nodes = mapping(f"{where}/nodes", told["nodes"])
    if not nodes:
        raise invalid(f"{where}/nodes", "is empty", 'name the nodes: {"node": GPUs}; null for the pin unpins')
    shares = tuple(sorted((name, count(at(f"{where}/nodes", name), gpus)) for name, gpus in nodes.items()))
    return identifier(f"{where}/gpu_type", told["gpu_type"]), shares


def _digest(document: Mapping[str, Any]) -> str:
    """Return a digest of a document's content, independent of the order of its fields."""
    return blake2b(json.dumps(document, sort_keys=True).encode(), digest_size=8).hexdigest()


def _names(where: str, value: Any) -> list[str]:
    found: dict[str, None] = {}
    for k, name in enumerate(listing(where, value)):
        _once(at(where, k), identifier(at(where, k), name), found)
        found[name] = None
    return list(found)


def _once(where: str, name: str, seen: Mapping[str, Any]) -> None:
    if name in seen:
        raise invalid(where, f"{name!r} is there twice", "give it once")
