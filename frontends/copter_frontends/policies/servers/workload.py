"""Workloads: servers, task shapes and what happens in every round; generated, or of a public trace (`traces.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from copter_frontends.policies.servers.board import Floats, Ints
from copter_frontends.policies.servers.errors import ServerError
from copter_frontends.policies.servers.fleet import ServerType, TaskShape

CORES, GIB_A_CORE, PRIORITIES = (1, 2, 4, 8, 16, 32), (2, 4, 8), (1, 3)
CORE_SHARES = (0.38, 0.27, 0.18, 0.1, 0.05, 0.02)
"""Shares of the sizes among generated tasks: many small ones, as in public traces of virtual machines."""
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
    """

    name: str
    types: list[ServerType]
    shapes: list[TaskShape]
    rounds: list[Events] = field(default_factory=list)
    waits: bool = True
    one_by_one: bool = False


def mixed_types(servers: int) -> list[ServerType]:
    """Return three generations of servers: 64, 96 and 128 cores with 4, 4 and 6 GiB each, in parts of 3, 4 and 3."""
    if servers < 1:
        raise ServerError(f"{servers} servers: give 1 or more")
    counts = [3 * servers // 10, 4 * servers // 10]
    sizes = ((64, 4), (96, 4), (128, 6))
    return [
        ServerType(f"gen{at + 1}", (1000 * cores, 1024 * cores * gib), count)
        for at, ((cores, gib), count) in enumerate(zip(sizes, [*counts, servers - sum(counts)], strict=True))
    ]


def generated(
    servers: int, rounds: int, load: float = 0.95, churn: float = 0.01, grouped: float = 0.1, seed: int = 0
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

    Raises
    ------
    ServerError
        For figures outside their ranges.
    """
    if not (0.0 < load <= 10.0 and 0.0 < churn <= 1.0 and 0.0 <= grouped <= 1.0):
        raise ServerError(
            f"load {load}, churn {churn}, grouped {grouped}: give load in (0, 10], churn in (0, 1], grouped in [0, 1]"
        )
    rng, types = np.random.default_rng(seed), mixed_types(servers)
    shares = [
        (cores, gib, priority, share * ratio * own)
        for cores, share in zip(CORES, CORE_SHARES, strict=True)
        for gib, ratio in zip(GIB_A_CORE, (0.3, 0.4, 0.3), strict=True)
        for priority, own in zip(PRIORITIES, (0.6, 0.4), strict=True)
    ]
    shapes = [
        TaskShape(
            f"{cores}c{cores * gib}g-p{priority}",
            (1000 * cores, 1024 * cores * gib),
            100 * cores * priority,
            share=share,
        )
        for cores, gib, priority, share in shares
    ]
    share = np.array([each[3] for each in shares])
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


def without(events: Events, lost: Iterator[int] | tuple[int, ...], back: tuple[int, ...]) -> Events:
    """Return the events with servers that fail or come back."""
    return Events(
        events.shape, events.group, events.rounds, (*events.lost, *lost), events.drained, (*events.back, *back)
    )


def shares_of(shape: Ints, shapes: int) -> Floats:
    """Return the share of every shape among tasks."""
    return np.bincount(shape, minlength=shapes) / max(len(shape), 1)
