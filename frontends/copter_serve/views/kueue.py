"""Converts Kueue's objects, v1beta1 and v1beta2, to a view of the cluster."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from copter_serve.views.kube_nodes import keeps_out, matches, terms_of
from copter_serve.views.starts import Way
from copter_serve.views.view import ClusterView, ViewError, WatchedJob

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")
PLURALS = ("cohorts", "clusterqueues", "localqueues", "resourceflavors", "workloads")
BOOST = f"{GROUP}/priority-boost"
GATES = f"{GROUP}/admission-gated-by"
RULES_ON_WORKLOADS = {  # annotations that change which flavors or how much quota a workload needs
    f"{GROUP}/workload-allowed-resource-flavors": "its list of allowed flavors is not modelled",
    f"{GROUP}/workload-slice-replacement-for": "it takes the place of another workload, which is not modelled",
}
MOST_OPTIONS = 16  # most combinations of flavors that are listed
MOST_COUNTS = 64  # most numbers of pods of a workload that starts with fewer than it asks for
NO_FLAVOR = "no flavor of its queue fits it"
UNSEEN = [
    "nodes: whether the pods of an admitted workload find room",
    "Kueue's configuration: resources that it leaves out, waiting for pods to be ready, feature gates",
]


def read_api(api: Api) -> list[Document]:
    """Return all of Kueue's objects of an API server, in a version that can be read."""
    version = api.version(GROUP, VERSIONS)
    found: list[Document] = []
    for plural in PLURALS:
        found += api.listed(f"/apis/{GROUP}/{version}/{plural}", optional=plural == "cohorts")
    return found


@dataclass(slots=True)
class Flavor:
    """What decides whether a pod may use a ResourceFlavor."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Any] = ()
    tolerations: Sequence[Any] = ()
    topology: str = ""


@dataclass(slots=True)
class Rules:
    """What is read once for all workloads."""

    groups: Mapping[str, list[list[tuple[str, list[str]]]]]
    flavors: Mapping[str, Flavor]
    queue_of: Mapping[str, str]
    stopped: dict[str, str]  # why a ClusterQueue or LocalQueue takes no workloads
    unclear: dict[str, str]
    selectors: Mapping[str, Any]
    namespaces: Mapping[str, Mapping[str, str]]
    prefers_own: set[str]  # queues that try all flavors before they borrow
    now_s: float


def kueue_view(documents: Sequence[Document], now_s: float | None = None) -> ClusterView:
    """Return the view of a cluster from Kueue's objects.

    Parameters
    ----------
    documents : sequence of Document
    now_s : float, optional
        Unix time of the documents; the present by default.

    Raises
    ------
    ViewError, QuotaError
        If queues or cohorts have an unknown version, or quotas contradict each other. An unreadable workload raises
        nothing but adds a line to `skipped`.
    """
    kinds: dict[str, list[Document]] = {}
    skipped: list[str] = []
    namespaces: dict[str, Mapping[str, str]] = {}
    for each in documents:
        group, _, version = str(each.get("apiVersion", "")).partition("/")
        if each.get("kind") == "Namespace" and group == "v1":
            namespaces[named(each)] = part(each, "metadata", "labels") or {}
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
    rules = _rules(kinds, groups, namespaces, time.time() if now_s is None else now_s)
    view = ClusterView("kueue", tree, [], skipped=skipped, not_modelled=list(UNSEEN))
    if not rules.flavors:
        view.not_modelled.append("labels and taints of flavors: there is no ResourceFlavor among the documents")
    if any(part(each, "spec", "namespaceSelector") is None for each in kinds["ClusterQueue"]):
        view.not_modelled.append("namespaces of ClusterQueues without a namespaceSelector")
    for each in kinds.get("Workload", []):
        try:
            job = _job(each, rules)
        except QueueError as error:
            skipped.append(f"Workload {part(each, 'metadata', 'name')}: {error}")
            continue
        if job is not None:
            if job.running:
                tree.use(job.queue, job.options[0])
            view.jobs.append(job)
    strict = {named(each) for each in kinds["ClusterQueue"] if part(each, "spec", "queueingStrategy") == "StrictFIFO"}
    view.jobs = _in_order(view.jobs, strict)
    return view


def _in_order(jobs: list[WatchedJob], strict: set[str]) -> list[WatchedJob]:
    """Note, in queues of strict order, which workload each one waits for."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for job in sorted(jobs, key=lambda job: (-job.priority, job.came_s)):
        if not job.running and job.queue in strict and job.held in ("", NO_FLAVOR):
            if job.queue in before:
                after[job.id] = before[job.queue]
            before[job.queue] = job.id
    return [replace(job, after=after[job.id]) if job.id in after and not job.running else job for job in jobs]


