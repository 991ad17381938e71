"""Converts Volcano's and KAI's pod groups, queues and nodes to a view of the cluster.

Both schedulers place pods on nodes. Queues share all nodes, each up to its own limit. A group starts once as many pods
as it needs at least find nodes together; its pods beyond these start one by one. A group of which some pods, but too
few, are on nodes is running with these and waiting with the rest.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from copter_serve.queues import QueueError
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
    unix_time,
    whole,
)
from copter_serve.views.kube_nodes import ENDED, PODS, Hosts, held_back, keep_apart, needs_of, occupy, resized, unread
from copter_serve.views.kube_shared_gpus import (
    MEMORY_LABEL,
    arrangements,
    is_idle_reserved,
    is_reservation,
    memory_of,
    shared_of,
)
from copter_serve.views.starts import Pods, Way
from copter_serve.views.view import GPUS, ClusterView, ViewError, WatchedJob, pooled

FLAVOR = "node"
VOLCANO = "scheduling.volcano.sh"
VOLCANO_VERSIONS = ("v1beta1",)
KAI_LIST = "rawObjects"
GROUP_NOTES = ("pod-group-name", "scheduling.k8s.io/group-name", f"{VOLCANO}/group-name")
REVOCABLE = "volcano.sh/revocable-zone"  # label of nodes that take certain jobs, at certain hours
NUMA = "volcano.sh/numa-topology-policy"  # annotation of pods
NODE_POOL = "kai.scheduler/node-pool"  # label of what one of several schedulers of KAI's owns
TASK = "volcano.sh/task-spec"  # annotation of the task that a pod is of
FIXED_PRIORITY = 100  # KAI never stops jobs of this priority and above, and keeps them within their queue's quota
DEFAULT_PRIORITY = {"kai": 50, "volcano": 0}  # of groups without a priority class
OPEN = ("Open", "", "None")
PARTS = ("volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores", "volcano.sh/vgpu-number", "volcano.sh/gpu-memory")
UNSEEN = {
    "volcano": ["the scheduler's configuration: its plugins, and whose turn it is by the queues' weights"],
    "kai": ["whose turn it is by the queues' shares beyond their quotas, and plugins of the scheduler"],
}
Kinds = Mapping[str, Sequence[Document]]  # Queue, PodGroup, Node, Pod, PriorityClass, BindRequest


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
        "BindRequest": "bindRequests",
    }
    return {kind: [each for each in raw.get(name) or [] if isinstance(each, dict)] for kind, name in names.items()}


@dataclass(slots=True)
class Pod:
    """A pod of a group: its amounts, the nodes that its rules admit, and its node if it has one."""

    name: str
    need: dict[str, float]
    reach: frozenset[str]
    node: str = ""
    portion: float = 0.0
    memory: float = 0.0
    devices: int = 0
    task: str = ""
    priority: int = 0
    held: str = ""
    unclear: str = ""

    def part_of(self, memory: float) -> float:
        """Return the part of a GPU of so much memory that it takes; all of it if the memory is not known."""
        return self.portion or (min(1.0, self.memory / memory) if memory else 1.0)

    def amounts(self, memory: float, device: str) -> dict[str, float]:
        """Return what it takes of quotas where a GPU has so much memory."""
        return self.need | ({device: self.part_of(memory) * self.devices} if self.devices else {})


@dataclass(slots=True)
class Kept:
    """What is read once for all groups."""

    source: str
    view: ClusterView
    hosts: Hosts
    classes: Mapping[str, int]
    names: set[str]
    closed: dict[str, str]  # why a queue takes no jobs
    unclear: dict[str, str]
    device: str
    chains: dict[str, list[str]] = field(default_factory=dict)  # a queue and those above it


def pod_group_view(source: str, kinds: Kinds) -> ClusterView:
    """Return the view of a cluster from these objects; ViewError without queues or nodes."""
    for kind in ("Queue", "Node"):
        if not kinds.get(kind):
            raise ViewError(f"{source}: there is no {kind} among the documents; without it there is no quota to see")
    skipped: list[str] = []
    hosts = Hosts(kinds["Node"], skipped)
    device = next((name for name in GPUS if any(name in host.node.total for host in hosts.all.values())), GPUS[0])
    pods, loose = _pods(source, kinds, hosts, skipped)
    keep_apart(kinds.get("Pod", []), hosts.all)
    if source == "kai":
        _share_gpus(hosts, pods, loose, kinds, device)
    total: dict[Share, float] = {}
    for host in hosts.all.values():
        node = host.node
        for name, amount in node.total.items():
            has = max(0.0, amount - node.free.get(name, 0.0)) if node.closed else amount
            total[FLAVOR, name] = total.get((FLAVOR, name), 0.0) + has
    tree = _queues(source, kinds["Queue"], total, device)
    view = ClusterView(source, tree, [], {name: host.node for name, host in hosts.all.items()}, skipped=skipped)
    view.not_modelled = list(UNSEEN[source])
    classes = {named(each): whole("value", each.get("value"), 0) for each in kinds.get("PriorityClass", [])}
    kept = Kept(source, view, hosts, classes, {name for _, name in total}, {}, {}, device)
    _states(kinds["Queue"], kept)
    _note_unseen(kinds, kept)
    groups: list[tuple[Document, list[Pod], str, int]] = []
    for each in kinds.get("PodGroup", []):
        try:
            read = _running(each, pods.get(named(each), []), kept)
        except QueueError as error:
            skipped.append(f"PodGroup {part(each, 'metadata', 'name')}: {error}: left out")
            continue
        if read is not None:
            groups.append(read)
    if source == "kai":
        _fixed_quotas(kinds["Queue"], groups, kept)
    for document, members, queue, priority in groups:
        try:
            view.jobs += _waiting(document, members, queue, priority, kept)
        except QueueError as error:
            skipped.append(f"PodGroup {part(document, 'metadata', 'name')}: {error}: left out")
    return view


# Queues ---------------------------------------------------------------------------------------------------------------


def _queues(source: str, queues: Sequence[Document], total: Mapping[Share, float], device: str) -> Any:
    limits: dict[str, dict[Share, float]] = {}
    kept: dict[str, dict[Share, float]] = {}
    parents = _parents(queues)
    for each in queues:
        name = named(each)
        where = f"Queue {name}"
        if source == "kai":
            most = _kai_amounts(where, each, "limit", device)
            limits[name] = {share: most.get(share[1], math.inf) for share in total}
            continue
        limit = amounts(f"{where}: spec.capability", part(each, "spec", "capability"))
        own = amounts(f"{where}: spec.guarantee", part(each, "spec", "guarantee", "resource"))
        limits[name] = {share: limit.get(share[1], math.inf) for share in total}
        kept[name] = {share: own[share[1]] for share in total if own.get(share[1])}
    return pooled(total, limits, kept, parents, set(parents.values()))


def _note_unseen(kinds: Kinds, kept: Kept) -> None:
    """Note what these documents leave open: limits that are not told, pools of nodes, nodes of certain hours."""
    lines = kept.view.not_modelled
    if kept.source == "volcano":
        for host in kept.hosts.all.values():
            if host.labels.get(REVOCABLE):
                host.node.unclear = host.node.unclear or f"whom it takes depends on the hour ({REVOCABLE})"
        return
    silent = [
        named(each)
        for each in kinds["Queue"]
        if any(part(each, "spec", "resources", name, "limit") is None for name in ("gpu", "cpu", "memory"))
    ]
    if silent:
        lines.append(f"limits that queue {silent[0]} does not tell: they count as none, KAI may read them as 0")
    pools = {
        str(part(each, "metadata", "labels", NODE_POOL) or "")
        for kind in ("Node", "PodGroup")
        for each in kinds.get(kind, [])
    }
    if any(not part(each, "spec", "parentQueue") for each in kinds["Queue"]):
        lines.append("whether this release of KAI starts jobs of queues without a queue above them: older ones do not")
    if len(pools) > 1:
        lines.append(f"pools of nodes ({NODE_POOL}): every job is taken to reach every node")


def _parents(queues: Sequence[Document]) -> dict[str, str]:
    known = {named(each) for each in queues}
    found = {}
    for each in queues:
        name, parent = named(each), part(each, "spec", "parentQueue") or part(each, "spec", "parent")
        if parent in known and parent != name:
            found[name] = str(parent)
    return found


def _kai_amounts(where: str, document: Document, field_name: str, device: str) -> dict[str, float]:
    """Return a KAI queue's limits or quotas: GPUs, CPUs in thousandths, memory in MB; -1 and nothing are none."""
    found = {}
    for name, resource, unit in (("gpu", device, 1.0), ("cpu", "cpu", 1e-3), ("memory", "memory", 1e6)):
        most = part(document, "spec", "resources", name, field_name)
        if most is not None and (isinstance(most, bool) or not isinstance(most, int | float) or math.isnan(most)):
            raise ViewError(
                f"{where}: spec.resources.{name}.{field_name} is {most!r}: it must be a number, -1 for no limit"
            )
        if most is not None and most >= 0:
            found[resource] = most * unit
    return found


