"""Plans by their deadline: a plan that cannot be made in time is not begun, and the last one is kept."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from math import inf
from time import perf_counter
from typing import Protocol, TypeVar

from copter.runtime.collector import uncollected
from copter_frontends.policy_kit.checks import check_times
from copter_frontends.policy_kit.plan_changes import plan_changes
from copter_frontends.vocabulary import Allocation, Cluster, Node, Plan, PlanStatus

PLANS = 3
"""Plans in a row that must have been too slow: one slow plan, such as the first, keeps no later one from being made."""

PATIENCE = 0.99
"""Share of that time that remains after each kept plan, so that a plan is tried again: every 400th at 40 times the
deadline."""


class Planner(Protocol):
    """Interface of policies whose plans keep deadlines."""

    def kept_plan(self, now_s: float) -> Plan:
        """Return the last plan without the jobs that have gone."""


P = TypeVar("P", bound=Planner)


class Pace:
    """How long a policy's plans take without its linear program, which keeps its deadline by itself.

    Attributes
    ----------
    least_s : float
        Seconds that the next plan is expected to need: those of the fastest of the last :data:`PLANS` plans; 0 before.
    """

    def __init__(self) -> None:
        self.least_s = 0.0
        self._last: deque[float] = deque(maxlen=PLANS)

    def allows(self, deadline_s: float) -> bool:
        """Whether a plan is expected to be in time; if not, the expectation falls, so that later ones are tried."""
        if self.least_s <= deadline_s:
            return True
        self.least_s *= PATIENCE
        return False

    def note(self, plan_s: float, timings: Mapping[str, float], deadline_s: float) -> None:
        """Count a plan's seconds; of its linear program only those beyond the deadline."""
        solver_s = min(timings.get("solve", 0.0), deadline_s)
        self._last.append(plan_s - solver_s - timings.get("observe", 0.0))
        self.least_s = min(self._last) if len(self._last) == PLANS else 0.0


def by_deadline(plan: Callable[[P, float, float], Plan]) -> Callable[..., Plan]:
    """Make a policy's ``plan(now_s, deadline_s)`` keep the last plan where a new one cannot be made in time."""

    @wraps(plan)
    def planned(self: P, now_s: float, deadline_s: float = 60.0) -> Plan:
        check_times(now_s, deadline_s)
        pace: Pace = self.__dict__.setdefault("pace", Pace())
        if not pace.allows(deadline_s):
            with uncollected():
                return self.kept_plan(now_s)
        begun = perf_counter()
        made = plan(self, now_s, deadline_s)
        pace.note(perf_counter() - begun, made.timings, deadline_s)
        return made

    return planned


def that_fit(cluster: Cluster, held: Mapping[str, Allocation], pins: Mapping[str, Allocation]) -> dict[str, Allocation]:
    """Return the pins, and the held allocations that fit beside them on the nodes that are there."""
    every = {**pins, **held, **pins}  # pins first, also where other GPUs are held
    used: defaultdict[str, int] = defaultdict(int)
    for given in every.values():
        for node, gpus in given.nodes:
            used[node] += gpus
    nodes = cluster.nodes
    if used.keys() <= nodes.keys() and all(nodes[node].gpus >= gpus for node, gpus in used.items()):
        return every
    return _one_by_one(nodes, every)


def _one_by_one(nodes: Mapping[str, Node], every: Mapping[str, Allocation]) -> dict[str, Allocation]:
    """Return those that fit beside the ones before them, of which pins are the first."""
    free = {name: node.gpus for name, node in nodes.items()}
    kept: dict[str, Allocation] = {}
    for job_id, given in every.items():
        if all(free.get(node, 0) >= gpus for node, gpus in given.nodes):
            kept[job_id] = given
            for node, gpus in given.nodes:
                free[node] -= gpus
    return kept


def kept_between(
    before: Mapping[str, Allocation], now: Mapping[str, Allocation], timings: Mapping[str, float] | None = None
) -> Plan:
    """Return the plan that keeps `now` of the allocations `before`; nothing is known of its gap."""
    changes, kept = plan_changes(before, now), PlanStatus.KEPT_PREVIOUS
    plan = Plan(dict(now), changes.start, changes.stop, changes.move, bound=inf, gap=inf, status=kept)
    return replace(plan, timings=timings or {})
