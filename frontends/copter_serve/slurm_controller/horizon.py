"""Which jobs start now, on which nodes and with how many GPUs: a program over the present and slots of the future.

Each waiting job is a request with a column for each way to run it: g GPUs of nodes of class c for t seconds,

- "now on node n" takes the node's free CPUs, memory and GPUs, and of each later slot the GPU-seconds that it holds;
- "from slot k on, somewhere in class c" takes the class's GPU-seconds of the slots that it runs in.

A way that completes f seconds from now is worth w (C - f), with C past the last slot. So the relaxation has the least
sum of completion times: short jobs first, each on the type where it gains most, wide only while the queue is short.
Running jobs and their expected ends lower the slots' capacities. Only columns of "now" become starts; they are taken in
the order of the solution while they fit, node by node and limit by limit.

One model lives from step to step: a step changes right sides, and adds and removes jobs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from copter import Model, Session, Settings
from copter_serve.slurm_controller.limits import Limit
from copter_serve.slurm_controller.reading import ClusterNow, JobNow, NodeNow

SLOTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # slots' ends in multiples of the typical run time
CHANGED = 0.25  # relative change of an estimate that replaces a job's columns
SHARE = 0.1  # smallest part of a job that starts now in the relaxation for the job to start
MOST_JOBS = 300  # most waiting jobs in the model, oldest first


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run a job: GPUs a node of one type, in a class of nodes, and the seconds that it takes.

    `own_seconds` are those that it would take with as many GPUs as it asked for.
    """

    at: int
    kind: str
    gpus: int
    seconds: float
    own_seconds: float