def _states(queues: Sequence[Document], kept: Kept) -> None:
    """Find the queues that take no jobs, by their own state or by that of one above."""
    parents = _parents(queues)
    own: dict[str, str] = {}
    unsure: dict[str, str] = {}
    for each in queues:
        name = named(each)
        state = str(part(each, "status", "state") or part(each, "spec", "state") or "")
        if kept.source == "volcano" and state not in OPEN:
            own[name] = f"queue {name} is {state}"
        elif part(each, "metadata", "deletionTimestamp"):
            own[name] = f"queue {name} is being deleted"
        above = part(each, "spec", "parentQueue")
        if kept.source == "volcano" and (why := _unread_queue(each)):
            unsure[name] = f"{why} of queue {name} is not modelled"
        elif kept.source == "kai" and above and name not in parents:
            unsure[name] = f"queue {above}, above queue {name}, is not among the documents"
        for locked in entries("status.reservation.nodes", part(each, "status", "reservation", "nodes")):
            if kept.source == "volcano" and locked in kept.hosts.all:
                node = kept.hosts.all[locked].node
                node.unclear = node.unclear or f"queue {name} has it reserved"
    for each in queues:
        first, seen = named(each), list[str]()
        at: str | None = first
        while at is not None and at not in seen:
            seen.append(at)
            if at in own:
                kept.closed.setdefault(first, own[at])
            if at in unsure:
                kept.unclear.setdefault(first, unsure[at])
            at = parents.get(at)
        kept.chains[first] = seen


