"""Volcano's extender plugin against the service: its own documents, as Go writes them, over real HTTP."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from served import Served

from copter_serve.service import volcano
from copter_serve.service.volcano_documents import guarded

A100, T4 = "NVIDIA-A100-SXM4-80GB", "Tesla-T4"
TYPES = {A100: {"nodes": 1, "gpus_per_node": 8}, T4: {"nodes": 0, "gpus_per_node": 4}}
GPU = "nvidia.com/gpu"
FITS = {"code": 0, "errorMessage": ""}


def resource(gpus: int) -> dict[str, Any]:
    """Volcano's Resource: scalars in thousandths."""
    return {"MilliCPU": 4000, "Memory": 1 << 34, "ScalarResources": {GPU: 1000 * gpus, "pods": 1000}, "MaxTaskNum": 0}


def task(job: str, number: int, gpus: int, node: str = "") -> dict[str, Any]:
    """Volcano's TaskInfo; Go writes the embedded TransactionContext flat."""
    return {
        "UID": f"{job}-{number}", "Job": job, "Name": f"pod-{number}", "Namespace": "ml", "TaskRole": "worker",
        "Resreq": resource(gpus), "InitResreq": resource(gpus), "NodeName": node, "EvictionOccurred": False,
        "JobAllocatedHyperNode": "", "Status": 32 if node else 1, "LastTransaction": None, "Priority": 1,
        "VolumeReady": False, "Preemptable": True, "BestEffort": False, "RevocableZone": "", "NumaInfo": None,
        "Pod": {"metadata": {"name": f"pod-{number}", "namespace": "ml", "uid": f"{job}-{number}"}},
    }  # fmt: skip


def job(name: str, pods: int, gpus: int, **annotations: str) -> dict[str, Any]:
    """Volcano's JobInfo."""
    uid = f"ml/{name}"
    notes = {f"copter.io/{key}": value for key, value in annotations.items()}
    return {
        "UID": uid, "PgUID": f"pg-{name}", "Name": name, "Namespace": "ml", "Queue": "default", "Priority": 0,
        "MinAvailable": pods, "WaitingTime": None, "JobFitErrors": "", "NodesFitErrors": {},
        "Tasks": {f"{uid}-{k}": task(uid, k, gpus) for k in range(pods)}, "TaskMinAvailable": {"worker": pods},
        "Allocated": resource(0), "TotalRequest": resource(pods * gpus), "CreationTimestamp": "2026-01-01T00:00:00Z",
        "PodGroup": {"name": name, "namespace": "ml", "annotations": notes, "Spec": {"MinMember": pods}},
        "Preemptable": True, "RevocableZone": "", "Budget": {"MinAvailable": "", "MaxUnavailable": ""},
    }  # fmt: skip


def node(name: str, kind: str, gpus: int, phase: int = 1) -> dict[str, Any]:
    """Volcano's NodeInfo, with Kubernetes's own document in it."""
    return {
        "Name": name, "State": {"Phase": phase, "Reason": ""}, "Idle": resource(gpus), "Used": resource(0),
        "Allocatable": resource(gpus), "Capacity": resource(gpus), "Tasks": {}, "Others": {}, "RevocableZone": "",
        "Node": {
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": kind, "kubernetes.io/hostname": name}},
            "status": {"allocatable": {GPU: str(gpus), "cpu": "64"}},
        },
    }  # fmt: skip


