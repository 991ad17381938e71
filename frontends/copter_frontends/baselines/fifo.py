"""First come, first served: rigid jobs, started in order of submission and never moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from copter_frontends.baselines.free_gpus import FreeGpus
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
    UnknownGpuTypeError,
    UnknownJobError,
)

CanRun = Callable[[Job, str, int], bool]
_FACTS = frozenset({"progress", "restarts", "max_profiled_gpus"})


class FifoPolicy:
    """First-come-first-served scheduling of rigid jobs, as the papers' YARN capacity-scheduler baseline.

    A job gets exactly the GPUs that its user asked for (kept within its `min_gpus` and `max_gpus`), all of one type, on
    as few nodes as can be, and keeps them to its end. Among the types with room it goes to the one with the most free
    GPUs; ties go to the cluster's order. It knows nothing of speeds.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    backfill : bool
        Whether jobs that fit may pass a job that does not. Without it the first job that does not fit holds the queue.
    round_s : float
        Seconds between plans.
    can_run : callable (job, GPU type, GPUs) -> bool, optional
        Says where a job can run at all; by default anywhere.
    """

    def __init__(
        self, cluster: Cluster, backfill: bool = True, round_s: float = 60.0, can_run: CanRun | None = None
    ) -> None:
        self.round_s = round_s
        self.backfill = backfill
        self._can_run: CanRun = can_run or (lambda job, gpu_type, gpus: True)
        self._node_gpus = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
        self._free = {name: FreeGpus(gpus) for name, gpus in self._node_gpus.items()}
        for node in cluster.nodes.values():
            self._free[node.gpu_type].add(node.id)
        self._made = dict.fromkeys(self._node_gpus, 0)
        self._jobs: dict[str, Job] = {}
        self._order: dict[str, tuple[float, int]] = {}
        self._arrivals = 0
        self._held: dict[str, Allocation] = {}
        self._planned: dict[str, Allocation] = {}
        self._pins: dict[str, Allocation] = {}

    def add_job(self, job: Job) -> None:
        """Queue a job. DuplicateJobError if the id is known, InvalidJobError if it fits nowhere in the cluster."""
        if job.id in self._jobs:
            raise DuplicateJobError(f"job {job.id!r} is in the queue already; remove it first")
        gpus = _gpus_of(job)
        if not any(self._fits_empty(job, kind, gpus) for kind in self._free):
            sizes = ", ".join(f"{k}: {len(list(f.nodes)) * self._node_gpus[k]}" for k, f in self._free.items())
            raise InvalidJobError(f"job {job.id!r}: its {gpus} GPUs fit on no GPU type that can run it ({sizes})")
        self._jobs[job.id] = job
        self._order[job.id] = (job.submit_s, self._arrivals)
        self._arrivals += 1

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Check the id and the names of what changed; FIFO's decisions depend on none of it."""
        self._job(job_id)
        unknown = sorted(set(what_changed) - _FACTS)
        if unknown:
            raise TypeError(
                f"unknown fact {', '.join(unknown)} of job {job_id!r}; there are {', '.join(sorted(_FACTS))}"
            )

    def remove_job(self, job_id: str) -> None:
        """Forget a job and free its GPUs. UnknownJobError if the id is not known."""
        self._job(job_id)
        self._release(job_id)
        self._pins.pop(job_id, None)
        self._planned.pop(job_id, None)
        del self._jobs[job_id], self._order[job_id]

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes, named or not."""
        names = self._whole_nodes(gpu_type, count, nodes)
        known = [name for name in names if any(name in free.nodes for free in self._free.values())]
        if known:
            raise InvalidClusterError(f"cannot add nodes that are there already: {', '.join(known)}")
        for name in names or self._new_names(gpu_type, count // self._node_gpus[gpu_type]):
            self._free[gpu_type].add(name)

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Take `count` GPUs of a type away as whole nodes: those named, or else the emptiest, newest first.

        Jobs on them go back to their place in the queue. CapacityInUseError if a pinned job is on one, or if there are
        not so many GPUs.
        """
        names = self._whole_nodes(gpu_type, count, nodes)
        free = self._free[gpu_type]
        have = list(free.nodes)
        if count > len(have) * self._node_gpus[gpu_type]:
            total = len(have) * self._node_gpus[gpu_type]
            raise CapacityInUseError(f"cannot take {count} {gpu_type!r} GPUs away: there are {total}")
        missing = [name for name in names if name not in free.nodes]
        if missing:
            raise InvalidClusterError(f"cannot remove {gpu_type!r} nodes that are not there: {', '.join(missing)}")
        pinned = {node for pin in self._pins.values() for node, _ in pin.nodes}
        if not names:
            movable = [name for name in reversed(have) if name not in pinned]
            names = sorted(movable, key=free.free_on, reverse=True)[: count // self._node_gpus[gpu_type]]
        stuck = [name for name in names if name in pinned]
        if stuck or len(names) * self._node_gpus[gpu_type] < count:
            raise CapacityInUseError(
                f"cannot take {count} {gpu_type!r} GPUs away: pinned jobs use {', '.join(stuck) or 'the rest'}; "
                "unpin them first"
            )
        gone = set(names)
        for job_id in [j for j, held in self._held.items() if any(node in gone for node, _ in held.nodes)]:
            self._release(job_id)
        for name in names:
            free.drop(name)

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Keep a job on exactly this allocation until unpinned with None.

        CapacityInUseError if the GPUs are not free, InvalidClusterError if they are not there.
        """
        self._job(job_id)
        if allocation is None:
            self._pins.pop(job_id, None)
            return
        self._check_allocation(job_id, allocation)
        before = self._held.get(job_id)
        self._release(job_id)
        free = self._free[allocation.gpu_type]
        short = [node for node, gpus in allocation.nodes if free.free_on(node) < gpus]
        if short:
            if before is not None:
                self._hold(job_id, before)
            raise CapacityInUseError(f"cannot pin job {job_id!r}: other jobs use the GPUs of {', '.join(short)}")
        self._hold(job_id, allocation)
        self._pins[job_id] = allocation

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Start what fits, in order of submission. Takes no notice of the deadline: it has nothing to search."""
        begun = perf_counter()
        queue = sorted((j for j in self._jobs if j not in self._held), key=self._order.__getitem__)
        full: set[tuple[str, int]] = set()  # (type, GPUs) for which there is no room
        for job_id in queue:
            found = self._place(self._jobs[job_id], full)
            if found is not None:
                self._hold(job_id, found)
            elif not self.backfill:
                break
        before, now = self._planned, dict(self._held)
        self._planned = dict(now)
        value = float(sum(held.gpus for held in now.values()))
        return Plan(
            allocations=now,
            start=tuple(j for j in now if j not in before),
            stop=tuple(j for j in before if j not in now),
            move=tuple(j for j, held in now.items() if j in before and before[j] != held),
            objective=value,
            bound=value,
            status=PlanStatus.FEASIBLE,
            timings={"solve": 0.0, "shim": 0.0, "place": perf_counter() - begun},
        )

    def _place(self, job: Job, full: set[tuple[str, int]]) -> Allocation | None:
        gpus = _gpus_of(job)
        kinds = [k for k in self._free if (k, gpus) not in full and self._can_run(job, k, gpus)]
        for kind in sorted(kinds, key=lambda k: -self._free[k].gpus):
            shares = self._free[kind].find(gpus)
            if shares is not None:
                return Allocation(kind, gpus, shares)
            full.add((kind, gpus))
        return None

    def _fits_empty(self, job: Job, gpu_type: str, gpus: int) -> bool:
        capacity = len(list(self._free[gpu_type].nodes)) * self._node_gpus[gpu_type]
        return gpus <= capacity and self._can_run(job, gpu_type, gpus)

    def _hold(self, job_id: str, allocation: Allocation) -> None:
        self._free[allocation.gpu_type].take(allocation.nodes)
        self._held[job_id] = allocation

    def _release(self, job_id: str) -> None:
        held = self._held.pop(job_id, None)
        if held is not None:
            self._free[held.gpu_type].give(held.nodes)

    def _job(self, job_id: str) -> Job:
        try:
            return self._jobs[job_id]
        except KeyError:
            raise UnknownJobError(f"job {job_id!r} is not known: never added, or removed already") from None

    def _whole_nodes(self, gpu_type: str, count: int, nodes: Iterable[str]) -> list[str]:
        if gpu_type not in self._node_gpus:
            known = ", ".join(sorted(self._node_gpus))
            raise UnknownGpuTypeError(f"unknown GPU type {gpu_type!r}; the cluster has: {known}")
        size, names = self._node_gpus[gpu_type], list(dict.fromkeys(nodes))
        if count < 0 or count % size or (names and len(names) * size != count):
            named = f" ({len(names)} nodes are named)" if names else ""
            raise InvalidClusterError(f"{count} {gpu_type!r} GPUs{named} are not whole nodes of {size}")
        return names

    def _new_names(self, gpu_type: str, count: int) -> list[str]:
        names: list[str] = []
        while len(names) < count:
            name = f"{gpu_type}-{self._made[gpu_type]}"
            self._made[gpu_type] += 1
            if name not in self._free[gpu_type].nodes:
                names.append(name)
        return names

    def _check_allocation(self, job_id: str, allocation: Allocation) -> None:
        self._whole_nodes(allocation.gpu_type, 0, ())
        free = self._free[allocation.gpu_type]
        missing = [node for node, _ in allocation.nodes if node not in free.nodes]
        if missing:
            raise InvalidClusterError(
                f"cannot pin job {job_id!r}: no {allocation.gpu_type!r} node is named {', '.join(missing)}"
            )
        if sum(gpus for _, gpus in allocation.nodes) != allocation.gpus:
            raise InvalidJobError(f"cannot pin job {job_id!r}: the nodes of {allocation} do not add up to its GPUs")


def _gpus_of(job: Job) -> int:
    """GPUs that the user asked for, within the range that the job runs on."""
    wanted = max(job.requested_gpus, job.min_gpus)
    return wanted if job.max_gpus is None else min(wanted, job.max_gpus)