def _rules(
    kinds: Mapping[str, list[Document]],
    groups: Mapping[str, list[list[tuple[str, list[str]]]]],
    namespaces: Mapping[str, Mapping[str, str]],
    now_s: float,
) -> Rules:
    flavors = {
        named(each): Flavor(
            {str(key): str(value) for key, value in (part(each, "spec", "nodeLabels") or {}).items()},
            entries("nodeTaints", part(each, "spec", "nodeTaints")),
            entries("tolerations", part(each, "spec", "tolerations")),
            str(part(each, "spec", "topologyName") or ""),
        )
        for each in kinds.get("ResourceFlavor", [])
    }
    stopped: dict[str, str] = {}
    unclear: dict[str, str] = {}
    for kind in ("ClusterQueue", "LocalQueue"):
        for each in kinds.get(kind, []):
            name = named(each)
            inactive = next(
                (
                    one
                    for one in part(each, "status", "conditions") or []
                    if isinstance(one, dict) and one.get("type") == "Active" and one.get("status") == "False"
                ),
                None,
            )
            if _halted(each):
                stopped[name] = f"queue {name} is stopped"
            elif part(each, "metadata", "deletionTimestamp"):
                stopped[name] = f"queue {name} is being deleted"
            elif inactive is not None:
                stopped[name] = f"queue {name} is not active: {inactive.get('reason') or 'it does not say why'}"
    for each in kinds["ClusterQueue"]:
        name = named(each)
        missing = [flavor for group in groups[name] for flavor, _ in group if flavors and flavor not in flavors]
        if missing and name not in stopped:
            stopped[name] = f"queue {name} is not active: there is no ResourceFlavor {missing[0]}"
        checks = part(each, "spec", "admissionChecks") or part(
            each, "spec", "admissionChecksStrategy", "admissionChecks"
        )
        if checks:
            unclear[name] = "the admission checks of its queue decide, too"
        elif part(each, "spec", "concurrentAdmissionPolicy"):
            unclear[name] = "the concurrentAdmissionPolicy of its queue is not modelled"
        elif part(each, "spec", "queueingStrategy") == "StrictFIFO" and part(
            each, "spec", "admissionScope", "admissionMode"
        ) not in (None, "NoAdmissionFairSharing"):
            unclear[name] = "its queue's order by past usage (admissionScope) is not modelled"
    own = {
        named(each)
        for each in kinds["ClusterQueue"]
        if part(each, "spec", "flavorFungibility", "whenCanBorrow") == "TryNextFlavor"
    }
    return Rules(
        groups,
        flavors,
        {named(each): str(part(each, "spec", "clusterQueue")) for each in kinds.get("LocalQueue", [])},
        stopped,
        unclear,
        {named(each): part(each, "spec", "namespaceSelector") for each in kinds["ClusterQueue"]},
        namespaces,
        own,
        now_s,
    )


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


@dataclass(frozen=True, slots=True)
class PodSet:
    """Equal pods of a workload; `least` of them are enough where it may start with fewer."""

    name: str
    need: Mapping[str, float]
    count: int
    least: int
    spec: Any
    topology: bool


def _ended(document: Document) -> dict[str, int]:
    """Return how many pods of each set have ended, whose amounts the workload needs no more (reclaimable)."""
    return {
        str(part({"at": each}, "at", "name")): whole(
            "status.reclaimablePods.count", part({"at": each}, "at", "count"), 0
        )
        for each in entries("status.reclaimablePods", part(document, "status", "reclaimablePods"))
    }


def _pod_sets(document: Document) -> list[PodSet]:
    sets: list[PodSet] = []
    ended = _ended(document)
    for at, each in enumerate(entries("spec.podSets", part(document, "spec", "podSets"))):
        where, inner = f"spec.podSets[{at}]", {"at": each}
        spec = part(inner, "at", "template", "spec")
        count = whole(f"{where}.count", part(inner, "at", "count"), 1)
        least = whole(f"{where}.minCount", part(inner, "at", "minCount"), count)
        if count < 0 or not 0 <= least <= count:
            raise ViewError(f"{where}: count is {count} and minCount is {least}: it must be from 0 to count")
        name = str(part(inner, "at", "name") or "main")
        left = max(0, count - ended.get(name, 0))
        sets.append(
            PodSet(
                name,
                pod_requests(where, spec),
                left,
                min(least, left),
                spec,
                part(inner, "at", "topologyRequest") is not None,
            )
        )
    if not sets:
        raise ViewError("spec.podSets is missing")
    return sets


