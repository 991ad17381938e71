"""The model of what can start: a bound on it from a linear program, and plans that keep exactly to it.

The program has the quotas' rows of :mod:`~copter_serve.queues.admission_model`, a row for what is left of each
limit beside the quotas, and rows for the nodes. Nodes with equal rooms on which the same jobs fit are one class, which
has in each resource what its nodes have in sum. A column is the part of a job that starts in one way in one class. It
is at most the part that the class's nodes hold one by one; of jobs with different pods it counts the largest ones only.
So the program allows everything that whole jobs on whole nodes may do, and more. Room that may be free and jobs that
may be able count in it, but never in a plan.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from copter import Settings
from copter_serve.queues.admission_model import AdmissionModel
from copter_serve.queues.ask import Ask
from copter_serve.queues.fair_shares import FairShares
from copter_serve.queues.quota_tree import Amounts, QuotaTree, Share
from copter_serve.queues.tournament import Tournament
from copter_serve.views import ClusterView, WatchedJob
from copter_serve.views.board import FULL, Board
from copter_serve.views.start_check import fault
from copter_serve.views.starts import Node, Pods, Start, Way, within

MOST_COLUMNS = 40_000  # beyond this, nodes of different rooms share a class
MOST_FLAVORS = 64  # beyond so many combinations of flavors, the bound leaves quotas out
MANY = 1_000_000  # pods of a kind on a node, where they need nothing of it
ORDERS = ("program", "large", "small")
Spec: TypeAlias = tuple[tuple[float, ...], dict[Hashable, tuple[float, ...]], tuple[float, ...]]


@dataclass(slots=True)
class StartPlan:
    """Jobs that could start, their units, and a bound on the units of all jobs that could.

    Attributes
    ----------
    starts : list of Start
    units, bound : float
    bound_is_certified : bool
        Whether the solver certified the bound of the program.
    refused : list of str
        Plans that the check refused, with the reason.
    """

    starts: list[Start] = field(default_factory=list)
    units: float = 0.0
    bound: float = 0.0
    bound_is_certified: bool = True
    refused: list[str] = field(default_factory=list)


class StartModel(AdmissionModel):
    """One session for all rounds of a set of queues; see the module."""

    def __init__(self, tree: QuotaTree, settings: Settings | None = None) -> None:
        super().__init__(tree, settings)
        self._specs: dict[str, Spec] = {}  # of the jobs in the program
        self._own_rows: dict[Hashable, float] = {}  # of limits and classes of nodes

    def plan_of(self, view: ClusterView) -> StartPlan:
        """Return a plan of what could start now, and the bound."""
        able = [job for job in view.jobs if not job.running and not job.held and job.ways]
        found = StartPlan()
        worth = self._bounded(view, able, found)
        sure = [job for job in able if not job.unclear]
        best: tuple[float, int] | None = None
        for order in ("fair",) if view.tree.fair else ORDERS:
            starts = _planned(view, sure, order, worth)
            why = fault(view, starts)
            if why:
                found.refused.append(f"a plan was refused by its check: {why}")
                starts = _passing(view, starts)
            value = sum(view.units(each.amounts) for each in starts), len(starts)
            if best is None or value > best:
                best, found.starts, found.units = value, starts, value[0]
        found.bound = _whole_units(view, able, max(found.bound, found.units))
        return found

    # The bound --------------------------------------------------------------------------------------------------------

    def _bounded(self, view: ClusterView, able: Sequence[WatchedJob], found: StartPlan) -> dict[str, float]:
        """Solve the program; return each job's part in its solution."""
        counted = [job for job in able if any(view.units(way.amounts) > 0.0 for way in job.ways)]
        rooms, specs = _Rooms(view, counted), dict[str, Spec]()
        for job in counted:
            spec = self._spec(view, job, rooms)
            if spec is not None:
                specs[job.id] = spec
        needed: dict[Hashable, float] = dict(rooms.rows)
        needed.update({("limit", name): max(left, 0.0) for name, left in view.limits.items()})
        with self.model.batch():
            gone = [key for key, spec in self._specs.items() if specs.get(key) != spec]
            if gone:
                self.model.remove_requests(gone)
            for row in self._own_rows:
                if row not in needed:
                    self.model.remove_resource(row)
            for row, count in needed.items():
                if self._own_rows.get(row) != count:
                    self.model.set_count(row, count)
            self.model.update_counts(self._rows, self._room())
            for key, (costs, usage, upper) in specs.items():
                if self._specs.get(key) != specs[key]:
                    shares = {row: list(each) for row, each in usage.items()}
                    self.model.add_request(key, np.array(costs), shares, limit=1.0, upper=np.array(upper))
        self._specs, self._own_rows = specs, needed
        solution = self.session.solve()
        found.bound, found.bound_is_certified = max(solution.bound, 0.0), solution.bound_is_certified
        offsets, values = solution.values_of(list(specs))
        return {key: float(values[offsets[at] : offsets[at + 1]].sum()) for at, key in enumerate(specs)}

    @staticmethod
    def _fits_alone(view: ClusterView, way: Way, option: Amounts | None) -> bool:
        if any(amount > 0.0 and not within(amount, view.limits[name]) for name, amount in way.counts.items()):
            return False
        return option is None or view.tree.room(way.queue, option) > 0

    def _spec(self, view: ClusterView, job: WatchedJob, rooms: _Rooms) -> Spec | None:
        """Return costs, usage and upper bounds of a job's columns; None if it has none."""
        columns: list[tuple[float, dict[Hashable, float], float]] = []
        for way in job.ways:
            for option in _options(way):
                base: dict[Hashable, float] = {("limit", name): amount for name, amount in way.counts.items()}
                known = True
                for share, amount in option.items() if option is not None else ():
                    through = self._through.get((way.queue, share))
                    known = known and (through is not None or amount <= 0.0)
                    for row in through or ():
                        base[row] = base.get(row, 0.0) + amount
                # a whole job that does not fit alone starts in no plan
                if not known or not self._fits_alone(view, way, option):
                    continue
                units = view.units(way.amounts if option is None else option)
                pods = max(_pods_of(way), key=lambda pods: _weight(view, pods), default=None)
                if pods is None:
                    columns.append((units, base, 1.0))
                    continue
                if any(sum(most for _, most in rooms.of(each)) < each.count for each in _pods_of(way)):
                    continue
                for at, most in rooms.of(pods):
                    usage = dict(base)
                    for resource, amount in rooms.need(pods, at).items():
                        usage["room", at, resource] = amount
                    columns.append((units, usage, min(1.0, most / pods.count)))
        if not columns:
            return None
        rows = {row for _, usage, _ in columns for row in usage}
        return (
            tuple(units for units, _, _ in columns),
            {row: tuple(usage.get(row, 0.0) for _, usage, _ in columns) for row in rows},
            tuple(most for *_, most in columns),
        )


