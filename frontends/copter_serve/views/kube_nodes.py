"""Reads nodes of Kubernetes, and the rules of a pod's specification about the nodes on which it may run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from copter_serve.queues import QueueError
from copter_serve.views.documents import Document, amounts, entries, named, part, pod_requests
from copter_serve.views.starts import Node
from copter_serve.views.view import ViewError

KEEPING_OUT = ("NoSchedule", "NoExecute")  # effects of taints that keep pods out
PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
HOSTNAME = "kubernetes.io/hostname"  # label by which each node is a domain of its own
ENDED = ("Succeeded", "Failed")
PODS = "pods"  # resource of which each pod takes one
MOST_PODS = 110.0  # pods of a node that does not say how many


@dataclass(slots=True)
class Host:
    """A node's labels and taints beside its room."""

    node: Node
    labels: Mapping[str, str]
    taints: list[Mapping[str, Any]] = field(default_factory=list)


def host_of(document: Document) -> Host:
    """Return a node with all its room free; QueueError for amounts that cannot be read."""
    name = named(document)
    status = part(document, "status") or {}
    told = status.get("allocatable") if status.get("allocatable") is not None else status.get("capacity")
    total = amounts(f"Node {name}", told)
    total.setdefault(PODS, MOST_PODS)
    node = Node(name, dict(total), dict(total))
    labels = {str(key): str(value) for key, value in (part(document, "metadata", "labels") or {}).items()}
    taints: list[Mapping[str, Any]] = [
        each for each in entries(f"Node {name}: taints", part(document, "spec", "taints")) if isinstance(each, dict)
    ]
    for each in entries(f"Node {name}: conditions", part(document, "status", "conditions")):
        kind, value = part({"at": each}, "at", "type"), part({"at": each}, "at", "status")
        if kind == "Ready" and value != "True":
            node.closed = "it is not ready"
        elif kind in PRESSURES and value == "True":
            taints.append({"key": PRESSURES[str(kind)], "effect": "NoSchedule"})
    if part(document, "spec", "unschedulable"):
        node.closed = node.closed or "it is unschedulable"
    if part(document, "metadata", "deletionTimestamp"):
        node.closed = node.closed or "it is being deleted"
    return Host(node, labels, taints)


def needs_of(where: str, pod: Document) -> dict[str, float]:
    """Return what a pod takes of a node: its requests, and one of the node's pods."""
    need = {name: amount for name, amount in pod_requests(where, part(pod, "spec")).items() if amount > 0.0}
    return need | {PODS: 1.0}


def resized(where: str, pod: Document) -> dict[str, float]:
    """Return what the containers of a placed pod hold beyond their requests, as one that is resized in place does."""
    held: dict[str, float] = {}
    wanted = {
        part({"at": each}, "at", "name"): amounts(where, part({"at": each}, "at", "resources", "requests"))
        for each in entries(f"{where}: containers", part(pod, "spec", "containers"))
    }
    for each in entries(f"{where}: containerStatuses", part(pod, "status", "containerStatuses")):
        at = {"at": each}
        before = wanted.get(part(at, "at", "name"), {})
        told = [amounts(where, part(at, "at", *path)) for path in (("allocatedResources",), ("resources", "requests"))]
        for name in {*told[0], *told[1]}:
            more = max(one.get(name, 0.0) for one in told) - before.get(name, 0.0)
            if name in before and more > 0.0:
                held[name] = held.get(name, 0.0) + more
    return held


def occupy(hosts: Mapping[str, Host], name: str, need: Mapping[str, float]) -> None:
    """Lower a node's room by a pod on it."""
    free = hosts[name].node.free
    for resource, amount in need.items():
        if resource in free:
            free[resource] -= amount


