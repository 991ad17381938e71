"""A plan under construction: the servers of every job's offer, and the free GPUs (HP24)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np

from copter.runtime.errors import InternalError
from copter_frontends.policies.hops.formulation import NONE, OFFERS, STAYS, WEIGHT, Wish
from copter_frontends.policies.hops.offers import PACKED, SPREAD, Floats, Ints, Offers, OfferTable
from copter_frontends.policies.hops.packing_kernel import give_packed
from copter_frontends.policies.hops.server_groups import ServerGroups
from copter_frontends.policies.hops.ties import without_ties

Shares = tuple[tuple[int, int], ...]  # (server number, GPUs)
Slowdown = Callable[[str, int, int, int], float]
FEW = 100  # so many columns in a row, or fewer, are given one by one: the servers need not be written as arrays


class Placed(NamedTuple):
    """A job's GPUs: size, servers with the GPUs on each, and worth (weight times gain)."""

    kind: int
    gpus: int
    shares: Shares
    value: float


class Present(NamedTuple):
    """A running job's GPUs.

    Attributes
    ----------
    kind, gpus : int
        PACKED on one server, SPREAD on several; number of GPUs.
    shares : Shares
    column : int
        Column of the job's offers; -1 for none, as on servers of several groups.
    gain : float
        Its gain there, with the bonus for staying; zero without such an offer.
    """

    kind: int
    gpus: int
    shares: Shares
    column: int
    gain: float


class Asked(NamedTuple):
    """Columns of jobs, to be given in this order.

    Attributes
    ----------
    jobs : list of str
    columns : list of int
    kind, group, gpus : int64 arrays (n,)
    gain, weight : float64 arrays (n,)
    server : int64 array (n,)
        The present server of a job whose column is the one that it has there; -1 for others.
    held : list of Shares or None
        What these jobs have there; None for others.
    """

    jobs: list[str]
    columns: list[int]
    kind: Ints
    group: Ints
    gpus: Ints
    gain: Floats
    weight: Floats
    server: Ints
    held: list[Shares | None]

    def largest_first(self) -> Asked:
        """Return the entries by GPUs, the most first, then by weight, then by job."""
        order = np.lexsort((-self.weight, -self.gpus))
        gpus, weight = self.gpus[order], self.weight[order]
        tied = (gpus[1:] == gpus[:-1]) & (weight[1:] == weight[:-1])
        return self.take(np.array(without_ties(order, tied, self.jobs.__getitem__), dtype=np.int64))

    def take(self, at: Ints) -> Asked:
        """Return these entries, in this order."""
        chosen = at.tolist()
        return Asked(
            list(map(self.jobs.__getitem__, chosen)),
            list(map(self.columns.__getitem__, chosen)),
            self.kind[at],
            self.group[at],
            self.gpus[at],
            self.gain[at],
            self.weight[at],
            self.server[at],
            list(map(self.held.__getitem__, chosen)),
        )

    def part(self, first: int, end: int) -> Asked:
        """Return the entries from one place to another."""
        return Asked._make([each[first:end] for each in self])


class SharesOf(Mapping[str, Shares]):
    """The servers of running jobs.

    Parameters
    ----------
    present : mapping of job id to Present
    """

    __slots__ = ("_present",)

    def __init__(self, present: Mapping[str, Present]) -> None:
        self._present = present

    def __getitem__(self, job: str) -> Shares:
        return self._present[job].shares

    def get(self, job: str, default: Any = None) -> Any:
        """Return a job's servers; `default` for one that is not running."""
        found = self._present.get(job)
        return default if found is None else found.shares

    def __iter__(self) -> Iterator[str]:
        return iter(self._present)

    def __len__(self) -> int:
        return len(self._present)


