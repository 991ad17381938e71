"""Capacity that a cluster's own scheduler leaves unused at one moment, with a bound and the jobs concerned."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from copter_serve.queues.fair_shares import FairShares
from copter_serve.queues.quota_tree import SLACK
from copter_serve.shadow.start_model import StartModel, StartPlan
from copter_serve.shadow.wait_estimates import wait_estimates
from copter_serve.views import ClusterView, WatchedJob

MOST_NAMED = 20  # most jobs, queues or nodes named in a finding


@dataclass(slots=True)
class Findings:
    """Findings of one moment.

    Attributes
    ----------
    at_s : float
        Unix time.
    resource : str
        Name of the counted resource.
    quota, used, could, bound : float
        Units of quota; units in use; units that the plan would start now; a bound on the latter, by the model.
    certified : bool
        Whether the bound is certified: by the solver, and with nothing that is not modelled.
    starts : list of dict
        Jobs that the plan would start now, with their nodes, flavors, units and seconds of waiting.
    unfair : list of dict
        Queues whose jobs wait within their nominal quota while another borrows; with fair sharing, while others have a
        larger share than theirs would be.
    shares : list of dict
        With fair sharing: queues with their weights and shares, the largest first.
    overturned : list of dict
        Waiting jobs for which a job of lower priority, started after they came, took the room; with fair sharing, a job
        of their own queue, as shares come before priorities between queues.
    scattered : list of dict
        Waiting jobs whose pods fit on no node, though the nodes together have enough room.
    held : list of dict
        Waiting jobs that may not start even if there is room.
    unclear : list of dict
        Waiting jobs of which it is not known whether they may start if there is room; they count in the bound only.
    estimates : list of dict
        When the first waiting jobs could start, as :func:`~.wait_estimates.wait_estimates` has it.
    waiting, running : int
    skipped : list of str
    not_modelled : list of str
        What decides about starts and is not in the documents, or not read from them.
    """

    at_s: float
    resource: str
    quota: float
    used: float
    could: float = 0.0
    bound: float = 0.0
    certified: bool = False
    starts: list[dict[str, Any]] = field(default_factory=list)
    unfair: list[dict[str, Any]] = field(default_factory=list)
    shares: list[dict[str, Any]] = field(default_factory=list)
    overturned: list[dict[str, Any]] = field(default_factory=list)
    scattered: list[dict[str, Any]] = field(default_factory=list)
    held: list[dict[str, Any]] = field(default_factory=list)
    unclear: list[dict[str, Any]] = field(default_factory=list)
    estimates: list[dict[str, Any]] = field(default_factory=list)
    waiting: int = 0
    running: int = 0
    skipped: list[str] = field(default_factory=list)
    not_modelled: list[str] = field(default_factory=list)

    @property
    def stranded(self) -> float:
        """Return the free units that no admission of waiting jobs can use."""
        return max(0.0, self.quota - self.used - self.bound)


def find(view: ClusterView, model: StartModel, at_s: float) -> Findings:
    """Return the findings of a view; the model must be that of the view's tree."""
    waiting = [job for job in view.jobs if not job.running]
    able = [job for job in waiting if not job.held]
    plan = model.plan_of(view)
    found = Findings(at_s, view.resource, view.quota(), view.used(), skipped=[*view.skipped, *plan.refused])
    found.waiting, found.running = len(waiting), len(view.jobs) - len(waiting)
    found.could, found.bound = plan.units, plan.bound
    found.not_modelled = view.not_modelled
    found.certified = plan.bound_is_certified and not view.not_modelled and not view.skipped
    _plan(view, plan, {job.id: job for job in able}, found)
    found.estimates = wait_estimates(view, plan, at_s)
    sure = [job for job in able if not job.unclear]
    _fairness(view, sure, found)
    _priorities(view, sure, found)
    _nodes(view, sure, found)
    found.held = [{"job": job.id, "queue": job.queue, "why": job.held} for job in waiting if job.held][:MOST_NAMED]
    found.unclear = [{"job": job.id, "queue": job.queue, "why": job.unclear} for job in able if job.unclear][
        :MOST_NAMED
    ]
    return found


