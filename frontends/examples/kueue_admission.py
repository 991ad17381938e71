"""A controller for Kueue's admission checks: a workload is admitted when copter's plan gives it GPUs.

    python frontends/examples/kueue_admission.py --check copter --service http://127.0.0.1:8470/v1/clusters/main \\
        --kubernetes http://127.0.0.1:8001

`kubectl proxy` serves the second address. The AdmissionCheck named by --check has the controllerName
"copter.io/admission" and is listed in the ClusterQueue. The controller marks the check as active; otherwise Kueue
admits nothing from that queue. In every step it reads the workloads that have a quota reservation and wait for this
check, reports arrivals and departures to copter, and writes each workload's state: Ready with a node selector for the
GPU type of the plan, or Pending. A workload's speeds are in its annotation copter.io/throughputs, {"TYPE": {"GPUs":
speed}}, and its weight in copter.io/weight.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from datetime import datetime, timezone
from typing import Any

GPU, LABEL = "nvidia.com/gpu", "nvidia.com/gpu.product"
GROUP = "/apis/kueue.x-k8s.io"
MERGE = "application/merge-patch+json"
PERIOD_S = 2.0


def ask(method: str, url: str, document: Any = None, kind: str = "application/json", token: str = "") -> Any:
    """Send a request and return the JSON of the answer; raises HTTPError for a refusal."""
    headers = {"Content-Type": kind, "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    body = None if document is None else json.dumps(document).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), timeout=10) as answer:
        return json.loads(answer.read() or b"null")


def gpus_of(workload: dict[str, Any]) -> int:
    """Return the number of GPUs of all pods of a workload."""
    total = 0
    for pods in workload["spec"]["podSets"]:
        for container in pods["template"]["spec"].get("containers", []):
            resources = container.get("resources", {})
            wanted = resources.get("requests", {}).get(GPU, resources.get("limits", {}).get(GPU, 0))
            total += int(pods.get("count", 1)) * int(wanted)
    return total


def job_of(workload: dict[str, Any]) -> dict[str, Any]:
    """Return a workload as a job of copter's service."""
    notes, gpus = workload["metadata"].get("annotations", {}), gpus_of(workload)
    job: dict[str, Any] = {"id": name_of(workload), "gpus": gpus, "min_gpus": gpus, "preemptible": False}
    job["weight"] = float(notes.get("copter.io/weight", 1.0 + max(workload["spec"].get("priority", 0), 0)))
    if "copter.io/throughputs" in notes:
        job["throughputs"] = json.loads(notes["copter.io/throughputs"])
    return job


def name_of(workload: dict[str, Any]) -> str:
    """Return namespace and name of a workload."""
    return f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"