def session(jobs: list[dict[str, Any]], nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """OnSessionOpenRequest."""
    return {
        "Jobs": {each["UID"]: each for each in jobs},
        "Nodes": {each["Name"]: each for each in nodes},
        "Queues": {"default": {"UID": "default", "Name": "default", "Weight": 1}},
        "NamespaceInfo": {}, "RevocableNodes": {}, "NodeList": None,
    }  # fmt: skip


def call(service: Served, name: str, verb: str, document: Any) -> Any:
    """As the plugin calls: POST to the prefix and the verb; only 200 counts, and within a second it should be."""
    status, told, _ = service.ask("POST", f"/v1/clusters/{name}/volcano/{verb}", document)
    assert status == 200, told
    return told


def test_a_session_of_volcano(service: Served) -> None:
    service.make("volcano", types=TYPES)
    nodes = [
        node("gpu-1", A100, 8),
        node("gpu-2", T4, 4),
        node("cpu-1", "none", 0),
        node("odd", T4, 3),
        node("down", T4, 4, 2),
    ]
    speeds = json.dumps({A100: {"8": 10.0, "4": 6.0}, T4: {"4": 1.0}})
    jobs = [job("big", 2, 4, throughputs=speeds), job("small", 1, 4, weight="0.1"), job("cpu", 3, 0)]
    told = call(service, "volcano", "onSessionOpen", session(jobs, nodes))
    assert told["ignored_nodes"] == ["odd"]
    plan = service.plan("volcano", told["sequence"])
    assert plan["capacity"] == {A100: 8, T4: 4}
    assert plan["allocations"] == {
        "ml/big": {"gpu_type": A100, "gpus": 8, "nodes": {"gpu-1": 8}},
        "ml/small": {"gpu_type": T4, "gpus": 4, "nodes": {"gpu-2": 4}},
    }
    assert call(service, "volcano", "jobEnqueueable", {"job": jobs[0]}) == {"status": volcano.PERMIT}
    assert call(service, "volcano", "jobEnqueueable", {"job": job("new", 1, 1)}) == {"status": volcano.ABSTAIN}
    big = task("ml/big", 0, 4)
    scores = call(service, "volcano", "prioritize", {"task": big, "nodes": nodes})
    assert scores == {"nodeScore": {"gpu-1": 100.0, "gpu-2": 0, "cpu-1": 0, "odd": 0, "down": 0}, "errorMessage": ""}
    assert call(service, "volcano", "predicate", {"task": big, "node": nodes[0]}) == FITS
    refused = call(service, "volcano", "predicate", {"task": big, "node": nodes[1]})
    assert refused["code"] == volcano.UNSCHEDULABLE
    assert "other nodes" in refused["status"]
    assert refused["errorMessage"] == refused["status"]  # up to Volcano 1.7
    assert call(service, "volcano", "predicate", {"task": task("ml/x", 0, 1), "node": nodes[1]}) == FITS
    assert call(service, "volcano", "queueOverused", {"queue": {"UID": "default"}}) == {"overused": False}
    assert call(service, "volcano", "jobReady", {"job": jobs[0]}) == {"status": True}
    assert call(service, "volcano", "onSessionClose", {}) == {}

    # A job that is worth more comes; the plan takes another's GPUs away, and the plugin may evict its tasks.
    jobs.append(job("rush", 1, 4, weight="50", throughputs=json.dumps({T4: {"4": 1.0}})))
    told = call(service, "volcano", "onSessionOpen", session(jobs, nodes))
    plan = service.plan("volcano", told["sequence"])
    assert set(plan["allocations"]) == {"ml/big", "ml/rush"}
    evictees = [task("ml/small", 0, 4, "gpu-2"), task("ml/big", 0, 4, "gpu-1"), task("ml/other", 0, 1, "gpu-2")]
    for verb in ("preemptable", "reclaimable"):
        told = call(service, "volcano", verb, {"evictor": task("ml/rush", 0, 4), "evictees": evictees})
        assert told == {"status": volcano.PERMIT, "victims": evictees[:1]}
        told = call(service, "volcano", verb, {"evictor": task("ml/small", 0, 4), "evictees": evictees})
        assert told == {"status": volcano.REJECT, "victims": []}
        told = call(service, "volcano", verb, {"evictor": task("ml/x", 0, 4), "evictees": evictees})
        assert told == {"status": volcano.ABSTAIN, "victims": []}
    assert call(service, "volcano", "jobEnqueueable", {"job": jobs[1]}) == {"status": volcano.REJECT}

    # Jobs and nodes that are gone from the session are gone here.
    told = call(service, "volcano", "onSessionOpen", session(jobs[3:], nodes[1:]))
    plan = service.plan("volcano", told["sequence"])
    assert set(plan["allocations"]) == {"ml/rush"}
    assert plan["capacity"] == {A100: 0, T4: 4}
    again = call(service, "volcano", "onSessionOpen", session(jobs[3:], nodes[1:]))
    assert again["sequence"] == told["sequence"]  # nothing new, nothing journaled


def test_requests_as_the_plugin_sends_them(service: Served) -> None:
    """Whole requests, every field in Go's order and spelling (volcano-sh/volcano, commit ed72c7c, August 2026).

    Written from the plugin's and the scheduler's structures, not recorded from a running scheduler: one job runs on
    eight GPUs and a third task of it has ended, one waits, a node is down, a node has no GPUs; empty lists are null.
    """
    sent = json.loads((Path(__file__).parent / "volcano_requests.json").read_text())
    service.make("recorded", types=TYPES)
    told = call(service, "recorded", "onSessionOpen", sent["onSessionOpen"])
    assert told["ignored_nodes"] == []
    plan = service.plan("recorded", told["sequence"])
    assert plan["capacity"] == {A100: 8, T4: 4}
    assert plan["allocations"] == {
        "ml/resnet": {"gpu_type": A100, "gpus": 8, "nodes": {"gpu-a": 8}},
        "ml/bert": {"gpu_type": T4, "gpus": 4, "nodes": {"gpu-b": 4}},
    }
    assert service.ask("GET", "/v1/clusters/recorded/jobs/ml/resnet")[1]["weight"] == 2
    answers = {verb: call(service, "recorded", verb.partition(",")[0], sent[verb]) for verb in sent}
    assert answers.pop("onSessionOpen")["sequence"] == told["sequence"]
    assert answers == {
        "jobEnqueueable": {"status": volcano.PERMIT},
        "predicate": FITS,
        "prioritize": {
            "nodeScore": {"gpu-a": 0, "gpu-b": 100.0, "gpu-down": 0, "cpu-a": 0},
            "errorMessage": "",
        },
        "preemptable": {"status": volcano.REJECT, "victims": []},
        "preemptable, none": {"status": volcano.REJECT, "victims": []},
        "jobEnqueued": {},
        "jobReady": {"status": True},
        "queueOverused": {"overused": False},
        "allocateFunc": {"errorMessage": ""},
        "deallocateFunc": {"errorMessage": ""},
        "onSessionClose": {},
    }
    assert set(volcano.VERBS) - {verb.partition(",")[0] for verb in sent} == {"reclaimable"}  # as preemptable


def test_requests_recorded_from_volcano(service: Served) -> None:
    """What Volcano's own scheduler sent, over two of its sessions, answered as it was answered then.

    Recorded from volcano-sh/volcano, commit 7a5d24e (May 2023, between 1.7 and 1.8): its cache, session, plugins
    extender, priority, gang and conformance, and actions enqueue, allocate, preempt and reclaim, on four made-up nodes
    and jobs. In the first session it bound ml/bert to gpu-b; in the second it evicted it, as the plan gives gpu-b to
    ml/rush, and kept the node for ml/rush.
    """
    calls = json.loads((Path(__file__).parent / "volcano_recorded.json").read_text())
    assert {each["verb"] for each in calls} >= {"onSessionOpen", "predicate", "prioritize", "preemptable"}
    service.make("volcano", types=TYPES)
    for each in calls:
        told = call(service, "volcano", each["verb"], each["request"])
        assert told == each["response"], (each["session"], each["verb"])
        if each["verb"] == "onSessionOpen":
            service.plan("volcano", told["sequence"])
    victims = next(each["response"]["victims"] for each in calls if each["verb"] == "preemptable")
    assert [victim["Job"] for victim in victims] == ["ml/bert"]
    plan = service.plan("volcano", told.get("sequence", 0))
    assert {job_id: given["nodes"] for job_id, given in plan["allocations"].items()} == {
        "ml/resnet": {"gpu-a": 8},
        "ml/rush": {"gpu-b": 4},
    }


def test_a_job_that_waits_changes_its_size(service: Served) -> None:
    service.make("sizes", types=TYPES)
    nodes = [node("gpu-1", A100, 8)]
    jobs = [job("big", 3, 4), job("small", 1, 4, weight="0.1")]
    told = call(service, "sizes", "onSessionOpen", session(jobs, nodes))
    assert set(service.plan("sizes", told["sequence"])["allocations"]) == {"ml/small"}
    jobs[0] = job("big", 2, 4)
    told = call(service, "sizes", "onSessionOpen", session(jobs, nodes))
    assert set(service.plan("sizes", told["sequence"])["allocations"]) == {"ml/big"}
    jobs[0]["Tasks"]["ml/big-0"]["Status"] = 128  # it runs: its place stays as it is
    assert call(service, "sizes", "onSessionOpen", session(jobs, nodes))["sequence"] == told["sequence"]


def test_large_sessions_hold_up_nobody(service: Served) -> None:
    """Megabytes of a session are read by another process; plans are given meanwhile."""
    service.make("large", types=TYPES)
    nodes = [node(f"n{k}", T4, 4) for k in range(2000)]
    body = json.dumps(session([job(f"j{k}", 2, 2) for k in range(200)], nodes)).encode()
    assert len(body) > 4 * volcano.LARGE
    told = call(service, "large", "onSessionOpen", body)  # starts the process
    service.plan("large", told["sequence"])
    started = time.monotonic()
    assert call(service, "large", "onSessionOpen", body)["sequence"] == told["sequence"]
    print("a session of", len(body), "bytes took", time.monotonic() - started, "s")
    request = json.dumps({"task": task("ml/j1", 0, 2), "nodes": nodes}).encode()
    assert max(call(service, "large", "prioritize", request)["nodeScore"].values()) == 100.0


@pytest.mark.parametrize(
    ("verb", "document", "words"),
    [
        ("onSessionOpen", [], "no object"),
        ("onSessionOpen", {}, "/Jobs: is missing"),
        ("onSessionOpen", {"Jobs": None}, "/Nodes: is missing"),
        ("onSessionOpen", {"Jobs": [], "Nodes": {}}, "no object"),
        (
            "onSessionOpen",
            {"Nodes": {}, "Jobs": {"a": {"Tasks": {"t": {"Resreq": {"ScalarResources": {GPU: "x"}}}}}}},
            "thousandths",
        ),
        ("onSessionOpen", session([job("a", 1, 1, throughputs="{")], []), "no JSON"),
        ("onSessionOpen", session([job("a", 1, 1, throughputs='{"h900": {"1": 1}}')], []), "no GPU type"),
        ("onSessionOpen", session([job("a", 1, 1, weight="heavy")], []), "no number"),
        ("onSessionOpen", session([job("a", 1, 1, weight="nan")], []), "range"),
        ("prioritize", {"task": {}}, "Job: is missing"),
        ("prioritize", {"task": task("ml/a", 0, 1)}, "/nodes: is missing"),
        ("prioritize", {"task": task("ml/a", 0, 1), "nodes": [{}]}, "Name: is missing"),
        ("predicate", {}, "/task: is missing"),
        ("preemptable", {"evictor": task("ml/a", 0, 1), "evictees": {}}, "no array"),
        ("jobEnqueueable", {"job": {}}, "UID: is missing"),
    ],
)
def test_wrong_documents_change_nothing(service: Served, verb: str, document: Any, words: str) -> None:
    if service.ask("GET", "/v1/clusters/wrong")[0] == 404:
        service.make("wrong", types=TYPES)
    status, told, _ = service.ask("POST", f"/v1/clusters/wrong/volcano/{verb}", document)
    assert status == 422, told
    assert words in told["detail"]
    assert service.ask("GET", "/v1/clusters/wrong")[1]["sequence"] == 0


def test_problems_cross_processes() -> None:
    done, told = guarded("tasks", b"{")
    assert (done, told[0]) == (False, 400)