def _job(document: Document, rules: Rules) -> WatchedJob | None:
    """Return the job of a workload; None if it has ended."""
    name = named(document)
    if condition(document, "Finished"):
        return None
    priority = priority_of(document)
    came = unix_time("metadata.creationTimestamp", part(document, "metadata", "creationTimestamp"))
    sets = _pod_sets(document)
    largest: dict[str, float] = {}
    for each in sets:
        largest |= {key: max(largest.get(key, 0.0), amount) for key, amount in each.need.items()}
    limit_s = float(whole("spec.maximumExecutionTimeSeconds", part(document, "spec", "maximumExecutionTimeSeconds"), 0))
    limit_s = limit_s if limit_s > 0.0 else math.inf
    admission = part(document, "status", "admission")
    if isinstance(admission, dict) and condition(document, "QuotaReserved"):
        queue = str(admission.get("clusterQueue"))
        if queue not in rules.groups:
            raise ViewError(f"is admitted by ClusterQueue {queue}, which is not among the documents")
        started = condition(document, "Admitted") or condition(document, "QuotaReserved")
        began = unix_time("lastTransitionTime", started.get("lastTransitionTime"))
        leaves, took = bool(condition(document, "Evicted")), (_assigned(document, admission),)
        return WatchedJob(name, queue, priority, took, True, came, began, pod=largest, evicted=leaves, limit_s=limit_s)
    local = f"{name.rpartition('/')[0]}/{part(document, 'spec', 'queueName')}"
    queue = rules.queue_of.get(local, "")
    if queue not in rules.groups:
        raise ViewError(f"waits in LocalQueue {local}, which leads to no ClusterQueue among the documents")
    ways = tuple(way for counts in _counts(sets) if (way := _way(sets, counts, queue, rules)) is not None)
    options = _options(ways[0]) if ways else ()
    held = _held(document, rules.now_s) or rules.stopped.get(queue) or rules.stopped.get(local, "")
    refused, unclear = _namespace(name.rpartition("/")[0], queue, rules)
    held = held or refused or ("" if options else NO_FLAVOR)
    unclear = unclear or rules.unclear.get(queue, "") or _topology(sets, queue, rules) or _unread(document, sets)
    return WatchedJob(
        *(name, queue, priority, options or ({},), False, came),
        held=held,
        pod=largest,
        ways=ways,
        unclear=unclear,
        limit_s=limit_s,
    )


def _topology(sets: Sequence[PodSet], queue: str, rules: Rules) -> str:
    named_by = [
        rules.flavors[flavor].topology
        for group in rules.groups[queue]
        for flavor, _ in group
        if flavor in rules.flavors
    ]
    asks = any(each.topology for each in sets)
    return "places in a topology are not modelled" if any(named_by) or asks else ""


def _unread(document: Document, sets: Sequence[PodSet]) -> str:
    """Return what of a workload decides about its start and is not modelled; empty if there is nothing."""
    notes = part(document, "metadata", "annotations") or {}
    found = next((why for name, why in RULES_ON_WORKLOADS.items() if notes.get(name)), "")
    if any(entries("resourceClaims", part({"at": each.spec}, "at", "resourceClaims")) for each in sets):
        found = found or "resourceClaims are not modelled"
    own = {each.name: each for each in sets}
    for at, told in enumerate(entries("status.resourceRequests", part(document, "status", "resourceRequests"))):
        each = own.get(str(part({"at": told}, "at", "name") or "main"))
        counted = amounts(f"status.resourceRequests[{at}]", part({"at": told}, "at", "resources"))
        if each is not None and any(
            not math.isclose(amount, each.need.get(name, 0.0) * each.count, rel_tol=1e-6, abs_tol=1e-9)
            for name, amount in counted.items()
            if name != "pods"
        ):
            found = found or "Kueue counts other amounts than its pods ask for (status.resourceRequests)"
    return found


def _namespace(namespace: str, queue: str, rules: Rules) -> tuple[str, str]:
    """Return why a queue does not take workloads of a namespace, and why it is not known whether it does."""
    selector = rules.selectors.get(queue)
    if not isinstance(selector, dict) or not selector:
        return "", ""
    labels = {"kubernetes.io/metadata.name": namespace} | {
        str(key): str(value) for key, value in rules.namespaces.get(namespace, {}).items()
    }
    wanted = [
        {"key": key, "operator": "In", "values": [value]} for key, value in (selector.get("matchLabels") or {}).items()
    ] + entries("namespaceSelector.matchExpressions", selector.get("matchExpressions"))
    known = namespace in rules.namespaces
    if not known and any(part({"at": each}, "at", "key") not in labels for each in wanted):
        return "", f"the labels of namespace {namespace} are not among the documents"
    if all(matches(each, labels) for each in wanted):
        return "", ""
    return f"queue {queue} takes no workloads of namespace {namespace}", ""


def _halted(document: Document) -> bool:
    """Return whether a queue's stop policy keeps workloads from starting."""
    return part(document, "spec", "stopPolicy") in ("Hold", "HoldAndDrain")


