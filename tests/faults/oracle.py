"""What must be true of a served cluster whatever happens: a plain model of dictionaries, and the judge that asks it."""

from __future__ import annotations

from typing import Any

from copter_serve.service.cluster_service import ClusterService
from copter_serve.service.cluster_state import ClusterState


class Broken(AssertionError):
    """The service has broken a promise."""


def require(holds: bool, what: str, *facts: Any) -> None:
    """Broken unless it holds."""
    if not holds:
        raise Broken(": ".join([what, *map(repr, facts)]))


class Plain:
    """A cluster in plain dictionaries; deltas are done one after the other, by what docs/reference/service.md says."""

    def __init__(self, types: dict[str, dict[str, int]]) -> None:
        self.size = {kind: each["gpus_per_node"] for kind, each in types.items()}
        self.nodes = {kind: [f"{kind}-{k}" for k in range(each["nodes"])] for kind, each in types.items()}
        self.following = {kind: each["nodes"] for kind, each in types.items()}
        self.jobs: dict[str, tuple[float, float, int]] = {}
        self.pins: dict[str, tuple[str, dict[str, int]]] = {}
        self.sequence = 0

    def do(self, told: dict[str, Any]) -> None:
        """One delta that was accepted."""
        self.sequence += 1
        for name in told.get("remove_jobs", ()):
            del self.jobs[name]
            self.pins.pop(name, None)
        pinned = {node for _, nodes in self.pins.values() for node in nodes}
        going, coming = list(told.get("remove_nodes", ())), []
        for kind, gpus in told.get("set_capacity", {}).items():
            there, wanted = self.nodes[kind], gpus // self.size[kind]
            free = [node for node in there if node not in pinned]
            going += free[len(free) - (len(there) - wanted) :] if wanted < len(there) else []
            coming += [(kind, None)] * (wanted - len(there))
        for kind, names in told.get("add_nodes", {}).items():
            coming += [(kind, name) for name in names]
        for node in going:
            require(node not in pinned, "a pinned node went", node)
            next(names for names in self.nodes.values() if node in names).remove(node)
        for kind, name in coming:
            if name is None:
                taken = {each for names in self.nodes.values() for each in names}
                taken.update([*(each for _, each in coming if each), *told.get("remove_nodes", ())])
                while (name := f"{kind}-{self.following[kind]}") in taken:
                    self.following[kind] += 1
                self.following[kind] += 1
            elif name.startswith(f"{kind}-"):
                self.following[kind] = max(self.following[kind], int(name.rpartition("-")[2]) + 1)
            require(all(name not in names for names in self.nodes.values()), "a node came twice", name)
            self.nodes[kind].append(name)
        for job in told.get("add_jobs", ()):
            require(job["id"] not in self.jobs, "a job came twice", job["id"])
            self.jobs[job["id"]] = job.get("weight", 1.0), 0.0, 0
        for each in told.get("change_jobs", ()):
            weight, progress, restarts = self.jobs[each["id"]]
            self.jobs[each["id"]] = (
                each.get("weight", weight), each.get("progress", progress), each.get("restarts", restarts)
            )  # fmt: skip
        for name, pin in told.get("pins", {}).items():
            require(name in self.jobs, "an unknown job was pinned", name)
            self.pins.pop(name, None)
            if pin is not None:
                self.pins[name] = pin["gpu_type"], pin["nodes"]

    def compare(self, state: ClusterState) -> None:
        """Broken unless the service holds the same."""
        jobs = {name: (job.weight, job.progress, job.restarts) for name, job in state.jobs.items()}
        require(jobs == self.jobs, "other jobs", jobs, self.jobs)
        pins = {name: (kind, dict(nodes)) for name, (kind, nodes) in state.pins.items()}
        require(pins == self.pins, "other pins", pins, self.pins)
        nodes = {kind: sorted(names) for kind, names in state.nodes.items()}
        require(nodes == {k: sorted(v) for k, v in self.nodes.items()}, "other nodes", nodes, self.nodes)


class Oracle:
    """Judges one cluster.

    Attributes
    ----------
    sent : dict of delta id to document
    acknowledged : dict of delta id to sequence
    absent : set of delta ids
        Refused, with the words that nothing has changed, and not sent again.
    plans : int
        Number of the last plan that was published and is in the journal.
    """

    def __init__(self, types: dict[str, dict[str, int]]) -> None:
        self.types = types
        self.sent: dict[str, dict[str, Any]] = {}
        self.acknowledged: dict[str, int] = {}
        self.absent: set[str] = set()
        self.plans = 0
        self.model = Plain(types)
        self.checked = 0

    def answered(self, name: str, sequence: int) -> None:
        """The service has acknowledged a delta."""
        before = self.acknowledged.setdefault(name, sequence)
        require(before == sequence, "acknowledged twice, with two numbers", name, before, sequence)

    def recovered(self, service: ClusterService) -> None:
        """Judge a service that has just started."""
        accepted = service.state.accepted
        for name, sequence in self.acknowledged.items():
            require(name in accepted, "an acknowledged delta is lost", name, sequence)
            require(accepted[name].sequence == sequence, "an acknowledged delta has another number", name, sequence)
        self.model = Plain(self.types)
        self.follow(service)
        self.model.compare(service.state)
        require(service.book.version >= self.plans, "a published plan is lost", service.book.version, self.plans)
        self.plan(service)

    def follow(self, service: ClusterService) -> None:
        """Take in what has been accepted since."""
        new = []
        for name in reversed(service.state.accepted):
            sequence = service.state.accepted[name].sequence
            if sequence <= self.model.sequence:
                break
            new.append((sequence, name))
        for sequence, name in reversed(new):
            require(sequence == self.model.sequence + 1, "a number is missing", sequence, self.model.sequence)
            require(name not in self.absent, "a delta that was refused is there", name)
            self.model.do(self.sent[name])
        require(service.state.sequence == self.model.sequence, "other numbers", service.state.sequence)

    def settled(self, service: ClusterService) -> None:
        """Judge a service that has nothing under way."""
        self.follow(service)
        self.checked += 1
        if not self.checked % 4:
            self.model.compare(service.state)
        self.plan(service)
        if not service.log.epoch:
            self.plans = max(self.plans, service.book.version)

    def plan(self, service: ClusterService) -> None:
        """Judge the plan in force, in whole numbers."""
        used: dict[str, int] = {}
        state = service.state
        for name, given in service.book.allocations.items():
            require(name in state.jobs, "a job that has gone is in the plan", name)
            require(given["gpus"] == sum(given["nodes"].values()), "GPUs do not add up", given)
            for node, gpus in given["nodes"].items():
                require(state.type_of_node.get(node) == given["gpu_type"], "a node that has gone is in the plan", node)
                used[node] = used.get(node, 0) + gpus
        for node, gpus in used.items():
            require(gpus <= state.node_gpus[state.type_of_node[node]], "a node is given out twice", node, gpus)
