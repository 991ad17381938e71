"""Workloads: servers, task shapes and what happens in every round; generated, or of a public trace (`traces.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from copter_frontends.placement.servers.board import Floats, Ints
from copter_frontends.placement.servers.errors import ServerError
from copter_frontends.placement.servers.fleet import MOST_SERVERS, Fleet, ServerType, TaskShape, require_whole

CORES, GIB_A_CORE, PRIORITIES = (1, 2, 4, 8, 16, 32), (2, 4, 8), (1, 3)
CORE_SHARES = (0.38, 0.27, 0.18, 0.1, 0.05, 0.02)
"""Shares of the sizes among generated tasks: many small ones, as in public traces of virtual machines."""
PRIORITY_FALL = 2 / 3
FOREVER = 1 << 40
GROUP = 4
"""Tasks of a generated group with anti-affinity."""


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """What happens before a round.

    Attributes
    ----------
    shape, group, rounds : ndarray (arrivals,) of int64
        Shapes of the tasks that arrive; groups with anti-affinity (-1 is none), numbered within the round; rounds that
        each will run.
    lost, drained, back : tuple of int
        Servers that fail, take no further tasks, or come back.
    """

    shape: Ints
    group: Ints
    rounds: Ints
    lost: tuple[int, ...] = ()
    drained: tuple[int, ...] = ()
    back: tuple[int, ...] = ()


@dataclass(slots=True)
class Workload:
    """Servers, shapes and rounds.

    Attributes
    ----------
    name : str
    types : list of ServerType
    shapes : list of TaskShape
    rounds : list of Events
    waits : bool
        Whether tasks without room wait for the next round; otherwise they are gone.
    one_by_one : bool
        Whether tasks are taken one by one, each for good before the next is known.
    zones : int
        Zones, in which the servers are in turn.
    most : int
        Tasks of a group that may share a server; a zone if there are several.
    """

    name: str
    types: list[ServerType]
    shapes: list[TaskShape]
    rounds: list[Events] = field(default_factory=list)
    waits: bool = True
    one_by_one: bool = False
    zones: int = 1
    most: int = 1

    def fleet(self) -> Fleet:
        """Return the servers, without tasks."""
        zones = np.arange(sum(each.count for each in self.types)) % self.zones
        return Fleet(self.types, self.shapes, zones, self.most, by_zone=self.zones > 1)


def mixed_types(servers: int) -> list[ServerType]:
    """Return three generations of servers: 64, 96 and 128 cores with 4, 4 and 6 GiB each, in parts of 3, 4 and 3."""
    require_whole("servers", (servers,))
    if not 1 <= servers <= MOST_SERVERS:
        raise ServerError(f"{servers} servers: give 1 to 2^24")
    counts = [3 * servers // 10, 4 * servers // 10]
    sizes = ((64, 4), (96, 4), (128, 6))
    return [
        ServerType(f"gen{at + 1}", (1000 * cores, 1024 * cores * gib), count)
        for at, ((cores, gib), count) in enumerate(zip(sizes, [*counts, servers - sum(counts)], strict=True))
    ]


def generated(
    servers: int,
    rounds: int,
    load: float = 0.95,
    churn: float = 0.01,
    grouped: float = 0.1,
    seed: int = 0,
    selective: float = 0.0,
    priorities: tuple[int, ...] = PRIORITIES,
) -> Workload:
    """Return a workload whose running tasks ask for `load` of the scarcest dimension, of which `churn` leave a round.

    Parameters
    ----------
    servers, rounds : int
        The first round brings all tasks that run at the start.
    load : float
        Asked over capacity; above 1, not all can be admitted.
    churn : float
        Share of the running tasks that end in a round, and of new ones that arrive.
    grouped : float
        Share of the arrivals that come in groups of GROUP with anti-affinity.
    seed : int
    selective : float
        Share of the tasks that may run on servers of one type only, any of the types alike.
    priorities : tuple of int
        Worth of a core, in hundredths; each priority has two thirds of the share of the one before it.

    Raises
    ------
    ServerError
        For figures outside their ranges.
    """
    if not (0.0 < load <= 10.0 and 0.0 < churn <= 1.0 and 0.0 <= grouped <= 1.0 and 0.0 <= selective <= 1.0):
        raise ServerError(
            f"load {load}, churn {churn}, grouped {grouped}, selective {selective}: give load in (0, 10], churn in "
            "(0, 1], the others in [0, 1]"
        )
    require_whole("rounds and priorities", (rounds, *priorities))
    if not priorities or not all(0 < each <= 10**5 for each in priorities) or len(set(priorities)) < len(priorities):
        raise ServerError(f"priorities {priorities}: give numbers from 1 to 100,000, each once")
    if rounds < 1:
        raise ServerError(f"{rounds} rounds: give 1 or more")
    rng, types = np.random.default_rng(seed), mixed_types(servers)
    chosen: list[tuple[str | None, float]] = [(None, 1.0 - selective)]
    if selective > 0.0:
        chosen += [(each.name, selective / len(types)) for each in types]
    falling = np.array([PRIORITY_FALL**at for at in range(len(priorities))])
    shapes = [
        TaskShape(
            f"{cores}c{cores * gib}g-p{priority}{'-' + name if name else ''}",
            (1000 * cores, 1024 * cores * gib),
            100 * cores * priority,
            types=(name,) if name else None,
            share=share * ratio * own * part,
        )
        for name, part in chosen
        for cores, share in zip(CORES, CORE_SHARES, strict=True)
        for gib, ratio in zip(GIB_A_CORE, (0.3, 0.4, 0.3), strict=True)
        for priority, own in zip(priorities, falling / falling.sum(), strict=True)
        if part > 0.0
    ]
    share = np.array([each.share for each in shapes])
    need = np.array([each.amounts for each in shapes], dtype=np.float64)
    whole = np.array([each.amounts for each in types], dtype=np.float64).T @ [each.count for each in types]
    standing = int(load * float((whole / (share @ need / share.sum())).min()))

    def drawn(number: int) -> Events:
        shape = rng.choice(len(shapes), number, p=share / share.sum())
        group = np.full(number, -1, dtype=np.int64)
        groups = int(grouped * number) // GROUP
        for at in range(GROUP):  # tasks of a group are alike
            group[at * groups : (at + 1) * groups] = np.arange(groups)
            shape[at * groups : (at + 1) * groups] = shape[:groups]
        return Events(shape, group, rng.geometric(churn, number))

    arrivals = max(1, round(churn * standing))
    return Workload(
        f"{servers:,} servers, load {load:g}, churn {churn:g}",
        types,
        shapes,
        [drawn(standing if at == 0 else arrivals) for at in range(rounds)],
    )


def shares_of(shape: Ints, shapes: int) -> Floats:
    """Return the share of every shape among tasks."""
    return np.bincount(shape, minlength=shapes) / max(len(shape), 1)
