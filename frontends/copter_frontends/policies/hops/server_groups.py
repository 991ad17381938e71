"""Groups of similar servers: one GPU type, one size, one speed bin (HP16)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter_frontends.vocabulary import Allocation

Ints = NDArray[np.int64]

MOST_SHARES = 100_000
"""Most cached allocations: several times the jobs of the largest cluster."""

MOST_ODD = 0.05  # at most this share of the servers may stay in the group next to their speed bin


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """Servers that are equal for every job.

    Attributes
    ----------
    gpu_type : str
    gpus : int
        GPUs of each server.
    speed : float
        Mean speed relative to the type.
    servers : tuple of str
        Ids of the servers; empty for a bin that has lost its servers but may get new ones.
    bin : int
        Number of the speed bin; bin 0 is around speed 1.
    """

    gpu_type: str
    gpus: int
    speed: float
    servers: tuple[str, ...]
    bin: int = 0

    @property
    def label(self) -> tuple[str, int, int]:
        """Type, size and speed bin, which do not depend on the group's servers."""
        return (self.gpu_type, self.gpus, self.bin)


class ServerGroups:
    """All servers, group by group, as arrays.

    Attributes
    ----------
    groups : tuple of ServerGroup
    ids : tuple of str
        Servers, group after group.
    group : int64 array (servers,)
    size : int64 array (servers,)
        GPUs of each server.
    first : int64 array (groups + 1,)
        First server of each group.
    gpus_by_type : dict of GPU type to int
    index, group_of : dict of server id to int
        Position and group of each server.
    """

    def __init__(self, groups: list[ServerGroup]) -> None:
        self.groups = tuple(groups)
        self.ids = tuple(server for group in groups for server in group.servers)
        self.index = {server: i for i, server in enumerate(self.ids)}
        counts = [len(group.servers) for group in groups]
        self.group: Ints = np.repeat(np.arange(len(groups)), counts).astype(np.int64)
        self.group_of = {server: g for g, group in enumerate(groups) for server in group.servers}
        self._shares: dict[tuple[tuple[str, int], ...], tuple[tuple[int, int], ...]] = {}
        self._allocations: dict[tuple[tuple[int, int], ...], Allocation] = {}
        self.gpus_by_type = dict.fromkeys((group.gpu_type for group in groups), 0)
        for group in groups:
            self.gpus_by_type[group.gpu_type] += group.gpus * len(group.servers)
        self.size: Ints = np.repeat([group.gpus for group in groups], counts).astype(np.int64)
        self.first: Ints = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)

    def __len__(self) -> int:
        return len(self.groups)

    def shares(self, nodes: tuple[tuple[str, int], ...]) -> tuple[tuple[int, int], ...]:
        """Return (position of the server, GPUs) of an allocation's nodes; cached, because jobs keep their nodes."""
        found = self._shares.get(nodes)
        if found is None:
            if len(self._shares) >= MOST_SHARES:
                self._shares.clear()
            found = self._shares[nodes] = tuple(sorted((self.index[node], gpus) for node, gpus in nodes))
        return found

    def allocation(self, shares: tuple[tuple[int, int], ...]) -> Allocation:
        """Return the allocation of these (position of the server, GPUs); cached for jobs on one server."""
        found = self._allocations.get(shares)
        if found is None:
            kind = self.groups[int(self.group[shares[0][0]])].gpu_type
            nodes = tuple(sorted([(self.ids[server], gpus) for server, gpus in shares]))
            found = Allocation(kind, sum([gpus for _, gpus in shares]), nodes)
            if len(shares) == 1:
                self._allocations[shares] = found
        return found

    @property
    def key(self) -> tuple[tuple[str, int, tuple[str, ...]], ...]:
        """Types, sizes and servers of the groups: formulations of groups with equal keys are equal."""
        return tuple((group.gpu_type, group.gpus, group.servers) for group in self.groups)

    @property
    def servers_by_type(self) -> dict[str, int]:
        """Return the number of servers of each GPU type."""
        result = dict.fromkeys((group.gpu_type for group in self.groups), 0)
        for group in self.groups:
            result[group.gpu_type] += len(group.servers)
        return result

    @property
    def speeds(self) -> NDArray[np.float64]:
        """Return the mean speed of each group, (groups,)."""
        return np.array([group.speed for group in self.groups])

    def moved_from(self, other: ServerGroups) -> list[tuple[str, str]]:
        """Return (GPU type, server) of servers whose group has another position than in `other`."""
        here = self.group.tolist()
        return [
            (self.groups[g].gpu_type, server)
            for g, server in zip(here, self.ids, strict=True)
            if g != other.group[other.index[server]]
        ]

    def has_columns_of(self, other: ServerGroups) -> bool:
        """Whether a program for `other` still fits: the same servers and groups, none newly non-empty."""
        if len(self) != len(other) or frozenset(self.ids) != frozenset(other.ids):
            return False
        pairs = zip(self.groups, other.groups, strict=True)
        return all(mine.label == its.label and (its.servers or not mine.servers) for mine, its in pairs)


