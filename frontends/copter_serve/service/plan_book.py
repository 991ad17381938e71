"""The last feasible plan of a cluster, ready to send."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from copter_serve.service.attained import AttainedBook
from copter_serve.service.cluster_state import ClusterState
from copter_serve.service.fields import compact

KEPT_CHANGES = 32  # number of kept plan changes, for streams that fall behind

Allocations = dict[str, dict[str, Any]]
"""Job id -> {"gpu_type", "gpus", "nodes": {node: GPUs}}."""


class PlanBook:
    """The current plan: the last computed one without departed jobs and nodes, so that it is always feasible.

    Attributes
    ----------
    header : dict
        The last plan without its allocations.
    allocations : dict of job id to dict
    edition : int
        Number that increases whenever the current plan changes.
    attained : AttainedBook
        GPU time of the jobs by the plans so far.
    """

    def __init__(self) -> None:
        self.header: dict[str, Any] = {"version": 0, "sequence": 0, "computed_s": None}
        self.allocations: Allocations = {}
        self.edition = 0
        self.attained = AttainedBook()
        self._fragments: dict[str, bytes] = {}
        self._body: bytes | None = None
        self._changes: deque[tuple[int, int, bytes]] = deque(maxlen=KEPT_CHANGES)

    @property
    def version(self) -> int:
        """Number of the last plan; 0 before the first."""
        found: int = self.header["version"]
        return found

    @property
    def etag(self) -> str:
        """ETag of the plan's body."""
        return f'"{self.version}-{self.edition}"'

    def restore(self, header: Mapping[str, Any], allocations: Allocations) -> None:
        """Set the current plan to a saved one."""
        self.header.update(header)
        self.allocations = dict(allocations)
        self._fragments = {name: fragment(name, each) for name, each in allocations.items()}
        self._touch()

    def take(self, plan: Mapping[str, Any], state: ClusterState, pieces: Sequence[bytes] | None = None) -> None:
        """Store a new plan: its header and changes, as the scheduler sends them.

        Allocations of jobs and nodes that have gone meanwhile are left out.

        Parameters
        ----------
        plan : mapping
            ``header``, ``set`` {job id: allocation}, ``stop`` [job id]; with ``whole``, all jobs outside ``set`` stop.
        state : ClusterState
        pieces : sequence of bytes, optional
            :func:`fragment` of every member of ``set``, in its order.
        """
        before, now_s = self.edition, float(plan["header"].get("computed_s") or 0.0)
        told: list[bytes] = []
        stopped: list[str] = []
        jobs, nodes = state.jobs, state.type_of_node
        gone = (
            [job_id for job_id in self.allocations if job_id not in plan["set"]] if plan.get("whole") else plan["stop"]
        )
        for job_id in gone:
            self._stop(job_id, now_s, stopped)
        if pieces is None:
            pieces = [fragment(job_id, given) for job_id, given in plan["set"].items()]
        for (job_id, given), piece in zip(plan["set"].items(), pieces, strict=True):
            if job_id in jobs and stands(given, nodes):
                self.allocations[job_id] = given
                self._fragments[job_id] = piece
                told.append(piece)
                self.attained.give(job_id, given, now_s)
            else:
                self._stop(job_id, now_s, stopped)
        self.header = dict(plan["header"])
        self._touch()
        self._note(before, told, stopped, self.header)

    def _stop(self, job_id: str, now_s: float, stopped: list[str]) -> None:
        """Remove a job from the plan and append its id to `stopped`; do nothing if the plan does not have it."""
        if self.allocations.pop(job_id, None) is not None:
            self.attained.end(job_id, now_s)
            del self._fragments[job_id]
            stopped.append(job_id)

    def follow(self, change: Mapping[str, Any]) -> None:
        """Remove jobs that a delta has removed or that were on nodes that it has removed."""
        self._leave_out(lost_by(change, self.allocations), change.get("time_s", 0.0))
        self.attained.forget(change.get("remove_jobs", ()))

    def after(self, changes: Iterable[Mapping[str, Any]]) -> PlanBook:
        """Return a copy that has followed deltas; this plan stays as it is."""
        copy = PlanBook()
        copy.header, copy.allocations, copy._fragments = (
            dict(self.header),
            dict(self.allocations),
            dict(self._fragments),
        )
        copy.attained.jobs = dict(self.attained.jobs)
        for change in changes:
            copy.follow(change)
        return copy

    def look_again(self, state: ClusterState, now_s: float) -> None:
        """Remove allocations that are invalid after deltas have been undone."""
        self._leave_out(self._fallen(state), now_s)

    def _fallen(self, state: ClusterState) -> list[str]:
        """Return jobs of the plan that no longer exist or whose nodes do not."""
        return [
            job_id
            for job_id, given in self.allocations.items()
            if job_id not in state.jobs or not stands(given, state.type_of_node)
        ]

    def _leave_out(self, lost: list[str], now_s: float) -> None:
        if not lost:
            return
        before = self.edition
        for job_id in lost:
            del self.allocations[job_id], self._fragments[job_id]
            self.attained.end(job_id, now_s)
        self._touch()
        self._note(before, [], lost, {})

    def body(self) -> bytes:
        """Return the complete plan as JSON."""
        if self._body is None:
            head = compact({**self.header, "edition": self.edition}).encode()
            self._body = head[:-1] + b',"allocations":{' + b",".join(self._fragments.values()) + b"}}"
        return self._body

    def changes_since(self, edition: int) -> list[tuple[int, bytes]] | None:
        """Return (edition, JSON) of every change after an edition; None if some are no longer kept."""
        if edition == self.edition:
            return []
        found = [(after, body) for before, after, body in self._changes if before >= edition]
        return found if any(before == edition for before, _, _ in self._changes) else None

    def _touch(self) -> None:
        self.edition += 1
        self._body = None

    def _note(self, before: int, told: list[bytes], stopped: list[str], header: Mapping[str, Any]) -> None:
        head = compact({"version": self.version, **header, "edition": self.edition, "stop": stopped}).encode()
        self._changes.append((before, self.edition, head[:-1] + b',"set":{' + b",".join(told) + b"}}"))


