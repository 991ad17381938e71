"""Converts Kueue's objects, v1beta1 and v1beta2, to a view of the cluster."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from copter_serve.queues import QueueError, Quota, QuotaTree
from copter_serve.queues.quantities import quantity
from copter_serve.queues.quota_tree import Amounts, Share
from copter_serve.views.documents import (
    Api,
    Document,
    amounts,
    entries,
    named,
    part,
    pod_requests,
    unix_time,
    whole,
)
from copter_serve.views.view import ClusterView, ViewError, WatchedJob

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")
PLURALS = ("cohorts", "clusterqueues", "localqueues", "resourceflavors", "workloads")
BOOST = f"{GROUP}/priority-boost"
GATES = f"{GROUP}/admission-gated-by"
MOST_OPTIONS = 16  # most combinations of flavors that are considered


def read_api(api: Api) -> list[Document]:
    """Return all of Kueue's objects of an API server, in a version that can be read."""
    version = api.version(GROUP, VERSIONS)
    found: list[Document] = []
    for plural in PLURALS:
        found += api.listed(f"/apis/{GROUP}/{version}/{plural}", optional=plural == "cohorts")
    return found


def kueue_view(documents: Sequence[Document]) -> ClusterView:
    """Return the view of a cluster from Kueue's objects.

    Raises
    ------
    ViewError, QuotaError
        If queues or cohorts have an unknown version, or quotas contradict each other. An unreadable workload raises
        nothing but adds a line to `skipped`.
    """
    kinds: dict[str, list[Document]] = {}
    skipped: list[str] = []
    for each in documents:
        group, _, version = str(each.get("apiVersion", "")).partition("/")
        if group != GROUP:
            continue
        kind = str(each.get("kind"))
        if version not in VERSIONS:
            line = f"{kind} {named(each)}: version {version!r} of {GROUP} is unknown; {', '.join(VERSIONS)} are read"
            if kind in ("ClusterQueue", "Cohort"):
                raise ViewError(line)
            skipped.append(line)
            continue
        kinds.setdefault(kind, []).append(each)
    if "ClusterQueue" not in kinds:
        raise ViewError("there is no ClusterQueue among the documents: give all objects of Kueue's")
    tree, groups = _tree(kinds)
    queue_of = {named(each): str(part(each, "spec", "clusterQueue")) for each in kinds.get("LocalQueue", [])}
    halted = {named(each) for kind in ("ClusterQueue", "LocalQueue") for each in kinds.get(kind, []) if _halted(each)}
    labels = {named(each): part(each, "spec", "nodeLabels") or {} for each in kinds.get("ResourceFlavor", [])}
    jobs: list[WatchedJob] = []
    for each in kinds.get("Workload", []):
        try:
            job = _job(each, queue_of, groups, labels, halted)
        except QueueError as error:
            skipped.append(f"Workload {part(each, 'metadata', 'name')}: {error}")
            continue
        if job is not None:
            if job.running:
                tree.use(job.queue, job.options[0])
            jobs.append(job)
    return ClusterView("kueue", tree, jobs, skipped=skipped)


def _tree(kinds: Mapping[str, list[Document]]) -> tuple[QuotaTree, dict[str, list[list[tuple[str, list[str]]]]]]:
    """Return the quotas, and for each queue its groups of flavors with the resources that they cover."""
    tree = QuotaTree()
    groups: dict[str, list[list[tuple[str, list[str]]]]] = {}
    for each in kinds.get("Cohort", []):
        parent = part(each, "spec", "parentName") or part(each, "spec", "parent")
        tree.add_cohort(named(each), _quotas(f"Cohort {named(each)}", each)[0], parent or None, _weight(each))
    for each in kinds["ClusterQueue"]:
        cohort = part(each, "spec", "cohortName") or part(each, "spec", "cohort")
        quotas, found = _quotas(f"ClusterQueue {named(each)}", each)
        tree.add_queue(named(each), quotas, cohort or None, _weight(each))
        groups[named(each)] = found
    # Kueue writes shares to the status if, and only if, its configuration enables fair sharing
    tree.fair = any(part(each, "status", "fairSharing") is not None for each in kinds["ClusterQueue"])
    return tree.settle(), groups


