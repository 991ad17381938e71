"""Converts Volcano's and KAI's pod groups, queues and nodes to a view of the cluster.

Both schedulers place pods on nodes. Queues share all nodes, each up to its own limit. A group with a pod on a node
counts as running.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from copter_serve.queues import QueueError
from copter_serve.queues.quantities import quantity
from copter_serve.queues.quota_tree import Share
from copter_serve.views.documents import (
    MOST_BYTES,
    Api,
    BlindError,
    Document,
    amounts,
    entries,
    file_documents,
    named,
    parse_json,
    part,
    pod_requests,
    unix_time,
    whole,
)
from copter_serve.views.view import GPUS, ClusterView, ViewError, WatchedJob, pooled

FLAVOR = "node"
VOLCANO = "scheduling.volcano.sh"
VOLCANO_VERSIONS = ("v1beta1",)
KAI_LIST = "rawObjects"
GROUP_NOTES = ("pod-group-name", "scheduling.k8s.io/group-name")
FRACTION, DEVICES = "gpu-fraction", "gpu-fraction-num-devices"  # annotations of KAI's pods
ENDED = ("Succeeded", "Failed")
Kinds = Mapping[str, Sequence[Document]]  # Queue, PodGroup, Node, Pod, PriorityClass


def volcano_kinds(api: Api) -> Kinds:
    """Return Volcano's objects, the nodes and the pods of an API server."""
    version = api.version(VOLCANO, VOLCANO_VERSIONS)
    core, group = "/api/v1", f"/apis/{VOLCANO}/{version}"
    return {
        "Queue": api.listed(f"{group}/queues"),
        "PodGroup": api.listed(f"{group}/podgroups"),
        "Node": api.listed(f"{core}/nodes"),
        "Pod": api.listed(f"{core}/pods"),
        "PriorityClass": api.listed("/apis/scheduling.k8s.io/v1/priorityclasses", optional=True),
    }


def volcano_file(path: str) -> Kinds:
    """Return the same objects from a file of documents; ViewError for a version that cannot be read."""
    kinds: dict[str, list[Document]] = {}
    for each in file_documents(path):
        group, _, version = str(each.get("apiVersion", "")).rpartition("/")
        if group == VOLCANO and version not in VOLCANO_VERSIONS:
            raise ViewError(f"{path}: {each.get('kind')} of version {version!r}; {', '.join(VOLCANO_VERSIONS)} is read")
        if group in (VOLCANO, "", "scheduling.k8s.io"):
            kinds.setdefault(str(each.get("kind")), []).append(each)
    return kinds


def kai_kinds(where: str, data: bytes) -> Kinds:
    """Return the objects of KAI's `/get-snapshot`: a JSON document, or a zip file with one."""
    if data[:2] == b"PK":
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                inner = archive.infolist()[0]
                if inner.file_size > MOST_BYTES:
                    raise BlindError(f"{where}: unpacked more than {MOST_BYTES >> 20} MiB")
                data = archive.read(inner)
        except (zipfile.BadZipFile, IndexError, OSError, RuntimeError, NotImplementedError) as error:
            raise BlindError(f"{where}: is a damaged zip file: {error}") from error
    found = parse_json(where, data)
    raw = found.get(KAI_LIST) if isinstance(found, dict) else None
    if not isinstance(raw, dict):
        raise ViewError(f"{where}: has no {KAI_LIST}; give what KAI's /get-snapshot answers")
    names = {
        "Queue": "queues",
        "PodGroup": "podGroups",
        "Node": "nodes",
        "Pod": "pods",
        "PriorityClass": "priorityClasses",
    }
    return {kind: [each for each in raw.get(name) or [] if isinstance(each, dict)] for kind, name in names.items()}


def pod_group_view(source: str, kinds: Kinds) -> ClusterView:
    """Return the view of a cluster from these objects; ViewError without queues or nodes."""
    for kind in ("Queue", "Node"):
        if not kinds.get(kind):
            raise ViewError(f"{source}: there is no {kind} among the documents; without it there is no quota to see")
    skipped: list[str] = []
    free = {}
    for each in kinds["Node"]:
        if not part(each, "spec", "unschedulable"):
            free[named(each)] = amounts(f"Node {named(each)}", part(each, "status", "allocatable"))
    names = {"cpu", *GPUS}
    total: dict[Share, float] = {}
    for has in free.values():
        for name in names & has.keys():
            total[FLAVOR, name] = total.get((FLAVOR, name), 0.0) + has[name]
    view = ClusterView(source, _queues(source, kinds["Queue"], total), [], free, skipped=skipped)
    classes = {named(each): whole("value", each.get("value"), 0) for each in kinds.get("PriorityClass", [])}
    pods = _pods(kinds.get("Pod", []), free, skipped)
    for each in kinds.get("PodGroup", []):
        try:
            job = _job(each, pods.get(named(each), []), view, classes, names)
        except QueueError as error:
            skipped.append(f"PodGroup {part(each, 'metadata', 'name')}: {error}: left out")
            continue
        if job is not None:
            if job.running:
                view.tree.use(job.queue, job.options[0])
            view.jobs.append(job)
    return view