def lost_by(change: Mapping[str, Any], allocations: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the jobs that lose their GPUs by a delta: it removes them or some of their nodes.

    Jobs and nodes may return under the same names in a later delta, so that the state after it does not tell.
    """
    lost = {job_id: None for job_id in change.get("remove_jobs", ()) if job_id in allocations}
    gone = {node for names in change.get("remove_nodes", {}).values() for node in names}
    if gone:
        lost |= {job_id: None for job_id, given in allocations.items() if not gone.isdisjoint(given["nodes"])}
    return list(lost)


def stands(given: Mapping[str, Any], type_of_node: Mapping[str, str]) -> bool:
    """Whether all nodes of an allocation exist with its type; a node's name may have returned with another type."""
    kinds = {given["gpu_type"], *(given.get("mixture") or ())}
    return all(type_of_node.get(node) in kinds for node in given["nodes"])


def fragment(job_id: str, given: Mapping[str, Any]) -> bytes:
    """Return one job's member of the plan's JSON object."""
    return f"{compact(job_id)}:{compact(given)}".encode()


def plan_document(plan: Mapping[str, Any]) -> bytes:
    """Return a plan as the scheduler sends it: JSON with each member of ``set`` on its own line."""
    head = compact({"header": plan["header"], "stop": plan["stop"]}).encode()
    pieces = [fragment(job_id, given) for job_id, given in plan["set"].items()]
    return head[:-1] + b',"set":{\n' + b",\n".join(pieces) + b"\n}}"


def read_plan(content: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return the plan of a :func:`plan_document` and its pieces for :meth:`PlanBook.take`.

    JSON strings contain no line breaks, so the pieces are cut out of the text instead of encoded again, which would
    take most of the time.
    """
    plan: dict[str, Any] = json.loads(content)
    inner = content[content.index(b"\n") + 1 : content.rindex(b"\n")]
    return plan, inner.split(b",\n") if plan["set"] else []
