"""The plan's decision on each workload (admit now, admit by stopping others, wait), and its form for Kueue."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from copter_serve.queues import QueueError, QuotaTree
from copter_serve.queues.admission_model import AdmissionModel
from copter_serve.queues.ask import Ask
from copter_serve.queues.fair_preemption import STRATEGIES, fair_victims
from copter_serve.queues.fair_shares import FairShares
from copter_serve.queues.preemption import NEVER, Holder, Preemption, victims
from copter_serve.queues.preemption_rows import PreemptionRows
from copter_serve.queues.tournament import Tournament
from copter_serve.views import ClusterView, ViewError, WatchedJob
from copter_serve.views.documents import Document, named, part
from copter_serve.views.kueue import GATES

GATE = "copter.io/plan"  # name of the admission gate that the controller opens


@dataclass(slots=True)
class Decisions:
    """The plan of one step.

    Attributes
    ----------
    admitted : set of str
        Workloads that start now.
    stopping : dict of str to list of str
        Workloads that start if others are stopped by Kueue's rules, with the names of these others.
    value, bound : float
        Admitted less stopped units, weighted by rank of priority; and a certified bound on this value over everything
        that Kueue's rules allow.
    """

    admitted: set[str] = field(default_factory=set)
    stopping: dict[str, list[str]] = field(default_factory=dict)
    bound: float = 0.0
    value: float = 0.0

    def goes(self, name: str) -> bool:
        """Return whether a workload is to be admitted."""
        return name in self.admitted or name in self.stopping

    @property
    def stopped(self) -> set[str]:
        """Return the workloads that the plan stops."""
        return {name for each in self.stopping.values() for name in each}


def rules_of(documents: Sequence[Document]) -> dict[str, Preemption]:
    """Return each ClusterQueue's preemption rules; ViewError for values that Kueue does not have."""
    found = {}
    for each in documents:
        if each.get("kind") == "ClusterQueue":
            told = part(each, "spec", "preemption") or {}
            borrow = part({"at": told}, "at", "borrowWithinCohort") or {}
            try:
                found[named(each)] = Preemption(
                    told.get("withinClusterQueue") or NEVER,
                    told.get("reclaimWithinCohort") or NEVER,
                    borrow.get("policy") or NEVER,
                    math.inf if borrow.get("maxPriorityThreshold") is None else borrow["maxPriorityThreshold"],
                )
            except QueueError as error:
                raise ViewError(f"ClusterQueue {named(each)}: {error}") from error
    return found


def is_ours(job: WatchedJob) -> bool:
    """Return whether a workload waits for the plan's gate only."""
    return job.held == f"gated by {GATE}"


def decide(
    view: ClusterView, model: AdmissionModel, rules: Mapping[str, Preemption],
    strategies: Sequence[str] = STRATEGIES[0],
) -> Decisions:  # fmt: skip
    """Plan the waiting workloads, then those for which others may be stopped: higher priorities first, or, with fair
    sharing, lower shares first.

    Parameters
    ----------
    view : ClusterView
    model : AdmissionModel
        Of the view's tree, without asks.
    rules : mapping of str to Preemption
        By queue.
    strategies : sequence of str
        With fair sharing: Kueue's strategies of preemption.
    """
    able = {job.id: job for job in view.jobs if not job.running and (not job.held or is_ours(job)) and job.options[0]}
    ranks = {priority: at + 1 for at, priority in enumerate(sorted({job.priority for job in view.jobs}))}
    holders = [
        Holder(job.id, job.queue, job.options[0], job.priority, job.started_s, job.came_s, job.evicted)
        for job in view.jobs
        if job.running
    ]
    rows = PreemptionRows(model, rules, view.counted, holders)
    asks = [
        Ask(
            job.id, job.queue, job.options, max(view.units(job.options[0]), 1e-6) * ranks[job.priority],
            job.priority, job.came_s,
        )
        for job in able.values()
    ]  # fmt: skip
    model.update(asks)
    rows.update(asks)
    plan = model.plan(searched=True)
    decisions = Decisions({str(key) for key in plan.starts}, bound=plan.bound, value=plan.value)
    choose = partial(fair_victims, strategies=strategies) if view.tree.fair else victims
    _stop(view, able, asks, rules, plan.starts, holders, decisions, choose)
    worth = {job.id: view.units(job.options[0]) * ranks[job.priority] for job in view.jobs}
    decisions.value += sum(worth[name] for name in decisions.stopping) - sum(worth[name] for name in decisions.stopped)
    decisions.bound = max(decisions.bound, decisions.value)
    return decisions


