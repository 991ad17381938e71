"""From the present data of a round to the wishes of jobs and to drafts of plans, on servers in groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter, mul

from copter_frontends.policies.hops.draft import Draft, Present, SharesOf
from copter_frontends.policies.hops.formulation import NONE, WEIGHT, Wish
from copter_frontends.policies.hops.job_book import JobBook
from copter_frontends.policies.hops.latency_ratio import Weights
from copter_frontends.policies.hops.server_groups import ServerGroups
from copter_frontends.policies.hops.shim import fill
from copter_frontends.vocabulary import Allocation, Job

ROUNDING = 1e-12  # relative difference up to which two plans are worth the same
GAIN = attrgetter("gain")


@dataclass(frozen=True, slots=True)
class Drafting:
    """Turns the data of the present round into wishes of jobs, a first draft, and allocations from a draft.

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
    present: Mapping[str, Present]
    weight: Weights
    stay_bonus: float

    def wish(self, job: str) -> Wish:
        """Return what a job asks of this plan: its offers, its weight and its current column."""
        here = self.present.get(job)
        return Wish(self.book.offers[job], self.weight[job], NONE if here is None else here.column)

    def wishes(self, jobs: Collection[str]) -> dict[str, Wish]:
        """Return :meth:`wish` of many jobs."""
        here = map(self.present.get, jobs)
        columns = [NONE if each is None else each.column for each in here]
        offers = map(self.book.offers.__getitem__, jobs)
        each = zip(offers, self.weight.of(jobs), columns, strict=True)
        return dict(zip(jobs, map(tuple.__new__, repeat(Wish), each), strict=True))  # Wish(...) is a call of Python's

    def draft(self, kept: Mapping[str, Allocation]) -> Draft:
        """Return a draft in which the jobs of `kept` keep their GPUs and all other GPUs are free."""
        book, groups = self.book, self.groups

        def slowdown(job: str, group: int, gpus: int, nodes: int) -> float:
            return book.slowdown(self.jobs[job], groups, group, gpus, nodes)

        def late_wish(job: str) -> Wish | None:
            return self.wish(job) if job in book.offers else None

        draft = Draft(groups, groups.size, SharesOf(self.present), slowdown, self.stay_bonus, late_wish)
        present = self.present if kept is self.held else {job: self.present[job] for job in kept}
        draft.hold_all(present, self.weight.of(present))
        draft.fixed.update(job for job in self.pins if job in kept)
        return draft

    def better_kept(self, draft: Draft, pinned: Draft) -> Draft | None:
        """Return the current plan, filled up, if it is worth more than the draft; otherwise None."""
        present, pins = self.present, pinned.placed
        kept = {
            job: wish
            for job, wish, here in zip(draft.wishes, draft.wishes.values(), map(present.get, draft.wishes), strict=True)
            if here is not None and here.gain > 0.0 and job not in pins
        }
        gains = map(GAIN, map(present.__getitem__, kept))
        value = pinned.value + sum(map(mul, map(WEIGHT, kept.values()), gains))
        if value <= draft.value + ROUNDING * abs(draft.value):
            return None
        pinned.hold_all({job: present[job] for job in kept}, list(map(WEIGHT, kept.values())))
        pinned.admit(draft.wishes)
        fill(pinned)
        return pinned

    def allocations(self, draft: Draft) -> dict[str, Allocation]:
        """Return the allocation of every placed job; unmoved jobs keep theirs."""
        held, placed, present = self.held, draft.placed, self.present
        changed, allocation = draft.changed, self.groups.allocation
        result = dict(held) if draft.kept is present else {job: held[job] for job in draft.kept}
        for job in result.keys() & changed.keys():
            del result[job]
        for job, had, here in zip(changed, map(placed.get, changed), map(present.get, changed), strict=True):
            if had is not None:
                shares = had.shares
                stays = here is not None and (here.shares is shares or here.shares == shares)
                result[job] = held[job] if stays else allocation(shares)
        return result
