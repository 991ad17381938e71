"""POP-k: a problem split into k problems on equal parts of the cluster (Narayanan et al., SOSP '21)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from copter.runtime.errors import SettingsError
from copter_frontends.policy_kit import plan_between, require_gpus
from copter_frontends.vocabulary import (
    Allocation,
    CapacityInUseError,
    Cluster,
    DuplicateJobError,
    InvalidClusterError,
    InvalidJobError,
    Job,
    Plan,
    PlanStatus,
    SchedulingPolicy,
    UnknownJobError,
)

MakePart = Callable[[Cluster], SchedulingPolicy]


class PopPolicy(SchedulingPolicy):
    """Any policy, run on parts of the cluster, each with its own jobs (docs/papers/baselines.md, B35-B37).

    Whole nodes are assigned round robin, type by type. Each type continues with the part after the last one, so that
    remainders spread over the parts and no GPU is left out. A job's part is a seeded hash of its id; if it fits on none
    of that part's types, the next part in the job's seeded order is tried. There are at most as many parts as nodes.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    make : callable (cluster) -> SchedulingPolicy
        Makes the policy of a part.
    parts : int
    seed : int

    Raises
    ------
    SettingsError
        If the number of parts is below 1.
    """

    def __init__(self, cluster: Cluster, make: MakePart, parts: int = 16, seed: int = 0) -> None:
        if parts < 1:
            raise SettingsError(f"parts is {parts}, must be >= 1")
        require_gpus(cluster)
        self.cluster, self.seed = cluster.copy(), seed
        shares = deal(cluster, min(parts, len(cluster.nodes)))
        self.parts = [make(_part_of(cluster, names)) for names in shares]
        self.round_s = self.parts[0].round_s
        self._part_of_node = {name: at for at, names in enumerate(shares) for name in names}
        self._part_of: dict[str, int] = {}
        self._jobs: dict[str, Job] = {}
        self._facts: dict[str, dict[str, Any]] = {}
        self._pins: dict[str, Allocation] = {}
        self._planned: dict[str, Allocation] = {}

    @property
    def variables(self) -> int:
        """Number of columns of all parts' programs."""
        return sum(part.variables for part in self.parts)

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Assign a job to a part. Raises DuplicateJobError for a known id, InvalidJobError if it fits in no part."""
        if job.id in self._jobs:
            raise DuplicateJobError(f"job {job.id!r} is known already; remove it first")
        order = np.random.default_rng((self.seed, zlib.crc32(job.id.encode()))).permutation(len(self.parts)).tolist()
        for tried, at in enumerate(order):
            try:
                self.parts[at].add_job(job)
            except InvalidJobError:
                if tried + 1 == len(order):
                    raise
                continue
            self._part_of[job.id], self._jobs[job.id], self._facts[job.id] = at, job, {}
            return

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Pass changes to the policy of the job's part."""
        self.parts[self._part(job_id)].update_job(job_id, **what_changed)
        self._facts[job_id].update(what_changed)

    def remove_job(self, job_id: str) -> None:
        """Delete a job; raises UnknownJobError if its id is unknown."""
        self.parts[self._part(job_id)].remove_job(job_id)
        for table in (self._part_of, self._jobs, self._facts):
            del table[job_id]
        self._pins.pop(job_id, None)
        self._planned.pop(job_id, None)

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs as whole nodes, each to the part with the fewest nodes of the type."""
        for node in self.cluster.add_whole_nodes(gpu_type, count, nodes):
            held = [0] * len(self.parts)
            for other in self.cluster.nodes_of(gpu_type):
                if other.id in self._part_of_node:
                    held[self._part_of_node[other.id]] += 1
            at = held.index(min(held))
            self.parts[at].add_resources(gpu_type, node.gpus, [node.id])
            self._part_of_node[node.id] = at

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Remove `count` GPUs of a type as whole nodes (the newest, unless named); jobs on them are re-planned."""
        doomed = self.cluster.choose_whole_nodes(gpu_type, count, nodes)
        for job_id, pin in self._pins.items():
            if any(node in doomed for node, _ in pin.nodes):
                raise CapacityInUseError(
                    f"cannot remove {gpu_type!r} nodes: job {job_id!r} is pinned to one; unpin it first"
                )
        by_part: dict[int, list[str]] = {}
        for name in sorted(doomed):
            by_part.setdefault(self._part_of_node.pop(name), []).append(name)
        self.cluster.remove_nodes(doomed)
        size = self.cluster.type_of(gpu_type).gpus_per_node
        for at, names in by_part.items():
            self.parts[at].remove_resources(gpu_type, size * len(names), names)

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Pin a job to exactly this allocation, in the part that owns its nodes; None ends the pin.

        Raises
        ------
        InvalidClusterError
            If the nodes are not all in one part.
        """
        at = self._part(job_id)
        if allocation is None:
            self.parts[at].pin(job_id, None)
            self._pins.pop(job_id, None)
            return
        owners = {self._part_of_node.get(node) for node, _ in allocation.nodes}
        owner = owners.pop() if len(owners) == 1 else None
        if owner is None:
            raise InvalidClusterError(
                f"cannot pin job {job_id!r}: no part of the cluster has all nodes of {allocation}"
            )
        if owner != at:
            self._hand_over(job_id, at, owner, allocation)
        else:
            self.parts[owner].pin(job_id, allocation)
        self._pins[job_id] = allocation

    # The round ----------------------------------------------------------------------------------------------------

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Plan every part and put the plans together.

        The parts are independent and could run in parallel, so the timings are the largest over the parts. The bound
        holds for plans that respect the split.
        """
        plans = [part.plan(now_s, deadline_s) for part in self.parts]
        objective, bound = sum(plan.objective for plan in plans), sum(plan.bound for plan in plans)
        now = {job_id: held for plan in plans for job_id, held in plan.allocations.items()}
        before, self._planned = self._planned, now
        stages = dict.fromkeys(stage for plan in plans for stage in plan.timings)
        optimal = all(plan.status is PlanStatus.OPTIMAL for plan in plans) and len(plans) == 1
        return replace(
            plan_between(before, now, objective, bound),
            prices=self._prices(plans),
            fractional_jobs=sum(plan.fractional_jobs for plan in plans),
            skipped={job_id: why for plan in plans for job_id, why in plan.skipped.items()},
            status=PlanStatus.OPTIMAL if optimal else PlanStatus.FEASIBLE,
            timings={stage: max(plan.timings.get(stage, 0.0) for plan in plans) for stage in stages},
        )

    # Inside -------------------------------------------------------------------------------------------------------

    def _part(self, job_id: str) -> int:
        try:
            return self._part_of[job_id]
        except KeyError:
            raise UnknownJobError(f"unknown job {job_id!r}: never added, or already removed") from None

    def _hand_over(self, job_id: str, before: int, after: int, allocation: Allocation) -> None:
        """Move a job with all its data to another part and pin it there; on an error nothing changes."""
        self.parts[after].add_job(self._jobs[job_id])
        try:
            if self._facts[job_id]:
                self.parts[after].update_job(job_id, **self._facts[job_id])
            self.parts[after].pin(job_id, allocation)
        except Exception:
            self.parts[after].remove_job(job_id)
            raise
        self.parts[before].remove_job(job_id)
        self._part_of[job_id] = after

    def _prices(self, plans: list[Plan]) -> dict[str, float]:
        """Return the means of the parts' prices, weighted by their GPUs of the type."""
        result = {}
        for kind in self.cluster.types:
            gpus = [0] * len(plans)
            for node in self.cluster.nodes_of(kind):
                gpus[self._part_of_node[node.id]] += node.gpus
            total = sum(gpus)
            priced = sum(count * plan.prices.get(kind, 0.0) for count, plan in zip(gpus, plans, strict=True))
            result[kind] = priced / total if total else 0.0
        return result


def deal(cluster: Cluster, parts: int) -> list[list[str]]:
    """Assign the nodes to the parts, type by type; each type continues with the part after the last one."""
    shares: list[list[str]] = [[] for _ in range(parts)]
    dealt = 0
    for kind in cluster.types:
        for node in cluster.nodes_of(kind):
            shares[dealt % parts].append(node.id)
            dealt += 1
    return shares


def _part_of(cluster: Cluster, names: list[str]) -> Cluster:
    part, kept = cluster.copy(), set(names)
    part.remove_nodes([name for name in cluster.nodes if name not in kept])
    return part
