"""Cold solve of a block program: interior points, the optimal face, then a vertex if wanted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.answer import Accept, BlockAnswer
from copter.methods.blocks.face import Face, face_of, face_program, onto_face
from copter.methods.blocks.interior import BlockMethod
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.reduced_program import ReducedProgram, has_limits_alone
from copter.methods.blocks.screen import Mask, exceeded, is_worth_it, likely_rows, missed, near, promising
from copter.methods.blocks.settled import solve_settled
from copter.methods.path_following import LEAST_GOAL
from copter.runtime.settings import Settings
from copter.runtime.watch import Stopped, Watch

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

GOAL = 1e-3
"""Goal of the interior-point method on the scaled program, as a share of the tolerance: scaling back may lose
digits.
"""

ENOUGH = 1e-1
"""Residual that a point on the optimal face may have, as a share of the tolerance."""

MOST_ROWS = 3000
"""Coupling rows up to which the reduced matrix is stored dense: 72 MB."""

MOST_SHARE = 0.6
"""If more than this share of the coupling rows may bind, all are kept, because leaving out the others does not pay."""

FEW = 0.3
"""Share of the columns that a sample's prices may leave at most: with more, others are missed and little is saved."""

GUESSES = 3
"""Most guesses at the set of binding rows; then all rows are kept."""

SNAP = 1e-11
"""Distance from a bound, relative to the largest value, below which a value is set to the bound."""


def solve_blocks(
    program: BlockProgram,
    settings: Settings,
    watch: Watch,
    vertex: bool,
    accept: Accept | None = None,
    prices: Floats | None = None,
    point: Floats | None = None,
) -> BlockAnswer | None:
    """Solve to the settings' tolerances; returns None on failure or when time is up.

    Parameters
    ----------
    program : BlockProgram
    settings : Settings
    watch : Watch
    vertex : bool
        Whether x shall be a vertex of the optimal face.
    accept : callable, optional
        Function that checks an answer that meets the tolerances in the method's own units. Without it the method
        continues to a thousandth of the tolerances.
    prices : ndarray (coupling rows,), optional
        Prices of an earlier optimum: blocks that they settle are left out (K6).
    point : ndarray (columns,), optional
        That optimum's values.
    """
    if program.n_columns == 0 or watch():
        return None
    try:
        with np.errstate(all="ignore"):
            rows = np.arange(program.n_rows, dtype=np.int32)
            ask = _Question(program, rows, program.n_rows, settings, watch, vertex, accept)
            answer = None if prices is None else ask.from_prices(prices, point)
            if answer is not None or watch():
                return answer
            rest = ReducedProgram.of(program)
            ask = _Question(rest.program, rest.rows, program.n_rows, settings, watch, vertex, rest.accept(accept))
            answer = ask.answer()
            return None if answer is None else rest.answer(answer)
    except Stopped:
        return None


