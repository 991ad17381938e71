"""Realisation of a draft on servers: jobs that keep servers, jobs that get new ones, and the plan's final worth
(H15).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from copter_frontends.policies.hadar.formulation import HadarFormulation
from copter_frontends.policies.hadar.job_book import Ints
from copter_frontends.policies.hadar.servers import Servers
from copter_frontends.policies.hadar.shim import Draft
from copter_frontends.vocabulary import Allocation


def place(
    draft: Draft,
    servers: Servers,
    held: Mapping[str, Allocation],
    spread_cost: float,
    wanted: Mapping[int, Allocation] | None = None,
    avoided: Mapping[str, Collection[str]] | None = None,
) -> tuple[dict[str, Allocation], float, bool, set[str]]:
    """Assign servers to a draft's jobs, or keep the last plan if that is worth more.

    Parameters
    ----------
    draft : Draft
    servers : Servers
        Changed in place.
    held : mapping of job id to Allocation
        Current allocations of jobs.
    spread_cost : float
    wanted : mapping of row to Allocation, optional
        Servers that are already chosen; then the last plan is not kept.
    avoided : mapping of job id to servers, optional
        Servers that a job is put on only if there are no others.

    Returns
    -------
    dict of job id to Allocation
    float
        Value of the plan.
    bool
        Whether it is the last plan.
    set of job ids
        Jobs whose allocation may have changed.
    """
    placement = Placement(servers, draft.formulation, held, avoided or {})
    objective = placement.carry_out(draft, spread_cost, wanted)
    if wanted is None:
        stay = Draft(draft.formulation, draft.prices)
        if draft.stay is None:
            stay.keep()
            draft.stay = stay.value()
        if draft.stay > objective:
            stay.keep()
            placement.undo()
            objective = placement.carry_out(stay, spread_cost)
            return placement.now, objective, True, placement.changed
    return placement.now, objective, False, placement.changed


class Placement:
    """One round's placement, which can be undone as a whole.

    Parameters
    ----------
    servers : Servers
        Changed in place.
    formulation : HadarFormulation
    held : mapping of job id to Allocation
        Current allocations of jobs; not to be changed before the placement is used or undone.
    avoided : mapping of job id to servers
        Servers that a job is put on only if there are no others.

    Attributes
    ----------
    now : dict of job id to Allocation
        Allocations after the placement.
    changed : set of job ids
        Jobs whose allocation may have changed.
    """

    def __init__(
        self,
        servers: Servers,
        formulation: HadarFormulation,
        held: Mapping[str, Allocation],
        avoided: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.servers, self.formulation, self.avoided = servers, formulation, avoided or {}
        self.before, self.now = held, dict(held)
        self.changed: set[str] = set()

    def undo(self) -> None:
        """Restore every job's previous servers, in the order of ids: servers as free as others are taken in turn."""
        changed = sorted(self.changed)
        for job_id in changed:
            if job_id in self.now:
                self.servers.give(self.now[job_id])
        for job_id in changed:
            if job_id in self.before:
                self.servers.take(self.before[job_id])
        self.now = dict(self.before)
        self.changed.clear()

    def carry_out(self, draft: Draft, spread_cost: float, wanted: Mapping[int, Allocation] | None = None) -> float:
        """Place a draft's bundles; returns the plan's worth on the servers found.

        Parameters
        ----------
        draft : Draft
            The draft; a bundle is changed if the job is worth more on another type than spread over servers of this
            one.
        spread_cost : float
        wanted : mapping of row to Allocation, optional
            Servers that are already chosen; they are free after the jobs that lose theirs have left.
        """
        book, values = self.formulation.book, draft.values
        leave = (draft.bundles != book.held).any(axis=1)
        if wanted is not None:  # equal GPUs may be on other servers
            same = np.flatnonzero(~leave & book.held.any(axis=1)).tolist()
            leave[[row for row in same if wanted.get(row) != self.now.get(book.ids[row])]] = True
        leaving = book.ids_at(np.flatnonzero(leave))
        self.changed.update(leaving)
        self.servers.nodes.give_all(map(self.now.pop, filter(self.now.__contains__, leaving)))
        pending = np.flatnonzero(leave & draft.bundles.any(axis=1))
        bundles = draft.bundles[pending]
        kinds = np.where((bundles > 0).sum(axis=1) == 1, bundles.argmax(axis=1), -1)  # of several types: -1
        size, names, gpus_of = (-book.gpus[pending]).tolist(), book.ids_at(pending), bundles.sum(axis=1).tolist()
        order = sorted(zip(size, names, pending.tolist(), kinds.tolist(), gpus_of, strict=True))
        lost = 0.0
        take_whole, now, avoided = self.servers.take_whole, self.now, self.avoided
        for _, job_id, row, kind, gpus in order:
            if wanted is None and kind >= 0 and job_id not in avoided:
                found = take_whole(kind, gpus)
                if found is not None:
                    now[job_id] = found
                    continue
            allocation = self._servers_for(draft, row, spread_cost) if wanted is None else wanted[row]
            self.servers.take(allocation)
            now[job_id] = allocation
            if not allocation.mixture and self.servers.is_spread(allocation):
                kind = self.servers.types.index(allocation.gpu_type)
                lost += spread_cost * float(values.pure[row, kind])
        return draft.worth() - lost - self.formulation.posted_cost(draft.bundles.sum(axis=0))

    def _servers_for(self, draft: Draft, row: int, spread_cost: float) -> Allocation:
        """Return servers for a bundle; if it would be spread, possibly those of another, unspread type of larger
        worth.
        """
        rates = draft.values.rate[row]
        bundle = draft.bundles[row]
        avoided = self.avoided.get(draft.book.ids[row])
        if avoided:
            elsewhere = self.servers.find_without(bundle.tolist(), rates, avoided)
            if elsewhere is not None:
                return elsewhere
        result = self.servers.find(bundle.tolist(), rates)
        if not self.servers.is_spread(result) or spread_cost == 0:
            return result
        pure = draft.values.pure[row]
        kind = self.servers.types.index(result.gpu_type)
        spread = float(draft.values.mixed[row, kind]) if result.mixture else (1 - spread_cost) * float(pure[kind])
        gpus = int(draft.book.gpus[row])
        for q in np.argsort(-pure, kind="stable").tolist():
            if pure[q] <= spread:
                break
            if draft.left[q] < gpus or q == kind:
                continue
            other: Ints = np.zeros_like(bundle)
            other[q] = gpus
            instead = self.servers.find(other.tolist(), rates)
            if not self.servers.is_spread(instead):
                draft.replace(row, other)
                return instead
        return result
