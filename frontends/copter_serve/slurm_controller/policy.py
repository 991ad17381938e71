"""Which jobs are planned, in which ways, by the timetable or by the program, and which come before all others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from copter import Settings
from copter_serve.slurm_controller.horizon import (
    Horizon,
    NodeClass,
    Start,
    Way,
    Wish,
    classes_of,
    fits,
    needs,
    take,
)
from copter_serve.slurm_controller.limits import Limit
from copter_serve.slurm_controller.profiles import Estimates, Profile
from copter_serve.slurm_controller.reading import FREE_TO_START, ClusterNow, JobNow
from copter_serve.slurm_controller.timetable import Placed, Timetable


@dataclass(frozen=True, slots=True)
class Rules:
    """Options of the policy.

    Attributes
    ----------
    large : float
        A job that needs at least this part of a node's GPUs, or several nodes, is large.
    patience : float
        A large job is reserved for once it has waited so many times the typical run time; any other job after
        `patience_small` times.
    reservations : int
        Most jobs that are reserved for at a time.
    run_weight : float
        Weight of a second by which a job of several sizes runs longer than in its own size, beside a second of waiting.
        Below 1 the plan prefers small sizes, which use GPUs best, while jobs wait.
    reach : float
        A job that the program does not start now starts all the same where GPUs would be idle, if it runs there at most
        so many times as long as where it runs fastest.
    """

    large: float = 0.75
    patience: float = 10.0
    patience_small: float = 10.0
    reservations: int = 1
    run_weight: float = 0.2
    reach: float = 1.5


@dataclass(slots=True)
class Planned:
    """What is to be done now, and the places of later starts as far as they are planned."""

    starts: list[Start] = field(default_factory=list)
    later: list[Placed] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # jobs left to Slurm, with the reason


class Policy:
    """Plans a cluster step by step.

    Parameters
    ----------
    rules : Rules, optional
    settings : Settings, optional
    """

    def __init__(self, rules: Rules | None = None, settings: Settings | None = None) -> None:
        self.rules = rules or Rules()
        self.horizon = Horizon(settings, self.rules.run_weight)
        self.timetable = Timetable(self.rules.run_weight)
        self.estimates = Estimates()

    def plan(
        self, cluster: ClusterNow, profiles: Mapping[str, Profile], limits: Sequence[Limit] = (),
        blocked: Mapping[str, float] | None = None, weights: Mapping[str, float] | None = None,
        runs_s: Mapping[str, float] | None = None,
    ) -> Planned:  # fmt: skip
        """Return what to do now.

        Parameters
        ----------
        cluster : ClusterNow
            Its free amounts are lowered by the starts.
        profiles : Mapping of str to Profile
            Of the jobs that may be planned, waiting and running.
        limits : sequence of Limit
        blocked : Mapping of str to float
            Seconds from now until a reservation of Slurm's takes a node; 0 for one in force.
        weights : Mapping of str to float
            Weights of jobs; 1 by default.
        runs_s : Mapping of str to float
            Expected run times of running jobs, where the plan that started them knows them.
        """
        found = Planned()
        classes = classes_of(cluster)
        wishes = []
        for name, profile in profiles.items():
            job = cluster.jobs.get(name)
            if job is None or not job.waits:
                continue
            if reason := self._left_out(job):
                found.left_out[name] = reason
                continue
            ways = self._ways(job, profile, classes)
            if ways:
                wishes.append(Wish(job, ways, (weights or {}).get(name, 1.0)))
            else:
                found.left_out[name] = "no node can run it"
        ends = self._ends(cluster, profiles, runs_s or {})
        first = self._late(cluster, wishes)
        if any(len({way.gpus for way in wish.ways}) > 1 for wish in wishes):
            self._by_program(cluster, classes, wishes, first, ends, limits, blocked or {}, found)
        else:
            late = {wish.job.id for wish in first}
            rest = [wish for wish in wishes if wish.job.id not in late]
            self._begin(cluster, self.timetable.placed(cluster, classes, rest, ends, limits, blocked, first), found)
        return found

    @staticmethod
    def _begin(cluster: ClusterNow, placed: Sequence[Placed], found: Planned) -> None:
        """Start what a timetable has now, and note the rest."""
        for each in placed:
            if each.in_s > 0.0:
                found.later.append(each)
                continue
            take(cluster, each.wish.job, each.way, each.nodes)
            found.starts.append(Start(each.wish.job, each.nodes, each.way.kind, each.way.gpus, each.way.seconds))

    def _by_program(
        self, cluster: ClusterNow, classes: Sequence[NodeClass], wishes: Sequence[Wish], first: Sequence[Wish],
        ends: Mapping[str, float], limits: Sequence[Limit], blocked: Mapping[str, float], found: Planned,
    ) -> None:  # fmt: skip
        """Plan jobs of several sizes and those beside them: the program chooses sizes; late jobs keep their nodes."""
        kept = dict(blocked)
        self._begin(cluster, self.timetable.placed(cluster, classes, (), ends, limits, blocked, first), found)
        for each in found.later:
            kept.update({name: min(each.in_s, kept.get(name, math.inf)) for name in each.nodes})
        done = {start.job.id for start in found.starts} | {each.wish.job.id for each in found.later}
        rest = [wish for wish in wishes if wish.job.id not in done]
        found.starts += self.horizon.starts(cluster, rest, ends, self._lowered(limits, found.starts), kept)
        done |= {start.job.id for start in found.starts}
        rest = [wish for wish in rest if wish.job.id not in done]
        found.starts += self._fill(cluster, classes, rest, self._lowered(limits, found.starts), kept)

    def _fill(
        self, cluster: ClusterNow, classes: Sequence[NodeClass], wishes: Sequence[Wish], limits: Sequence[Limit],
        kept: Mapping[str, float],
    ) -> list[Start]:  # fmt: skip
        """Start what still fits, the least GPU time first: the relaxation shares GPUs that whole jobs leave over."""
        order: list[tuple[float, float, float, int, Wish, Way]] = []
        for wish in wishes:
            most = self.rules.reach * min(way.seconds for way in wish.ways)
            for way in wish.ways:
                if way.seconds <= most:
                    size = max(way.gpus, 1) * wish.job.node_count * way.seconds / max(wish.weight, 1e-9)
                    order.append((size, way.seconds, wish.job.came_s, len(order), wish, way))
        order.sort(key=lambda each: each[:4])
        left = {limit.name: limit.left(cluster.jobs.values()) for limit in limits}
        found: dict[str, Start] = {}
        for *_, wish, way in order:
            job = wish.job
            if job.id in found or any(limit.takes(job, way.gpus) > left[limit.name] for limit in limits):
                continue
            able = [
                node
                for node in classes[way.at].nodes
                if node.name not in job.excluded
                and way.seconds <= kept.get(node.name, math.inf)
                and fits(node, needs(job, way), job.exclusive)
            ]
            able.sort(key=lambda node: (node.name not in job.required, node.free.get(way.kind, 0.0), node.free["cpu"]))
            nodes = tuple(node.name for node in able[: max(job.node_count, len(job.required))])
            if len(nodes) < job.node_count or not set(job.required) <= set(nodes):
                continue
            take(cluster, job, way, nodes)
            found[job.id] = Start(job, nodes, way.kind, way.gpus, way.seconds)
            for limit in limits:
                left[limit.name] -= limit.takes(job, way.gpus)
        return list(found.values())

    @staticmethod
    def _lowered(limits: Sequence[Limit], starts: Sequence[Start]) -> list[Limit]:
        return [
            Limit(each.name, each.resource, each.most - sum(each.takes(start.job, start.gpus) for start in starts),
                  each.qos, each.user, each.account, each.partition)
            for each in limits
        ]  # fmt: skip

    @staticmethod
    def _left_out(job: JobNow) -> str:
        if job.beyond:
            return f"asks for {job.beyond}"
        if job.reservation:
            return "asks for a reservation"
        if job.priority == 0.0:
            return "is held"
        return "" if job.reason in FREE_TO_START else f"waits for {job.reason}"

    def _ways(self, job: JobNow, profile: Profile, classes: Sequence[NodeClass]) -> tuple[Way, ...]:
        """Return each class and size in which a job may run at all."""
        found = []
        for at, each in enumerate(classes):
            node = each.one
            if job.partition not in node.partitions or not allowed(job.features, node.features):
                continue
            if job.required and not set(job.required) <= {one.name for one in each.nodes}:
                continue
            kinds = [kind for kind in node.gpu_types if job.gpu_type in ("", kind)] if job.gpus else [""]
            for kind in kinds:
                for gpus in profile.sizes or (job.gpus,):
                    own = max(1e-3, self.estimates.seconds(job, profile, kind, job.gpus))
                    way = Way(at, kind, gpus, max(1e-3, self.estimates.seconds(job, profile, kind, gpus)), own)
                    if all(node.has.get(name, 0.0) >= amount for name, amount in needs(job, way).items()) and (
                        len([one for one in each.nodes if one.name not in job.excluded]) >= job.node_count
                    ):
                        found.append(way)
        return tuple(found)

    def _ends(
        self, cluster: ClusterNow, profiles: Mapping[str, Profile], runs_s: Mapping[str, float]
    ) -> dict[str, float]:
        """Return each running job's expected end: by its estimate while that lies ahead, then soon."""
        found = {}
        for job in cluster.jobs.values():
            if job.waits:
                continue
            kinds = [kind for name in job.nodes if name in cluster.nodes for kind in cluster.nodes[name].gpu_types]
            took = max(0.0, cluster.now_s - job.started_s)
            expected = job.limit_s
            if job.id in runs_s:
                expected = min(expected, runs_s[job.id])
            elif job.id in profiles:
                expected = min(expected, self.estimates.seconds(job, profiles[job.id], (kinds or [""])[0], job.gpus))
            if expected < took:
                expected = took + 0.2 * took  # late: nothing is known but that it runs on
            found[job.id] = job.started_s + min(expected, max(job.limit_s, took))
        return found

    # Late jobs ------------------------------------------------------------------------------------------------------

    def is_large(self, wish: Wish, cluster: ClusterNow) -> bool:
        """Return whether a job needs several nodes or most of a node's GPUs, in its smallest size."""
        job = wish.job
        if job.node_count > 1 or job.exclusive:
            return True
        size = min(way.gpus for way in wish.ways)
        whole = [
            amount for node in cluster.nodes.values() for name, amount in node.has.items() if name not in ("cpu", "mem")
        ]
        return size > 1 and size >= self.rules.large * max(whole, default=math.inf)

    def _late(self, cluster: ClusterNow, wishes: Sequence[Wish]) -> list[Wish]:
        """Return the oldest jobs that have waited long enough to come before all others (T6 of the timetable)."""
        if not wishes:
            return []
        runs = sorted(min(way.seconds for way in wish.ways) for wish in wishes)
        typical, late = runs[len(runs) // 2], []
        for wish in wishes:
            patience = self.rules.patience if self.is_large(wish, cluster) else self.rules.patience_small
            over = cluster.now_s - wish.job.came_s - patience * typical
            if over >= 0.0:
                late.append((wish.job.came_s, wish))
        late.sort(key=lambda each: each[0])
        return [wish for _, wish in late[: self.rules.reservations]]


def allowed(constraint: str, features: frozenset[str]) -> bool:
    """Return whether a node's features satisfy a constraint of &, | and plain names; False for any other form."""
    if not constraint:
        return True
    if any(mark in constraint for mark in "[]*()"):
        return False
    return any(all(word in features for word in part.split("&")) for part in constraint.replace(",", "&").split("|"))
