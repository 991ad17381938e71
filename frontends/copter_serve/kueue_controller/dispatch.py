"""MultiKueue's dispatcher: one program over all clusters assigns a manager's workloads to worker clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from copter import Settings
from copter_serve.queues import QueueError, QuotaTree
from copter_serve.queues.admission_model import AdmissionModel
from copter_serve.queues.ask import Ask
from copter_serve.queues.quota_tree import Amounts, Share
from copter_serve.views import ClusterView
from copter_serve.views.documents import Document, entries, part, pod_requests, unix_time, whole
from copter_serve.views.kueue import condition, priority_of

MULTIKUEUE = "kueue.x-k8s.io/multikueue"
Value = TypeVar("Value")
MOST_NOMINATED = 3  # most clusters nominated for a workload: the plan's, and others with room


def nominations(
    checks: Sequence[Document], configs: Sequence[Document], workloads: Mapping[str, Document],
    workers: Mapping[str, Callable[[], ClusterView]], settings: Settings,
) -> dict[str, list[str]]:  # fmt: skip
    """Return the clusters to nominate for each workload that waits for MultiKueue; workloads without room are left out.

    A worker that cannot be read at the moment gets no new nominations.
    """
    allowed = _allowed(checks, configs)
    waiting = {name: each for name, each in workloads.items() if _waits(each, allowed)}
    views: dict[str, ClusterView] = {}
    for cluster in sorted({cluster for each in waiting.values() for cluster in _clusters(each, allowed)}):
        try:
            if cluster in workers:
                views[cluster] = workers[cluster]()
        except QueueError:
            continue
    tree = joined(views)
    asks, clusters_of = [], {}
    for name, document in waiting.items():
        options = _options(document, [each for each in _clusters(document, allowed) if each in views], views)
        if options:
            need = _need(document)
            size = max(need.values(), default=1.0)
            priority = priority_of(document)
            asks.append(
                Ask(
                    name, options[0][0], tuple(amounts for _, amounts, _ in options), size * (1.0 + max(priority, 0)),
                    priority, unix_time("creationTimestamp", part(document, "metadata", "creationTimestamp")),
                    queues=tuple(queue for queue, _, _ in options),
                )
            )  # fmt: skip
            clusters_of[name] = options
    if not asks:
        return {}
    model = AdmissionModel(tree, settings)
    model.update(asks)
    found: dict[str, list[str]] = {}
    for key, counts in model.plan(searched=True).starts.items():
        options = clusters_of[str(key)]
        best = options[next(at for at, count in enumerate(counts) if count)][2]
        others = [cluster for queue, amounts, cluster in options if cluster != best and tree.room(queue, amounts)]
        found[str(key)] = list(dict.fromkeys([best, *others]))[:MOST_NOMINATED]
    return found


def joined(views: Mapping[str, ClusterView]) -> QuotaTree:
    """Return all clusters' queues in one tree, with their usage; each name is prefixed by its cluster's name."""
    tree = QuotaTree()
    for cluster, view in views.items():
        for node in view.tree.cohorts.values():
            parent = None if node.parent is None else f"{cluster}:{node.parent}"
            tree.add_cohort(f"{cluster}:{node.name}", _renamed(cluster, node.quotas), parent)
        for node in view.tree.queues.values():
            parent = None if node.parent is None else f"{cluster}:{node.parent}"
            tree.add_queue(f"{cluster}:{node.name}", _renamed(cluster, node.quotas), parent)
    tree.settle()
    for cluster, view in views.items():
        for job in view.jobs:
            if job.running:
                tree.use(f"{cluster}:{job.queue}", _renamed(cluster, job.options[0]))
    return tree


def _renamed(cluster: str, by_share: Mapping[Share, Value]) -> dict[Share, Value]:
    return {(f"{cluster}:{flavor}", resource): value for (flavor, resource), value in by_share.items()}


def _allowed(checks: Sequence[Document], configs: Sequence[Document]) -> dict[str, list[str]]:
    """Return the clusters of each MultiKueue admission check, by the check's name."""
    lists = {
        str(part(each, "metadata", "name")): [str(name) for name in part(each, "spec", "clusters") or []]
        for each in configs
    }
    return {
        str(part(each, "metadata", "name")): lists.get(str(part(each, "spec", "parameters", "name")), [])
        for each in checks
        if part(each, "spec", "controllerName") == MULTIKUEUE
    }


def _waits(document: Document, allowed: Mapping[str, list[str]]) -> bool:
    return (
        bool(condition(document, "QuotaReserved"))
        and not condition(document, "Finished")
        and not part(document, "status", "clusterName")
        and bool(_clusters(document, allowed))
    )


def _clusters(document: Document, allowed: Mapping[str, list[str]]) -> list[str]:
    for each in entries("status.admissionChecks", part(document, "status", "admissionChecks")):
        if each.get("name") in allowed and each.get("state") == "Pending":
            return allowed[each["name"]]
    return []


def _need(document: Document) -> dict[str, float]:
    total: dict[str, float] = {}
    for at, each in enumerate(entries("spec.podSets", part(document, "spec", "podSets"))):
        count = whole(f"spec.podSets[{at}].count", each.get("count"), 1)
        for resource, amount in pod_requests(f"spec.podSets[{at}]", part(each, "template", "spec")).items():
            total[resource] = total.get(resource, 0.0) + count * amount
    return total


def _options(
    document: Document, clusters: Sequence[str], views: Mapping[str, ClusterView]
) -> list[tuple[str, Amounts, str]]:
    """Return (queue, amounts, cluster) of each way to run a workload: in the worker's queue of the same name."""
    need, queue = _need(document), str(part(document, "status", "admission", "clusterQueue"))
    found: list[tuple[str, Amounts, str]] = []
    for cluster in clusters:
        node = views[cluster].tree.queues.get(queue)
        flavors = [] if node is None else list(dict.fromkeys(flavor for flavor, _ in node.quotas))
        for flavor in flavors:
            amounts = {(f"{cluster}:{flavor}", resource): amount for resource, amount in need.items() if amount > 0.0}
            if node is not None and all((flavor, resource) in node.quotas for _, resource in amounts):
                found.append((f"{cluster}:{queue}", amounts, cluster))
    return found
