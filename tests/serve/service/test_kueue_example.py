"""The example controller between a real service and an API server that behaves as Kubernetes's."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from served import ROOT, Served

OTHER = {"name": "provisioning", "state": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""}


def workload(name: str, pods: int, gpus: int, reserved: bool = True, **notes: str) -> dict[str, Any]:
    """A workload of Kueue; v1beta1 and v1beta2 are alike in these fields."""
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}]}}
    checks = [
        OTHER,
        {"name": "copter", "state": "Pending", "lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""},
    ]
    return {
        "metadata": {
            "name": name, "namespace": "ml", "resourceVersion": "1",
            "annotations": {f"copter.io/{key}": value for key, value in notes.items()},
        },
        "spec": {"podSets": [{"name": "main", "count": pods, "template": template}], "priority": 0},
        "status": {"conditions": [{"type": "QuotaReserved", "status": str(reserved)}], "admissionChecks": checks},
    }  # fmt: skip


class Kubernetes(ThreadingHTTPServer):
    """Lists workloads, and takes merge patches of their status of the version that it has; so for the check."""

    def __init__(self) -> None:
        self.workloads: dict[str, dict[str, Any]] = {}
        self.check: dict[str, Any] = {"metadata": {"name": "copter", "resourceVersion": "1", "generation": 3}}
        self.version = "v1beta2"
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Kubernetes

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def answer(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        base = f"/apis/kueue.x-k8s.io/{self.server.version}"
        known = {
            "/apis/kueue.x-k8s.io": {"preferredVersion": {"version": self.server.version}},
            f"{base}/workloads": {"items": list(self.server.workloads.values())},
            f"{base}/admissionchecks/copter": self.server.check,
        }
        assert self.path in known, self.path
        self.answer(200, known[self.path])

    def do_PATCH(self) -> None:
        patch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["Content-Type"] == "application/merge-patch+json"
        base, _, place = self.path.partition(f"/{self.server.version}/")
        assert base == "/apis/kueue.x-k8s.io"
        assert place.endswith("/status")
        parts = place.split("/")
        found: dict[str, Any] | None = self.server.check
        if parts[:2] != ["admissionchecks", "copter"]:
            assert parts[:3] == ["namespaces", "ml", "workloads"]
            found = self.server.workloads.get(parts[3])
        if found is None:
            self.answer(404, {})
        elif patch["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            self.answer(409, {})
        else:
            found.setdefault("status", {}).update(patch["status"])
            found["metadata"]["resourceVersion"] = str(int(found["metadata"]["resourceVersion"]) + 1)
            self.answer(200, found)


@pytest.fixture
def kubernetes() -> Iterator[Kubernetes]:
    """The API server."""
    with Kubernetes() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_workloads_are_admitted_when_the_plan_has_them(service: Served, kubernetes: Kubernetes) -> None:
    spec = importlib.util.spec_from_file_location(
        "kueue_admission", ROOT / "frontends" / "examples" / "kueue_admission.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    service.make("kueue")
    base = f"http://127.0.0.1:{service.port}/v1/clusters/kueue"
    controller = module.Controller("copter", base, f"http://127.0.0.1:{kubernetes.server_address[1]}")
    speeds = json.dumps({"a100": {"16": 9.0}})
    kubernetes.workloads = {
        "first": workload("first", 2, 8, throughputs=speeds),
        "second": workload("second", 2, 8, throughputs=speeds),
        "unreserved": workload("unreserved", 1, 1, reserved=False),
        "bad": workload("bad", 1, 1, throughputs='{"h900": {"1": 1.0}}'),
        "none": workload("none", 1, 0),
    }

    def states() -> dict[str, str]:
        return {name: each["status"]["admissionChecks"][1]["state"] for name, each in kubernetes.workloads.items()}

    def step_until_ready() -> str:
        """Step until one of the two is admitted; which one: both are worth the same."""
        waiting = [name for name in ("first", "second") if states()[name] == "Pending"]
        Served.until(lambda: controller.step() or any(states()[name] == "Ready" for name in waiting), service.alive)
        return next(name for name in waiting if states()[name] == "Ready")

    one = step_until_ready()
    assert states() == {**dict.fromkeys(kubernetes.workloads, "Pending"), one: "Ready"}
    told = kubernetes.workloads[one]["status"]["admissionChecks"]
    assert told[0] == OTHER
    assert told[1]["podSetUpdates"] == [{"name": "main", "nodeSelector": {"nvidia.com/gpu.product": "a100"}}]
    (active,) = kubernetes.check["status"]["conditions"]
    assert (active["type"], active["status"], active["observedGeneration"]) == ("Active", "True", 3)
    assert kubernetes.check["metadata"]["resourceVersion"] == "2"  # said once
    kubernetes.workloads[one]["status"]["conditions"].append({"type": "Finished", "status": "True"})
    other = step_until_ready()
    assert service.ask("GET", "/v1/clusters/kueue/jobs")[1]["jobs"] == [f"ml/{other}"]