def _pods_of(way: Way) -> tuple[Pods, ...]:
    """Return the pods that the bound looks at."""
    return way.pods if way.loose is None else (way.loose,)


def _options(way: Way) -> list[Amounts | None]:
    """Return the amounts of each choice of flavors; None, for any, if there are too many."""
    if not way.stages:
        return [way.amounts]
    if math.prod(len(stage) for stage in way.stages) > MOST_FLAVORS:
        return [None]
    found: list[dict[Share, float]] = [{}]
    for stage in way.stages:
        found = [_added(before, amounts) for before in found for amounts in stage]
    return list(found)


def _added(before: Amounts, more: Amounts) -> dict[Share, float]:
    total = dict(before)
    for share, amount in more.items():
        total[share] = total.get(share, 0.0) + amount
    return total


def _weight(view: ClusterView, pods: Pods) -> tuple[float, float]:
    units = sum(pods.need.get(name, 0.0) for name in view.counted) + pods.devices * (pods.portion or 1e-3)
    return pods.count * units, sum(pods.need.values())


def _whole_units(view: ClusterView, able: Sequence[WatchedJob], bound: float) -> float:
    """Round a bound down to what whole jobs can come to: whole units, where each job takes whole units."""
    units = [view.units(option) for job in able for way in job.ways for option in _options(way) if option is not None]
    if all(abs(each - round(each)) < 1e-9 for each in units):
        return math.floor(bound + 1e-6 * (1.0 + 1e-3 * bound))
    return bound if bound > 1e-9 * max(units, default=1.0) else 0.0


