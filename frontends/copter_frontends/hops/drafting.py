"""Construction of drafts and wishes for one plan, on servers in groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from copter_frontends.hops.draft import Draft, Shares
from copter_frontends.hops.formulation import NONE, Wish
from copter_frontends.hops.job_book import JobBook
from copter_frontends.hops.offers import PACKED, SPREAD, Offers
from copter_frontends.hops.server_groups import ServerGroups
from copter_frontends.hops.shim import fill
from copter_frontends.vocabulary import Allocation, Job


@dataclass(frozen=True, slots=True)
class Drafting:
    """Makes wishes and drafts from the present data.

    Parameters
    ----------
    groups : ServerGroups
    book : JobBook
    jobs : mapping of job id to Job
    held : mapping of job id to Allocation
        Current allocations of jobs.
    pins : mapping of job id to Allocation
        Allocations that jobs must keep.
    weight : mapping of job id to float
        Priority weights of the jobs with offers.
    stay_bonus : float
        See :class:`.HopsPolicy`.
    """

    groups: ServerGroups
    book: JobBook
    jobs: Mapping[str, Job]
    held: Mapping[str, Allocation]
    pins: Mapping[str, Allocation]
    weight: Mapping[str, float]
    stay_bonus: float

    def wish(self, job: str) -> Wish:
        """Return a job's wish for this plan."""
        offers = self.book.offers[job]
        return Wish(offers, self.weight[job], self.present_column(offers, self.held.get(job)))

    def draft(self, kept: Mapping[str, Allocation]) -> Draft:
        """Return a draft in which these jobs keep their GPUs."""
        held = {job: self.groups.shares(each.nodes) for job, each in self.held.items()}
        book, groups = self.book, self.groups

        def slowdown(job: str, group: int, gpus: int, nodes: int) -> float:
            return book.slowdown(self.jobs[job], groups, group, gpus, nodes)

        draft = Draft(groups, groups.size, held, slowdown, self.stay_bonus)
        draft.admit({job: self.wish(job) for job in kept if job in book.offers})
        for job in kept:
            draft.hold(job, held[job], job in self.pins)
        return draft

    def better_kept(self, draft: Draft, pinned: Draft) -> Draft | None:
        """Return the current plan, filled up, if it is worth more than the draft; otherwise None."""
        pinned.admit({job: each for job, each in draft.wishes.items() if job not in pinned.wishes})
        for job in draft.wishes:
            had = draft.held.get(job)
            if had is not None and job not in pinned.placed:
                kind = PACKED if len(had) == 1 else SPREAD
                pinned.put(job, kind, sum(count for _, count in had), had)
        if pinned.value <= draft.value:
            return None
        fill(pinned)
        return pinned

    def present_column(self, offers: Offers, held: Allocation | None) -> int:
        """Return the column of a job's current GPUs; -1 without GPUs or with servers of several groups."""
        if held is None:
            return NONE
        of, nodes = self.groups.group_of, held.nodes
        group = of[nodes[0][0]]
        if len(nodes) == 1:
            return offers.at(PACKED, group, held.gpus)
        return offers.at(SPREAD, group, held.gpus) if all(of[node] == group for node, _ in nodes) else NONE

    def allocations(self, draft: Draft) -> dict[str, Allocation]:
        """Return the allocation of every placed job; unmoved jobs keep theirs."""
        had = draft.held
        return {
            job: self.held[job] if had.get(job) == each.shares else self.allocation(each.shares)
            for job, each in draft.placed.items()
        }

    def allocation(self, shares: Shares) -> Allocation:
        """Return a draft's servers as an allocation."""
        kind = self.groups.groups[int(self.groups.group[shares[0][0]])].gpu_type
        nodes = tuple(sorted([(self.groups.ids[server], gpus) for server, gpus in shares]))
        return Allocation(kind, sum([gpus for _, gpus in shares]), nodes)
