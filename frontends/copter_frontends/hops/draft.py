"""A plan under construction: the servers of every job's offer, and the free GPUs (HP24)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass

from copter_frontends.hops.formulation import NONE, Wish
from copter_frontends.hops.offers import PACKED, SPREAD, Ints
from copter_frontends.hops.server_groups import ServerGroups

Shares = tuple[tuple[int, int], ...]  # (server number, GPUs)
Slowdown = Callable[[str, int, int, int], float]


@dataclass(frozen=True, slots=True)
class Placed:
    """A job's GPUs: size, servers with the GPUs on each, and worth (weight times gain)."""

    kind: int
    gpus: int
    shares: Shares
    value: float


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
    """

    def __init__(
        self,
        groups: ServerGroups,
        free: Ints,
        held: Mapping[str, Shares],
        slowdown: Slowdown,
        stay_bonus: float,
    ) -> None:
        self.groups, self.held = groups, held
        self.wishes: dict[str, Wish] = {}
        self.slowdown, self.stay_bonus = slowdown, stay_bonus
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
        self.placed: dict[str, Placed] = {}
        self.fixed: set[str] = set()

    # Values -------------------------------------------------------------------------------------------------------

    @property
    def value(self) -> float:
        """Return the sum of the values of all placed jobs."""
        return sum(each.value for each in self.placed.values())

    def worth(self, job: str, kind: int, gpus: int, shares: Shares) -> float:
        """Return w_i (G_ij, plus sigma if the job stays), limited by the slowest server; 0 if the job has no such
        offer.
        """
        wish = self.wishes[job]
        gain = float("inf")
        groups = {self._group[server] for server, _ in shares} if len(shares) > 1 else (self._group[shares[0][0]],)
        for g in groups:
            column = wish.offers.at(kind, g, gpus)
            if column < 0:
                return 0.0
            each = float(wish.offers.gain[column])
            if kind == SPREAD:
                each *= self.slowdown(job, g, gpus, len(shares))
            gain = min(gain, each)
        stays = wish.stays != NONE and self.held.get(job) == shares
        return wish.weight * (gain + (self.stay_bonus if stays else 0.0))

    def copy(self) -> Draft:
        """Return an independent copy."""
        other = copy(self)
        other.wishes, other.placed, other.fixed = dict(self.wishes), dict(self.placed), set(self.fixed)
        other.free, other.left = list(self.free), list(self.left)
        other._with_free = [[dict(servers) for servers in buckets] for buckets in self._with_free]
        return other

    # Changes ------------------------------------------------------------------------------------------------------

    def put(self, job: str, kind: int, gpus: int, shares: Shares) -> bool:
        """Give a job these GPUs if they are free and usable; returns whether they were."""
        if any(self.free[server] < count for server, count in shares):
            return False
        value = self.worth(job, kind, gpus, shares)
        if value <= 0.0:
            return False
        for server, count in shares:
            self._set(server, self.free[server] - count)
        self.placed[job] = Placed(kind, gpus, shares, value)
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
        self.placed[job] = Placed(kind, gpus, shares, value)

    def take_back(self, job: str) -> Placed:
        """Free a placed job's GPUs; returns its previous placement."""
        had = self.placed.pop(job)
        for server, count in had.shares:
            self._set(server, self.free[server] + count)
        return had

    def place(self, job: str, kind: int, group: int, gpus: int) -> bool:
        """Find servers for an offer: the current ones, the fullest one with room, or the fewest possible."""
        had = self.held.get(job)
        if had is not None and sum(count for _, count in had) == gpus and (len(had) > 1) == (kind == SPREAD):
            same = all(self._group[server] == group for server, _ in had)
            if same and self.put(job, kind, gpus, had):
                return True
        shares = self.find(kind, group, gpus)
        return shares is not None and self.put(job, kind, gpus, shares)

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