def _unread_queue(document: Document) -> str:
    """Return what of a Volcano queue decides about starts and is not modelled; empty if there is nothing."""
    for name in ("affinity", "extendClusters"):
        if part(document, "spec", name):
            return f"spec.{name}"
    if part(document, "spec", "dequeueStrategy") == "fifo":
        return "the order (dequeueStrategy: fifo)"
    if part(document, "metadata", "annotations", "volcano.sh/nodegroup-resource-limits"):
        return "the limit by node groups"
    return ""


def _fixed_quotas(
    queues: Sequence[Document], groups: Sequence[tuple[Document, list[Pod], str, int]], kept: Kept
) -> None:
    """Note what is left of queues' quotas for jobs that KAI never stops."""
    view = kept.view
    for each in queues:
        for resource, amount in _kai_amounts(f"Queue {named(each)}", each, "quota", kept.device).items():
            view.limits[f"quota of {named(each)}, {resource}"] = amount
    for document, members, queue, priority in groups:
        if _is_fixed(document, priority):
            for pod in members:
                if pod.node:
                    for name, amount in _fixed_counts(queue, _taken(pod, kept), kept).items():
                        view.limits[name] -= amount


def _is_fixed(document: Document, priority: int) -> bool:
    told = str(part(document, "spec", "preemptibility") or "").lower()
    return told == "non-preemptible" or (not told and priority >= FIXED_PRIORITY)


def _fixed_counts(queue: str, need: Mapping[str, float], kept: Kept) -> dict[str, float]:
    """Return what a job takes of the quotas of its queue and of those above."""
    return {
        name: need.get(resource, 0.0)
        for each in kept.chains.get(queue, [queue])
        for resource in (kept.device, "cpu", "memory")
        if (name := f"quota of {each}, {resource}") in kept.view.limits
    }


# Pods -----------------------------------------------------------------------------------------------------------------


def _pods(source: str, kinds: Kinds, hosts: Hosts, skipped: list[str]) -> tuple[dict[str, list[Pod]], list[Pod]]:
    """Return each group's pods, and those of no group; lowers the nodes' free amounts by the pods on them."""
    found: dict[str, list[Pod]] = {}
    others: list[Pod] = []
    bound = {
        f"{part(each, 'metadata', 'namespace')}/{part(each, 'spec', 'podName')}": str(
            part(each, "spec", "selectedNode") or ""
        )
        for each in kinds.get("BindRequest", [])
        if not _has_failed(each)
    }
    for each in kinds.get("Pod", []):
        if part(each, "status", "phase") in ENDED or (source == "kai" and is_reservation(each)):
            continue
        try:
            pod = _pod(source, each, hosts, bound)
            more = resized(f"Pod {pod.name}", each) if pod.node in hosts.all else {}
        except QueueError as error:
            skipped.append(f"{error}: left out")
            node = part(each, "spec", "nodeName")
            if node in hosts.all and not hosts.all[node].node.closed:
                hosts.all[node].node.unclear = "a pod on it cannot be read"
            continue
        if pod.node in hosts.all:
            occupy(hosts.all, pod.node, pod.need)
            occupy(hosts.all, pod.node, more)  # whether the scheduler counts it differs by its version
            maybe = hosts.all[pod.node].node.maybe
            maybe.update({name: maybe.get(name, 0.0) + amount for name, amount in more.items()})
        notes = part(each, "metadata", "annotations") or {}
        group = next((notes[name] for name in GROUP_NOTES if name in notes), None)
        if group is None:
            others.append(pod)
        else:
            found.setdefault(f"{part(each, 'metadata', 'namespace')}/{group}", []).append(pod)
    return found, others


