"""The GPUs of running jobs as a draft needs them: kept from round to round, and derived again only after a change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import takewhile

from copter_frontends.policies.hops.draft import Present, gain_on
from copter_frontends.policies.hops.formulation import NONE
from copter_frontends.policies.hops.job_book import JobBook
from copter_frontends.policies.hops.offers import PACKED, SPREAD
from copter_frontends.policies.hops.server_groups import ServerGroups
from copter_frontends.vocabulary import Allocation, Job


class Presence:
    """The :class:`Present` of every job that has GPUs.

    Parameters
    ----------
    book : JobBook
    stay_bonus : float
        See :class:`.HopsPolicy`.
    """

    def __init__(self, book: JobBook, stay_bonus: float) -> None:
        self.book, self.stay_bonus = book, stay_bonus
        self._made: dict[str, Present] = {}
        self._spare: dict[str, Present] = {}  # of jobs that hold the same GPUs anew
        self._groups: ServerGroups | None = None
        self._changes = -1  # of the book, when the entries were made

    def forget(self, job_ids: Iterable[str]) -> None:
        """Note that jobs have lost their GPUs, or have others."""
        made, spare = self._made, self._spare
        for job_id in job_ids:
            made.pop(job_id, None)
            spare.pop(job_id, None)

    def renew(self, job_id: str) -> None:
        """Note that a job holds the same GPUs anew."""
        known = self._made.pop(job_id, None)
        if known is not None:
            self._spare[job_id] = known

    def of(self, held: dict[str, Allocation], jobs: Mapping[str, Job], groups: ServerGroups) -> Mapping[str, Present]:
        """Return the entries of all jobs that have GPUs, in the order of `held`; only unknown ones are made.

        What a job holds anew is last in `held`, and so are all entries that are not known.
        """
        if self._groups is not groups or self._changes != self.book.changes:
            self._made.clear()
            self._spare.clear()
            self._groups, self._changes = groups, self.book.changes
        fresh = list(takewhile(lambda job_id: job_id not in self._made, reversed(held)))
        for job_id in reversed(fresh):
            known = self._spare.pop(job_id, None)
            self._made[job_id] = known or self._present(jobs[job_id], held[job_id], groups)
        return self._made

    def _present(self, job: Job, held: Allocation, groups: ServerGroups) -> Present:
        shares, offers, gpus = groups.shares(held.nodes), self.book.offers.get(job.id), held.gpus
        kind = PACKED if len(shares) == 1 else SPREAD
        if offers is None:
            return Present(kind, gpus, shares, NONE, 0.0)
        if kind == PACKED:
            column = offers.at(PACKED, groups.group_of[held.nodes[0][0]], gpus)
            gain = float(offers.gain[column]) if column != NONE else 0.0
        else:
            there = {groups.group_of[node] for node, _ in held.nodes}
            column = offers.at(SPREAD, min(there), gpus) if len(there) == 1 else NONE
            slowdown = partial(self.book.slowdown, job, groups)
            gain = gain_on(offers, SPREAD, gpus, there, len(shares), slowdown)
        return Present(kind, gpus, shares, column, gain + self.stay_bonus if column != NONE and gain > 0.0 else gain)
