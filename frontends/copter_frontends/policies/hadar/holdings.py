"""The jobs' current GPUs and pins, kept consistent between servers and formulation."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from copter_frontends.policies.hadar.formulation import HadarFormulation
from copter_frontends.policies.hadar.servers import Servers
from copter_frontends.policy_kit import jobs_on, jobs_to_stop
from copter_frontends.vocabulary import Allocation


class Holdings:
    """Allocations and pins of the jobs.

    Parameters
    ----------
    servers : Servers
    formulation : HadarFormulation

    Attributes
    ----------
    held, pins : dict of job id to Allocation
        Current allocations, and allocations of pinned jobs.
    replaced : set of job ids
        Jobs whose allocation has changed otherwise than by :meth:`adopt`, since the caller emptied the set.
    """

    def __init__(self, servers: Servers, formulation: HadarFormulation) -> None:
        self.servers, self.formulation = servers, formulation
        self.held: dict[str, Allocation] = {}
        self.pins: dict[str, Allocation] = {}
        self.replaced: set[str] = set()

    def adopt(self, now: dict[str, Allocation], changed: Collection[str]) -> None:
        """Store the allocations of a placement whose servers are already taken; only `changed` jobs are visited."""
        self.held = now
        book, kinds = self.formulation.book, {name: q for q, name in enumerate(self.servers.types)}
        rows = np.fromiter(map(book.index.__getitem__, changed), dtype=np.intp, count=len(changed))
        held, spread = np.zeros((len(rows), len(kinds)), dtype=np.int64), np.zeros(len(rows), dtype=bool)
        parts = list[tuple[int, int, int]]()  # which of the jobs, type, GPUs
        for at, allocation in enumerate(map(now.get, changed)):
            if allocation is None:
                continue
            if len(allocation.nodes) > 1:
                spread[at] = self.servers.is_spread(allocation)
            if allocation.mixture:
                parts += [(at, kinds[name], gpus) for name, gpus in allocation.mixture]
            else:
                parts.append((at, kinds[allocation.gpu_type], allocation.gpus))
        which, kind, gpus = np.array(parts, dtype=np.int64).reshape(-1, 3).T
        held[which, kind] = gpus
        self.formulation.hold_many(rows, held, spread)

    def release(self, job_id: str) -> None:
        """Release a job's GPUs, if it has any."""
        allocation = self.held.pop(job_id, None)
        if allocation is not None:
            self.replaced.add(job_id)
            self.servers.give(allocation)
            self._tell(job_id, None)

    def remove_jobs(self, job_ids: Collection[str]) -> None:
        """Release jobs' GPUs and their pins; the caller removes the jobs from the formulation."""
        self.servers.nodes.give_all(map(self.held.pop, filter(self.held.__contains__, job_ids)))
        for job_id in filter(self.pins.__contains__, job_ids):
            del self.pins[job_id]

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Pin a job to an allocation; unpinned jobs in its way lose their GPUs. None ends the pin.

        Raises CapacityInUseError and InvalidClusterError as :meth:`.HadarPolicy.pin`.
        """
        if allocation is None:
            self.pins.pop(job_id, None)
        else:
            if self.held.get(job_id) != allocation:
                self._move_onto(job_id, allocation)
            self.pins[job_id] = allocation
        self.formulation.pin(job_id, allocation is not None)

    def remove_nodes(self, gpu_type: str, count: int, nodes: Iterable[str]) -> None:
        """Remove nodes, named or the emptiest, and the GPUs of jobs on them; raises CapacityInUseError."""
        pinned = {node for allocation in self.pins.values() for node, _ in allocation.nodes}
        gone = self.servers.nodes.choose(gpu_type, count, nodes, pinned)
        for job_id in jobs_on(set(gone), self.held):
            self.release(job_id)
        self.servers.nodes.drop(gpu_type, gone)

    def _move_onto(self, job_id: str, allocation: Allocation) -> None:
        parts, nodes = self.servers.checked_parts(job_id, allocation), self.servers.nodes
        others = jobs_to_stop(nodes, job_id, parts, self.held, self.pins, self.servers.parts)
        self.release(job_id)
        for other in others:
            if any(nodes.short_of(part) for part in parts):
                self.release(other)
        self.servers.take(allocation)
        self.replaced.add(job_id)
        self.held[job_id] = allocation
        self._tell(job_id, allocation)

    def _tell(self, job_id: str, allocation: Allocation | None) -> None:
        """Pass a job's current GPUs to the formulation."""
        if allocation is not None:
            self.formulation.hold(job_id, self.servers.bundle(allocation), self.servers.is_spread(allocation))
        elif self.formulation.book.held[self.formulation.book.row(job_id)].any():
            self.formulation.hold(job_id, np.zeros(len(self.servers.types), dtype=np.int64))