def _has_failed(bind: Document) -> bool:
    """Whether KAI has given up a binding, so that the pod waits again."""
    if part(bind, "status", "phase") != "Failed":
        return False
    most = part(bind, "spec", "backoffLimit")
    tried = whole("status.failedAttempts", part(bind, "status", "failedAttempts"), 0)
    return most is None or tried >= whole("spec.backoffLimit", most, 0)


def _pod(source: str, document: Document, hosts: Hosts, bound: Mapping[str, str]) -> Pod:
    name = named(document)
    need = needs_of(f"Pod {name}", document)
    spec = document.get("spec")
    node = str(part(document, "spec", "nodeName") or bound.get(name) or "")
    pod = Pod(name, need, hosts.reach(spec), node)
    notes = part(document, "metadata", "annotations") or {}
    pod.task = str(notes.get(TASK) or "")
    priority = part(document, "spec", "priority")
    pod.priority = priority if isinstance(priority, int) and not isinstance(priority, bool) else 0
    if not node:
        pod.held, pod.unclear = held_back(document), unread(spec)
        scheduler = str(part(document, "spec", "schedulerName") or source)
        if not pod.unclear and source not in scheduler:
            pod.unclear = f"it waits for another scheduler, {scheduler}"
        if source == "volcano" and notes.get(NUMA) not in (None, "", "none"):
            pod.unclear = "places within a node (numa-topology-policy) are not modelled"
        if any(each in need for each in PARTS):
            pod.unclear = "parts of GPUs (volcano.sh/vgpu, gpu-memory) are not modelled"
    if source == "kai" and not any(need.get(each) for each in GPUS):
        pod.portion, pod.memory, pod.devices = shared_of(f"Pod {name}: annotation", notes)
    return pod


def _share_gpus(hosts: Hosts, pods: Mapping[str, list[Pod]], loose: Sequence[Pod], kinds: Kinds, device: str) -> None:
    """Set the nodes' GPUs, in every arrangement of the parts that are in use."""
    groups = {named(each): each for each in kinds.get("Pod", []) if isinstance(part(each, "metadata", "name"), str)}
    on: dict[str, list[Pod]] = {}
    reserving: dict[str, list[Document]] = {}
    for each in kinds.get("Pod", []):
        if is_reservation(each) and part(each, "status", "phase") not in ENDED:
            reserving.setdefault(str(part(each, "spec", "nodeName")), []).append(each)
    for pod in [*loose, *(each for members in pods.values() for each in members)]:
        if pod.node in hosts.all:
            on.setdefault(pod.node, []).append(pod)
    for name, host in hosts.all.items():
        node = host.node
        count = int(node.total.get(device, 0.0))
        if count <= 0:
            continue
        node.device, node.device_memory = device, memory_of(host.labels)
        whole_ones = sum(pod.need.get(device, 0.0) for pod in on.get(name, []))
        node.devices = arrangements(
            count,
            math.ceil(whole_ones),
            [
                (pod.part_of(node.device_memory), pod.devices, groups[pod.name])
                for pod in on.get(name, [])
                if pod.devices
            ],
        )
        if is_idle_reserved([groups[pod.name] for pod in on.get(name, []) if pod.devices], reserving.get(name, [])):
            node.unclear = node.unclear or "a GPU of it is reserved for parts that no pod uses"
        free = max(map(sum, node.devices))
        node.free[device] = min(map(sum, node.devices))
        node.maybe[device] = free - node.free[device]


def _taken(pod: Pod, kept: Kept) -> dict[str, float]:
    """Return what a pod on a node takes of quotas."""
    host = kept.hosts.all.get(pod.node)
    return pod.amounts(host.node.device_memory if host else 0.0, kept.device)


