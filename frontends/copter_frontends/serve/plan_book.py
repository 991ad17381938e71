"""The last feasible plan of a cluster, ready to be sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from copter_frontends.serve.attained import AttainedBook
from copter_frontends.serve.cluster_state import ClusterState
from copter_frontends.serve.fields import compact

KEPT_CHANGES = 32

Allocations = dict[str, dict[str, Any]]
"""Job id -> {"gpu_type", "gpus", "nodes": {node: GPUs}}."""


class PlanBook:
    """The plan in force: the last one computed, less what has gone since, so that it is always feasible.

    Attributes
    ----------
    header : dict
        All of the last plan but its allocations.
    allocations : dict of job id to dict
    edition : int
        Counts up whenever the plan, or what is left of it, changes.
    attained : AttainedBook
        What jobs have had by the plans so far.
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
        """Of the body."""
        return f'"{self.version}-{self.edition}"'

    def restore(self, header: Mapping[str, Any], allocations: Allocations) -> None:
        """Take a saved plan."""
        self.header.update(header)
        self.allocations = dict(allocations)
        self._fragments = {name: fragment(name, each) for name, each in allocations.items()}
        self._touch()

    def take(self, plan: Mapping[str, Any], state: ClusterState) -> None:
        """Take a new plan: its header and what changes, as the scheduler sends it.

        What concerns jobs and nodes that have gone meanwhile is left out.
        """
        before, now_s = self.edition, float(plan["header"].get("computed_s") or 0.0)
        told: dict[str, Any] = {"set": {}, "stop": []}
        for job_id in plan["stop"]:
            if self.allocations.pop(job_id, None) is not None:
                self.attained.end(job_id, now_s)
                del self._fragments[job_id]
                told["stop"].append(job_id)
        for job_id, given in plan["set"].items():
            if job_id in state.jobs and all(node in state.type_of_node for node in given["nodes"]):
                self.allocations[job_id] = told["set"][job_id] = given
                self._fragments[job_id] = fragment(job_id, given)
                self.attained.give(job_id, given, now_s)
            elif self.allocations.pop(job_id, None) is not None:
                self.attained.end(job_id, now_s)
                del self._fragments[job_id]
                told["stop"].append(job_id)
        self.header = dict(plan["header"])
        self._touch()
        self._note(before, told, self.header)

    def follow(self, change: Mapping[str, Any], state: ClusterState) -> None:
        """Leave out the jobs that a delta has removed, and those on nodes that it has; the state has it already."""
        lost = [job_id for job_id in change.get("remove_jobs", ()) if job_id in self.allocations]
        if change.get("remove_nodes"):
            lost += [
                job_id
                for job_id, given in self.allocations.items()
                if job_id in state.jobs and any(node not in state.type_of_node for node in given["nodes"])
            ]
        if lost:
            before = self.edition
            for job_id in lost:
                del self.allocations[job_id], self._fragments[job_id]
                self.attained.end(job_id, change.get("time_s", 0.0))
            self._touch()
            self._note(before, {"set": {}, "stop": lost}, {})
        self.attained.forget(change.get("remove_jobs", ()))

    def body(self) -> bytes:
        """The whole plan as JSON."""
        if self._body is None:
            head = compact({**self.header, "edition": self.edition}).encode()
            self._body = head[:-1] + b',"allocations":{' + b",".join(self._fragments.values()) + b"}}"
        return self._body

    def changes_since(self, edition: int) -> list[tuple[int, bytes]] | None:
        """(edition, JSON) of every change after an edition; None if they are not all kept."""
        if edition == self.edition:
            return []
        found = [(after, body) for before, after, body in self._changes if before >= edition]
        return found if any(before == edition for before, _, _ in self._changes) else None

    def _touch(self) -> None:
        self.edition += 1
        self._body = None

    def _note(self, before: int, told: Mapping[str, Any], header: Mapping[str, Any]) -> None:
        body = {"version": self.version, **header, "edition": self.edition, **told}
        self._changes.append((before, self.edition, compact(body).encode()))


def fragment(job_id: str, given: Mapping[str, Any]) -> bytes:
    """One job's member of the plan's object."""
    return f"{compact(job_id)}:{compact(given)}".encode()