def _held(document: Document, now_s: float) -> str:
    gates = part(document, "metadata", "annotations", GATES)
    if gates:
        return f"gated by {gates}"
    if part(document, "spec", "active") is False:
        return "it is not active"
    if part(document, "metadata", "deletionTimestamp"):
        return "it is being deleted"
    again = part(document, "status", "requeueState", "requeueAt")
    if again is not None and unix_time("status.requeueState.requeueAt", again) > now_s:
        return f"it is tried again at {again}"
    for each in part(document, "status", "conditions") or []:
        if isinstance(each, dict) and each.get("type") == "Requeued" and each.get("status") == "False":
            return f"it is not in its queue: {each.get('reason') or 'Requeued is False'}"
        if isinstance(each, dict) and each.get("type") == "QuotaReserved" and each.get("reason") == "OnHold":
            return "it is not in its queue: OnHold"
    if condition(document, "DeactivationTarget"):
        return "it is being deactivated"
    return ""


def _assigned(document: Document, admission: Mapping[str, Any]) -> Amounts:
    """Return the amounts that an admitted workload takes, without those of pods that have ended (reclaimable)."""
    ended = _ended(document)
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


def _counts(sets: Sequence[PodSet]) -> list[list[int]]:
    """Return the numbers of pods with which a workload may start, the most first, in Kueue's steps."""
    full = [each.count for each in sets]
    fewer = [each.count - each.least for each in sets]
    steps = sum(fewer)
    if not steps:
        return [full]
    kept = (
        range(steps + 1)
        if steps < MOST_COUNTS
        else {round(at * steps / (MOST_COUNTS - 1)) for at in range(MOST_COUNTS)}
    )
    return [[count - less * step // steps for count, less in zip(full, fewer, strict=True)] for step in sorted(kept)]


def _way(sets: Sequence[PodSet], counts: Sequence[int], queue: str, rules: Rules) -> Way | None:
    """Return the way to run so many pods of each set; None if no flavor fits one of them.

    Kueue chooses flavors for each set of pods and each group of resources in turn.
    """
    stages: list[tuple[Amounts, ...]] = []
    for each, count in zip(sets, counts, strict=True):
        need = {name: amount * count for name, amount in each.need.items() if amount * count > 0.0}
        covered: set[str] = set()
        for group in rules.groups[queue]:
            resources = {name for _, names in group for name in names}
            wanted = {name: amount for name, amount in need.items() if name in resources}
            if "pods" in resources and count > 0:
                wanted["pods"] = float(count)
            covered |= resources
            if not wanted:
                continue
            keys = {key for flavor, _ in group for key in rules.flavors.get(flavor, Flavor()).labels}
            stage: tuple[Amounts, ...] = tuple(
                {(flavor, name): amount for name, amount in wanted.items()}
                for flavor, names in group
                if wanted.keys() <= set(names) and _suits(rules.flavors.get(flavor, Flavor()), each.spec, keys)
            )
            if not stage:
                return None
            stages.append(stage)
        if need.keys() - covered:
            return None
    total: dict[Share, float] = {}
    for stage in stages:
        for share, amount in stage[0].items():
            total[share] = total.get(share, 0.0) + amount
    own = queue in rules.prefers_own
    return Way(queue, total, stages=tuple(stages), counts={}, prefers_own=own)


def _suits(flavor: Flavor, spec: Any, keys: set[str]) -> bool:
    """Whether a flavor's labels and taints admit a pod; only keys that a flavor of the group has count."""
    at = {"spec": spec}
    selector = part(at, "spec", "nodeSelector") or {}
    if any(str(key) in keys and flavor.labels.get(str(key)) != str(value) for key, value in selector.items()):
        return False
    terms = terms_of(spec)
    if terms:
        kept = [
            [
                each
                for each in entries("matchExpressions", part({"at": term}, "at", "matchExpressions"))
                if str(part({"at": each}, "at", "key")) in keys
            ]
            for term in terms
        ]
        if all(kept) and not any(all(matches(each, flavor.labels) for each in term) for term in kept):
            return False
    tolerations = [*entries("tolerations", part(at, "spec", "tolerations")), *flavor.tolerations]
    return not keeps_out([each for each in flavor.taints if isinstance(each, dict)], tolerations)


def _options(way: Way) -> tuple[Amounts, ...]:
    """Return the amounts of each combination of flavors, in the queue's order."""
    found: list[dict[Share, float]] = []
    for chosen in itertools.islice(itertools.product(*way.stages), MOST_OPTIONS):
        total: dict[Share, float] = {}
        for amounts_of in chosen:
            for share, amount in amounts_of.items():
                total[share] = total.get(share, 0.0) + amount
        if total not in found:
            found.append(total)
    return tuple(found)
