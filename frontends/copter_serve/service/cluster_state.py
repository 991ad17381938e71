"""Present state of a cluster: jobs, nodes, pins. A delta is checked completely, then applied completely."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from copter_frontends.goodput import ALL_APPLICATIONS
from copter_frontends.vocabulary import Cluster
from copter_serve.service.cluster_record import MOST_NODES, ClusterRecord
from copter_serve.service.delta import Delta, Pin
from copter_serve.service.fields import at, compact
from copter_serve.service.job_record import JobRecord, Table, require_few_sizes, table_document
from copter_serve.service.limits import check_numbers, check_rates, check_weight
from copter_serve.service.policy_names import DEADLINES, NEEDS_WORK
from copter_serve.service.problems import conflict, invalid

Undo = list[Callable[[], None]]
Change = dict[str, Any]
"""A resolved delta, in the form that is applied, journaled and sent to the scheduler; see
:meth:`ClusterState.resolve`.
"""

PAUSE_JOBS = 200  # jobs to add that are looked at before other tasks get the processor
REMEMBERED = 10_000  # number of remembered delta ids, so that no delta is applied twice
# fields of a Change that a Delta lacks or holds in another form
OWN_FIELDS = ("sequence", "time_s", "content", "remove_nodes")


def encoded(change: Change, texts: Mapping[str, str]) -> bytes:
    """Return a change as JSON; `texts` are those of its jobs to add, if :meth:`ClusterState.checking` has made them."""
    if not texts:
        return compact(change).encode()
    rest = compact({name: value for name, value in change.items() if name != "add_jobs"})
    return f'{rest[:-1]},"add_jobs":[{",".join(texts.values())}]}}'.encode()


class Accepted(NamedTuple):
    """An applied delta: its number and the digest of its content (None in files of copter 0.1)."""

    sequence: int
    content: str | None


class ClusterState:
    """Jobs, nodes and pins of one cluster.

    Parameters
    ----------
    record : ClusterRecord

    Attributes
    ----------
    sequence : int
        Number of the last delta.
    jobs : dict of job id to JobRecord
    nodes : dict of GPU type to {node id: None}
        Nodes of each type, oldest first.
    pins : dict of job id to (GPU type, nodes)
    accepted : dict of delta id to Accepted
        The last ten thousand accepted deltas.
    """

    def __init__(self, record: ClusterRecord) -> None:
        self.record = record
        self.sequence = 0
        self.jobs: dict[str, JobRecord] = {}
        self.pins: dict[str, Pin] = {}
        self.accepted: OrderedDict[str, Accepted] = OrderedDict()
        self.node_gpus = {kind: size for kind, (_, size) in record.types.items()}
        self.nodes: dict[str, dict[str, None]] = {kind: {} for kind in record.types}
        self.type_of_node: dict[str, str] = {}
        self.next_index = dict.fromkeys(record.types, 0)
        for node in record.cluster().nodes.values():
            self._add_node(node.gpu_type, node.id)
        for kind, (count, _) in record.types.items():
            self.next_index[kind] = count

    def capacity(self) -> dict[str, int]:
        """GPUs of each type."""
        return {kind: len(nodes) * self.node_gpus[kind] for kind, nodes in self.nodes.items()}

    def cluster(self) -> Cluster:
        """Return a Cluster of the current nodes, with all GPU types, even those without nodes."""
        cluster = Cluster.of({kind: (0, size) for kind, size in self.node_gpus.items()} | self._some_node())
        cluster.remove_nodes(list(cluster.nodes))
        for kind, nodes in self.nodes.items():
            if nodes:
                cluster.add_whole_nodes(kind, len(nodes) * self.node_gpus[kind], list(nodes))
        return cluster

    def _some_node(self) -> dict[str, tuple[int, int]]:
        kind, size = next(iter(self.node_gpus.items()))
        return {kind: (1, size)}

    # A delta ------------------------------------------------------------------------------------------------------

    def checking(self, delta: Delta, now_s: float) -> Generator[None, None, None]:
        """Do in steps what :meth:`resolve` does with the jobs to add, as far as it does not depend on the state."""
        for k, (job_id, job) in enumerate(delta.add_jobs.items()):
            self._check_job(f"/add_jobs/{k}", job)
            if job.submit_s is None:
                delta.add_jobs[job_id] = job = replace(job, submit_s=now_s)
            delta.documents[job_id] = job.document()
            delta.texts[job_id] = compact(delta.documents[job_id])
            if k % PAUSE_JOBS == PAUSE_JOBS - 1:
                yield

    def resolve(self, delta: Delta, now_s: float) -> Change:
        """Check a delta against the current state; returns its changes with every node named. Raises Problem.

        The order of the changes: remove jobs, remove and add nodes, add jobs, change jobs, set throughputs, pin.
        """
        gone = set(delta.remove_jobs)
        for k, job_id in enumerate(delta.remove_jobs):
            if job_id not in self.jobs:
                raise conflict(f"/remove_jobs/{k}", f"there is no job {job_id!r}", "leave it out")
        removed, added = self._resolve_nodes(delta, gone)
        for k, (job_id, job) in enumerate(delta.add_jobs.items()):
            if job_id in self.jobs and job_id not in gone:
                raise conflict(
                    f"/add_jobs/{k}", f"job {job_id!r} is there already", "remove it in the same delta to replace it"
                )
            if job_id not in delta.documents:
                self._check_job(f"/add_jobs/{k}", job)
        for k, (job_id, what) in enumerate(delta.change_jobs.items()):
            self._require_job(f"/change_jobs/{k}", job_id, delta, gone)
            if "weight" in what:
                check_weight(f"/change_jobs/{k}/weight", what["weight"])
        for job_id, table in delta.throughputs.items():
            where = at("/throughputs", job_id)
            self._require_job(where, job_id, delta, gone)
            if not self.record.rated:
                raise invalid(
                    where,
                    f"the policy {self.record.policy!r} goes by models of applications and takes no throughputs",
                    "make the cluster with the policy 'allocation', or another that goes by throughputs",
                )
            self._check_types(where, table)
            check_rates(where, table)
            self._check_sizes(where, delta, job_id, table)
        self._check_pins(delta, gone, removed, added)
        change: Change = {"sequence": self.sequence + 1, "time_s": now_s}
        if delta.id is not None:
            change["id"] = delta.id
            change["content"] = delta.content
        if delta.remove_jobs:
            change["remove_jobs"] = delta.remove_jobs
        if removed:
            change["remove_nodes"] = removed
        if added:
            change["add_nodes"] = added
        if delta.add_jobs:
            for job_id, job in delta.add_jobs.items():
                if job.submit_s is None:
                    delta.add_jobs[job_id] = replace(job, submit_s=now_s)
            change["add_jobs"] = [
                delta.documents[name] if name in delta.documents else job.document()
                for name, job in delta.add_jobs.items()
            ]
        if delta.change_jobs:
            change["change_jobs"] = list(delta.change_jobs.values())
        if delta.throughputs:
            change["throughputs"] = {name: table_document(table) for name, table in delta.throughputs.items()}
        if delta.pins:
            change["pins"] = {
                name: None if pin is None else {"gpu_type": pin[0], "nodes": dict(pin[1])}
                for name, pin in delta.pins.items()
            }
        return change

    def apply(self, change: Mapping[str, Any], delta: Delta | None = None) -> Undo:
        """Apply a resolved delta; returns the function that undoes it."""
        if delta is None:
            delta = Delta.read({name: value for name, value in change.items() if name not in OWN_FIELDS})
        before = self.sequence
        undo: Undo = [lambda: setattr(self, "sequence", before)]
        self.sequence = change["sequence"]
        self._accept(delta.id, change.get("content"), undo)
        for job_id in delta.remove_jobs:
            undo.append(_set(self.pins, job_id))
            self.pins.pop(job_id, None)
            undo.append(_set(self.jobs, job_id))
            del self.jobs[job_id]
        indices = dict(self.next_index)
        undo.append(lambda: self.next_index.update(indices))
        for names in change.get("remove_nodes", {}).values():
            for name in names:
                undo.append(self._drop_node(name))
        for kind, names in change.get("add_nodes", {}).items():
            for name in names:
                self._add_node(kind, name)
                undo.append(_dropping(self, name))
        for job in delta.add_jobs.values():
            undo.append(_set(self.jobs, job.id))
            self.jobs[job.id] = job
        for job_id, what in delta.change_jobs.items():
            undo.append(_set(self.jobs, job_id))
            self.jobs[job_id] = self.jobs[job_id].changed(what)
        for job_id, table in delta.throughputs.items():
            undo.append(_set(self.jobs, job_id))
            self.jobs[job_id] = self.jobs[job_id].measured(table)
        for job_id, pin in delta.pins.items():
            undo.append(_set(self.pins, job_id))
            if pin is None:
                self.pins.pop(job_id, None)
            else:
                self.pins[job_id] = pin
        undo.reverse()
        return undo

    # Checks -------------------------------------------------------------------------------------------------------

    def _check_sizes(self, where: str, delta: Delta, job_id: str, table: Table) -> None:
        """Raise Problem 422 for throughputs with which the job would have too many."""
        job = delta.add_jobs.get(job_id) or self.jobs[job_id]
        own = {kind: job.throughputs.get(kind, {}).keys() | rates.keys() for kind, rates in table.items()}
        others = sum(len(rates) for kind, rates in job.throughputs.items() if kind not in own)
        require_few_sizes(where, others + sum(map(len, own.values())))

    def _check_job(self, where: str, job: JobRecord) -> None:
        policy = self.record.policy
        self._check_types(f"{where}/throughputs", job.throughputs)
        check_numbers(where, job)
        if job.throughputs and not self.record.rated:
            raise invalid(
                f"{where}/throughputs", f"the policy {policy!r} goes by models of applications", "leave them out"
            )
        if not self.record.rated and job.application not in ALL_APPLICATIONS:
            raise invalid(
                f"{where}/application",
                f"{job.application!r} is no application that the policy {policy!r} has a model of",
                f"take one of {', '.join(sorted(ALL_APPLICATIONS))}",
            )
        if job.deadlines and policy not in DEADLINES:
            told = f"the policy {policy!r} promises no deadlines"
            raise invalid(f"{where}/deadlines", told, f"leave them out, or take {' or '.join(DEADLINES)}")
        if policy in NEEDS_WORK and job.work is None:
            raise invalid(f"{where}/work", f"is missing, and the policy {policy!r} goes by it", "give units of work")

    def _check_types(self, where: str, table: Mapping[str, Any]) -> None:
        for kind in table:
            self._require_type(at(where, kind), kind)

    def _require_type(self, where: str, kind: str) -> None:
        if kind not in self.node_gpus:
            raise invalid(
                where,
                f"there is no GPU type {kind!r}",
                f"take one of {', '.join(self.node_gpus)}; types are fixed when the cluster is made",
            )

    def _require_job(self, where: str, job_id: str, delta: Delta, gone: set[str]) -> None:
        if job_id not in delta.add_jobs and (job_id not in self.jobs or job_id in gone):
            raise conflict(where, f"there is no job {job_id!r}", "add it first")

    def _resolve_nodes(self, delta: Delta, gone: set[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Return (nodes to remove, nodes to add) by type."""
        removed: dict[str, list[str]] = {}
        added: dict[str, list[str]] = {}
        for k, name in enumerate(delta.remove_nodes):
            if name not in self.type_of_node:
                raise conflict(f"/remove_nodes/{k}", f"there is no node {name!r}", "leave it out")
            removed.setdefault(self.type_of_node[name], []).append(name)
        for kind, names in delta.add_nodes.items():
            where = at("/add_nodes", kind)
            self._require_type(where, kind)
            for k, name in enumerate(names):
                if name in self.type_of_node and name not in delta.remove_nodes:
                    raise conflict(at(where, k), f"node {name!r} is there already", "leave it out")
            if names:
                added[kind] = list(names)
        pinned = {node for job_id, (_, nodes) in self.pins.items() if job_id not in gone for node, _ in nodes}
        taken = {name for names in added.values() for name in names}
        for kind, gpus in delta.set_capacity.items():
            where = at("/set_capacity", kind)
            self._require_type(where, kind)
            if gpus % self.node_gpus[kind]:
                raise invalid(
                    where, f"{gpus} GPUs are not whole nodes", f"give a multiple of {self.node_gpus[kind]}, or nodes"
                )
            if kind in removed or kind in added:
                raise invalid(where, "nodes of this type are added or removed, too", "give the capacity or the nodes")
            wanted, there = gpus // self.node_gpus[kind], list(self.nodes[kind])
            if wanted > len(there):
                added[kind] = self._made_up(kind, wanted - len(there), taken)
            elif wanted < len(there):
                free = [name for name in there if name not in pinned]
                if len(there) - wanted > len(free):
                    raise conflict(where, "pinned jobs are on too many of the nodes", "unpin some of them first")
                removed[kind] = free[len(free) - (len(there) - wanted) :]
        for names in removed.values():
            for name in names:
                if name in pinned:
                    raise conflict("/remove_nodes", f"a job is pinned to node {name!r}", "unpin it first")
        total = len(self.type_of_node) + sum(map(len, added.values())) - sum(map(len, removed.values()))
        if total > MOST_NODES:
            raise invalid("/add_nodes", f"there would be more than {MOST_NODES} nodes", "make several clusters")
        return removed, added

    def _made_up(self, kind: str, count: int, taken: set[str]) -> list[str]:
        names: list[str] = []
        index = self.next_index[kind]
        while len(names) < min(count, MOST_NODES + 1):
            name = f"{kind}-{index}"
            index += 1
            if name not in self.type_of_node and name not in taken:
                names.append(name)
        taken.update(names)
        return names

    def _check_pins(
        self, delta: Delta, gone: set[str], removed: dict[str, list[str]], added: dict[str, list[str]]
    ) -> None:
        if not delta.pins:
            return
        pins = {job_id: pin for job_id, pin in self.pins.items() if job_id not in gone}
        for job_id, pin in delta.pins.items():
            where = at("/pins", job_id)
            self._require_job(where, job_id, delta, gone)
            pins.pop(job_id, None)
            if pin is None:
                continue
            kind, nodes = pin
            self._require_type(f"{where}/gpu_type", kind)
            there = (self.nodes[kind].keys() - removed.get(kind, ())) | set(added.get(kind, ()))
            for name, _ in nodes:
                if name not in there:
                    raise conflict(f"{where}/nodes", f"there is no node {name!r} of type {kind!r}")
            pins[job_id] = pin
        used: dict[tuple[str, str], int] = {}
        for job_id, (kind, nodes) in pins.items():
            for name, gpus in nodes:
                used[kind, name] = used.get((kind, name), 0) + gpus
                if used[kind, name] > self.node_gpus[kind]:
                    raise conflict(
                        at("/pins", job_id), f"pinned jobs would have more GPUs of node {name!r} than it has"
                    )

    # Steps --------------------------------------------------------------------------------------------------------

    def _accept(self, name: str | None, content: str | None, undo: Undo) -> None:
        if name is None:
            return
        forgotten = self.accepted.popitem(last=False) if len(self.accepted) >= REMEMBERED else None
        self.accepted[name] = Accepted(self.sequence, content)

        def back() -> None:
            del self.accepted[name]
            if forgotten is not None:
                self.accepted[forgotten[0]] = forgotten[1]
                self.accepted.move_to_end(forgotten[0], last=False)

        undo.append(back)

    def _add_node(self, kind: str, name: str) -> None:
        self.nodes[kind][name] = None
        self.type_of_node[name] = kind
        prefix, _, index = name.rpartition("-")
        if prefix == kind and index.isascii() and index.isdigit() and len(index) < 10:
            self.next_index[kind] = max(self.next_index[kind], int(index) + 1)

    def _drop_node(self, name: str) -> Callable[[], None]:
        """Remove a node; returns the function that restores it at its position."""
        kind = self.type_of_node.pop(name)
        before = list(self.nodes[kind])
        del self.nodes[kind][name]

        def back() -> None:
            self.type_of_node[name] = kind
            self.nodes[kind] = dict.fromkeys(before)

        return back


def _set(mapping: dict[str, Any], key: str) -> Callable[[], None]:
    """Return a function that restores a key's current value or absence; the order of keys is not kept."""
    if key in mapping:
        value = mapping[key]
        return lambda: mapping.__setitem__(key, value)

    def absent() -> None:
        mapping.pop(key, None)

    return absent


def _dropping(state: ClusterState, name: str) -> Callable[[], None]:
    def back() -> None:
        kind = state.type_of_node.pop(name)
        del state.nodes[kind][name]

    return back
