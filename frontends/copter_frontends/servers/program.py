"""The round's linear program over patterns, kept in one session: rows are task shapes, requests classes of servers.

A class of alike servers is a request whose limit is its count, and its columns are patterns: how many waiting tasks of
every shape a server takes. New patterns are priced in by the search for the best one (PS2, PS3), so that the bound
covers the integer program, not only its relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from copter import Model, Session, Settings, Solution
from copter_frontends.servers.board import Board, Floats, Ints, Shapes
from copter_frontends.servers.pattern_kernels import bound_states

MOST_PASSES = 12
"""Solves of a round's program at most."""
ENOUGH = 1e-4
"""Relative gap between the program with the patterns so far and its bound at which no more are sought."""
Key = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Priced:
    """Prices of the shapes' rows and what they prove.

    Attributes
    ----------
    price : ndarray (shapes,) of int64
        Worth of one more waiting task of each shape.
    bound : int
        No plan of the round is worth more.
    patterns : list of (int, ndarray (patterns, shapes), ndarray (patterns,))
        The last solution: a place in `states`, patterns, and on how many servers of that class each one is.
    passes : int
    """

    price: Ints
    bound: int
    patterns: list[tuple[int, Ints, Floats]]
    passes: int


def proven(board: Board, shapes: Shapes, count: Ints, waiting: Ints, states: Ints, price: Ints) -> tuple[int, Ints, Ints, Ints]:
    """Return (bound, each class's value, each class's bound, patterns) at prices of the shapes, in whole numbers (PS2).

    Parameters
    ----------
    count : ndarray (all states,)
        Servers of every class before the round's tasks are placed.
    waiting : ndarray (shapes,)
    states : ndarray (m,)
        Every class on which one of the waiting shapes fits.
    price : ndarray (shapes,) of int64
        Any numbers from 0 on give a bound.
    """
    value = np.where(waiting > 0, shapes.worth - price, 0)
    best, bound = np.zeros(len(states), dtype=np.int64), np.zeros(len(states), dtype=np.int64)
    patterns = np.zeros((len(states), len(waiting)), dtype=np.int64)
    total = bound_states(board, shapes, value, waiting, count, states, best, bound, patterns)
    return int(total) + int(waiting @ price), best, bound, patterns


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
        self.session = Session(self.model, self.settings or Settings())

    def solve(self, board: Board, count: Ints, waiting: Ints, states: Ints, price: Ints) -> Priced:
        """Return prices near the optimum of the program over all patterns, from some prices on.

        `states` are the classes on which a waiting shape fits; parameters as in `proven`.
        """
        keys = [(int(board.state_kind[s]), *board.state_free[s].tolist(), *board.state_gpu[s].tolist()) for s in states]
        limits = count[states].astype(np.float64)
        bound, _, _, found = proven(board, self.shapes, count, waiting, states, price)
        _, _, _, alone = proven(board, self.shapes, count, waiting, states, np.zeros_like(price))
        best, passes, solution = (price, bound), 0, None
        centre: Floats = price.astype(np.float64)
        with self.model.batch():
            self.model.update_counts(self.rows, waiting.astype(np.float64))
            gone = [key for key in self.patterns if key not in set(keys)]
            self.model.remove_requests(gone)
            for key in gone:
                del self.patterns[key]
            if self.patterns:
                there = [(key, limit) for key, limit in zip(keys, limits, strict=True) if key in self.patterns]
                self.model.update_limits([key for key, _ in there], [limit for _, limit in there])
        self._put(keys, limits, alone)
        while passes < MOST_PASSES and (self._put(keys, limits, found) or not passes):
            solution = self.session.solve()
            passes += 1
            duals = np.clip(solution.prices(self.rows), 0.0, self.shapes.worth)
            for at in (np.rint(duals), np.rint(0.5 * (duals + centre))):  # at the duals, and nearer to the best so far
                bound, _, _, found = proven(board, self.shapes, count, waiting, states, at.astype(np.int64))
                if bound < best[1]:
                    best, centre = (at.astype(np.int64), bound), at
                    break
            if best[1] <= solution.objective * (1.0 + ENOUGH):
                break
        chosen = [] if solution is None else self._chosen(keys, solution)
        return Priced(*best, chosen, passes)

    def _chosen(self, keys: list[Key], solution: Solution) -> list[tuple[int, Ints, Floats]]:
        """Return the patterns that a solution uses, class by class."""
        found = []
        for at, key in enumerate(keys):
            if key in self.patterns:
                own = solution.of(key)
                used = np.flatnonzero(own > 1e-6)
                if len(used):
                    found.append((at, _table(self.patterns[key])[used], own[used]))
        return found

    def _put(self, keys: list[Key], limits: Floats, found: Ints) -> int:
        """Give every class the pattern that was found for it; returns how many are new."""
        changed = []
        for at in np.flatnonzero(found.any(axis=1)).tolist():
            own = self.patterns.setdefault(keys[at], [])
            pattern = found[at].tobytes()
            if pattern not in own:
                own.append(pattern)
                changed.append(at)
        with self.model.batch():
            for at in changed:
                own = self.patterns[keys[at]]
                table = _table(own)
                if keys[at] in self.model:
                    self.model.remove_request(keys[at])
                used = np.flatnonzero(table.any(axis=0))
                usage = {int(k): table[:, k].astype(np.float64) for k in used}
                self.model.add_request(keys[at], table @ self.shapes.worth.astype(np.float64), usage, limit=limits[at])
        return len(changed)


def _table(patterns: list[bytes]) -> Ints:
    """Return patterns as an array (patterns, shapes)."""
    return np.frombuffer(b"".join(patterns), dtype=np.int64).reshape(len(patterns), -1)