@dataclass(frozen=True, slots=True)
class _Question:
    """A solve to be done: the program, its coupling rows among the `n_rows`, and whether x must be a vertex."""

    program: BlockProgram
    rows: Ints
    n_rows: int
    settings: Settings
    watch: Watch
    vertex: bool
    accept: Accept | None

    def answer(self) -> BlockAnswer | None:
        """Solve with the coupling rows that are likely to bind, or, if that fails, all."""
        if self.program.n_columns == 0:
            return BlockAnswer(np.zeros(0), np.zeros(self.n_rows), 0, np.zeros(0))
        if self.program.n_rows > MOST_ROWS:
            return None
        answer = self.by_likely_parts() if is_worth_it(self.program) else None
        if answer is None and not self.watch():
            answer = self.by(self.program, self.rows, self.accept)
        return answer

    def by(self, program: BlockProgram, rows: Ints, accept: Accept | None) -> BlockAnswer | None:
        """Solve a program with the coupling rows `rows`."""
        return _Run(program, self.settings, self.watch, self.vertex, rows, self.n_rows).solve(accept)

    def from_prices(self, prices: Floats, point: Floats | None) -> BlockAnswer | None:
        """Solve for the blocks that prices of an earlier optimum do not settle (K6)."""
        program, spent = self.program, 0
        if self.vertex or not has_limits_alone(program):
            return None

        def solve(part: BlockProgram, rows: Ints, ends: Accept) -> BlockAnswer | None:
            nonlocal spent
            if part.n_columns == 0:
                return BlockAnswer(np.zeros(0), np.zeros(self.n_rows), 0, np.zeros(0))
            if part.n_rows > MOST_ROWS:
                return None
            run = _Run(part, self.settings, self.watch, False, rows, self.n_rows)
            answer = run.solve(ends)
            spent += run.iterations
            return answer

        found = solve_settled(program, prices, ENOUGH * self.settings.tolerance, solve, self.accept, point)
        return None if found is None else replace(found, iterations=spent, settled=True)

    def by_likely_parts(self) -> BlockAnswer | None:
        """Solve with the coupling rows that are near their bounds in a sample's answer, and the columns that its
        prices leave (K6).

        If the answer violates rows or misses columns that were left out, these and all that are near are added for
        another solve. None after `GUESSES` tries.
        """
        program, likely = self.program, likely_rows(self.program, self.settings.n_threads, self.watch)
        if likely is None:
            return None
        rows, prices = likely
        columns = promising(program, prices) if has_limits_alone(program) else np.ones(program.n_columns, dtype=bool)
        choosy = bool(columns.mean() <= FEW)
        columns |= not choosy
        for _ in range(GUESSES):
            if len(rows) > MOST_SHARE * program.n_rows:
                if not choosy:
                    return None
                rows = np.arange(program.n_rows, dtype=np.int32)
            part = ReducedProgram.of_parts(program, rows, columns)
            answer = self.by(part.program, self.rows[rows], self.ends(part) if self.accept else None)
            if answer is None:
                return None
            whole = part.answer(answer)
            over, wanted = self.left_out(part, whole)
            if not over.any() and not wanted.any():
                return whole
            close = near(program, whole.x)
            close[rows] = True
            rows = np.flatnonzero(close).astype(np.int32)
            columns |= wanted | promising(program, whole.y[self.rows]) if choosy else columns
        return None

    def left_out(self, part: ReducedProgram, answer: BlockAnswer) -> tuple[Mask, Mask]:
        """Mark the coupling rows that a part's answer violates, and the columns that would gain at its prices."""
        program, over = self.program, exceeded(self.program, answer.x)
        if part.program.n_columns == program.n_columns:
            return over, np.zeros(program.n_columns, dtype=bool)
        return over, missed(program, answer.y[self.rows], answer.private, ENOUGH * self.settings.tolerance)

    def ends(self, part: ReducedProgram) -> Accept:
        """Return whether a run of a part is finished: its answer is accepted, or it asks for more than the part."""

        def finished(found: BlockAnswer) -> bool:
            answer = part.answer(found)
            return any(each.any() for each in self.left_out(part, answer)) or self.accept is None or self.accept(answer)

        return finished


