"""When the jobs that a shadow sees waiting could start: the plan's jobs now, the others by conservative backfill."""

from __future__ import annotations

from itertools import islice
from math import isfinite, isnan
from typing import Any

from copter_serve.queues.quota_tree import Amounts, Node, Share
from copter_serve.queues.reservations import Choice, reserved
from copter_serve.shadow.start_model import StartPlan
from copter_serve.views import ClusterView, WatchedJob

MOST_ESTIMATED = 200  # most waiting jobs that get an estimate, the first of the queue
ASSUMED = (
    "jobs run until their time limits, those that the plan would start begin now, the others by priority and then as"
    " they came, each as early as no earlier one starts later (backfill); the quotas of queues that share are one"
    " pool; limits of single queues and the nodes' boundaries are ignored; no job comes"
)


def wait_estimates(view: ClusterView, plan: StartPlan, at_s: float) -> list[dict[str, Any]]:
    """Return an estimate for each of the first waiting jobs, in the order of the queue.

    Parameters
    ----------
    view : ClusterView
    plan : StartPlan
        The plan of the same view: its jobs start at once.
    at_s : float
        Unix time from which the estimates count.

    Returns
    -------
    list of dict
        ``job``, ``queue``, ``units``, ``starts_in_s`` (None if an end that it waits for has no time limit), ``on``
        (pool of the reservation), ``backfills``.
    """
    free = _pools(view)
    ends: list[tuple[str, float, float]] = []
    waiting = {job.id: job for job in view.jobs if not job.running}

    def takes(queue: str, amounts: Amounts, seconds: float) -> None:
        for pool, units in _units(view, queue, amounts).items():
            free[pool] = free.get(pool, 0.0) - units
            ends.append((pool, units, seconds))

    for job in view.jobs:
        if job.running:
            left = job.limit_s if isnan(job.started_s) else job.started_s + job.limit_s - at_s
            takes(job.queue, job.options[0], max(left, 0.0))
    started = {start.job: start for start in plan.starts}
    for name, start in started.items():
        takes(start.way.queue, start.amounts, waiting[name].limit_s)
    order = sorted(
        (job for job in waiting.values() if not job.held and not job.unclear),
        key=lambda job: (job.id not in started, -job.priority, job.came_s),
    )
    first = list(islice(order, MOST_ESTIMATED))
    found = reserved(free, ends, [(job.id, _choices(view, job)) for job in first if job.id not in started])
    lines: list[dict[str, Any]] = []
    for job in first:
        line: dict[str, Any] = {"job": job.id, "queue": job.queue, "units": view.units(job.options[0])}
        place = found.get(job.id)
        if job.id in started:
            line |= {"starts_in_s": 0.0, "on": "the plan", "backfills": False}
        elif place is None:
            line |= {"starts_in_s": None, "on": "", "backfills": False}
        else:
            line |= {"starts_in_s": round(place.start_s, 3), "on": place.choice.kind, "backfills": place.backfills}
        lines.append(line)
    return lines


def _choices(view: ClusterView, job: WatchedJob) -> list[Choice]:
    """Return the ways to run a job that take units of one pool; those of several pools at once are left out."""
    asked = [(way.queue, way.amounts) for way in job.ways] + [(job.queue, option) for option in job.options]
    found: dict[tuple[str, float], Choice] = {}
    for queue, amounts in asked:
        pools = _units(view, queue, amounts)
        if len(pools) == 1:
            ((pool, units),) = pools.items()
            found.setdefault((pool, units), Choice(pool, units, job.limit_s))
    return list(found.values())


def _units(view: ClusterView, queue: str, amounts: Amounts) -> dict[str, float]:
    """Return the counted units that amounts take of each pool."""
    root = _root(view, view.tree.queues[queue])
    return {_pool(root, share): units for share, units in amounts.items() if share[1] in view.counted and units > 0.0}


def _pools(view: ClusterView) -> dict[str, float]:
    """Return the quotas of each group of queues that share, by flavor and counted resource."""
    total: dict[str, float] = {}
    for node in [*view.tree.cohorts.values(), *view.tree.queues.values()]:
        for share, quota in node.quotas.items():
            if share[1] in view.counted and isfinite(quota.nominal):
                pool = _pool(_root(view, node), share)
                total[pool] = total.get(pool, 0.0) + quota.nominal
    return total


def _root(view: ClusterView, node: Node) -> str:
    return [node, *view.tree.above(node)][-1].name


def _pool(root: str, share: Share) -> str:
    return " ".join((root, *share))
