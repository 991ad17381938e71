"""Servers that are alike: one GPU type, one size, one speed bin (HP12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """Servers that are alike for every job.

    Attributes
    ----------
    gpu_type : str
    gpus : int
        Of each server.
    speed : float
        Mean speed relative to the type.
    servers : tuple of str
        Their ids; none in a bin that has emptied and may fill again.
    bin : int
        Number of the speed bin, 0 around 1.
    """

    gpu_type: str
    gpus: int
    speed: float
    servers: tuple[str, ...]
    bin: int = 0

    @property
    def label(self) -> tuple[str, int, int]:
        """What the group stays while servers come and go."""
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
        GPUs of each.
    first : int64 array (groups + 1,)
        Where each group's servers begin.
    """

    def __init__(self, groups: list[ServerGroup]) -> None:
        self.groups = tuple(groups)
        self.ids = tuple(server for group in groups for server in group.servers)
        self.index = {server: i for i, server in enumerate(self.ids)}
        counts = [len(group.servers) for group in groups]
        self.group: Ints = np.repeat(np.arange(len(groups)), counts).astype(np.int64)
        self.size: Ints = np.repeat([group.gpus for group in groups], counts).astype(np.int64)
        self.first: Ints = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def key(self) -> tuple[tuple[str, int, tuple[str, ...]], ...]:
        """What a formulation on these groups depends on."""
        return tuple((group.gpu_type, group.gpus, group.servers) for group in self.groups)


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
    """The groups of `now`, those that `before` has too in its places: emptied ones stay there, new ones come last."""
    fresh = {group.label: group for group in now.groups}
    kept = [fresh.pop(group.label, replace(group, servers=())) for group in before.groups]
    return ServerGroups([*kept, *fresh.values()])
