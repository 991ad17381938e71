"""The controller: each step reads Kueue's objects, plans, and writes what has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from copter import Settings
from copter.problem.figures import counted
from copter_serve.kueue_controller.decisions import (
    GATE,
    Decisions,
    boosts,
    decide,
    gates_of,
    rules_of,
    without_gate,
)
from copter_serve.kueue_controller.dispatch import nominations
from copter_serve.kueue_controller.refused import RefusedError
from copter_serve.queues.admission_model import AdmissionModel
from copter_serve.queues.fair_preemption import STRATEGIES, require_strategies
from copter_serve.views import ClusterView
from copter_serve.views.documents import Document, entries, named, part
from copter_serve.views.kueue import BOOST, GATES, GROUP, VERSIONS, condition, kueue_view, read_api

CHECK = "copter.io/admission"  # controllerName of the AdmissionChecks that the controller answers
OURS = "copter.io/boosted"  # annotation of workloads whose priority boost the controller has set
WRITES = ("boost", "gates", "checks", "dispatch")


class Cluster(Protocol):
    """Interface: the calls of an API server that the controller uses."""

    def version(self, group: str, known: Sequence[str]) -> str:
        """Return the version of a group to read."""

    def listed(self, path: str, optional: bool = False) -> list[Document]:
        """Return all documents of a path."""

    def one(self, version: str, plural: str, name: str, namespace: str) -> Document:
        """Return the document with this name and namespace."""

    def patch(self, document: Document, plural: str, change: Document, status: bool = False) -> bool:
        """Merge a change into a document unless it changed since it was read; return whether it was written."""


@dataclass(frozen=True, slots=True)
class Written:
    """One write: its kind, its document, whether it succeeded, and why it was refused if it was."""

    what: str
    name: str
    value: str
    done: bool
    refused: str = ""


class Controller:
    """Keeps Kueue's annotations, admission checks and nominations up to date with the plan.

    Parameters
    ----------
    cluster : Cluster
    writes : sequence of str
        Kinds of writes that are allowed, from :data:`WRITES`.
    workers : mapping of str to callable, optional
        Returns the view of each of MultiKueue's worker clusters.
    dry : bool
        Whether to report the writes without writing anything.
    settings : Settings, optional
    strategies : sequence of str
        Kueue's `preemptionStrategies`, which are not in its objects; of effect with fair sharing only.

    Attributes
    ----------
    decisions : Decisions
    written : list of Written
        The writes of the last step, up to where it ended.
    waiting : int
        Workloads that waited in the last step.

    Raises
    ------
    QueueError
        For strategies that Kueue does not accept.
    """

    def __init__(
        self, cluster: Cluster, writes: Sequence[str] = WRITES,
        workers: Mapping[str, Callable[[], ClusterView]] | None = None, dry: bool = False,
        settings: Settings | None = None, strategies: Sequence[str] = STRATEGIES[0],
    ) -> None:  # fmt: skip
        self.strategies = require_strategies(strategies)
        self.cluster, self.writes, self.workers, self.dry = cluster, frozenset(writes), dict(workers or {}), dry
        self.settings = settings or Settings(threads=1)
        self.decisions = Decisions()
        self.written: list[Written] = []
        self.waiting = 0

    def step(self) -> list[Written]:
        """Make one step; return its writes. A write that is refused ends none of the others.

        Raises
        ------
        QueueError
            If the cluster cannot be read, or its objects contradict each other; nothing is written then. If the server
            goes away in the middle; :attr:`written` has what was written before.
        """
        self.written = []
        documents = read_api(self.cluster)  # type: ignore[arg-type]
        version = self.cluster.version(GROUP, VERSIONS)
        checks = self.cluster.listed(f"/apis/{GROUP}/{version}/admissionchecks", optional=True)
        view = kueue_view(documents)
        rules = rules_of(documents)
        self.waiting = sum(not each.running for each in view.jobs)
        workloads = {named(each): each for each in documents if each.get("kind") == "Workload"}
        self.decisions = decide(view, AdmissionModel(view.tree, self.settings), rules, self.strategies)
        if "gates" in self.writes:
            self._open_gates(workloads)
        if "boost" in self.writes:
            self._boost(view, workloads)
        if "checks" in self.writes:
            self._answer(checks, workloads)
        if "dispatch" in self.writes:
            self._dispatch(version, checks, workloads)
        return self.written

    def idle(self) -> str:
        """Return what the last step found, in words, where it had nothing to write."""
        admitted, stopping = len(self.decisions.admitted), len(self.decisions.stopping)
        stops = f", {stopping:,} more by stopping others" if stopping else ""
        return f"nothing to write: {counted(self.waiting, 'workload')} waiting, the plan admits {admitted:,}{stops}"

    def _write(
        self, what: str, document: Document, plural: str, change: Document, value: str, status: bool = False
    ) -> None:  # fmt: skip
        done, refused = True, ""
        if not self.dry:
            try:
                done = self.cluster.patch(document, plural, change, status)
            except RefusedError as error:
                done, refused = False, str(error)
        self.written.append(Written(what, named(document), value, done, refused))

    def _boost(self, view: ClusterView, workloads: Mapping[str, Document]) -> None:
        """Write the boosts that differ from the plan's; boosts of other controllers are left alone."""
        for name, boost in boosts(view, workloads, self.decisions).items():
            notes = part(workloads[name], "metadata", "annotations") or {}
            ours, now = notes.get(OURS) == "true", str(notes.get(BOOST) or "0")
            if now == str(boost) or (BOOST in notes and not ours):
                continue
            change = {"metadata": {"annotations": {BOOST: str(boost), OURS: "true"}}}
            self._write("boost", workloads[name], "workloads", change, str(boost))

    def _open_gates(self, workloads: Mapping[str, Document]) -> None:
        """Remove the plan's gate from admitted workloads, in the owner's annotation, which Kueue copies."""
        for name, document in workloads.items():
            gates = gates_of(document)
            if GATE not in [each.strip() for each in gates.split(",")] or not self.decisions.goes(name):
                continue
            owner = next(
                (each for each in part(document, "metadata", "ownerReferences") or [] if each.get("controller")), None
            )
            target, plural = document, "workloads"
            if owner is not None:
                plural = f"{str(owner['kind']).lower()}s"
                try:
                    target = self.cluster.one(
                        str(owner["apiVersion"]), plural, str(owner["name"]), str(document["metadata"]["namespace"])
                    )
                except LookupError:
                    continue
                except RefusedError as error:
                    self.written.append(Written("gate", name, "", False, str(error)))
                    continue
                gates = gates_of(target)
                if GATE not in [each.strip() for each in gates.split(",")]:
                    continue  # it is open already, and Kueue has not copied that yet
            left = without_gate(gates)
            change = {"metadata": {"annotations": {GATES: left}}}
            self._write("gate", target, plural, change, left or "")

    def _answer(self, checks: Sequence[Document], workloads: Mapping[str, Document]) -> None:
        """Mark the controller's admission checks as active, and answer them."""
        ours = {named(each) for each in checks if part(each, "spec", "controllerName") == CHECK}
        for each in checks:
            if named(each) in ours and not condition(each, "Active"):
                told = [other for other in part(each, "status", "conditions") or [] if other.get("type") != "Active"]
                active = {
                    "type": "Active", "status": "True", "reason": "Active", "message": "copter answers this check",
                    "lastTransitionTime": _now(), "observedGeneration": part(each, "metadata", "generation") or 1,
                }  # fmt: skip
                change = {"status": {"conditions": [*told, active]}}
                self._write("check active", each, "admissionchecks", change, "True", status=True)
        for name, document in workloads.items():
            states = entries("status.admissionChecks", part(document, "status", "admissionChecks"))
            if condition(document, "Finished") or not condition(document, "QuotaReserved"):
                continue
            state = "Retry" if name in self.decisions.stopped else "Ready"
            why = "its quota goes to a higher priority" if state == "Retry" else "it is in copter's plan"
            changed = [
                each | {"state": state, "message": why, "lastTransitionTime": _now()}
                if each.get("name") in ours and each.get("state") == "Pending"
                else each
                for each in states
            ]
            if changed != states:
                change = {"status": {"admissionChecks": changed}}
                self._write("check", document, "workloads", change, state, status=True)

    def _dispatch(self, version: str, checks: Sequence[Document], workloads: Mapping[str, Document]) -> None:
        """Nominate worker clusters for workloads."""
        if not self.workers:
            return
        configs = self.cluster.listed(f"/apis/{GROUP}/{version}/multikueueconfigs", optional=True)
        for name, clusters in nominations(checks, configs, workloads, self.workers, self.settings).items():
            if (part(workloads[name], "status", "nominatedClusterNames") or []) != clusters:
                change = {"status": {"nominatedClusterNames": clusters}}
                self._write("nomination", workloads[name], "workloads", change, ", ".join(clusters), status=True)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def lines(written: Sequence[Written], dry: bool) -> list[str]:
    """Return one line of text for each write."""
    found = []
    for each in written:
        verb = ("would write" if dry else "wrote") if each.done else "left, as it changed meanwhile"
        verb = "was refused" if each.refused else verb
        why = f" ({each.refused})" if each.refused else ""
        found.append(f"{verb}: {each.what} of {each.name}: {each.value or 'none'}{why}")
    return found
