"""The paper's program (11)-(13), with a column for every configuration on single servers; HP13, HP15."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from copter import LinearProgram
from copter_frontends.policies.hops.draft import Shares
from copter_frontends.policies.hops.formulation import NONE, Wish
from copter_frontends.policies.hops.offers import PACKED, SPREAD, Ints
from copter_frontends.policies.hops.server_groups import ServerGroups


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """One configuration of one job: its servers with the GPUs on each, and its objective coefficient."""

    job: str
    shares: Shares
    value: float


def columns_of(
    job: str,
    wish: Wish,
    groups: ServerGroups,
    free: Ints,
    bonus: float = 0.0,
    held: Shares | None = None,
    slowdown: Callable[[str, int, int, int], float] | None = None,
) -> list[PlacedColumn]:
    """Return all configurations of a job: every server with room, and every window of neighbouring servers filled in
    order.

    Parameters
    ----------
    job : str
    wish : Wish
    groups : ServerGroups
        Groups; windows consist of neighbours in their order of servers.
    free : int64 array (servers,)
    bonus : float
        sigma, for the job's current servers.
    slowdown : callable (job, group, GPUs, nodes) -> float, optional
        See :class:`.Draft`.
    """
    offers, result = wish.offers, []

    def value_of(kind: int, gpus: int, shares: Shares) -> float:
        gains = []
        for g in sorted({int(groups.group[server]) for server, _ in shares}):
            column = offers.at(kind, g, gpus)
            if column == NONE:
                return 0.0
            slower = slowdown(job, g, gpus, len(shares)) if slowdown is not None and kind == SPREAD else 1.0
            gains.append(float(offers.gain[column]) * slower)
        return wish.weight * (min(gains) + (bonus if held == shares and wish.stays != NONE else 0.0))

    servers = {
        kind: [s for s in range(len(free)) if groups.groups[int(groups.group[s])].gpu_type == kind]
        for kind in dict.fromkeys(group.gpu_type for group in groups.groups)
    }
    for gpus in offers.requirements.sizes:
        alone = [((server, gpus),) for server in np.flatnonzero(free >= gpus).tolist()]
        result += [PlacedColumn(job, shares, value_of(PACKED, gpus, shares)) for shares in alone]
        for same in servers.values():
            for start in range(len(same)):
                shares = _window(same[start:], free, gpus)
                if shares is not None and len(shares) > 1:
                    result.append(PlacedColumn(job, shares, value_of(SPREAD, gpus, shares)))
    return [each for each in result if each.value > 0]


def placed_program(
    wishes: Mapping[str, Wish],
    groups: ServerGroups,
    free: Ints,
    slowdown: Callable[[str, int, int, int], float] | None = None,
) -> tuple[LinearProgram, list[PlacedColumn]]:
    """Return (11)-(13), with (13) summed over jobs: the LP (rows of servers, then jobs) and its columns."""
    columns = [c for job, wish in wishes.items() for c in columns_of(job, wish, groups, free, slowdown=slowdown)]
    index = {job: len(free) + i for i, job in enumerate(wishes)}
    entries = [(server, j, float(gpus)) for j, c in enumerate(columns) for server, gpus in c.shares]
    entries += [(index[c.job], j, 1.0) for j, c in enumerate(columns)]
    row, column, value = zip(*entries, strict=True) if entries else ((), (), ())
    program = LinearProgram(
        np.array([c.value for c in columns]),
        sp.csc_array((value, (row, column)), shape=(len(free) + len(wishes), len(columns))),
        row_lower=-np.inf,
        row_upper=np.concatenate((free.astype(np.float64), np.ones(len(wishes)))),
        col_upper=1.0,
        integrality=1,
        sense="max",
    )
    return program, columns


def _window(servers: list[int], free: Ints, gpus: int) -> Shares | None:
    """Return GPUs on neighbouring servers, each filled as far as possible; None if there are too few."""
    shares, left = [], gpus
    for server in servers:
        count = min(int(free[server]), left)
        if count == 0:
            return None
        shares.append((server, count))
        left -= count
        if left == 0:
            return tuple(shares)
    return None