def holds(workload: dict[str, Any], condition: str) -> bool:
    """Return whether a condition of a workload is true."""
    conditions = workload.get("status", {}).get("conditions", [])
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def now() -> str:
    """Return the time in Kubernetes's format."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Controller:
    """Keeps copter's jobs and Kueue's workloads consistent.

    Parameters
    ----------
    check : str
        Name of the AdmissionCheck.
    service : str
        Address of the cluster in copter's service.
    kubernetes : str
        Address of Kubernetes's API.
    token : str
        Token for the service, if it requires one.
    """

    def __init__(self, check: str, service: str, kubernetes: str, token: str = "") -> None:
        self.check, self.service, self.kubernetes, self.token = check, service, kubernetes, token
        self._api = ""

    @property
    def api(self) -> str:
        """Return the address of Kueue's API in the cluster's preferred version (v1beta1 or v1beta2)."""
        if not self._api:
            version = ask("GET", self.kubernetes + GROUP)["preferredVersion"]["version"]
            self._api = f"{self.kubernetes}{GROUP}/{version}"
        return self._api

    def activate(self) -> bool:
        """Mark the check as active; returns whether it was not marked before."""
        address = f"{self.api}/admissionchecks/{self.check}"
        found = ask("GET", address)
        conditions = found.get("status", {}).get("conditions", [])
        if any(each["type"] == "Active" and each["status"] == "True" for each in conditions):
            return False
        active = {
            "type": "Active", "status": "True", "reason": "Active", "message": "copter answers this check",
            "lastTransitionTime": now(), "observedGeneration": found["metadata"].get("generation", 1),
        }  # fmt: skip
        others = [each for each in conditions if each["type"] != "Active"]
        patch = {
            "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
            "status": {"conditions": [*others, active]},
        }
        ask("PATCH", f"{address}/status", patch, MERGE)
        return True

    def step(self) -> int:
        """Do one step; returns the number of workloads whose state changed."""
        self.activate()
        asked = {}
        for workload in ask("GET", f"{self.api}/workloads")["items"]:
            if (
                holds(workload, "QuotaReserved")
                and not holds(workload, "Finished")
                and self.state(workload)
                and gpus_of(workload)
            ):
                asked[name_of(workload)] = workload
        self.tell(asked)
        plan = ask("GET", f"{self.service}/plan", token=self.token)["allocations"]
        return sum(self.write(workload, plan.get(name)) for name, workload in asked.items())

    def tell(self, asked: dict[str, dict[str, Any]]) -> None:
        """Report new and removed workloads to copter; a refused workload does not stop the others."""
        known, after = set(), ""
        while True:
            page = ask("GET", f"{self.service}/jobs?after={after}", token=self.token)
            known.update(page["jobs"])
            if not page["more"]:
                break
            after = page["jobs"][-1]
        deltas: list[dict[str, Any]] = [{"add_jobs": [job_of(asked[name])]} for name in asked if name not in known]
        gone = sorted(known - asked.keys())
        for delta in [{"remove_jobs": gone}] * bool(gone) + deltas:
            try:
                ask("POST", f"{self.service}/deltas", delta, token=self.token)
            except urllib.error.HTTPError as error:
                print(f"copter refused {delta}: {error.read().decode()}", file=sys.stderr)

    def state(self, workload: dict[str, Any]) -> dict[str, Any] | None:
        """Return the workload's entry for this check."""
        checks = workload.get("status", {}).get("admissionChecks", [])
        return next((each for each in checks if each["name"] == self.check), None)

    def write(self, workload: dict[str, Any], given: dict[str, Any] | None) -> bool:
        """Write a workload's state if it has changed; an admitted workload keeps its state."""
        before = self.state(workload) or {}
        wanted = "Ready" if given is not None else "Pending"
        if before.get("state") in (wanted, "Ready"):
            return False
        entry: dict[str, Any] = {
            "name": self.check,
            "state": wanted,
            "lastTransitionTime": now(),
            "message": "in copter's queue",
        }
        if given is not None:
            selector = {LABEL: given["gpu_type"]}
            entry["message"] = f"copter's plan has {given['gpus']} {given['gpu_type']}"
            entry["podSetUpdates"] = [
                {"name": pods["name"], "nodeSelector": selector} for pods in workload["spec"]["podSets"]
            ]
        checks = [entry if each["name"] == self.check else each for each in workload["status"]["admissionChecks"]]
        meta = workload["metadata"]
        place = f"namespaces/{meta['namespace']}/workloads/{meta['name']}/status"
        address = f"{self.api}/{place}"
        patch = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": {"admissionChecks": checks}}
        try:
            ask("PATCH", address, patch, MERGE)
        except urllib.error.HTTPError as error:
            if error.code in (404, 409):  # removed, or changed by another client: the next step reads its new state
                return False
            raise
        return True


def main() -> None:
    """Do steps until stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("check", "service", "kubernetes"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--token", default="")
    asked = parser.parse_args()
    controller = Controller(asked.check, asked.service.rstrip("/"), asked.kubernetes.rstrip("/"), asked.token)
    while True:
        try:
            controller.step()
        except (OSError, ValueError, KeyError) as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        time.sleep(PERIOD_S)


if __name__ == "__main__":
    main()