class Draft:
    """The servers' free GPUs and the jobs placed so far.

    Parameters
    ----------
    groups : ServerGroups
    free : int64 array (servers,)
    held : mapping of job id to Shares
        Current allocations of jobs.
    slowdown : callable (job id, group, GPUs, nodes) -> float
        Speed on a number of nodes relative to the fewest possible, at most 1.
    stay_bonus : float

    Attributes
    ----------
    placed : dict of job id to Placed or Present
        Jobs with GPUs; :meth:`at` says what they are worth there.
    kept : mapping of job id to Present
        Those that :meth:`hold_all` let keep theirs.
    changed : dict of job id to None
        Jobs placed or taken back since, the last one last.
    """

    def __init__(
        self,
        groups: ServerGroups,
        free: Ints,
        held: Mapping[str, Shares],
        slowdown: Slowdown,
        stay_bonus: float,
        late_wish: Callable[[str], Wish | None] | None = None,
    ) -> None:
        self.groups, self.held = groups, held
        self.wishes: dict[str, Wish] = {}
        self.slowdown, self.stay_bonus, self._late_wish = slowdown, stay_bonus, late_wish
        self.value = 0.0
        self.free: list[int] = free.tolist()
        self.left = [0] * len(groups)  # free GPUs of each group
        self._with_free: list[list[dict[int, None]]] = [[{} for _ in range(g.gpus + 1)] for g in groups.groups]
        self._group: list[int] = groups.group.tolist()
        for server, gpus in enumerate(self.free):
            g = self._group[server]
            self.left[g] += gpus
            self._with_free[g][gpus][server] = None
        self.idle = sum(self.free)
        self._of_type: dict[str, list[int]] = {}
        for g, group in enumerate(groups.groups):
            self._of_type.setdefault(group.gpu_type, []).append(g)
        self.placed: dict[str, Placed | Present] = {}
        self.kept: Mapping[str, Present] = {}
        self.changed: dict[str, None] = {}
        self._kept_values: tuple[Sequence[float], ...] = ()
        self._value_kept: dict[str, float] | None = None  # made when the first is asked for
        self.fixed: set[str] = set()

    # Values -------------------------------------------------------------------------------------------------------

    def wish(self, job: str) -> Wish | None:
        """Return a job's wish; None for a job without any, or one that keeps its GPUs and has no offers."""
        found = self.wishes.get(job)
        return self._late_wish(job) if found is None and self._late_wish is not None else found

    def wish_of(self, job: str) -> Wish:
        """Return the wish of a job that has one."""
        found = self.wish(job)
        if found is None:
            raise InternalError(f"job {job!r} is planned without a wish")
        return found

    def worth(self, job: str, kind: int, gpus: int, shares: Shares) -> float:
        """Return w_i (G_ij + sigma if it stays), limited by the slowest server; 0 if the job has no such offer."""
        wish = self.wish_of(job)
        groups = {self._group[server] for server, _ in shares} if len(shares) > 1 else (self._group[shares[0][0]],)
        gain = gain_on(wish.offers, kind, gpus, groups, len(shares), partial(self.slowdown, job))
        if gain == 0.0:
            return 0.0
        stays = wish.stays != NONE and self.held.get(job) == shares
        return wish.weight * (gain + (self.stay_bonus if stays else 0.0))

    def copy(self) -> Draft:
        """Return an independent copy."""
        other = copy(self)
        other.wishes, other.placed, other.fixed = dict(self.wishes), dict(self.placed), set(self.fixed)
        other.changed = dict(self.changed)
        other.free, other.left = list(self.free), list(self.left)
        other._with_free = [[dict(servers) for servers in buckets] for buckets in self._with_free]
        return other

    # Changes ------------------------------------------------------------------------------------------------------

    def put(self, job: str, kind: int, gpus: int, shares: Shares) -> bool:
        """Give a job these GPUs, if they are free and usable; returns whether they were."""
        for server, count in shares:
            if self.free[server] < count:
                return False
        value = self.worth(job, kind, gpus, shares)
        if value <= 0.0:
            return False
        for server, count in shares:
            self._set(server, self.free[server] - count)
        self._note(job, Placed(kind, gpus, shares, value))
        return True

    def admit(self, wishes: Mapping[str, Wish]) -> None:
        """Add wishes of further jobs."""
        self.wishes.update(wishes)

    def hold(self, job: str, shares: Shares, fixed: bool) -> None:
        """Let a job keep these GPUs regardless of value; a `fixed` (pinned) job is never moved."""
        if fixed:
            self.fixed.add(job)
        gpus = sum(count for _, count in shares)
        kind = PACKED if len(shares) == 1 else SPREAD
        for server, count in shares:
            self._set(server, self.free[server] - count)
        value = self.worth(job, kind, gpus, shares) if job in self.wishes else 0.0
        self._note(job, Placed(kind, gpus, shares, value))

    def hold_all(self, kept: Mapping[str, Present], weights: Sequence[float]) -> None:
        """Let unpinned jobs keep their GPUs, in this order; a job's gain counts with its weight."""
        if not kept:
            return
        _, _, shares, _, gains = zip(*kept.values(), strict=True)
        self._use(shares)
        values = (np.array(weights) * np.array(gains)).tolist()
        self.kept = {**self.kept, **kept} if self.kept else kept
        self._kept_values, self._value_kept = (*self._kept_values, values), None
        self.placed = {**self.placed, **kept} if self.placed else dict(kept)
        self.value += sum(values)

    def at(self, job: str) -> Placed:
        """Return what a placed job has, with its worth."""
        had = self.placed[job]
        if isinstance(had, Present):
            had = self.placed[job] = Placed(had.kind, had.gpus, had.shares, self.value_of(job))
        return had

    def value_of(self, job: str) -> float:
        """Return what a placed job's GPUs are worth."""
        had = self.placed[job]
        if isinstance(had, Placed):
            return had.value
        if self._value_kept is None:
            self._value_kept = dict(zip(self.kept, chain.from_iterable(self._kept_values), strict=True))
        return self._value_kept[job]

    def _note(self, job: str, placed: Placed) -> None:
        """Enter a job that has been given GPUs."""
        self.placed[job] = placed
        self.value += placed.value
        self.changed.pop(job, None)
        self.changed[job] = None

    def _use(self, taken: Sequence[Shares]) -> None:
        """Take GPUs from servers, which are left in the order in which they are touched last, as by :meth:`_set`."""
        flat = np.fromiter(chain.from_iterable(chain.from_iterable(taken)), dtype=np.int64)
        servers, counts = flat[::2], flat[1::2]
        used = np.bincount(servers, weights=counts, minlength=len(self.free)).astype(np.int64)
        last = np.zeros(len(self.free), dtype=np.int64)
        last[servers] = np.arange(1, len(servers) + 1)
        order = np.argsort(last, kind="stable")
        order = order[last[order] > 0]
        for server, count in zip(order.tolist(), used[order].tolist(), strict=True):
            self._set(server, self.free[server] - count)

    def take_back(self, job: str) -> Placed:
        """Free a placed job's GPUs; returns its previous placement."""
        wish = self.wish(job)
        if wish is not None:  # it may be placed again
            self.wishes[job] = wish
        had = self.at(job)
        del self.placed[job]
        self.changed.pop(job, None)
        self.changed[job] = None
        self.value -= had.value
        for server, count in had.shares:
            self._set(server, self.free[server] + count)
        return had

    def place(self, job: str, kind: int, group: int, gpus: int) -> bool:
        """Find servers for an offer: the current ones, the fullest one with room, or the fewest possible."""
        had = self.held.get(job)
        if had is not None and sum([count for _, count in had]) == gpus and (len(had) > 1) == (kind == SPREAD):
            same = all(self._group[server] == group for server, _ in had)
            if same and self.put(job, kind, gpus, had):
                return True
        shares = self.find(kind, group, gpus)
        return shares is not None and self.put(job, kind, gpus, shares)

    def give(self, job: str, column: int) -> bool:
        """Find servers for a column of a job's offers, as :meth:`place` does; returns whether there were any."""
        wish = self.wishes[job]
        offers = wish.offers
        kind, group, gpus = offers.of(column)
        if kind != PACKED:
            return self.place(job, SPREAD, group, gpus)
        gain, shares = float(offers.gain[column]), self.held.get(job) if column == wish.stays else None
        if shares is not None and self.free[shares[0][0]] >= gpus:
            gain += self.stay_bonus
        else:
            shares = self.find(PACKED, group, gpus)
        if shares is None or gain <= 0.0:
            return False
        server, value = shares[0][0], wish.weight * gain
        self._set(server, self.free[server] - gpus)
        self._note(job, Placed(PACKED, gpus, shares, value))
        return True

    def asked(self, entries: list[tuple[str, int]]) -> Asked:
        """Return what these (job, column) ask for."""
        jobs, columns = [job for job, _ in entries], [column for _, column in entries]
        wishes, many = list(map(self.wishes.__getitem__, jobs)), len(jobs)
        table, column = OfferTable.of(list(map(OFFERS, wishes))), np.array(columns, dtype=np.int64)
        at = table.start + column
        weight = np.fromiter(map(WEIGHT, wishes), dtype=np.float64, count=many)
        server, here = np.full(many, NONE, dtype=np.int64), list[Shares | None](repeat(None, many))
        for i in np.flatnonzero(np.fromiter(map(STAYS, wishes), dtype=np.int64, count=many) == column).tolist():
            here[i] = shares = self.held.get(jobs[i])
            if shares is not None:
                server[i] = shares[0][0]
        kind, group, gpus, gain = (each[at] for each in table[1:])
        return Asked(jobs, columns, kind, group, gpus, gain, weight, server, here)

    def give_all(self, asked: Asked) -> None:
        """Give each job that has nothing its column, as :meth:`give` does; many on one server in one pass."""
        ends = [*np.flatnonzero(asked.kind != PACKED).tolist(), len(asked.jobs)]
        begin = 0
        for end in ends:  # columns on one server, then one on several
            if end - begin > FEW:
                self._give_packed(asked.part(begin, end))
                begin = end
            for job, column in zip(asked.jobs[begin : end + 1], asked.columns[begin : end + 1], strict=True):
                if job not in self.placed:
                    self.give(job, column)
            begin = end + 1

    def _give_packed(self, asked: Asked) -> None:
        """Give jobs their columns on one server in one compiled pass."""
        if any(map(self.placed.__contains__, asked.jobs)):
            asked = asked.take(np.flatnonzero([job not in self.placed for job in asked.jobs]))
        if not asked.jobs:
            return
        number = dict(zip(reversed(asked.jobs), range(len(asked.jobs)), strict=True))
        at = np.array([number[job] for job in asked.jobs], dtype=np.int64)
        first = np.concatenate(([0], np.cumsum([len(lists) for lists in self._with_free]))).astype(np.int64)
        order = np.array([server for lists in self._with_free for each in lists for server in each], dtype=np.int64)
        free, group = np.array(self.free, dtype=np.int64), self.groups.group
        gain, given = asked.gain.copy(), np.zeros(len(at), dtype=np.int64)
        head, after = give_packed(
            free,
            group,
            first,
            order,
            self.idle,
            at,
            asked.group,
            asked.gpus,
            asked.server,
            gain,
            self.stay_bonus,
            given,
        )
        self.free, following = free.tolist(), after.tolist()
        self.left = np.bincount(group, weights=free, minlength=len(self.left)).astype(np.int64).tolist()
        self.idle = int(free.sum())
        for g, lists in enumerate(self._with_free):
            for f, server in enumerate(head[first[g] : first[g + 1]].tolist()):
                lists[f] = {}
                while server >= 0:
                    lists[f][server] = None
                    server = following[server]
        done = np.flatnonzero(given >= 0)
        stays, values = given[done] == asked.server[done], (asked.weight[done] * gain[done]).tolist()
        counts = asked.gpus[done].tolist()
        shares = list[Shares](zip(zip(given[done].tolist(), counts, strict=True)))
        for place, i in zip(np.flatnonzero(stays).tolist(), done[stays].tolist(), strict=True):
            shares[place] = asked.held[i] or shares[place]
        placed = map(tuple.__new__, repeat(Placed), zip(repeat(PACKED), counts, shares, values))
        fresh = dict(zip(map(asked.jobs.__getitem__, done.tolist()), placed, strict=True))
        self.placed.update(fresh)
        for value in values:
            self.value += value
        for job in self.changed.keys() & fresh.keys():
            del self.changed[job]
        self.changed.update(dict.fromkeys(fresh))

    def find(self, kind: int, group: int, gpus: int) -> Shares | None:
        """Return servers with room for an offer; None if there are none."""
        if gpus > self.idle:
            return None
        if kind == PACKED:
            for bucket in self._with_free[group][gpus:]:
                for server in bucket:
                    return ((server, gpus),)
            return None
        if self.left[group] >= gpus:
            return self._gather([group], gpus)
        alike = self._of_type[self.groups.groups[group].gpu_type]
        return self._gather(alike, gpus) if sum(self.left[g] for g in alike) >= gpus else None

    def _gather(self, among: Iterable[int], gpus: int) -> Shares | None:
        """Return GPUs on several servers, the emptiest first and the rest by best fit."""
        groups = list(among)
        shares: list[tuple[int, int]] = []
        left = gpus
        taken: set[int] = set()
        while left:
            server = self._best_for(groups, left, taken, first=not shares)
            if server is None:
                return None
            count = min(self.free[server], left, gpus - 1)
            shares.append((server, count))
            taken.add(server)
            left -= count
        return tuple(sorted(shares))

    def _best_for(self, groups: list[int], left: int, taken: set[int], first: bool) -> int | None:
        """Return the fullest server that completes the search, or the one with most free GPUs."""
        top = max(len(self._with_free[g]) for g in groups)
        order = [*range(left, top), *range(min(left, top) - 1, 0, -1)]
        if first:  # spread: no single server may have all the GPUs
            order = [*range(min(left, top) - 1, 0, -1), *range(left, top)]
        for free in order:
            for g in groups:
                here: dict[int, None] = self._with_free[g][free] if free < len(self._with_free[g]) else {}
                result: int | None = next((server for server in here if server not in taken), None)
                if result is not None:
                    return result
        return None

    def group_of(self, server: int) -> int:
        """Return the group of a server."""
        return self._group[server]

    def largest_hole(self, group: int) -> int:
        """Return the most free GPUs on one server of a group."""
        buckets = self._with_free[group]
        return next((free for free in range(len(buckets) - 1, 0, -1) if buckets[free]), 0)

    def _set(self, server: int, free: int) -> None:
        g = self._group[server]
        self.left[g] += free - self.free[server]
        self.idle += free - self.free[server]
        del self._with_free[g][self.free[server]][server]
        self.free[server] = free
        self._with_free[g][free][server] = None


def gain_on(
    offers: Offers,
    kind: int,
    gpus: int,
    groups: Collection[int],
    servers: int,
    slowdown: Callable[[int, int, int], float],
) -> float:
    """Return a job's gain on servers of these groups, limited by the slowest; 0 if it has no such offer.

    Parameters
    ----------
    offers : Offers
    kind, gpus : int
        Of the offer.
    groups : collection of int
    servers : int
        Number of servers.
    slowdown : callable (group, GPUs, servers) -> float
        See :class:`Draft`.
    """
    gain = float("inf")
    for g in groups:
        column = offers.at(kind, g, gpus)
        if column < 0:
            return 0.0
        each = float(offers.gain[column])
        if kind == SPREAD:
            each *= slowdown(g, gpus, servers)
        gain = min(gain, each)
    return gain
