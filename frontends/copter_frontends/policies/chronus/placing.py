"""Nodes for a round: guaranteed jobs consolidated, then jobs that stay, then all others (section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from copter_frontends.policies.chronus.lease_room import LeaseRoom
from copter_frontends.policies.chronus.local_search import LocalSearch
from copter_frontends.policies.chronus.packing import Parcel, pack, pack_rounded, without_rounding
from copter_frontends.policies.chronus.rounding import round_up
from copter_frontends.policy_kit import NodeInventory
from copter_frontends.vocabulary import Allocation, Job


@dataclass(slots=True)
class LeasePlacer:
    """Assigns free nodes to jobs.

    Parameters
    ----------
    nodes : NodeInventory
        The assigned GPUs are taken from it.
    search : LocalSearch
        Placement of small best-effort jobs.

    Attributes
    ----------
    room : LeaseRoom or None
        Room for jobs that join the lease of the last :meth:`place`; None if the nodes have changed since.
    """

    nodes: NodeInventory
    search: LocalSearch
    room: LeaseRoom | None = field(default=None, init=False)

    def place(
        self,
        guaranteed: Sequence[Parcel],
        wanted: Mapping[str, tuple[str, int]],
        before: Mapping[str, Allocation],
        jobs: Mapping[str, Job],
    ) -> dict[str, Allocation]:
        """Return allocations by job id; jobs without room are left out.

        Parameters
        ----------
        guaranteed : sequence of Parcel
            Jobs with the current lease.
        wanted : mapping of job id to (GPU type, GPUs)
            All jobs, in order of precedence.
        before : mapping of job id to Allocation
            Previous allocations, whose GPUs are free now.
        jobs : mapping of job id to Job
        """
        packed, leased = pack_rounded(self.nodes, guaranteed), {parcel.job_id for parcel in guaranteed}
        self.room = LeaseRoom(self.nodes)
        placed = without_rounding(self.nodes, guaranteed, packed)
        rest: dict[str, dict[str, int]] = {kind: {} for kind in self.nodes.types}
        for job_id, (kind, gpus) in wanted.items():
            if job_id in placed:
                continue
            had = before.get(job_id)
            same = had is not None and had.gpu_type == kind and had.gpus == gpus
            if had is not None and same and self.nodes.has_room(kind, had.nodes):
                self._take(placed, job_id, had)
            elif job_id not in leased:
                rest[kind][job_id] = gpus
        for kind, own in rest.items():
            self._place_type(kind, own, jobs, placed)
        return placed

    def _place_type(
        self, kind: str, wanted: Mapping[str, int], jobs: Mapping[str, Job], placed: dict[str, Allocation]
    ) -> None:
        """Place jobs of two and more nodes consolidated if possible, then the other jobs as a batch (section 3.4.2)."""
        size = self.nodes.node_gpus(kind)
        large = [Parcel(j, kind, gpus, round_up(gpus, size)) for j, gpus in wanted.items() if gpus >= 2 * size]
        placed.update(pack(self.nodes, large))
        small = [(jobs[j], gpus) for j, gpus in wanted.items() if gpus < 2 * size]
        for job_id, shares in self.search.place(self.nodes, kind, small).items():
            self._take(placed, job_id, Allocation(kind, wanted[job_id], shares))

    def _take(self, placed: dict[str, Allocation], job_id: str, allocation: Allocation) -> None:
        self.nodes.take(allocation)
        placed[job_id] = allocation
