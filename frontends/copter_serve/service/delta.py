"""Deltas: changes of a cluster, read from a document and checked independently of the cluster's state."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from copter_serve.service.fields import LONGEST_ID, at, count, identifier, listing, mapping
from copter_serve.service.job_record import JobRecord, read_change, read_table, require_few_sizes, sizes_of
from copter_serve.service.problems import Problem, invalid

FIELDS = frozenset(
    {"id", "add_jobs", "change_jobs", "remove_jobs", "throughputs", "set_capacity", "add_nodes", "remove_nodes", "pins"}
)
PAUSE_EVERY = 50  # entries read before other tasks get the processor
PAUSE_NAMES = 2_000  # names read before other tasks get the processor
MOST_DEADLINES = 1_000  # most deadlines of a job
MOST_JOBS = 10_000  # most jobs to add or to change in one delta: they are applied in one step, as a whole
MOST_ENTRIES = 100_000  # most entries of a field, such as jobs to add

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
    documents, texts : dict of job id to document, and to its JSON
        Of the jobs to add, once `ClusterState.checking` has looked at them.
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
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

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
            if k % PAUSE_EVERY == PAUSE_EVERY - 1 or sizes_of(job.throughputs) > PAUSE_NAMES:
                yield
        for k, entry in enumerate(listing("/change_jobs", told.get("change_jobs", []))):
            change = read_change(f"/change_jobs/{k}", entry)
            _once(f"/change_jobs/{k}/id", change["id"], delta.change_jobs)
            delta.change_jobs[change["id"]] = change
            if k % PAUSE_EVERY == PAUSE_EVERY - 1:
                yield
        delta.remove_jobs = yield from _names("/remove_jobs", told.get("remove_jobs", []))
        for k, (job_id, table) in enumerate(mapping("/throughputs", told.get("throughputs", {})).items()):
            delta.throughputs[job_id] = read_table(at("/throughputs", job_id), table)
            if k % PAUSE_EVERY == PAUSE_EVERY - 1 or sizes_of(table) > PAUSE_NAMES:
                yield
        for kind, gpus in mapping("/set_capacity", told.get("set_capacity", {})).items():
            delta.set_capacity[kind] = count(at("/set_capacity", kind), gpus, 0)
            if len(delta.set_capacity) % PAUSE_EVERY == 0:
                yield
        seen: dict[str, None] = {}
        for kind, names in mapping("/add_nodes", told.get("add_nodes", {})).items():
            place = at("/add_nodes", kind)
            delta.add_nodes[kind] = yield from _names(place, names)
            for name in delta.add_nodes[kind]:
                _once(place, name, seen)
                seen[name] = None
            yield
        delta.remove_nodes = yield from _names("/remove_nodes", told.get("remove_nodes", []))
        for k, (job_id, pin) in enumerate(mapping("/pins", told.get("pins", {})).items()):
            delta.pins[job_id] = None if pin is None else read_pin(at("/pins", job_id), pin)
            if k % PAUSE_EVERY == PAUSE_EVERY - 1:
                yield
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


def require_few(told: Mapping[str, Any]) -> Generator[None, None, None]:
    """Raise Problem 422 for a field with too many entries, before any of them is read; pauses as `Delta.reading`."""
    for name, value in told.items():
        parts = value.values() if name == "add_nodes" and isinstance(value, dict) else ()
        for each in (value, *parts):
            most = MOST_JOBS if name in ("add_jobs", "change_jobs", "throughputs") else MOST_ENTRIES
            if isinstance(each, list | dict) and len(each) > most:
                raise too_many(f"/{name}", len(each), "entries", most)
    total = 0
    for k, (where, table) in enumerate(tables_of(told)):
        sizes = sizes_of(table)
        require_few_sizes(where, sizes)
        total += sizes
        if k % PAUSE_NAMES == PAUSE_NAMES - 1:
            yield
    if total > MOST_ENTRIES:
        raise too_many(
            "/throughputs" if "throughputs" in told else "/add_jobs", total, "throughputs in all", MOST_ENTRIES
        )


def tables_of(told: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (position, table of throughputs) of a document that is not checked yet."""
    jobs, measured = told.get("add_jobs"), told.get("throughputs")
    for k, job in enumerate(jobs if isinstance(jobs, list) else ()):
        if isinstance(job, dict):
            steps = job.get("deadlines")
            if isinstance(steps, list) and len(steps) > MOST_DEADLINES:
                told_of = f"has {len(steps):,} deadlines, a job may have {MOST_DEADLINES:,}"
                raise invalid(f"/add_jobs/{k}/deadlines", told_of, "leave out some")
            yield f"/add_jobs/{k}/throughputs", job.get("throughputs")
    for name, table in measured.items() if isinstance(measured, dict) else ():
        yield at("/throughputs", name), table


def too_many(where: str, found: int, what: str, most: int) -> Problem:
    """Return the problem of a field with too much in it."""
    return invalid(where, f"has {found:,} {what}, at most {most:,} are taken", "send several deltas")


def _names(where: str, value: Any) -> Generator[None, None, list[str]]:
    """Return different names; positions are computed only for errors, for speed."""
    found: dict[str, None] = {}
    for k, name in enumerate(listing(where, value)):
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_ID or not name.isprintable() or name in found:
            _once(at(where, k), identifier(at(where, k), name), found)
        found[name] = None
        if k % PAUSE_NAMES == PAUSE_NAMES - 1:
            yield
    return list(found)


def _once(where: str, name: str, seen: Mapping[str, Any]) -> None:
    if name in seen:
        raise invalid(where, f"{name!r} is there twice", "give it once")
