"""A time and nodes for every waiting job of one size, so that the sum of expected completions is small.

Its equations T1 to T6 are in docs/method/timetable.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from copter_serve.slurm_controller.horizon import NodeClass, Way, Wish, needs
from copter_serve.slurm_controller.limits import Limit
from copter_serve.slurm_controller.reading import ClusterNow, JobNow
from copter_serve.slurm_controller.timetable_kernel import Floats, Ints, Jobs, Steps, filled, improved

MOST_JOBS = 300  # most jobs in a timetable, those of least GPU time
MOVES = 200  # moves of a job to another place in the order
MOST_WORK = 200_000  # pairs of a job and a node after which no move begins
MOST_STEPS = 1_000_000  # amounts that the step functions of all rows may have together


@dataclass(frozen=True, slots=True)
class Placed:
    """A job with the way and the nodes that a timetable has for it, and the seconds from now until it starts there."""

    wish: Wish
    way: Way
    nodes: tuple[str, ...]
    in_s: float


class Timetable:
    """Plans all waiting jobs by list scheduling (T2), and keeps the order from step to step.

    Parameters
    ----------
    run_weight : float
        Weight of a second of running longer than in a job's own size, beside a second of waiting.
    """

    def __init__(self, run_weight: float = 1.0) -> None:
        self.run_weight = run_weight
        self._last: dict[str, int] = {}
        self._dice = np.random.default_rng(1)
        compile_kernel()

    def placed(
        self, cluster: ClusterNow, classes: Sequence[NodeClass], wishes: Sequence[Wish], ends: Mapping[str, float],
        limits: Sequence[Limit] = (), blocked: Mapping[str, float] | None = None, first: Sequence[Wish] = (),
    ) -> list[Placed]:  # fmt: skip
        """Return a place for each job that has one, in the order of their starts; the cluster stays as it is.

        Parameters
        ----------
        cluster : ClusterNow
        classes : sequence of NodeClass
        wishes : sequence of Wish
        ends : Mapping of str to float
            Expected end of each running job, Unix seconds.
        limits : sequence of Limit
        blocked : Mapping of str to float
            Nodes that nobody may use from so many seconds on.
        first : sequence of Wish
            Jobs that are placed before all others, in this order.
        """
        others = sorted(wishes, key=lambda wish: (gpu_time(wish), wish.job.came_s))[: max(0, MOST_JOBS - len(first))]
        every = [*first, *others]
        if not every:
            return []
        rows = _Rows(cluster, classes, ends, limits, blocked or {})
        jobs = rows.jobs(every, self.run_weight)
        base = rows.steps(len(every))
        steps = _copied(base)
        far = float(base.times.max() + jobs.seconds.sum())
        shared = (base, steps, jobs, rows.class_first, rows.members, len(limits), far)
        work = np.zeros(1, dtype=np.int64)
        best, order, found = math.inf, np.arange(len(every)), _places(len(every), jobs)
        for each in self._orders(every, len(first)):
            places = _places(len(every), jobs)
            total = filled(each, *shared, math.inf, *places, work)
            if total < best:
                best, order, found = total, each, places
        if len(others) > 1:
            tried = self._dice.integers(len(first), len(every), (MOVES, 2))
            improved(order, tried, len(first), MOST_WORK, *shared, best, *found, work)
            self._last = {every[at].job.id: place for place, at in enumerate(order)}
        starts, ways, nodes = found
        told = [way for wish in every for way in wish.ways]
        return [
            Placed(every[at], told[ways[at]], tuple(rows.names[node] for node in nodes[at] if node >= 0), starts[at])
            for at in np.argsort(starts, kind="stable")
            if ways[at] >= 0
        ]

    def _orders(self, every: Sequence[Wish], fixed: int) -> list[Ints]:
        """Return the orders to begin with: least GPU time first, and the last step's, new jobs behind (T4)."""
        found = [np.arange(len(every))]
        if self._last:
            rest = range(fixed, len(every))
            known = sorted(rest, key=lambda at: self._last.get(every[at].job.id, len(self._last) + at))
            found.append(np.array([*range(fixed), *known]))
        return found


def gpu_time(wish: Wish) -> float:
    """Return the least GPU-seconds that a job takes, by its weight."""
    least = min(max(way.gpus, 1) * way.seconds for way in wish.ways)
    return least * wish.job.node_count / max(wish.weight, 1e-9)


def held(job: JobNow, kinds: Sequence[str], has: Mapping[str, float]) -> dict[str, float]:
    """Return what a running job holds of one of its nodes."""
    if job.exclusive:
        return dict(has)
    kind = next((kind for kind in kinds if job.gpu_type in ("", kind)), "gpu")
    return {"cpu": math.ceil(job.cpus / job.node_count), "mem": job.memory_mb, kind: float(job.gpus)}


