"""The round's linear program over patterns, kept in one session: rows are task shapes, requests classes of servers.

A class of alike servers is a request whose limit is its count, and its columns are patterns: how many waiting tasks of
every shape a server takes. New patterns are priced in by the search for the best one (PS2, PS3), so that the bound
covers the integer program, not only its relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from copter import Model, Session, Settings, Solution, solve
from copter_frontends.placement.servers.board import Floats, Ints, Shapes
from copter_frontends.placement.servers.pattern_kernels import bound_rooms, known_patterns
from copter_frontends.placement.servers.relaxation import ROUNDING, relaxation_of
from copter_frontends.placement.servers.rooms import Rooms

MOST_ROOMS = 256
"""Rooms for which the plain relaxation is tried where patterns come slowly."""
KNOWN = 4
"""Patterns of the last round's program that every room starts with; half of the rounds then need one solve only."""
FEWER = 1e-5
"""What each task takes from its pattern's worth, in least worths of a shape: of patterns worth the same the one of
fewer, larger tasks is taken, since small ones fill what is left in later rounds.
"""
MOST_PASSES = 12
"""Solves of a round's program at most."""
ENOUGH = 1e-4
"""Relative gap between the program with the patterns so far and its bound at which no more are sought."""
Key = tuple[int, ...]


class Chosen(NamedTuple):
    """Patterns of a solution.

    Attributes
    ----------
    room : ndarray (patterns,) of int64
        In increasing order.
    table : ndarray (patterns, shapes) of int64
    servers : ndarray (patterns,) of float64
        On how many servers of the room the pattern is.
    """

    room: Ints
    table: Ints
    servers: Floats


@dataclass(frozen=True, slots=True)
class Priced:
    """Prices of the shapes' rows and what they prove.

    Attributes
    ----------
    price : ndarray (shapes,) of int64
        Worth of one more waiting task of each shape.
    bound : int
        No plan of the round is worth more.
    patterns : Chosen
        The last solution.
    """

    price: Ints
    bound: int
    patterns: Chosen


def proven(rooms: Rooms, shapes: Shapes, waiting: Ints, price: Ints, together: Ints | None = None) -> tuple[int, Ints]:
    """Return (bound, each room's best pattern) at prices of the shapes, in whole numbers (PS2).

    Parameters
    ----------
    rooms : Rooms
    shapes : Shapes
    waiting : ndarray (shapes,)
        Tasks of each shape.
    price : ndarray (shapes,) of int64
        Any numbers from 0 on give a bound.
    together : ndarray (shapes,) of int64, optional
        Tasks of each shape that one server may take, where groups allow fewer than wait.
    """
    value = np.where(waiting > 0, shapes.worth - price, 0)
    bound = np.zeros(len(rooms.servers), dtype=np.int64)
    patterns = np.zeros((len(rooms.servers), len(waiting)), dtype=np.int64)
    most = waiting if together is None else np.minimum(waiting, together)
    total = bound_rooms(shapes, rooms, value, most, bound, patterns)
    return int(total) + int(waiting @ price), patterns


def relaxed(rooms: Rooms, shapes: Shapes, waiting: Ints, settings: Settings) -> tuple[Ints, int]:
    """Return (prices of the shapes, bound) of the plain relaxation (PS8).

    In large rooms it is as tight as patterns are, and patterns come slowly there.
    """
    own = relaxation_of(rooms, shapes, waiting)
    solution = solve(own.program, settings)
    price = np.zeros_like(shapes.worth)
    most = shapes.worth[own.waiting]
    price[own.waiting] = np.rint(np.clip(solution.y[: len(own.waiting)], 0.0, most)).astype(np.int64)
    return price, int(np.floor(min(solution.bound, 2.0**62) * (1.0 + ROUNDING)))