def tolerates(tolerations: Sequence[Any], taint: Mapping[str, Any]) -> bool:
    """Whether one of the tolerations admits a taint."""
    for each in tolerations:
        if not isinstance(each, dict):
            continue
        if each.get("effect") and each["effect"] != taint.get("effect"):
            continue
        key, how = each.get("key") or "", each.get("operator") or "Equal"
        if how == "Exists":
            if not key or key == taint.get("key"):
                return True
        elif (
            how == "Equal" and key == taint.get("key") and str(each.get("value") or "") == str(taint.get("value") or "")
        ):
            return True
    return False


def keeps_out(taints: Sequence[Mapping[str, Any]], tolerations: Sequence[Any]) -> bool:
    """Whether one of the taints keeps a pod with these tolerations out."""
    return any(each.get("effect") in KEEPING_OUT and not tolerates(tolerations, each) for each in taints)


def matches(expression: Any, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy an expression of a node selector; ViewError for an unknown operator."""
    key, how = str(part({"at": expression}, "at", "key")), part({"at": expression}, "at", "operator")
    values = [str(each) for each in entries("nodeAffinity.values", part({"at": expression}, "at", "values"))]
    has = labels.get(key)
    if how == "In":
        return has in values
    if how == "NotIn":
        return has not in values
    if how == "Exists":
        return key in labels
    if how == "DoesNotExist":
        return key not in labels
    if how in ("Gt", "Lt"):
        try:
            return has is not None and (int(has) > int(values[0]) if how == "Gt" else int(has) < int(values[0]))
        except (ValueError, IndexError):
            return False
    raise ViewError(f"nodeAffinity has the operator {how!r}")


def terms_of(spec: Any) -> list[Any] | None:
    """Return the terms of a pod's required node affinity, of which one must hold; None without one."""
    required = part(
        {"spec": spec}, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required is None:
        return None
    return entries("nodeAffinity.nodeSelectorTerms", part({"at": required}, "at", "nodeSelectorTerms"))


def admits(host: Host, spec: Any) -> bool:
    """Whether a node's name, labels and taints admit a pod of this specification."""
    at = {"spec": spec}
    selector = part(at, "spec", "nodeSelector") or {}
    if any(host.labels.get(str(key)) != str(value) for key, value in selector.items()):
        return False
    terms = terms_of(spec)
    if terms is not None and not any(_term(term, host) for term in terms):
        return False
    return not keeps_out(host.taints, entries("tolerations", part(at, "spec", "tolerations")))


def _term(term: Any, host: Host) -> bool:
    expressions = entries("matchExpressions", part({"at": term}, "at", "matchExpressions"))
    names = entries("matchFields", part({"at": term}, "at", "matchFields"))
    if not expressions and not names:
        return False  # an empty term matches nothing
    return all(matches(each, host.labels) for each in expressions) and all(
        matches(each, {"metadata.name": host.node.name}) for each in names
    )


def unread(spec: Any) -> str:
    """Return what decides where a pod may run and is not modelled; empty if there is nothing."""
    at = {"spec": spec}
    affinity = part(at, "spec", "affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if part({"at": affinity}, "at", kind, "requiredDuringSchedulingIgnoredDuringExecution"):
            return f"{kind} is not modelled"
    for each in entries("topologySpreadConstraints", part(at, "spec", "topologySpreadConstraints")):
        if part({"at": each}, "at", "whenUnsatisfiable") != "ScheduleAnyway":
            return "topologySpreadConstraints are not modelled"
    if entries("resourceClaims", part(at, "spec", "resourceClaims")):
        return "resourceClaims are not modelled"
    for each in entries("volumes", part(at, "spec", "volumes")):
        for kind in (
            "persistentVolumeClaim",
            "ephemeral",
            "awsElasticBlockStore",
            "gcePersistentDisk",
            "azureDisk",
            "iscsi",
            "rbd",
        ):
            if part({"at": each}, "at", kind) is not None:
                return f"volumes ({kind}) are not modelled"
    if part(at, "spec", "os", "name") not in (None, "linux"):
        return "operating systems of nodes are not modelled"
    own = part(at, "spec", "hostNetwork") is True  # then each port is one of the node
    for key in ("containers", "initContainers"):
        for each in entries(key, part(at, "spec", key)):
            for port in entries("ports", part({"at": each}, "at", "ports")):
                if own or part({"at": port}, "at", "hostPort"):
                    return "ports of nodes (hostPort) are not modelled"
    return ""


def keep_apart(pods: Sequence[Document], hosts: Mapping[str, Host]) -> None:
    """Mark the nodes around pods whose required anti-affinity keeps a waiting pod away: who may start there is unclear.

    A pod that is already placed keeps others out of its domain, too, by its own rule about their labels.
    """
    waiting = [
        (part(each, "metadata", "namespace"), part(each, "metadata", "labels") or {})
        for each in pods
        if not part(each, "spec", "nodeName") and part(each, "status", "phase") not in ENDED
    ]
    for each in pods:
        own, at = part(each, "metadata", "namespace"), hosts.get(str(part(each, "spec", "nodeName") or ""))
        if at is None or part(each, "status", "phase") in ENDED:
            continue
        rules = part(each, "spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
        for term in entries("podAntiAffinity", rules):
            key, inside = part({"at": term}, "at", "topologyKey"), {"at": term}
            spaces = [own] if not part(inside, "at", "namespaces") else part(inside, "at", "namespaces")
            anywhere = part(inside, "at", "namespaceSelector") is not None
            if not any(
                (anywhere or space in spaces) and selects(part(inside, "at", "labelSelector"), labels)
                for space, labels in waiting
            ):
                continue
            for host in hosts.values():
                same = host is at or (key != HOSTNAME and host.labels.get(str(key)) == at.labels.get(str(key)))
                if same and not host.node.closed:
                    host.node.unclear = host.node.unclear or f"the anti-affinity of {named(each)} keeps pods out"


def selects(selector: Any, labels: Mapping[str, Any]) -> bool:
    """Whether a label selector matches labels; none matches nothing, an empty one everything."""
    if not isinstance(selector, dict):
        return False
    wanted = [
        {"key": key, "operator": "In", "values": [value]} for key, value in (selector.get("matchLabels") or {}).items()
    ] + entries("matchExpressions", selector.get("matchExpressions"))
    return all(matches(each, {str(key): str(value) for key, value in labels.items()}) for each in wanted)


def held_back(pod: Document) -> str:
    """Return why a pod does not start even if there is room; empty if it may."""
    gates = [
        str(part({"at": each}, "at", "name"))
        for each in entries("schedulingGates", part(pod, "spec", "schedulingGates"))
    ]
    if gates:
        return f"gated by {', '.join(gates)}"
    return "it is being deleted" if part(pod, "metadata", "deletionTimestamp") else ""


def key_of(spec: Any) -> str:
    """Return a key that is equal for specifications with equal rules about nodes."""
    at = {"spec": spec}
    return repr([part(at, "spec", name) for name in ("nodeSelector", "tolerations")] + [terms_of(spec)])


class Hosts:
    """All nodes, and the sets of them that pods' rules admit.

    Parameters
    ----------
    documents : sequence of Document
    skipped : list of str
        A line is added for each node that cannot be read.
    """

    def __init__(self, documents: Sequence[Document], skipped: list[str]) -> None:
        self.all: dict[str, Host] = {}
        self._reach: dict[str, frozenset[str]] = {}
        for each in documents:
            try:
                host = host_of(each)
            except QueueError as error:
                skipped.append(f"{error}: left out")
                continue
            self.all[host.node.name] = host

    def reach(self, spec: Any) -> frozenset[str]:
        """Return the names of the nodes that admit a pod of this specification."""
        key = key_of(spec)
        if key not in self._reach:
            self._reach[key] = frozenset(name for name, host in self.all.items() if admits(host, spec))
        return self._reach[key]