class _Rows:
    """Nodes and limits as rows of step functions (T1)."""

    def __init__(
        self, cluster: ClusterNow, classes: Sequence[NodeClass], ends: Mapping[str, float], limits: Sequence[Limit],
        blocked: Mapping[str, float],
    ) -> None:  # fmt: skip
        self.cluster, self.classes, self.ends, self.limits, self.blocked = cluster, classes, ends, limits, blocked
        self.names = [node.name for each in classes for node in each.nodes]
        self.members = np.arange(len(self.names))
        self.class_first = np.cumsum([0, *(len(each.nodes) for each in classes)])
        kinds = {name for each in classes for name in each.one.has} - {"cpu", "mem"}
        self.resources = {name: at for at, name in enumerate(("cpu", "mem", *sorted(kinds)))}
        self.running: dict[str, list[JobNow]] = {}  # by node
        for job in cluster.jobs.values():
            if not job.waits:
                for name in set(job.nodes):
                    self.running.setdefault(name, []).append(job)

    def steps(self, jobs: int) -> Steps:
        """Return the free amounts as running jobs end, with room for the steps of so many more jobs."""
        width = len(self.resources)
        rows = [self._node(name) for name in self.names]
        rows += [self._limit(limit, width) for limit in self.limits]
        longest = max((len(row) for row in rows), default=1)
        room = longest + min(2 * jobs, max(32, MOST_STEPS // max(1, len(rows) * width)))
        found = Steps(
            np.zeros((len(rows), room)), np.zeros((len(rows), room, width)), np.zeros(len(rows), dtype=np.int64)
        )
        for at, row in enumerate(rows):
            found.used[at] = len(row)
            for step, (time, free) in enumerate(row):
                found.times[at, step], found.free[at, step] = time, free
        return found

    def _node(self, name: str) -> list[tuple[float, Floats]]:
        node, width = self.cluster.nodes[name], len(self.resources)
        has, free = np.zeros(width), np.zeros(width)
        for resource, amount in node.has.items():
            has[self.resources[resource]], free[self.resources[resource]] = amount, node.free.get(resource, 0.0)
        back: dict[float, Floats] = {}
        for job in self.running.get(name, ()):
            amounts = back.setdefault(self._left_s(job), np.zeros(width))
            for resource, amount in held(job, node.gpu_types, node.has).items():
                if resource in self.resources:
                    amounts[self.resources[resource]] += amount
        blocked = self.blocked.get(name, math.inf)
        found = [(0.0, free)]
        for time, amounts in sorted(back.items(), key=lambda each: each[0]):
            if time < blocked:
                found.append((time, np.minimum(found[-1][1] + amounts, has)))
        if blocked <= 0.0:
            return [(0.0, np.zeros(width))]
        return [*found, (blocked, np.zeros(width))] if blocked < math.inf else found

    def _limit(self, limit: Limit, width: int) -> list[tuple[float, Floats]]:
        back: dict[float, float] = {}
        for job in self.cluster.jobs.values():
            if not job.waits and (taken := limit.takes(job, job.gpus)):
                back[self._left_s(job)] = back.get(self._left_s(job), 0.0) + taken
        free = np.zeros(width)
        free[0] = limit.left(self.cluster.jobs.values())
        found = [(0.0, free)]
        for time, taken in sorted(back.items()):
            free = free.copy()
            free[0] += taken
            found.append((time, free))
        return found

    def _left_s(self, job: JobNow) -> float:
        return max(0.1, self.ends[job.id] - self.cluster.now_s)

    def jobs(self, wishes: Sequence[Wish], run_weight: float) -> Jobs:
        """Return jobs and their ways as arrays; a way's worth is its run time as the sum counts it (T3)."""
        ways = [(wish, way) for wish in wishes for way in wish.ways]
        need, takes = np.zeros((len(ways), len(self.resources))), np.zeros((len(ways), len(self.limits)))
        for at, (wish, way) in enumerate(ways):
            amounts = self.classes[way.at].one.has if wish.job.exclusive else needs(wish.job, way)
            for resource, amount in amounts.items():
                need[at, self.resources[resource]] = amount
            takes[at] = [limit.takes(wish.job, way.gpus) for limit in self.limits]
        place = {name: at for at, name in enumerate(self.names)}
        may = np.ones((len(wishes), len(self.names)), dtype=np.int8)
        for at, wish in enumerate(wishes):
            may[at, [place[name] for name in wish.job.excluded if name in place]] = 0
            may[at, [place[name] for name in wish.job.required if name in place]] = 2
        seconds = np.array([way.seconds for _, way in ways])
        own = np.array([way.own_seconds for _, way in ways])
        return Jobs(
            np.cumsum([0, *(len(wish.ways) for wish in wishes)]),
            np.array([max(wish.job.node_count, len(wish.job.required)) for wish in wishes]),
            np.array([float(wish.weight) for wish in wishes]), may, np.array([way.at for _, way in ways]),
            np.array([self.resources[way.kind or "cpu"] for _, way in ways]), seconds,
            own + run_weight * (seconds - own), need, takes,
        )  # fmt: skip


def _copied(steps: Steps) -> Steps:
    return Steps(steps.times.copy(), steps.free.copy(), steps.used.copy())


def _places(count: int, jobs: Jobs) -> tuple[Floats, Ints, Ints]:
    return np.zeros(count), np.zeros(count, dtype=np.int64), np.zeros((count, int(jobs.width.max())), dtype=np.int64)


@cache
def compile_kernel() -> None:
    """Run the scheduler once on two small jobs, so that Numba compiles and caches it; later calls do nothing."""
    base = Steps(np.zeros((1, 5)), np.ones((1, 5, 1)), np.ones(1, dtype=np.int64))
    one, two = np.ones(1), np.arange(2)
    jobs = Jobs(
        np.arange(3), np.array([1, 1]), np.ones(2), np.ones((2, 1), dtype=np.int8), np.zeros(2, dtype=np.int64),
        np.zeros(2, dtype=np.int64), np.ones(2), np.ones(2), np.ones((2, 1)), np.zeros((2, 0)),
    )  # fmt: skip
    steps = _copied(base)
    shared, work = (base, steps, jobs, two, np.zeros(1, dtype=np.int64), 0, 9.0), one.astype(np.int64)
    places = _places(2, jobs)
    total = filled(two, *shared, math.inf, *places, work)
    improved(two.copy(), np.array([[1, 0]]), 0, MOST_WORK, *shared, total, *places, work)
