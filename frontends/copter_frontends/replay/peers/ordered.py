"""A peer whose solver keeps a program that its own calls modify in place: which rows and columns change."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from copter_frontends.replay.peers.answer import Answer, Limits
from copter_frontends.replay.program import Floats, Ints, Overlap, Program, changed_coefficients


class OrderedPeer(ABC):
    """Remaining rows and columns keep their order in the solver; new ones come last.

    The time of an update is that of the interface's calls. A subclass makes them, and returns their seconds.
    """

    way: str
    needs_start = False

    def __init__(self) -> None:
        self.known: Program | None = None  # in the solver's order
        self.columns: Ints = np.zeros(0, dtype=np.int64)  # positions of the solver's columns in the round's program
        self.rows: Ints = self.columns

    @property
    def ways(self) -> tuple[str, ...]:
        """The one way."""
        return (self.way,)

    def keep(self, ways: tuple[str, ...]) -> None:  # noqa: B027
        """Do nothing: there is one way."""

    def start_from(self, x: Floats, y: Floats) -> None:  # noqa: B027
        """Do nothing: the solver starts from its own last basis."""

    def round(self, program: Program, limits: Limits) -> list[Answer]:
        """Apply the round's edits and solve."""
        return [self.solve(program, limits.solve_s, self.update(program))]

    def in_order(self, program: Program, primal: Floats, dual: Floats) -> tuple[Floats, Floats]:
        """Return a point and prices in the program's order."""
        x, y = np.zeros(program.shape[1]), np.zeros(program.shape[0])
        x[self.columns], y[self.rows] = primal, dual
        return x, y

    def update(self, program: Program) -> float:
        """Load a round's program; returns the seconds of the solver's calls."""
        if self.known is None:
            self.known = program
            self.columns, self.rows = np.arange(program.shape[1]), np.arange(program.shape[0])
            return self.begin(program) + self.add(program, 0, 0)
        columns = Overlap.of(self.known.column_key, program.column_key)
        rows = Overlap.of(self.known.row_key, program.row_key)
        now = program.taken(rows.order, columns.order)
        before, self.known = self.known, now
        self.columns, self.rows = columns.order, rows.order
        m, n = len(rows.before), len(columns.before)
        stay = Overlap(columns.before, np.arange(n), columns.gone, np.arange(n, now.shape[1]))
        held = Overlap(rows.before, np.arange(m), rows.gone, np.arange(m, now.shape[0]))
        old = [each for each in changed_coefficients(before, now, held, stay) if each[0] < m]
        seconds = self.delete(rows.gone, columns.gone) + self.change(before, now, held, stay)
        return seconds + self.coefficients(old) + self.add(now, m, n)

    @abstractmethod
    def begin(self, program: Program) -> float:
        """Make an empty program of this sense."""

    @abstractmethod
    def delete(self, rows: Ints, columns: Ints) -> float:
        """Delete the rows and columns at these ascending positions."""

    @abstractmethod
    def costs(self, places: Ints, costs: Floats) -> float:
        """Change costs."""

    @abstractmethod
    def bounds(self, places: Ints, lower: Floats, upper: Floats) -> float:
        """Change columns' bounds."""

    @abstractmethod
    def sides(self, places: Ints, lower: Floats, upper: Floats) -> float:
        """Change rows' sides."""

    @abstractmethod
    def coefficients(self, changed: list[tuple[int, int, float]]) -> float:
        """Change coefficients, (row, column, value)."""

    @abstractmethod
    def add(self, now: Program, m: int, n: int) -> float:
        """Add the rows from `m` on with their entries in older columns, then the columns from `n` on."""

    @abstractmethod
    def solve(self, program: Program, limit_s: float, edit_s: float) -> Answer:
        """Solve within a time limit, from what is kept."""

    def change(self, before: Program, now: Program, rows: Overlap, columns: Overlap) -> float:
        """Update changed costs, bounds and sides of surviving rows and columns."""
        seconds = 0.0
        at = np.flatnonzero(before.c[columns.before] != now.c[columns.after])
        if len(at):
            seconds += self.costs(at, now.c[at])
        for name, kept, told in (("col", columns, self.bounds), ("row", rows, self.sides)):
            low, high = getattr(now, f"{name}_lower"), getattr(now, f"{name}_upper")
            same = getattr(before, f"{name}_lower")[kept.before] == low[kept.after]
            same &= getattr(before, f"{name}_upper")[kept.before] == high[kept.after]
            at = np.flatnonzero(~same)
            if len(at):
                seconds += told(at, low[at], high[at])
        return seconds