# Groups ---------------------------------------------------------------------------------------------------------------


def _running(document: Document, pods: list[Pod], kept: Kept) -> tuple[Document, list[Pod], str, int] | None:
    """Count what a group holds; return the group with its queue and priority, or None if it has ended."""
    view = kept.view
    phase = part(document, "status", "phase")
    if phase in ("Completed", "Succeeded", "Failed"):
        return None
    queue = str(part(document, "spec", "queue") or "default")
    if queue not in view.tree.queues:
        raise ViewError(f"its queue {queue!r} is not among the documents, or has others below it")
    name_of_class = str(part(document, "spec", "priorityClassName") or "")
    priority = kept.classes.get(name_of_class)
    if priority is None:
        priority = max([DEFAULT_PRIORITY[kept.source], *(pod.priority for pod in pods)])
    came = unix_time("metadata.creationTimestamp", part(document, "metadata", "creationTimestamp"))
    placed = [pod for pod in pods if pod.node]
    if not pods and not part(document, "spec", "minResources"):
        raise ViewError("it has no pods and no spec.minResources")
    if placed:
        took: dict[Share, float] = {}
        for pod in placed:
            for name, amount in _taken(pod, kept).items():
                if name in kept.names and amount > 0.0:
                    took[FLAVOR, name] = took.get((FLAVOR, name), 0.0) + amount
        started = math.nan
        for each in entries("status.conditions", part(document, "status", "conditions")):
            if isinstance(each, dict) and each.get("type") in ("Scheduled", "Running"):
                started = unix_time("lastTransitionTime", each.get("lastTransitionTime"))
        view.tree.use(queue, took)
        view.jobs.append(
            WatchedJob(named(document), queue, priority, (took,), True, came, started, pod=_largest(placed, kept))
        )
    return document, pods, queue, priority


def _largest(pods: Sequence[Pod], kept: Kept) -> dict[str, float]:
    every = [_taken(pod, kept) for pod in pods]
    return {name: max((need.get(name, 0.0) for need in every), default=0.0) for name in kept.names}


def _waiting(document: Document, pods: list[Pod], queue: str, priority: int, kept: Kept) -> list[WatchedJob]:
    """Return what of a group waits: the pods that must start together, and each of the others."""
    name = named(document)
    came = unix_time("metadata.creationTimestamp", part(document, "metadata", "creationTimestamp"))
    least = whole("spec.minMember", part(document, "spec", "minMember"), 1)
    placed = [pod for pod in pods if pod.node]
    waiting = [pod for pod in pods if not pod.node]
    stopped = kept.closed.get(queue, "") or (
        "it is being deleted" if part(document, "metadata", "deletionTimestamp") else ""
    )
    if part(document, "spec", "schedulingBackoff") == 1 and part(document, "status", "schedulingConditions"):
        stopped = stopped or "the scheduler does not try it again (schedulingBackoff)"
    unclear = kept.unclear.get(queue, "") or _unread(document)

    def job(key: str, members: Sequence[Pod], held: str = "", unsure: str = "", after: str = "") -> WatchedJob:
        ways = _ways(document, members, queue, priority, kept)
        need = _sum(members, ways, kept)
        held = held or stopped or next((pod.held for pod in members if pod.held), "")
        unsure = unsure or unclear or next((pod.unclear for pod in members if pod.unclear), "")
        if not ways and not unsure:
            unsure = f"the memory of the nodes' GPUs is not told (label {MEMORY_LABEL})"
        return WatchedJob(
            key,
            queue,
            priority,
            (need,),
            False,
            came,
            held=held,
            pod=_largest(members, kept),
            ways=ways,
            unclear=unsure,
            after=after,
        )

    if not pods:
        least_of = amounts("spec.minResources", part(document, "spec", "minResources"))
        need = {key: value for key, value in least_of.items() if value > 0.0}
        note = "selectors, tolerations and sizes of pods that do not exist yet"
        if note not in kept.view.not_modelled:
            kept.view.not_modelled.append(note)
        bare = Pod(name, {**need, PODS: max(need.get(PODS, 0.0), float(max(least, 1)))}, kept.hosts.reach({}))
        whole_fits = any(
            host.node.is_sure()
            and all(host.node.free.get(key, 0.0) + 1e-9 >= value for key, value in bare.need.items())
            for key_name, host in kept.hosts.all.items()
            if key_name in bare.reach
        )
        apart = "its pods do not exist yet, and do not fit one node together"
        found = job(name, [bare], unsure=apart if least > 1 and not whole_fits else "")
        # its pods may tolerate more, and its amounts be dealt to nodes in any way: the bound has them in all
        return [replace(found, ways=(*found.ways, *(replace(way, pods=(), unclear=note) for way in found.ways)))]
    if not waiting:
        return []
    needed = max(0, least - len(placed))
    tasks = {
        str(task): whole("spec.minTaskMember", count, 0)
        for task, count in (part(document, "spec", "minTaskMember") or {}).items()
    }
    gang = _gang(waiting, placed, needed, tasks)
    if gang is None:
        exist = f"only {len(placed) + sum(not pod.held for pod in waiting)} of its {least} pods can start"
        held = next((pod.held for pod in waiting if pod.held), "") or exist
        return [job(name, waiting, held)]
    rest = [pod for pod in waiting if pod not in gang]
    found_jobs = [job(name, gang)] if gang else []
    found_jobs += [job(pod.name, [pod], after=name if gang else "") for pod in rest]
    return found_jobs


