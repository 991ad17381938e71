"""Kueue's documents as an API server gives them, and a small API server for tests."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GROUP = "kueue.x-k8s.io"
Document = dict[str, Any]
CAME = "2026-11-24T10:00:00Z"
GPU = "nvidia.com/gpu"


def document(kind: str, name: str, spec: Document, version: str = "v1beta2", **more: Any) -> Document:
    meta: Document = {"name": name, "resourceVersion": "1", "creationTimestamp": CAME}
    namespace, _, short = name.rpartition("/")
    if namespace:
        meta |= {"name": short, "namespace": namespace}
    meta |= more.pop("meta", {})
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": meta | more.pop("meta", {}),
        "spec": spec,
        **more,
    }


def cluster_queue(
    name: str, nominal: int, cohort: str | None = None, version: str = "v1beta2", **more: Any
) -> Document:
    quota: Document = {"name": GPU, "nominalQuota": str(nominal)} | more.pop("limits", {})
    spec: Document = {
        "resourceGroups": [{"coveredResources": [GPU], "flavors": [{"name": "a100", "resources": [quota]}]}],
        **more,
    }
    if cohort is not None:
        spec["cohortName" if version == "v1beta2" else "cohort"] = cohort
    return document("ClusterQueue", name, spec, version)


def local_queue(name: str, queue: str, version: str = "v1beta2") -> Document:
    return document("LocalQueue", name, {"clusterQueue": queue}, version)


def workload(name: str, gpus: int, queue: str = "main", version: str = "v1beta2", **more: Any) -> Document:
    notes, admitted = more.pop("annotations", {}), more.pop("admitted", None)
    status: Document = more.pop("status", {})
    pods = {"containers": [{"name": "c", "resources": {"requests": {GPU: str(gpus)}}}]}
    spec: Document = {"podSets": [{"name": "main", "count": 1, "template": {"spec": pods}}], "queueName": queue}
    spec |= {"priority": more.pop("priority", 0)}
    if admitted is not None:
        at = more.pop("started", CAME)
        status = status | {
            "admission": {
                "clusterQueue": admitted,
                "podSetAssignments": [
                    {"name": "main", "count": 1, "flavors": {GPU: "a100"}, "resourceUsage": {GPU: str(gpus)}}
                ],
            },
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": at} for kind in ("QuotaReserved", "Admitted")
            ],
        }
    return document("Workload", name, spec | more, version, status=status, meta={"annotations": notes})


def two_teams(version: str = "v1beta2") -> list[Document]:
    """Teams of 8 GPUs each; red borrows 4 of blue's while blue's own job of 8 waits, and one of 2 could start."""
    return [
        document("ResourceFlavor", "a100", {}, version),
        cluster_queue("red", 8, "lab", version),
        cluster_queue("blue", 8, "lab", version),
        local_queue("r/main", "red", version),
        local_queue("b/main", "blue", version),
        workload("r/big", 12, version=version, admitted="red", priority=1, started="2026-11-24T11:00:00Z"),
        workload("b/own", 8, version=version, priority=5),
        workload("b/small", 2, version=version),
    ]


def sharing_teams(version: str = "v1beta2", **weights: int | str) -> list[Document]:
    """Two teams of 4 GPUs that share 8 more; red uses 10 in jobs of 2, and blue has 4 such jobs that wait."""
    quota = [{"name": "a100", "resources": [{"name": GPU, "nominalQuota": "8"}]}]
    groups = {"resourceGroups": [{"coveredResources": [GPU], "flavors": quota}]}
    queues = [
        cluster_queue(
            name,
            4,
            "lab",
            version,
            fairSharing={"weight": weights.get(name, 1)},
            preemption={"reclaimWithinCohort": "Any"},
        )
        for name in ("red", "blue")
    ]
    for each in queues:
        each["status"] = {"fairSharing": {"weightedShare": 0}}
    return [
        document("Cohort", "lab", groups, version),
        *queues,
        local_queue("r/main", "red", version),
        local_queue("b/main", "blue", version),
        *(workload(f"r/{at}", 2, version=version, admitted="red", priority=5) for at in range(5)),
        workload("r/more", 2, version=version, priority=9),
        *(workload(f"b/{at}", 2, version=version) for at in range(4)),
    ]


def pod(name: str, group: str, gpus: int, node: str | None = None, note: str = "pod-group-name") -> Document:
    spec: Document = {"containers": [{"resources": {"requests": {GPU: gpus}}}]}
    meta = {"name": name, "namespace": "ns", "annotations": {note: group}}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec | ({"nodeName": node} if node else {}),
            "status": {"phase": "Running" if node else "Pending"}}  # fmt: skip


def node(name: str, gpus: int) -> Document:
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name},
            "status": {"allocatable": {GPU: str(gpus), "cpu": "64"}}}  # fmt: skip


def group(name: str, queue: str, version: str) -> Document:
    meta = {"name": name, "namespace": "ns", "creationTimestamp": "2026-11-24T10:00:00Z"}
    return {"kind": "PodGroup", "apiVersion": version, "metadata": meta, "spec": {"queue": queue, "minMember": 1}}


PLURALS = {
    "cohorts": "Cohort", "clusterqueues": "ClusterQueue", "localqueues": "LocalQueue", "workloads": "Workload",
    "resourceflavors": "ResourceFlavor", "admissionchecks": "AdmissionCheck", "jobs": "Job",
    "pods": "Pod", "multikueueclusters": "MultiKueueCluster", "multikueueconfigs": "MultiKueueConfig",
}  # fmt: skip


def merged(into: Any, patch: Any) -> Any:
    """A merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    found = dict(into) if isinstance(into, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


class FakeApi:
    """Documents by kind and name; lists in pages of two, merge patches, conflicts by resourceVersion."""

    def __init__(self, documents: list[Document], versions: tuple[str, ...] = ("v1beta2", "v1beta1")) -> None:
        self.documents = copy.deepcopy(documents)
        self.versions = versions
        self.patches: list[tuple[str, Document]] = []
        self.broken = False
        self.refused: dict[str, int] = {}  # status of each change of an object with this name

    def find(self, kind: str, name: str) -> Document:
        """A document by kind and namespace/name."""
        for each in self.documents:
            meta = each["metadata"]
            if each["kind"] == kind and name in (meta["name"], f"{meta.get('namespace')}/{meta['name']}"):
                return each
        raise KeyError(name)

    def get(self, path: str) -> tuple[int, Any]:
        """The answer to GET."""
        path, _, query = path.partition("?")
        parts = path.strip("/").split("/")
        if self.broken:
            return 503, {}
        if path == "/apis/":
            versions = [{"version": each, "groupVersion": f"{GROUP}/{each}"} for each in self.versions]
            group = {"name": GROUP, "preferredVersion": versions[0], "versions": versions}
            return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}
        if path == f"/apis/{GROUP}":
            versions = [{"version": each} for each in self.versions]
            return 200, {"preferredVersion": versions[0], "versions": versions}
        if parts[-1] in PLURALS:
            kind = PLURALS[parts[-1]]
            found = [each for each in self.documents if each["kind"] == kind]
            asked = dict(each.split("=") for each in query.split("&") if "=" in each)
            at = int(asked.get("continue", 0))
            more = str(at + 2) if at + 2 < len(found) else ""
            items = [
                {key: each[key] for key in each if key not in ("kind", "apiVersion")} for each in found[at : at + 2]
            ]
            listed = {"kind": f"{kind}List", "apiVersion": f"{parts[1]}/{parts[2]}", "items": items}
            return 200, listed | {"metadata": {"continue": more}}
        try:
            return 200, self._at(parts)
        except KeyError:
            return 404, {}

    def _at(self, parts: list[str]) -> Document:
        parts = parts[:-1] if parts[-1] == "status" else parts
        if parts[:2] != (["api", "v1"] if parts[-2] == "pods" else ["apis", parts[1]]):
            raise KeyError(parts)  # the core API and groups have paths of their own
        namespace = f"{parts[parts.index('namespaces') + 1]}/" if "namespaces" in parts else ""
        return self.find(PLURALS[parts[-2]], f"{namespace}{parts[-1]}")

    def patch(self, path: str, patch: Document) -> tuple[int, Any]:
        """The answer to PATCH."""
        try:
            found = self._at(path.partition("?")[0].strip("/").split("/"))
        except KeyError:
            return 404, {}
        if found["metadata"]["name"] in self.refused:
            return self.refused[found["metadata"]["name"]], {"message": "admission webhook denied the request"}
        version = patch.get("metadata", {}).get("resourceVersion")
        if version not in (None, found["metadata"]["resourceVersion"]):
            return 409, {}
        self.patches.append((path, patch))
        number = str(int(found["metadata"]["resourceVersion"]) + 1)
        found.update(merged(found, patch))
        found["metadata"]["resourceVersion"] = number
        return 200, found


@contextmanager
def served(api: FakeApi) -> Iterator[str]:
    """The API server over HTTP; its address."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.answer(*api.get(self.path))

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers["Content-Type"] != "application/merge-patch+json":
                return self.answer(415, {})
            self.answer(*api.patch(self.path, body))

        def log_message(self, form: str, *values: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