def _queues(source: str, queues: Sequence[Document], total: Mapping[Share, float]) -> Any:
    limits: dict[str, dict[Share, float]] = {}
    kept: dict[str, dict[Share, float]] = {}
    parents: dict[str, str] = {}
    known = {named(each) for each in queues}
    for each in queues:
        name = named(each)
        where = f"Queue {name}"
        parent = part(each, "spec", "parentQueue") or part(each, "spec", "parent")
        if parent in known and parent != name:
            parents[name] = str(parent)
        if source == "kai":
            most = part(each, "spec", "resources", "gpu", "limit")
            if most is not None and (isinstance(most, bool) or not isinstance(most, int | float)):
                raise ViewError(f"{where}: spec.resources.gpu.limit is {most!r}: it must be a number, -1 for no limit")
            limits[name] = {
                share: math.inf if share[1] == "cpu" or most is None or most < 0 else float(most) for share in total
            }
            continue
        limit = amounts(f"{where}: spec.capability", part(each, "spec", "capability"))
        own = amounts(f"{where}: spec.guarantee", part(each, "spec", "guarantee", "resource"))
        limits[name] = {share: limit.get(share[1], math.inf) for share in total}
        kept[name] = {share: own[share[1]] for share in total if own.get(share[1])}
    return pooled(total, limits, kept, parents, set(parents.values()))


def _pods(pods: Sequence[Document], free: dict[str, dict[str, float]], skipped: list[str]) -> dict[str, list[Any]]:
    """Return each group's pods as (needs, whether on a node); lowers the nodes' free amounts by running pods."""
    found: dict[str, list[Any]] = {}
    for each in pods:
        if part(each, "status", "phase") in ENDED:
            continue
        try:
            need = pod_requests(f"Pod {named(each)}", each.get("spec"))
            _add_fraction(each, need)
        except QueueError as error:
            skipped.append(f"{error}: left out")
            continue
        node = part(each, "spec", "nodeName")
        if node in free:
            free[node] = {name: amount - need.get(name, 0.0) for name, amount in free[node].items()}
        notes = part(each, "metadata", "annotations") or {}
        group = next((notes[name] for name in GROUP_NOTES if name in notes), None)
        if group is not None:
            found.setdefault(f"{part(each, 'metadata', 'namespace')}/{group}", []).append((need, bool(node)))
    return found


def _add_fraction(pod: Document, need: dict[str, float]) -> None:
    """Add the part of a GPU that KAI gives a pod by annotation, on one device or on several."""
    notes = part(pod, "metadata", "annotations") or {}
    if FRACTION in notes and not any(need.get(name) for name in GPUS):
        where = f"Pod {named(pod)}: annotation"
        share = quantity(f"{where} {FRACTION}", notes[FRACTION])
        need[GPUS[0]] = share * quantity(f"{where} {DEVICES}", notes.get(DEVICES, "1"))


def _job(
    document: Document, pods: Sequence[Any], view: ClusterView, classes: Mapping[str, int], names: set[str]
) -> WatchedJob | None:
    phase = part(document, "status", "phase")
    if phase in ("Completed", "Succeeded", "Failed"):
        return None
    queue = str(part(document, "spec", "queue") or "default")
    if queue not in view.tree.queues:
        raise ViewError(f"its queue {queue!r} is not among the documents, or has others below it")
    least = amounts("spec.minResources", part(document, "spec", "minResources"))
    placed = [need for need, on_node in pods if on_node]
    counted = placed or [need for need, _ in pods]
    total = {name: sum(need.get(name, 0.0) for need in counted) for name in names}
    if not counted:
        total = {name: least.get(name, 0.0) for name in names}
    if not any(total.values()):
        raise ViewError("it has no pods and no spec.minResources")
    came = unix_time("metadata.creationTimestamp", part(document, "metadata", "creationTimestamp"))
    took = {(FLAVOR, name): amount for name, amount in total.items() if amount > 0.0}
    pod = {name: max((need.get(name, 0.0) for need in counted), default=0.0) for name in names}
    priority = classes.get(str(part(document, "spec", "priorityClassName") or ""), 0)
    started = math.nan
    for each in entries("status.conditions", part(document, "status", "conditions")):
        if placed and isinstance(each, dict) and each.get("type") in ("Scheduled", "Running"):
            started = unix_time("lastTransitionTime", each.get("lastTransitionTime"))
    return WatchedJob(named(document), queue, priority, (took,), bool(placed), came, started, pod=pod)