def group_servers(
    servers: Mapping[str, tuple[int, list[str]]],
    speed: Callable[[str, str], float] | None = None,
    bin_width: float = 0.05,
) -> ServerGroups:
    """Group servers by type and by speed in bins of this relative width.

    Parameters
    ----------
    servers : mapping of GPU type to (GPUs of a server, ids)
    speed : callable (GPU type, server) -> float, optional
        Speed of a server relative to its type; by default 1.
    bin_width : float
    """
    result: list[ServerGroup] = []
    for kind, (gpus, ids) in servers.items():
        bins: dict[int, list[tuple[str, float]]] = {}
        for server in ids:
            value = 1.0 if speed is None else speed(kind, server)
            bins.setdefault(round(np.log(value) / np.log1p(bin_width)), []).append((server, value))
        for number, members in sorted(bins.items(), reverse=True):
            mean = float(np.mean([value for _, value in members]))
            result.append(ServerGroup(kind, gpus, mean, tuple(server for server, _ in members), number))
    return ServerGroups(result)


def in_places_of(before: ServerGroups, now: ServerGroups) -> ServerGroups:
    """Order the groups of `now` as in `before`; empty groups stay, new ones come last."""
    fresh = {group.label: group for group in now.groups}
    kept = [fresh.pop(group.label, replace(group, servers=())) for group in before.groups]
    return ServerGroups([*kept, *fresh.values()])


def regrouped(before: ServerGroups, now: ServerGroups, speed: Callable[[str, str], float]) -> ServerGroups:
    """Return the groups of `now` in the positions of `before`, without new groups for a few servers.

    While at most the share `MOST_ODD` of the servers is in formerly empty bins, these servers stay in the nearest
    non-empty bin of their type and size, because a new group would add columns to every job.

    Parameters
    ----------
    before, now : ServerGroups
        Two groupings of the same servers.
    speed : callable (GPU type, server) -> float
    """
    there = [group for group in before.groups if group.servers]
    labels = {group.label for group in there}
    odd = [group for group in now.groups if group.label not in labels]
    if sum(len(group.servers) for group in odd) > MOST_ODD * len(now.ids):
        return in_places_of(before, now)
    members = {group.label: list(group.servers) for group in now.groups if group.label in labels}
    for group in odd:
        alike = [other for other in there if other.label[:2] == group.label[:2]]
        nearest = min(alike, key=lambda other: abs(other.bin - group.bin))
        members.setdefault(nearest.label, []).extend(group.servers)
    result = []
    for group in before.groups:
        servers = tuple(members.get(group.label, ()))
        values = [speed(group.gpu_type, server) for server in servers]
        result.append(replace(group, servers=servers, speed=float(np.mean(values)) if values else group.speed))
    return ServerGroups(result)