def _plan(view: ClusterView, plan: StartPlan, able: dict[str, WatchedJob], found: Findings) -> None:
    for start in plan.starts:
        job = able[start.job]
        found.starts.append(
            {
                "job": job.id,
                "queue": start.way.queue,
                "priority": job.priority,
                "units": view.units(start.amounts),
                "nodes": start.nodes,
                "flavors": sorted({flavor for flavor, _ in start.amounts}),
                "waits_s": max(0.0, found.at_s - job.came_s),
            }
        )
    found.starts.sort(key=lambda each: (-each["priority"], -each["waits_s"]))


def _fairness(view: ClusterView, able: list[WatchedJob], found: Findings) -> None:
    """Add the queues whose jobs would fit their own quota and wait while another queue borrows."""
    tree = view.tree
    fair = FairShares(tree) if tree.fair else None
    if fair is not None:
        shares = {name: fair.share(node) for name, node in tree.queues.items()}
        ranked = sorted(tree.queues, key=lambda name: -shares[name])[:MOST_NAMED]
        # no infinity in JSON: a queue of weight zero that borrows has no share
        found.shares = [
            {
                "queue": name,
                "weight": tree.queues[name].weight,
                "share": shares[name] if math.isfinite(shares[name]) else None,
            }
            for name in ranked
        ]
    over: dict[tuple[str, Any], list[str]] = {}
    for name, node in tree.queues.items():
        for share, used in node.used.items():
            nominal = node.quotas[share].nominal if share in node.quotas else 0.0
            if node.parent is not None and nominal > 0.0 and used > nominal * (1.0 + SLACK):
                over.setdefault((tree.root(name), share), []).append(name)
    for job in able:
        node = tree.queues[job.queue]
        option = job.options[0]
        within = all(
            share in node.quotas and node.used.get(share, 0.0) + amount <= node.quotas[share].nominal * (1.0 + SLACK)
            for share, amount in option.items()
        )
        blocked = [share for share, amount in option.items() if amount > tree.available(job.queue, share) + SLACK]
        lenders = sorted({name for share in blocked for name in over.get((tree.root(job.queue), share), [])})
        if fair is not None and not within:
            mine = fair.standing(job.queue, option)
            lenders = [name for name in lenders if name != job.queue and fair.standing(name) > mine]
            within = bool(lenders)
        if within and lenders and len(found.unfair) < MOST_NAMED:
            found.unfair.append(
                {"job": job.id, "queue": job.queue, "units": view.units(option), "borrowed_by": lenders[:MOST_NAMED]}
            )


def _priorities(view: ClusterView, able: list[WatchedJob], found: Findings) -> None:
    """Add the jobs that waited while jobs of lower priority in their cohort were started in their room."""
    tree = view.tree
    running = [job for job in view.jobs if job.running and not math.isnan(job.started_s)]
    for job in sorted(able, key=lambda each: -each.priority):
        if len(found.overturned) == MOST_NAMED:
            break
        if tree.room(job.queue, job.options[0]):
            continue
        root = tree.root(job.queue)
        later = [
            each
            for each in running
            if each.priority < job.priority
            and each.started_s > job.came_s
            and (each.queue == job.queue if tree.fair else tree.root(each.queue) == root)
        ]
        for each in later:
            tree.use(each.queue, each.options[0], -1.0)
        fits = bool(later) and tree.room(job.queue, job.options[0]) > 0
        for each in later:
            tree.use(each.queue, each.options[0])
        if fits:
            names = [each.id for each in sorted(later, key=lambda each: each.priority)][:MOST_NAMED]
            found.overturned.append(
                {"job": job.id, "queue": job.queue, "priority": job.priority, "started_instead": names}
            )


def _nodes(view: ClusterView, able: list[WatchedJob], found: Findings) -> None:
    """Add the jobs with a pod that fits on no node."""
    free: dict[str, list[float]] = {}
    for job in able:
        for name in view.counted:
            if name not in free:
                free[name] = [each.free.get(name, 0.0) for each in view.nodes.values() if not each.closed]
            pod, fullest = job.pod.get(name, 0.0), max(free[name], default=0.0)
            if fullest < pod <= sum(free[name]) and len(found.scattered) < MOST_NAMED:
                found.scattered.append(
                    {
                        "job": job.id,
                        "queue": job.queue,
                        "pod_needs": pod,
                        "fullest_offer": fullest,
                        "free": sum(free[name]),
                    }
                )