class _Rooms:
    """Classes of nodes, with their rows and what they hold of each kind of pod."""

    def __init__(self, view: ClusterView, jobs: Sequence[WatchedJob]) -> None:
        self._numbers: dict[Hashable, int] = {}
        kinds: list[Pods] = []
        for job in jobs:
            for way in job.ways:
                for pods in _pods_of(way):
                    if self._numbers.setdefault(_kind(pods), len(kinds)) == len(kinds):
                        kinds.append(pods)
        held: dict[str, dict[int, int]] = {}
        for node in view.nodes.values():
            if not node.closed:
                most = {at: count for at, pods in enumerate(kinds) if (count := _most(node, pods)) > 0}
                if most:
                    held[node.name] = most
        fine: dict[Any, list[str]] = {}
        coarse: dict[Any, list[str]] = {}
        for name, most in held.items():
            node = view.nodes[name]
            room = tuple(sorted((key, round(value, 9)) for key, value in _room(node).items()))
            coarse.setdefault(tuple(most), []).append(name)
            fine.setdefault((room, tuple(most.items())), []).append(name)
        columns = sum(len(held[names[0]]) for names in fine.values())
        per_kind = max(1, len(jobs) // max(len(kinds), 1))
        classes = list((fine if columns * per_kind <= MOST_COLUMNS else coarse).values())
        self.rows: dict[Hashable, float] = {}
        self._of: list[list[tuple[int, int]]] = [[] for _ in kinds]
        self._known: dict[int, set[str]] = {}
        self._memory: dict[int, float] = {}
        self._device: dict[int, str] = {}
        wanted = {name for pods in kinds for name in pods.need}
        for at, names in enumerate(classes):
            total: dict[str, float] = {}
            for name in names:
                node = view.nodes[name]
                for resource, amount in _room(node).items():
                    if resource in wanted or resource == node.device:
                        total[resource] = total.get(resource, 0.0) + amount
                for key, count in held[name].items():
                    entry = self._of[key]
                    if entry and entry[-1][0] == at:
                        entry[-1] = at, entry[-1][1] + count
                    else:
                        entry.append((at, count))
                self._memory[at] = max(self._memory.get(at, 0.0), node.device_memory)
                self._device[at] = node.device
            self._known[at] = set(total)
            self.rows |= {("room", at, resource): max(amount, 0.0) for resource, amount in total.items()}

    def of(self, pods: Pods) -> list[tuple[int, int]]:
        """Return the classes that hold such pods, and how many."""
        return self._of[self._numbers[_kind(pods)]]

    def need(self, pods: Pods, at: int) -> dict[str, float]:
        """Return what all the pods take of a class."""
        found = {
            name: amount * pods.count for name, amount in pods.need.items() if amount > 0.0 and name in self._known[at]
        }
        if pods.devices and self._device[at]:
            size = pods.portion or (pods.portion_memory / self._memory[at] if self._memory[at] else 0.0)
            device = self._device[at]
            found[device] = found.get(device, 0.0) + size * pods.devices * pods.count
        return found


def _kind(pods: Pods) -> Hashable:
    need = tuple(sorted(pods.need.items()))
    return need, pods.nodes, pods.apart, pods.untouched, pods.alone, pods.portion, pods.portion_memory, pods.devices


def _room(node: Node) -> dict[str, float]:
    """Return what at most is free on a node."""
    room = {name: amount + node.maybe.get(name, 0.0) for name, amount in node.free.items()}
    if node.devices:
        room[node.device] = max(map(sum, node.devices)) + (
            node.maybe.get(node.device, 0.0) if len(node.devices) == 1 else 0.0
        )
    return room


def _most(node: Node, pods: Pods) -> int:
    """Return how many such pods a node holds at most, by itself."""
    if pods.nodes is not None and node.name not in pods.nodes:
        return 0
    room, most = _room(node), MANY
    for resource in pods.untouched:
        if room.get(resource, 0.0) < node.total.get(resource, 0.0):
            return 0
        most = 1
    for resource, amount in pods.need.items():
        if amount > 0.0:
            free = room.get(resource, 0.0)
            most = min(most, math.floor(free / amount + 1e-9)) if within(amount, free) else 0
    if pods.devices:
        part = pods.part_on(node)
        spare = math.floor((node.maybe.get(node.device, 0.0) + 1e-9) / part)
        hold = max((sum(within(part, free) for free in world) for world in node.devices), default=0)
        if part > 1.0 + 1e-9 or hold + spare < pods.devices:
            return 0
        each = [
            sum(math.floor(free / part + 1e-9) for free in world if free < FULL or part < 1.0) for world in node.devices
        ]
        whole = [sum(free >= FULL for free in world) for world in node.devices]
        most = min(most, (max(max(each), max(whole)) + spare) // pods.devices)
    if (pods.alone and (node.users if pods.alone == "*" else node.users - {pods.alone})) or node.owner == "*":
        return 0
    return min(most, 1) if pods.apart or pods.alone == "*" else most


# Plans ----------------------------------------------------------------------------------------------------------------


def _planned(view: ClusterView, able: Sequence[WatchedJob], order: str, worth: dict[str, float]) -> list[Start]:
    """Start whole jobs one by one, higher priorities first; the tree is left unchanged."""
    board, tree, limits = Board(view.nodes.values()), view.tree, dict(view.limits)
    starts: list[Start] = []
    done: set[str] = set()
    waiting: list[WatchedJob] = []
    try:
        for job in _ordered(view, able, order, worth):
            waiting.append(job)
            while waiting:
                # a job that others wait for may come after them in this order
                at = next((each for each in waiting if not each.after or each.after in done), None)
                if at is None:
                    break
                waiting.remove(at)
                start = _start(view, at, board, limits)
                if start is not None:
                    starts.append(start)
                    done.add(at.id)
    finally:
        for start in starts:
            tree.use(start.way.queue, start.amounts, -1.0)
    return starts


def _ordered(
    view: ClusterView, able: Sequence[WatchedJob], order: str, worth: dict[str, float]
) -> Iterator[WatchedJob]:
    if order == "fair":
        named = {job.id: job for job in able}
        asks = [Ask(job.id, job.queue, job.options, 1.0, job.priority, job.came_s) for job in able]
        for ask in Tournament(FairShares(view.tree), asks):
            yield named[str(ask.key)]
        return
    size = {job.id: view.units(job.options[0]) for job in able}
    if order == "program":
        yield from sorted(able, key=lambda job: (-job.priority, -round(worth.get(job.id, 0.0), 6), job.came_s))
    else:
        sign = -1.0 if order == "large" else 1.0
        yield from sorted(able, key=lambda job: (-job.priority, sign * size[job.id], job.came_s))


def _start(view: ClusterView, job: WatchedJob, board: Board, limits: dict[str, float]) -> Start | None:
    """Start a job in the first way that fits now; its amounts are then in use."""
    for way in job.ways:
        if way.unclear or any(amount > 0.0 and not within(amount, limits[name]) for name, amount in way.counts.items()):
            continue
        amounts = way.amounts if not way.stages else _chosen(view.tree, way)
        if amounts is None or not view.tree.room(way.queue, amounts):
            continue
        places = board.place(way)
        if places is None:
            continue
        for name, amount in way.counts.items():
            limits[name] -= amount
        view.tree.use(way.queue, amounts)
        return Start(job.id, way, amounts, places)
    return None


def _chosen(tree: QuotaTree, way: Way) -> Amounts | None:
    """Choose the amounts of each stage in turn, as Kueue chooses flavors; None if nothing fits in one."""
    total: dict[Share, float] = {}
    for stage in way.stages:
        fits = [
            amounts
            for amounts in stage
            if tree.room(way.queue, {share: _added(total, amounts)[share] for share in amounts})
        ]
        if not fits:
            return None
        own = [each for each in fits if not tree.queues[way.queue].borrows(each, _added(total, each))]
        total = _added(total, (own or fits)[0] if way.prefers_own else fits[0])
    return total


def _passing(view: ClusterView, starts: Sequence[Start]) -> list[Start]:
    """Return the starts that the check lets pass, taken one after the other."""
    kept: list[Start] = []
    for each in starts:
        if not fault(view, [*kept, each]):
            kept.append(each)
    return kept
