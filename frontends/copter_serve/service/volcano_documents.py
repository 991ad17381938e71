"""Documents of Volcano's extender plugin (jobs, tasks, nodes), reduced to the fields that the service needs.

Go writes the plugin's structures field by field: ``UID``, ``Tasks``, ``Resreq.ScalarResources`` in thousandths,
embedded structures flat. Kubernetes objects in them use Kubernetes's names (``metadata.labels``). For large bodies
these functions run in another process, so they import little.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from copter_serve.service.fields import parse_json
from copter_serve.service.problems import Problem, invalid

GPU = "nvidia.com/gpu"
TYPE_LABELS = ("copter.io/gpu-type", "nvidia.com/gpu.product")
WEIGHT, THROUGHPUTS = "copter.io/weight", "copter.io/throughputs"
READY = 1  # Volcano's phase of a node that takes tasks
ENDED = (128, 256)  # Volcano's statuses of tasks that succeeded and that failed
MILLI = 1000.0  # thousandths of a GPU, Kubernetes's unit, in one GPU


def read_session(body: bytes) -> dict[str, Any]:
    """Return {"jobs": {id: job document}, "nodes": {name: [type, GPUs]}} of ``onSessionOpen``; raises Problem."""
    told = _object("", parse_json(body))
    jobs, nodes = {}, {}
    for job_id, job in _given(told, "Jobs").items():
        where = f"/Jobs/{job_id}"
        gpus = _gpus_of(where, _object(where, job))
        if gpus:
            jobs[job_id] = job_document(job_id, job, gpus)
    for name, node in _given(told, "Nodes").items():
        where = f"/Nodes/{name}"
        found = _node(where, _object(where, node))
        if found is not None:
            nodes[name] = found
    return {"jobs": jobs, "nodes": nodes}


def read_tasks(body: bytes) -> dict[str, Any]:
    """Read a call other than onSessionOpen; returns the tasks' jobs in order, node names, and complete tasks to
    evict.
    """
    told = _object("", parse_json(body))
    found: dict[str, Any] = {}
    if "task" in told:
        found["task"] = _job_of("/task", told["task"])
    if "evictor" in told:
        found["evictor"] = _job_of("/evictor", told["evictor"])
    if "job" in told:
        uid = _object("/job", told["job"]).get("UID")
        if not isinstance(uid, str):
            raise invalid("/job/UID", "is missing", "send Volcano's JobInfo")
        found["job"] = uid
    if "node" in told:
        found["node"] = _name("/node", told["node"])
    if told.get("nodes", told) is None:  # Go writes null for an empty list
        told["nodes"] = []
    if told.get("evictees", told) is None:
        told["evictees"] = []
    if "nodes" in told:
        found["nodes"] = [_name(f"/nodes/{k}", each) for k, each in enumerate(_array("/nodes", told["nodes"]))]
    if "evictees" in told:
        evictees = _array("/evictees", told["evictees"])
        found["evictees"] = [
            (_job_of(f"/evictees/{k}", each), str(each.get("NodeName") or ""), each) for k, each in enumerate(evictees)
        ]
    return found


def job_document(job_id: str, job: Mapping[str, Any], gpus: int) -> dict[str, Any]:
    """Return a job document from Volcano's job: all its GPUs or none; annotations give weight and throughputs."""
    notes = _annotations(job.get("PodGroup"))
    document: dict[str, Any] = {
        "id": job_id,
        "requested_gpus": gpus,
        "preemptible": bool(job.get("Preemptable", False)),
    }
    if THROUGHPUTS in notes:
        try:
            document["throughputs"] = json.loads(notes[THROUGHPUTS])
        except (ValueError, RecursionError):
            raise invalid(
                f"/Jobs/{job_id}", f"the annotation {THROUGHPUTS} is no JSON", 'write {"TYPE": {"8": 123.4}}'
            ) from None
    else:
        document["gpus"] = document["min_gpus"] = gpus
    if WEIGHT in notes:
        try:
            document["weight"] = float(notes[WEIGHT])
        except ValueError:
            raise invalid(
                f"/Jobs/{job_id}", f"the annotation {WEIGHT} is no number", "write a number above 0"
            ) from None
    return document


def _given(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a required map, because a missing entry means removal; Go writes null for an empty one."""
    if name not in told:
        raise invalid(f"/{name}", "is missing", "send all that Volcano's extender plugin sends")
    return {} if told[name] is None else _object(f"/{name}", told[name])


def _gpus_of(where: str, job: Mapping[str, Any]) -> int:
    """Return the total GPUs of all tasks that have not ended."""
    total = 0.0
    for name, told in _object(f"{where}/Tasks", job.get("Tasks") or {}).items():
        task = _object(f"{where}/Tasks/{name}", told)
        if task.get("Status") not in ENDED:
            total += _scalar(f"{where}/Tasks/{name}", task.get("Resreq"))
    return round(total)


def _node(where: str, node: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return (GPU type, GPUs) of a node that is ready and has GPUs, otherwise None."""
    phase = (node.get("State") or {}).get("Phase", READY)
    gpus = round(_scalar(where, node.get("Allocatable")))
    labels = ((node.get("Node") or {}).get("metadata") or {}).get("labels") or {}
    kind = next((labels[label] for label in TYPE_LABELS if label in labels), None)
    return (str(kind), gpus) if gpus and kind is not None and phase == READY else None


def _scalar(where: str, resource: Any) -> float:
    """Return the GPUs of a resource; Volcano counts in thousandths."""
    if not isinstance(resource, dict):
        return 0.0
    value = (resource.get("ScalarResources") or {}).get(GPU, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise invalid(where, f"{GPU} is {value!r}, must be a number of thousandths")
    return float(value) / MILLI


def _annotations(group: Any) -> dict[str, str]:
    """Return the annotations of a pod group, whose metadata Go writes flat or nested."""
    if not isinstance(group, dict):
        return {}
    inner = group.get("metadata")
    notes = (inner if isinstance(inner, dict) else group).get("annotations")
    return {str(key): str(value) for key, value in notes.items()} if isinstance(notes, dict) else {}


def _job_of(where: str, task: Any) -> str:
    job = _object(where, task).get("Job")
    if not isinstance(job, str):
        raise invalid(f"{where}/Job", "is missing", "send Volcano's TaskInfo")
    return job


def _name(where: str, node: Any) -> str:
    name = _object(where, node).get("Name")
    if not isinstance(name, str):
        raise invalid(f"{where}/Name", "is missing", "send Volcano's NodeInfo")
    return name


def _object(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid(where or "/", "is no object", "send what Volcano's extender plugin sends")
    return value


def _array(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise invalid(where, "is no array", "send what Volcano's extender plugin sends")
    return value


def guarded(reader: str, body: bytes) -> tuple[bool, Any]:
    """Return (True, result) of a reader, or (False, a problem's arguments), because a Problem cannot be pickled."""
    try:
        return True, {"session": read_session, "tasks": read_tasks}[reader](body)
    except Problem as problem:
        return False, (problem.status, problem.detail, problem.where, problem.fix)