class _Run:
    """A solve of one program, whose coupling rows are the rows `rows` of `n_rows`."""

    def __init__(
        self, program: BlockProgram, settings: Settings, watch: Watch, vertex: bool, rows: Ints, n_rows: int
    ) -> None:
        self.rows, self.n_rows = rows, n_rows
        self.program, self.settings, self.watch, self.vertex = program, settings, watch, vertex
        self.scaled, self.scale, self.factor = program.equilibrated()
        self.tolerance = min(settings.tolerance, settings.absolute_tolerance)
        self.goal = max(GOAL * self.tolerance, LEAST_GOAL)
        self.iterations = 0

    def solve(self, accept: Accept | None) -> BlockAnswer | None:
        """Return the answer of Mehrotra's start; None on failure."""
        method = BlockMethod(self.scaled, self.settings.n_threads, self.watch)
        if accept is not None and not self.vertex:
            answer = self.answer(method, max(ENOUGH * self.tolerance, self.goal))
            if answer is not None and accept(answer):
                return answer
            if method.iterations >= self.settings.internals.max_interior_iterations or self.watch():
                return None
        return self.answer(method, self.goal)

    def coupling(self, y: Floats) -> Floats:
        """Return prices of all coupling rows, unscaled."""
        found, m = np.zeros(self.n_rows), self.program.n_rows
        found[self.rows] = y[:m] * self.scale[:m] / self.factor
        return found

    def answer(self, method: BlockMethod, goal: float) -> BlockAnswer | None:
        """Iterate to the goal, then project onto the face."""
        before = method.iterations
        figures, stopped = method.run(goal, self.settings.internals.max_interior_iterations, lambda i, f: self.watch())
        self.iterations += method.iterations - before
        if stopped or not figures.worst <= self.tolerance:
            return None
        face = face_of(method)
        prices = method.state.y.copy()
        x = on_the_face(method, face, prices, ENOUGH * self.tolerance)
        if x is None:
            return None
        if self.vertex and not self.watch():
            x = self.corner(method, face, prices, x)
        n, m = self.program.n_columns, self.program.n_rows
        private = prices[m:] * self.scale[m:] / self.factor
        return BlockAnswer(snapped(self.scaled, x[:n]), self.coupling(prices), self.iterations, private)

    def corner(self, method: BlockMethod, face: Face, prices: Floats, x: Floats) -> Floats:
        """Return a vertex of the face; if that fails, the point itself."""
        second = BlockMethod(face_program(self.scaled, face), self.settings.n_threads, self.watch)
        figures, stopped = second.run(
            self.goal, self.settings.internals.max_interior_iterations, lambda i, f: self.watch()
        )
        self.iterations += second.iterations
        if stopped or not figures.worst <= self.tolerance:
            return x
        corner = onto_face(second, face_of(second))
        return corner if within(method, corner, prices, ENOUGH * self.tolerance) else x


def on_the_face(method: BlockMethod, face: Face, prices: Floats, tolerance: float) -> Floats | None:
    """Return the first acceptable point: on the face with its rows satisfied, on the face, or unmoved."""
    point = method.state.x.copy()
    for x in (onto_face(method, face), face.x, point):
        if within(method, x, prices, tolerance):
            return x
    return None


def within(method: BlockMethod, x: Floats, y: Floats, tolerance: float) -> bool:
    """Whether rows and complementarity hold to the tolerance, relative to their size."""
    state, program = method.state, method.program
    n = program.n_columns
    left, usage = np.empty(state.n_all_rows), np.empty(n)
    state.product(x[:n], left)
    over = np.maximum(np.maximum(left - program.upper[n:], program.lower[n:] - left), 0.0)
    state.usage(y, usage)
    reduced = np.concatenate((program.cost - usage, y))
    at = np.where(reduced > 0.0, program.lower, program.upper)
    supported = np.isfinite(at)
    wrong = float(np.abs(reduced[~supported]).max(initial=0.0))
    point = np.concatenate((x[:n], left))[supported]
    away = float(np.abs(reduced[supported] * (point - at[supported])).sum())
    gap = max(away / (1.0 + abs(float(program.cost @ x[:n]))), wrong)
    return bool(over.max(initial=0.0) <= tolerance and gap <= tolerance)


def snapped(program: BlockProgram, x: Floats) -> Floats:
    """Return the values, with those next to a bound moved onto it."""
    n = program.n_columns
    near = SNAP * (1.0 + float(np.abs(x).max(initial=0.0)))
    lower, upper = program.lower[:n], program.upper[:n]
    x = np.where(x - lower < near, lower, x)
    return np.where(upper - x < near, upper, x)
