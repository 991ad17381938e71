"""Ownership of GPUs, and the check that a plan is feasible."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import compress, filterfalse
from operator import is_not

from copter_frontends.simulator.errors import SimulationError
from copter_frontends.vocabulary import Allocation, Cluster


@dataclass(frozen=True, slots=True)
class Changes:
    """Ids of the jobs that a plan starts, stops and changes, in the plan's order."""

    started: list[str]
    stopped: list[str]
    changed: list[tuple[str, Allocation, Allocation]]

    def of(self, jobs: Collection[str]) -> Changes:
        """Return the changes of these jobs only."""
        return Changes(
            [job for job in self.started if job in jobs],
            [job for job in self.stopped if job in jobs],
            [change for change in self.changed if change[0] in jobs],
        )


class Occupancy:
    """The GPUs in use on every node, kept between rounds.

    Only a plan's changes are processed, so a round takes one comparison for each unchanged job.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.allocations: dict[str, Allocation] = {}
        self._used: dict[str, int] = {}
        self.gpus_used: dict[str, int] = {}

    def apply(self, plan: Mapping[str, Allocation], active: Collection[str], pinned: Collection[str]) -> Changes:
        """Check a plan's feasibility, then record it.

        Raises
        ------
        SimulationError
            For an unknown job, GPU type or node, counts that do not add up, a node over-committed, or a pinned job
            that does not keep its allocation. Only the first fault is named.
        """
        before = self.allocations
        changes = Changes([], [], [])
        for job in list(compress(plan, map(is_not, map(before.get, plan), plan.values()))):  # all but the same objects
            held, wanted = before.get(job), plan[job]
            if held is None:
                if job not in active:
                    raise SimulationError(f"the plan gives GPUs to job {job!r}, which is not in the cluster")
                changes.started.append(job)
            elif held != wanted:
                changes.changed.append((job, held, wanted))
            else:
                before[job] = wanted  # makes the next comparison one by identity
        if len(plan) - len(changes.started) < len(before):
            changes.stopped.extend(filterfalse(plan.__contains__, before))
        for job in pinned:
            if job not in plan or plan[job] != before[job]:
                raise SimulationError(f"the plan moves job {job!r}, which is pinned to {before[job]}")
        self._commit(plan, changes)
        return changes

    def _commit(self, plan: Mapping[str, Allocation], changes: Changes) -> None:
        for job in changes.stopped:
            self.release(job)
        for job, _, _ in changes.changed:
            self.release(job)
        fresh = [*changes.started, *(job for job, _, _ in changes.changed)]
        touched: dict[str, None] = {}
        nodes, used, of_type = self._cluster.nodes, self._used, self.gpus_used
        for job in fresh:
            allocation = plan[job]
            if len(allocation.nodes) == 1 and not allocation.mixture:  # most allocations, in one look
                ((name, gpus),) = allocation.nodes
                kind, node = allocation.gpu_type, nodes.get(name)
                if node is not None and node.gpu_type == kind and gpus == allocation.gpus >= 1:
                    of_type[kind], used[name] = of_type.get(kind, 0) + gpus, used.get(name, 0) + gpus
                    self.allocations[job], touched[name] = allocation, None
                    continue
            self._check_shape(job, allocation)
            self._count(allocation, +1)
            self.allocations[job] = allocation
            for name, _ in allocation.nodes:
                touched[name] = None
        for name in touched:
            if used[name] > nodes[name].gpus:
                jobs = sorted(j for j, a in self.allocations.items() if any(n == name for n, _ in a.nodes))
                raise SimulationError(
                    f"the plan over-commits node {name!r}: {used[name]} GPUs of "
                    f"{nodes[name].gpus} for jobs {', '.join(map(repr, jobs))}"
                )

    def release(self, job: str) -> Allocation | None:
        """Release a job's GPUs and return them; None if it held none."""
        held = self.allocations.pop(job, None)
        if held is not None:
            if len(held.nodes) == 1 and not held.mixture:
                ((node, gpus),) = held.nodes
                self.gpus_used[held.gpu_type] -= held.gpus
                self._used[node] -= gpus
            else:
                self._count(held, -1)
        return held

    def jobs_on(self, nodes: Collection[str]) -> list[str]:
        """Return the ids of the jobs with a GPU on any of these nodes."""
        return [job for job, held in self.allocations.items() if any(node in nodes for node, _ in held.nodes)]

    def _count(self, allocation: Allocation, sign: int) -> None:
        for kind, gpus in allocation.mixture or ((allocation.gpu_type, allocation.gpus),):
            self.gpus_used[kind] = self.gpus_used.get(kind, 0) + sign * gpus
        for node, gpus in allocation.nodes:
            self._used[node] = self._used.get(node, 0) + sign * gpus

    def _check_shape(self, job: str, allocation: Allocation) -> None:
        where = f"the plan's allocation of job {job!r}"
        for kind in allocation.by_type:
            if kind not in self._cluster.types:
                raise SimulationError(f"{where} names the GPU type {kind!r}, which the cluster lacks")
        if len({node for node, _ in allocation.nodes}) != len(allocation.nodes):
            raise SimulationError(f"{where} names a node twice: {allocation.nodes}")
        total = dict.fromkeys(allocation.by_type, 0)
        for name, gpus in allocation.nodes:
            node = self._cluster.nodes.get(name)
            if node is None:
                raise SimulationError(f"{where} names node {name!r}, which the cluster lacks")
            if node.gpu_type not in total:
                wants = ", ".join(map(repr, total))
                raise SimulationError(f"{where} wants {wants}, but node {name!r} has {node.gpu_type!r}")
            if gpus < 1:
                raise SimulationError(f"{where} takes {gpus} GPUs of node {name!r}; it must take 1 or more")
            total[node.gpu_type] += gpus
        if total != allocation.by_type or sum(total.values()) != allocation.gpus or allocation.gpus == 0:
            raise SimulationError(f"{where} is {allocation.gpus} GPUs, but its nodes add up to {sum(total.values())}")
