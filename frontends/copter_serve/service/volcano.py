"""Volcano's extender protocol, answered from the current plan; no call solves anything."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from copter_serve.service.cluster_service import ClusterService
from copter_serve.service.job_record import JobRecord
from copter_serve.service.problems import Problem
from copter_serve.service.volcano_documents import guarded

LOG = logging.getLogger("copter.serve")

PERMIT, ABSTAIN, REJECT = 1, 0, -1
UNSCHEDULABLE = 2  # Volcano's status code of a node on which a task cannot run
BEST = 100.0  # score of the node on which the plan places most of a job
LARGE = 256 << 10  # larger bodies (bytes) are parsed in another process

NOTICES: dict[str, dict[str, Any]] = {
    "onSessionClose": {}, "jobEnqueued": {}, "queueOverused": {"overused": False}, "jobReady": {"status": True},
    "allocateFunc": {"errorMessage": ""}, "deallocateFunc": {"errorMessage": ""},
}  # fmt: skip
"""Verbs that do not depend on the plan, with their answers."""
VERBS = (
    "onSessionOpen", "predicate", "prioritize", "preemptable", "reclaimable", "jobEnqueueable", *NOTICES,
)  # fmt: skip


class Volcano:
    """Answers to the extender plugin.

    ``onSessionOpen`` updates the cluster's jobs and nodes by one delta, which the next plan takes into account. The
    other calls are answered from the current plan; jobs unknown to it are left to the other plugins.
    """

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._opening: set[str] = set()

    async def answer(self, service: ClusterService, verb: str, body: bytes) -> dict[str, Any]:
        """Return the response to one call; raises Problem."""
        if verb not in VERBS:
            raise Problem(404, f"there is no verb {verb!r}", fix=f"set the extender's verbs to {', '.join(VERBS)}")
        if verb == "onSessionOpen":
            return await self._open(service, body)
        if verb in NOTICES:
            await self._read("tasks", body)
            return dict(NOTICES[verb])
        told = await self._read("tasks", body)
        plan = service.book.allocations
        known = service.state.jobs
        if verb == "jobEnqueueable":
            job = _given(told, "job")
            return {"status": ABSTAIN if job not in known else PERMIT if job in plan else REJECT}
        if verb == "predicate":
            return _predicate(_given(told, "task"), _given(told, "node"), plan, known)
        if verb == "prioritize":
            return _prioritize(_given(told, "task"), _given(told, "nodes"), plan)
        return _victims(_given(told, "evictor"), _given(told, "evictees"), plan, known)

    def close(self) -> None:
        """End the process that reads large bodies and wait for it: Python writes to its pipe at exit."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    # Inside -------------------------------------------------------------------------------------------------------

    async def _read(self, reader: str, body: bytes) -> dict[str, Any]:
        if len(body) < LARGE:
            done, result = guarded(reader, body)
        else:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(max_workers=1, mp_context=context)
            try:
                done, result = await asyncio.get_running_loop().run_in_executor(self._pool, guarded, reader, body)
            except BrokenProcessPool:
                self._pool = None
                raise Problem(503, "the process that reads large bodies ended", fix="send it again") from None
        if not done:
            raise Problem(*result)
        found: dict[str, Any] = result
        return found

    async def _open(self, service: ClusterService, body: bytes) -> dict[str, Any]:
        """Update jobs and nodes; answers at once if the last session is still being processed."""
        if service.name in self._opening:
            return {"busy": True}
        self._opening.add(service.name)
        try:
            session = await self._read("session", body)
            delta, ignored = session_delta(service, session)
            told = await service.submit(delta) if delta else {"sequence": service.state.sequence}
            return {"sequence": told["sequence"], "ignored_nodes": ignored[:20], "ignored_nodes_count": len(ignored)}
        finally:
            self._opening.discard(service.name)


def session_delta(service: ClusterService, session: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return (delta that brings the cluster to a session's jobs and nodes, nodes of no declared type)."""
    state = service.state
    delta: dict[str, Any] = {}
    ignored: list[str] = []
    nodes: dict[str, str] = {}
    jobs = session["jobs"]
    for name, (kind, gpus) in session["nodes"].items():
        if state.node_gpus.get(kind) == gpus:
            nodes[name] = kind
        else:
            ignored.append(name)
    # For the policy a job whose size changed is a new job; a running one is kept until it waits again.
    running = service.book.allocations
    other = {
        job_id
        for job_id, job in jobs.items()
        if job_id in state.jobs and job_id not in running and not _same_size(state.jobs[job_id], job)
    }
    gone = [job_id for job_id in state.jobs if job_id not in jobs or job_id in other]
    changed = [
        {"id": job_id, "weight": job["weight"]}
        for job_id, job in jobs.items()
        if job_id in state.jobs
        and job_id not in other
        and "weight" in job
        and job["weight"] != state.jobs[job_id].weight
    ]
    lost = [name for name, kind in state.type_of_node.items() if nodes.get(name) != kind]
    lost_names = set(lost)
    new: dict[str, list[str]] = {}
    for name, kind in nodes.items():
        if name not in state.type_of_node or name in lost_names:
            new.setdefault(kind, []).append(name)
    parts = {
        "remove_jobs": gone,
        "add_jobs": [job for job_id, job in jobs.items() if job_id not in state.jobs or job_id in other],
        "change_jobs": changed,
        "remove_nodes": lost,
        "add_nodes": new,
    }
    delta.update((name, part) for name, part in parts.items() if part)
    return delta, ignored


def _same_size(known: JobRecord, told: Mapping[str, Any]) -> bool:
    """Whether a job still requests as many GPUs; its tasks may have changed."""
    return bool(known.requested_gpus == told["requested_gpus"])


def _given(told: Mapping[str, Any], name: str) -> Any:
    if name not in told:
        raise Problem(422, f"/{name}: is missing", f"/{name}", "send what Volcano's extender plugin sends")
    return told[name]


def _predicate(job: str, node: str, plan: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Allow a task on the nodes of its job's plan; tasks of unknown jobs may go anywhere.

    Volcano reads the reason from ``status`` since 1.10 and from ``errorMessage`` up to 1.7. In between ``status`` was a
    list, so it is left out if the task may run on the node.
    """
    if job not in known:
        return {"code": 0, "errorMessage": ""}
    given = plan.get(job)
    if given is not None and node in given["nodes"]:
        return {"code": 0, "errorMessage": ""}
    reason = f"copter's plan gives job {job} no GPUs this round"
    if given is not None:
        reason = f"copter's plan has job {job} on other nodes"
    return {"status": reason, "code": UNSCHEDULABLE, "errorMessage": reason}


def _prioritize(job: str, nodes: list[str], plan: Mapping[str, Any]) -> dict[str, Any]:
    """Score each node by the GPUs that the plan gives the job there."""
    given = plan.get(job, {}).get("nodes", {})
    most = max(given.values(), default=1)
    return {"nodeScore": {name: BEST * given.get(name, 0) / most for name in nodes}, "errorMessage": ""}


def _victims(
    evictor: str, evictees: list[tuple[str, str, Any]], plan: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return tasks on nodes where the plan no longer has their jobs, to make room for a planned job."""
    if evictor not in known:
        return {"status": ABSTAIN, "victims": []}
    if evictor not in plan:
        return {"status": REJECT, "victims": []}
    victims = [task for job, node, task in evictees if job in known and node not in plan.get(job, {}).get("nodes", {})]
    return {"status": PERMIT if victims else REJECT, "victims": victims}