def _stop(
    view: ClusterView, able: Mapping[str, WatchedJob], asks: Sequence[Ask], rules: Mapping[str, Preemption],
    starts: Mapping[Any, list[int]], holders: list[Holder], decisions: Decisions,
    choose: Callable[[QuotaTree, Preemption, Holder, list[Holder]], list[Holder] | None],
) -> None:  # fmt: skip
    """Add workloads for which others are stopped to the admitted ones; the tree is left unchanged."""
    tree = view.tree
    done: list[tuple[str, Any, float]] = []

    def use(queue: str, amounts: Any, sign: float) -> None:
        tree.use(queue, amounts, sign)
        done.append((queue, amounts, sign))

    try:
        for key, counts in starts.items():
            job = able[str(key)]
            use(job.queue, job.options[next(at for at, count in enumerate(counts) if count)], 1.0)
        left = [ask for ask in asks if not decisions.goes(str(ask.key))]
        by_priority = sorted(left, key=lambda ask: (-ask.priority, ask.since_s))
        for ask in Tournament(FairShares(tree), left) if tree.fair else by_priority:
            job = able[str(ask.key)]
            for option in sorted(job.options, key=lambda option: not tree.room(job.queue, option)):
                asking = Holder(job.id, job.queue, option, job.priority, job.came_s)
                stopped = choose(tree, rules.get(job.queue, Preemption()), asking, holders)
                if stopped is not None:
                    for each in stopped:
                        use(each.queue, each.amounts, -1.0)
                        holders.remove(each)
                    use(job.queue, option, 1.0)
                    decisions.stopping[job.id] = [each.key for each in stopped]
                    break
    finally:
        for queue, amounts, sign in done:
            tree.use(queue, amounts, -sign)


def boosts(view: ClusterView, documents: Mapping[str, Document], decisions: Decisions) -> dict[str, int]:
    """Return the boost, 0 or 1, of each waiting workload that makes Kueue try the plan's workloads first.

    Kueue takes a queue's workloads by priority, then by age. A workload of the plan gets 1 if an older workload of the
    same priority is not in the plan, unless the boost would make its priority equal to a higher one.
    """
    found: dict[str, int] = {}
    by_queue: dict[str, list[tuple[int, WatchedJob]]] = {}
    for job in view.jobs:
        if not job.running and (not job.held or is_ours(job)):
            own = part(documents[job.id], "spec", "priority") or 0
            by_queue.setdefault(job.queue, []).append((own, job))
    for jobs in by_queue.values():
        bases = {own for own, _ in jobs}
        for own, job in jobs:
            before = any(
                base == own and other.came_s <= job.came_s and other.id != job.id and not decisions.goes(other.id)
                for base, other in jobs
            )
            found[job.id] = int(decisions.goes(job.id) and before and own + 1 not in bases)
    return found


def without_gate(gates: str) -> str | None:
    """Return the annotation without the plan's gate; None if no gate is left."""
    left = [each.strip() for each in gates.split(",") if each.strip() and each.strip() != GATE]
    return ",".join(left) or None


def gates_of(document: Document) -> str:
    """Return a document's admission gates."""
    return str(part(document, "metadata", "annotations", GATES) or "")