def _weight(document: Document) -> float:
    """Return a queue's or cohort's weight in fair sharing, 1 if there is none."""
    weight = part(document, "spec", "fairSharing", "weight")
    where = f"{document['kind']} {named(document)}: fairSharing.weight"
    return 1.0 if weight is None else quantity(where, weight)


def _quotas(where: str, document: Document) -> tuple[dict[Share, Quota], list[list[tuple[str, list[str]]]]]:
    quotas: dict[Share, Quota] = {}
    groups = []
    for at, group in enumerate(entries(f"{where}: resourceGroups", part(document, "spec", "resourceGroups"))):
        place = f"{where}: resourceGroups[{at}]"
        flavors = []
        for flavor in entries(f"{place}.flavors", part({"at": group}, "at", "flavors")):
            name = str(part({"at": flavor}, "at", "name"))
            resources = entries(f"{place}.flavors {name}", part({"at": flavor}, "at", "resources"))
            for each in resources:
                share = (name, str(part({"at": each}, "at", "name")))
                if share in quotas:
                    raise ViewError(f"{where}: {share[1]} of flavor {name} has two quotas: keep one of them")
                numbers = [
                    math.inf if each.get(limit) is None else quantity(f"{place} {' '.join(share)} {limit}", each[limit])
                    for limit in ("borrowingLimit", "lendingLimit")
                ]
                quotas[share] = Quota(quantity(f"{place} {' '.join(share)}", each.get("nominalQuota", 0)), *numbers)
            flavors.append((name, [str(part({"at": each}, "at", "name")) for each in resources]))
        groups.append(flavors)
    return quotas, groups


def condition(document: Document, kind: str) -> Mapping[str, Any]:
    """Return a workload's condition of this type if it is true, else an empty mapping."""
    for each in part(document, "status", "conditions") or []:
        if isinstance(each, dict) and each.get("type") == kind and each.get("status") == "True":
            return each
    return {}


def priority_of(document: Document) -> int:
    """Return a workload's priority plus its `priority-boost`."""
    own = whole("spec.priority", part(document, "spec", "priority"), 0)
    boost = part(document, "metadata", "annotations", BOOST)
    try:
        return own + (0 if boost is None else int(boost))
    except ValueError:
        raise ViewError(f"{BOOST} is {boost!r}, no whole number") from None


def _job(
    document: Document, queue_of: Mapping[str, str], groups: Mapping[str, Any], labels: Mapping[str, Any],
    halted: set[str],
) -> WatchedJob | None:  # fmt: skip
    """Return the job of a workload; None if it has ended."""
    name = named(document)
    if condition(document, "Finished"):
        return None
    priority = priority_of(document)
    came = unix_time("metadata.creationTimestamp", part(document, "metadata", "creationTimestamp"))
    sets: list[tuple[str, dict[str, float], int, Mapping[str, Any]]] = []
    largest: dict[str, float] = {}
    for at, each in enumerate(entries("spec.podSets", part(document, "spec", "podSets"))):
        where = f"spec.podSets[{at}]"
        need = pod_requests(where, part({"at": each}, "at", "template", "spec"))
        count = whole(f"{where}.count", part({"at": each}, "at", "count"), 1)
        selector = part({"at": each}, "at", "template", "spec", "nodeSelector") or {}
        sets.append((str(part({"at": each}, "at", "name") or "main"), need, count, selector))
        largest = {key: max(largest.get(key, 0.0), need.get(key, 0.0)) for key in (*largest, *need)}
    if not sets:
        raise ViewError("spec.podSets is missing")
    admission = part(document, "status", "admission")
    if isinstance(admission, dict) and condition(document, "QuotaReserved"):
        queue = str(admission.get("clusterQueue"))
        if queue not in groups:
            raise ViewError(f"is admitted by ClusterQueue {queue}, which is not among the documents")
        started = condition(document, "Admitted") or condition(document, "QuotaReserved")
        time = unix_time("lastTransitionTime", started.get("lastTransitionTime"))
        leaves, took = bool(condition(document, "Evicted")), (_assigned(document, admission),)
        return WatchedJob(name, queue, priority, took, True, came, time, pod=largest, evicted=leaves)
    local = f"{name.rpartition('/')[0]}/{part(document, 'spec', 'queueName')}"
    queue = queue_of.get(local, "")
    if queue not in groups:
        raise ViewError(f"waits in LocalQueue {local}, which leads to no ClusterQueue among the documents")
    options = _options(sets, groups[queue], labels)
    stopped = next((name for name in (queue, local) if name in halted), "")
    held = _held(document) or (f"queue {stopped} is stopped" if stopped else "")
    held = held or ("" if options else "no flavor of its queue fits it")
    return WatchedJob(name, queue, priority, options or ({},), False, came, held=held, pod=largest)