def _unread(document: Document) -> str:
    for path in (("networkTopology",), ("subGroupPolicy",), ("subGroups",), ("minSubGroup",), ("topologyConstraint",)):
        value = part(document, "spec", *path)
        if value and not (path == ("networkTopology",) and part(document, "spec", "networkTopology", "mode") == "soft"):
            return f"spec.{path[0]} is not modelled"
    return ""


def _gang(waiting: Sequence[Pod], placed: Sequence[Pod], needed: int, tasks: Mapping[str, int]) -> list[Pod] | None:
    """Return the pods that must start together, the smallest where there is a choice; None if there are too few."""
    free = sorted((pod for pod in waiting if not pod.held), key=lambda pod: (sum(pod.need.values()), pod.name))
    gang: list[Pod] = []
    for task, count in tasks.items():
        missing = count - sum(pod.task == task for pod in placed)
        if missing > 0:
            own = [pod for pod in free if pod.task == task]
            if len(own) < missing:
                return None
            gang += own[:missing]
    left = [pod for pod in free if pod not in gang]
    more = needed - len(gang)
    if more > len(left):
        return None
    return gang + left[: max(more, 0)]


def _sum(members: Sequence[Pod], ways: Sequence[Way], kept: Kept) -> dict[Share, float]:
    if ways:
        return {share: amount for share, amount in ways[0].amounts.items() if share[1] in kept.names}
    total: dict[Share, float] = {}
    for pod in members:
        for name, amount in pod.need.items():
            if name in kept.names:
                total[FLAVOR, name] = total.get((FLAVOR, name), 0.0) + amount
    return total


def _ways(document: Document, members: Sequence[Pod], queue: str, priority: int, kept: Kept) -> tuple[Way, ...]:
    """Return the ways in which pods start together: one, or for each size of GPUs one, if they ask for GPU memory."""
    sizes = [0.0]
    if any(pod.memory for pod in members):
        sizes = sorted({host.node.device_memory for host in kept.hosts.all.values() if host.node.device_memory})
    ways = []
    for size in sizes:
        groups: dict[Any, Pods] = {}
        amounts_of: dict[Share, float] = {}
        total: dict[str, float] = {}
        for pod in members:
            reach = pod.reach
            if pod.memory:
                reach = frozenset(name for name in reach if kept.hosts.all[name].node.device_memory == size)
            key = tuple(sorted(pod.need.items())), reach, pod.portion, pod.memory, pod.devices
            before = groups.get(key)
            groups[key] = Pods(
                1 + (before.count if before else 0),
                pod.need,
                reach,
                portion=pod.portion,
                portion_memory=pod.memory,
                devices=pod.devices,
            )
            for name, amount in pod.amounts(size, kept.device).items():
                amounts_of[FLAVOR, name] = amounts_of.get((FLAVOR, name), 0.0) + amount
                total[name] = total.get(name, 0.0) + amount
        if part(document, "status", "phase") == "Pending" and kept.source == "volcano":
            # a group is let in only if what it asks for at least is there
            for name, amount in amounts("spec.minResources", part(document, "spec", "minResources")).items():
                if (FLAVOR, name) in amounts_of:
                    amounts_of[FLAVOR, name] = max(amounts_of[FLAVOR, name], amount)
        counts = _fixed_counts(queue, total, kept) if kept.source == "kai" and _is_fixed(document, priority) else {}
        ways.append(Way(queue, amounts_of, tuple(groups.values()), counts))
    return tuple(ways)