@dataclass(frozen=True, slots=True)
class Wish:
    """A waiting job with its ways to run and the weight of its completion time."""

    job: JobNow
    ways: tuple[Way, ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Start:
    """A job to start now."""

    job: JobNow
    nodes: tuple[str, ...]
    kind: str
    gpus: int
    seconds: float


@dataclass(slots=True)
class NodeClass:
    """Nodes that are alike to every job: same amounts, features and partitions."""

    nodes: list[NodeNow]

    @property
    def one(self) -> NodeNow:
        """Any of its nodes."""
        return self.nodes[0]


def classes_of(cluster: ClusterNow) -> list[NodeClass]:
    """Return the usable nodes by class, in the order of their names."""
    found: dict[Hashable, NodeClass] = {}
    for node in sorted(cluster.nodes.values(), key=lambda node: node.name):
        if node.usable:
            key = (tuple(sorted(node.has.items())), node.features, node.partitions)
            found.setdefault(key, NodeClass([])).nodes.append(node)
    return list(found.values())


def needs(job: JobNow, way: Way | Start) -> dict[str, float]:
    """Return what a job takes of each of its nodes."""
    amounts = {"cpu": math.ceil(job.cpus / job.node_count), "mem": job.memory_mb}
    return amounts | ({way.kind: float(way.gpus)} if way.gpus else {})


def fits(node: NodeNow, amounts: Mapping[str, float], exclusive: bool = False) -> bool:
    """Return whether amounts are free on a node; an exclusive job needs the whole node."""
    if exclusive and any(node.free[name] < node.has[name] for name in node.has):
        return False
    return all(node.free.get(name, 0.0) >= amount for name, amount in amounts.items())


class Horizon:
    """The model of a cluster, kept from step to step.

    Parameters
    ----------
    settings : Settings, optional
    run_weight : float
        Weight of a second of running longer than with the asked GPUs, beside a second of waiting.
    """

    def __init__(self, settings: Settings | None = None, run_weight: float = 1.0) -> None:
        self.run_weight = run_weight
        self.settings = settings or Settings(threads=1)
        self._shape: Hashable = None
        self._fresh(1.0, [], ())

    def _fresh(self, typical_s: float, classes: Sequence[NodeClass], limits: Sequence[Limit]) -> None:
        self.model = Model(sense="max")
        self.session = Session(self.model, self.settings)
        self.ends = np.array(SLOTS[1:]) * typical_s
        self._known: dict[Hashable, Wish] = {}
        self._columns: dict[Hashable, list[tuple[Way, tuple[str, ...]]]] = {}
        with self.model.batch():
            for at, each in enumerate(classes):
                for resource in each.one.has:
                    if resource != "mem":
                        for k in range(len(self.ends)):
                            self.model.set_count(("slot", at, resource, k), 0.0)
                    for node in each.nodes:
                        self.model.set_count(("now", node.name, resource), 0.0)
                if "mem" not in each.one.has:
                    for node in each.nodes:
                        self.model.set_count(("now", node.name, "mem"), 0.0)
            for limit in limits:
                self.model.set_count(("limit", limit.name), 0.0)

    def starts(
        self, cluster: ClusterNow, wishes: Sequence[Wish], ends: Mapping[str, float], limits: Sequence[Limit] = (),
        kept_free: Mapping[str, float] | None = None,
    ) -> list[Start]:  # fmt: skip
        """Return the jobs to start now; the cluster's free amounts are lowered by them.

        Parameters
        ----------
        cluster : ClusterNow
        wishes : sequence of Wish
        ends : Mapping of str to float
            Expected end of each running job, Unix seconds.
        limits : sequence of Limit
        kept_free : Mapping of str to float
            Nodes kept for a reserved job, with the seconds from now until it starts: others start there only if they
            are expected to have ended by then.
        """
        wishes = sorted(wishes, key=lambda wish: wish.job.came_s)[:MOST_JOBS]
        if not wishes:
            return []
        classes = classes_of(cluster)
        typical = 2.0 ** round(math.log2(float(np.median([min(way.seconds for way in each.ways) for each in wishes]))))
        shape = (
            [(tuple(node.name for node in each.nodes), tuple(sorted(each.one.has.items()))) for each in classes],
            [limit.name for limit in limits],
        )
        grid = float(self.ends[1])
        if shape != self._shape or not 0.4 < typical / grid < 2.5:
            self._shape = shape
            self._fresh(typical, classes, limits)
        self._edit(cluster, classes, wishes, ends, limits, kept_free or {})
        solution = self.session.solve()
        keys = [wish.job.id for wish in wishes]
        offsets, values = solution.values_of(keys)
        wished = {key: values[offsets[at] : offsets[at + 1]] for at, key in enumerate(keys)}
        return self._taken(cluster, wishes, wished, limits, kept_free or {})

    # The edits of a step --------------------------------------------------------------------------------------------

    def _edit(
        self, cluster: ClusterNow, classes: Sequence[NodeClass], wishes: Sequence[Wish], ends: Mapping[str, float],
        limits: Sequence[Limit], kept_free: Mapping[str, float],
    ) -> None:  # fmt: skip
        now = {wish.job.id: wish for wish in wishes}
        with self.model.batch():
            gone = [key for key, was in self._known.items() if str(key) not in now or not _alike(was, now[str(key)])]
            if gone:
                self.model.remove_requests(gone)
            for key in gone:
                del self._known[key]
            for wish in wishes:
                if wish.job.id not in self._known:
                    self._add(wish, classes, limits)
            rows, counts = self._right_sides(cluster, classes, ends, limits)
            self.model.update_counts(rows, counts)
            for key, wish in self._known.items():
                upper = [1.0 if all(self._may(kept_free, name, way) for name in nodes) else 0.0
                         for way, nodes in self._columns[key]]  # fmt: skip
                self.model.update_bounds(wish.job.id, upper=upper)

    @staticmethod
    def _may(kept_free: Mapping[str, float], name: str, way: Way | Start) -> bool:
        return way.seconds <= kept_free.get(name, math.inf)

    def _add(self, wish: Wish, classes: Sequence[NodeClass], limits: Sequence[Limit]) -> None:
        columns: list[tuple[Way, tuple[str, ...]]] = []
        begins = np.concatenate(([0.0], self.ends[:-1]))
        worths: list[float] = []
        usage: dict[Hashable, dict[int, float]] = {}
        last = float(self.ends[-1])
        for way in wish.ways:
            amounts, nodes = needs(wish.job, way), classes[way.at].nodes
            if wish.job.exclusive:
                amounts = dict(nodes[0].has)
            later: list[tuple[float, list[tuple[str, ...]]]] = [
                (float(start), [()]) for start in (begins + self.ends) / 2.0
            ]
            shown = [(0.0, self._sets(wish.job, nodes)), *later]
            for start, sets in shown:
                held = self._held(start, way.seconds)
                for names in sets:
                    at = len(columns)
                    columns.append((way, names))
                    done = start + way.own_seconds + self.run_weight * (way.seconds - way.own_seconds)
                    worths.append(wish.weight * max(2.0 * last - done, 0.1 * last * last / (last + done)))
                    for name in names:
                        for resource, amount in amounts.items():
                            usage.setdefault(("now", name, resource), {})[at] = amount
                    if names:
                        for limit in limits:
                            if taken := limit.takes(wish.job, way.gpus):
                                usage.setdefault(("limit", limit.name), {})[at] = taken
                    for resource, amount in amounts.items():
                        if resource != "mem":
                            for k in np.flatnonzero(held):
                                row = ("slot", way.at, resource, int(k))
                                usage.setdefault(row, {})[at] = amount * wish.job.node_count * float(held[k])
        dense = {row: [taken.get(at, 0.0) for at in range(len(columns))] for row, taken in usage.items()}
        self.model.add_request(wish.job.id, worths, dense, limit=1.0, upper=np.ones(len(columns)), integer=True)
        self._known[wish.job.id], self._columns[wish.job.id] = wish, columns

    def _held(self, start: float, seconds: float) -> np.ndarray:
        """Return the seconds of each slot in which a run lies."""
        begins = np.concatenate(([0.0], self.ends[:-1]))
        held: np.ndarray = np.maximum(0.0, np.minimum(self.ends, start + seconds) - np.maximum(begins, start))
        return held

    @staticmethod
    def _sets(job: JobNow, nodes: Sequence[NodeNow]) -> list[tuple[str, ...]]:
        """Return the sets of nodes that a job may start on: each node, or runs of neighbours for several nodes."""
        names = [node.name for node in nodes if node.name not in job.excluded]
        if job.required:
            if not set(job.required) <= set(names):
                return []
            rest = [name for name in names if name not in job.required]
            return [tuple([*job.required, *rest][: max(job.node_count, len(job.required))])]
        count = job.node_count
        return [tuple(names[at : at + count]) for at in range(0, len(names) - count + 1)]

    def _right_sides(
        self, cluster: ClusterNow, classes: Sequence[NodeClass], ends: Mapping[str, float], limits: Sequence[Limit]
    ) -> tuple[list[Hashable], list[float]]:
        rows: list[Hashable] = []
        counts: list[float] = []
        lengths = np.diff(np.concatenate(([0.0], self.ends)))
        for at, each in enumerate(classes):
            for resource in {*each.one.has, "mem"}:
                for node in each.nodes:
                    rows.append(("now", node.name, resource))
                    counts.append(max(0.0, node.free.get(resource, 0.0)))
            for resource in each.one.has:
                if resource == "mem":
                    continue
                room = lengths * sum(node.has[resource] for node in each.nodes)
                busy = np.zeros_like(room)
                for job in cluster.jobs.values():
                    if not job.waits:
                        on = sum(node.name in job.nodes for node in each.nodes)
                        if on:
                            taken = math.ceil(job.cpus / job.node_count) if resource == "cpu" else float(job.gpus)
                            left = max(0.5, ends.get(job.id, cluster.now_s) - cluster.now_s)
                            busy += on * taken * self._held(0.0, left)
                for k, amount in enumerate(np.maximum(room - busy, 0.0)):
                    rows.append(("slot", at, resource, k))
                    counts.append(float(amount))
        for limit in limits:
            rows.append(("limit", limit.name))
            counts.append(max(0.0, limit.left(cluster.jobs.values())))
        return rows, counts

    # From the relaxation to whole jobs ------------------------------------------------------------------------------

    def _taken(
        self, cluster: ClusterNow, wishes: Sequence[Wish], wished: Mapping[str, np.ndarray], limits: Sequence[Limit],
        kept_free: Mapping[str, float],
    ) -> list[Start]:  # fmt: skip
        left = {limit.name: limit.left(cluster.jobs.values()) for limit in limits}
        shares: list[tuple[float, float, Wish, Way]] = []
        for wish in wishes:
            by_way: dict[Way, float] = {}
            for (way, nodes), value in zip(self._columns[wish.job.id], wished[wish.job.id], strict=True):
                if nodes:
                    by_way[way] = by_way.get(way, 0.0) + float(value)
            whole = sum(by_way.values())
            if whole >= SHARE:
                shares += [(-value, wish.job.came_s, wish, way) for way, value in by_way.items() if value > 1e-6]
        shares.sort(key=lambda each: each[:2])
        found: dict[str, Start] = {}
        for _, _, wish, way in shares:
            if wish.job.id in found or any(limit.takes(wish.job, way.gpus) > left[limit.name] for limit in limits):
                continue
            nodes = self._nodes_for(cluster, wish, way, kept_free)
            if nodes:
                take(cluster, wish.job, way, nodes)
                found[wish.job.id] = Start(wish.job, nodes, way.kind, way.gpus, way.seconds)
                for limit in limits:
                    left[limit.name] -= limit.takes(wish.job, way.gpus)
        return list(found.values())

    def _nodes_for(self, cluster: ClusterNow, wish: Wish, way: Way, kept_free: Mapping[str, float]) -> tuple[str, ...]:
        """Return nodes with room for a way, those with least room left first; empty if there are none."""
        amounts = needs(wish.job, way)
        names = {name for w, nodes in self._columns[wish.job.id] if w == way for name in nodes}
        able = [name for name in sorted(names) if self._may(kept_free, name, way)
                and fits(cluster.nodes[name], amounts, wish.job.exclusive)]  # fmt: skip
        able.sort(key=lambda name: (cluster.nodes[name].free.get(way.kind, 0.0), cluster.nodes[name].free["cpu"]))
        if wish.job.required:
            able = [*wish.job.required, *(name for name in able if name not in wish.job.required)] if set(
                wish.job.required) <= set(able) else []  # fmt: skip
        count = max(wish.job.node_count, len(wish.job.required))
        return tuple(able[:count]) if len(able) >= count else ()


def take(cluster: ClusterNow, job: JobNow, way: Way | Start, nodes: Iterable[str]) -> None:
    """Lower the free amounts of nodes by a job."""
    for name in nodes:
        node = cluster.nodes[name]
        for resource, amount in (node.has if job.exclusive else needs(job, way)).items():
            node.free[resource] = node.free.get(resource, 0.0) - amount


def _alike(one: Wish, other: Wish) -> bool:
    """Return whether a job's columns may be kept."""
    if one.weight != other.weight or len(one.ways) != len(other.ways):
        return False
    if replace(one.job, reason="", state="", priority=0.0, begins_s=0.0) != replace(
        other.job, reason="", state="", priority=0.0, begins_s=0.0
    ):
        return False
    return all(
        (a.at, a.kind, a.gpus) == (b.at, b.kind, b.gpus) and abs(a.seconds - b.seconds) <= CHANGED * a.seconds
        for a, b in zip(one.ways, other.ways, strict=True)
    )