@dataclass
class PatternProgram:
    """The rounds' linear programs in one session.

    Parameters
    ----------
    shapes : Shapes
    settings : Settings, optional
    """

    shapes: Shapes
    settings: Settings | None = None
    patterns: dict[Key, list[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = Model(sense="max")
        self.rows = list(range(len(self.shapes.worth)))
        for shape in self.rows:
            self.model.add_resource(shape, 0.0)
        self.keys: list[Key] = []
        worth = self.shapes.worth
        self.fewer = FEWER * float(worth[worth > 0].min(initial=1 << 30))
        self.session = Session(self.model, self.settings or Settings())

    def _known(self, rooms: Rooms, waiting: Ints, price: Ints) -> Ints:
        """Return some patterns of the last round's program for every room: those of most value at the prices."""
        flat = list(dict.fromkeys(pattern for own in self.patterns.values() for pattern in own))
        found = np.zeros((KNOWN, len(rooms.servers), len(waiting)), dtype=np.int64)
        if flat:
            pool = _table(flat, len(self.rows))
            known_patterns(self.shapes, rooms, pool, self.shapes.worth - price, waiting, found)
        return found

    def solve(self, rooms: Rooms, waiting: Ints, together: Ints, price: Ints, bound: int, found: Ints) -> Priced:
        """Return prices near the optimum of the program over all patterns, from prices on for which `proven` returned
        `bound` and `found`.
        """
        keys = [
            (kind, *free, *gpu)
            for kind, free, gpu in zip(rooms.kind.tolist(), rooms.free.tolist(), rooms.gpu.tolist(), strict=True)
        ]
        limits = rooms.servers.astype(np.float64)
        best, passes = (price, bound), 0
        centre: Floats = price.astype(np.float64)
        known = self._known(rooms, np.minimum(waiting, together), price)
        self._begin(keys, limits, waiting)
        self._put(keys, limits, [found, *known])
        while True:
            solution = self.session.solve()
            passes += 1
            duals = np.clip(solution.prices(self.rows), 0.0, self.shapes.worth)
            tables: list[Ints] = []
            near = False
            for at in (np.rint(duals), np.rint(0.5 * (duals + centre))):  # at the duals, and nearer to the best so far
                bound, found = proven(rooms, self.shapes, waiting, at.astype(np.int64), together)
                tables.append(found)
                if bound < best[1]:
                    best, centre = (at.astype(np.int64), bound), at
                near = best[1] <= solution.objective * (1.0 + ENOUGH)
                if near:
                    break
            if near or passes == MOST_PASSES or not self._put(keys, limits, tables):
                break
        self.keys = keys
        if not near and len(keys) <= MOST_ROOMS:
            price, bound = relaxed(rooms, self.shapes, waiting, self.session.settings)
            bound = min(bound, proven(rooms, self.shapes, waiting, price, together)[0])
            best = min(best, (price, bound), key=lambda each: each[1])
        return Priced(*best, self._chosen(solution))

    def _begin(self, keys: list[Key], limits: Floats, waiting: Ints) -> None:
        """Bring the model to the round: counts of tasks and of servers; rooms that are gone go."""
        there = dict(zip(keys, limits.tolist(), strict=True))
        gone = [key for key in self.patterns if key not in there]
        for key in gone:
            del self.patterns[key]
        with self.model.batch():
            self.model.update_counts(self.rows, waiting.astype(np.float64))
            self.model.remove_requests(gone)
            if self.patterns:
                self.model.update_limits(list(self.patterns), [there[key] for key in self.patterns])

    def _put(self, keys: list[Key], limits: Floats, tables: list[Ints]) -> int:
        """Give every room the patterns that were found for it; returns how many rooms have new ones."""
        changed, old = [], []
        for found in tables:
            for at in np.flatnonzero(found.any(axis=1)).tolist():
                pattern = found[at].tobytes()
                own = self.patterns.get(keys[at])
                if own is None:
                    self.patterns[keys[at]] = [pattern]
                elif pattern not in own:
                    own.append(pattern)
                    if keys[at] in self.model:
                        old.append(keys[at])
                else:
                    continue
                changed.append(at)
        changed = sorted(set(changed))
        if not changed:
            return 0
        lists = [self.patterns[keys[at]] for at in changed]
        table = _table([pattern for own in lists for pattern in own], len(self.rows))
        column, row = np.nonzero(table)
        ends = np.concatenate(([0], np.cumsum(np.count_nonzero(table, axis=1))))
        usage = sp.csc_array((table[column, row].astype(np.float64), row, ends), shape=table.shape[::-1])
        with self.model.batch():
            self.model.remove_requests(list(dict.fromkeys(old)))
            self.model.add_own_requests(
                [keys[at] for at in changed], [len(own) for own in lists],
                table @ (self.shapes.worth - self.fewer), usage,
                resources=self.rows, limit=limits[changed],
            )  # fmt: skip
        return len(changed)

    def _chosen(self, solution: Solution) -> Chosen:
        """Return the patterns that a solution uses."""
        rooms = [at for at, key in enumerate(self.keys) if key in self.patterns]
        count = solution.values_of([self.keys[at] for at in rooms])[1]
        own = [self.patterns[self.keys[at]] for at in rooms]
        flat = [pattern for each in own for pattern in each]
        used = np.flatnonzero(count > 1e-6)
        room = np.repeat(np.array(rooms, dtype=np.int64), [len(each) for each in own])
        table = _table([flat[at] for at in used], len(self.rows))
        return Chosen(room[used], table, count[used])


def _table(patterns: list[bytes], shapes: int) -> Ints:
    """Return patterns as an array (patterns, shapes)."""
    return np.frombuffer(b"".join(patterns), dtype=np.int64).reshape(len(patterns), shapes)