def _halted(document: Document) -> bool:
    """Return whether a queue's stop policy keeps workloads from starting."""
    return part(document, "spec", "stopPolicy") in ("Hold", "HoldAndDrain")


def _held(document: Document) -> str:
    gates = part(document, "metadata", "annotations", GATES)
    if gates:
        return f"gated by {gates}"
    return "it is not active" if part(document, "spec", "active") is False else ""


def _assigned(document: Document, admission: Mapping[str, Any]) -> Amounts:
    """Return the amounts that an admitted workload takes, without those of pods that have ended (reclaimable)."""
    ended = {
        str(part({"at": each}, "at", "name")): whole(
            "status.reclaimablePods.count", part({"at": each}, "at", "count"), 0
        )
        for each in entries("status.reclaimablePods", part(document, "status", "reclaimablePods"))
    }
    taken: dict[Share, float] = {}
    for at, each in enumerate(entries("status.admission.podSetAssignments", admission.get("podSetAssignments"))):
        flavors = part({"at": each}, "at", "flavors") or {}
        used = amounts(
            f"status.admission.podSetAssignments[{at}].resourceUsage", part({"at": each}, "at", "resourceUsage")
        )
        count = whole(f"status.admission.podSetAssignments[{at}].count", part({"at": each}, "at", "count"), 1)
        left = max(0.0, 1.0 - ended.get(str(part({"at": each}, "at", "name")), 0) / max(count, 1))
        for resource, amount in used.items():
            if resource in flavors:
                share = (str(flavors[resource]), resource)
                taken[share] = taken.get(share, 0.0) + amount * left
    return taken


def _options(
    sets: Sequence[tuple[str, Mapping[str, float], int, Mapping[str, Any]]],
    groups: Sequence[Sequence[tuple[str, Sequence[str]]]], labels: Mapping[str, Any],
) -> tuple[Amounts, ...]:  # fmt: skip
    """Return the amounts that the workload would take with each combination of one flavor per group, in the queue's
    order.
    """
    total: dict[str, float] = {}
    for _, need, count, _ in sets:
        for resource, amount in need.items():
            total[resource] = total.get(resource, 0.0) + count * amount
    selector = {key: value for *_, wanted in sets for key, value in wanted.items()}
    choices = [
        [each for each in group if _matches(labels.get(each[0], {}), selector)]
        for group in groups
        if any(total.get(resource) for _, resources in group for resource in resources)
    ]
    covered = {resource for choice in choices for _, resources in choice for resource in resources}
    if any(amount > 0.0 and resource not in covered for resource, amount in total.items()):
        return ()
    return tuple(
        {
            (flavor, resource): total[resource]
            for flavor, resources in chosen
            for resource in resources
            if resource in total
        }
        for chosen in itertools.islice(itertools.product(*choices), MOST_OPTIONS)
    )


def _matches(labels: Mapping[str, Any], selector: Mapping[str, Any]) -> bool:
    return all(labels[key] == value for key, value in selector.items() if key in labels)
