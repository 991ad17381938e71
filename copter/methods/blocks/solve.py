"""Cold solve of a block program: interior points, the optimal face, then a vertex if wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.answer import Accept, BlockAnswer
from copter.methods.blocks.closed_rows import OpenProgram, opened
from copter.methods.blocks.face import Face, face_of, face_program, onto_face
from copter.methods.blocks.interior import BlockMethod, Figures
from copter.methods.blocks.path import PricePath, Recorder, started_from
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.screen import exceeded, is_worth_it, likely_rows, near
from copter.methods.blocks.sift import Sifting, has_parts
from copter.runtime.watch import Stopped, Watch
from copter.settings import Settings

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

GOAL = 1e-3
"""Goal of the interior-point method on the scaled program, as a share of the tolerance: scaling back may lose
digits.
"""

LEAST_GOAL = 1e-10
"""Least relative goal of the interior-point method; below it, rounding stops the progress."""

ENOUGH = 1e-1
"""Residual that a point on the optimal face may have, as a share of the tolerance."""

PART_TOLERANCE = 3.0
"""Tolerance of a part of the program, as a multiple of the whole program's tolerance: only the whole program's gap
counts.
"""

ALONE = (500_000, 1000)
"""Most entries and rows of a part that is solved by one thread: two would wait for each other longer than they work."""

MOST_ROWS = 3000
"""Coupling rows up to which the reduced matrix is stored dense: 72 MB."""

TRIAL = 10
"""Iterations after which a warm run is judged by SLOW."""

SLOW = 0.1
"""A warm run is given up if, after TRIAL iterations, more than this share of its first row residual is left."""

MOST_SHARE = 0.6
"""If more than this share of the coupling rows may bind, all are kept, because leaving out the others does not pay."""

GUESSES = 3
"""Most guesses at the set of binding rows; then all rows are kept."""

SNAP = 1e-11
"""Distance from a bound, relative to the largest value, below which a value is set to the bound."""


Stop = Callable[[int, Figures], bool]


def solve_blocks(
    program: BlockProgram,
    settings: Settings,
    watch: Watch,
    vertex: bool,
    path: PricePath | None = None,
    accept: Accept | None = None,
    last: BlockAnswer | None = None,
) -> BlockAnswer | None:
    """Solve to the settings' tolerances; returns None on failure or when time is up.

    Parameters
    ----------
    program : BlockProgram
    settings : Settings
    watch : Watch
    vertex : bool
        Whether x shall be a vertex of the optimal face.
    path : PricePath, optional
        Path of the last solve, from which this solve starts if it is near enough; it is updated with this solve's path.
    accept : callable, optional
        Function that checks an answer that meets the tolerances in the method's own units. Without it the method
        continues to a thousandth of the tolerances.
    last : BlockAnswer, optional
        Answer of the last solve; a large program is first solved in part, near its prices (K17).
    """
    if program.n_columns == 0 or watch():
        return None
    n_rows, open_program = program.n_rows, opened(program)
    if open_program is not None:
        program = open_program.program
        if program.n_columns == 0:
            return None
    if path is not None:
        path.turn_to(() if open_program is None else tuple(open_program.closed.tolist()))
    whole = open_program

    def accepts(answer: BlockAnswer) -> bool:
        return accept is None or accept(answer if whole is None else restored(whole, answer))

    ask = _Question(
        program, np.arange(n_rows, dtype=np.int32), n_rows, settings, watch, vertex, path, accept and accepts
    )
    try:
        with np.errstate(all="ignore"):
            answer = None if last is None else ask.by_parts(last if whole is None else whole.reduced(last))
            if answer is None and not watch():
                answer = ask.without_loose_rows().answer()
    except Stopped:
        return None
    return answer if answer is None or whole is None else restored(whole, answer)


def restored(program: OpenProgram, answer: BlockAnswer) -> BlockAnswer:
    """Extend the answer by the columns of closed rows."""
    x, y, private = program.restored(answer.x, answer.y, answer.private)
    return replace(answer, x=x, y=y, private=private)


@dataclass(frozen=True, slots=True)
class _Question:
    """A solve to be done: the program, the coupling rows kept, and whether x must be a vertex."""

    program: BlockProgram
    kept: Ints
    n_rows: int
    settings: Settings
    watch: Watch
    vertex: bool
    path: PricePath | None
    accept: Accept | None

    def without_loose_rows(self) -> _Question:
        """Return the same question with only the coupling rows that can bind (K5)."""
        lean, kept = self.program.without_loose_rows()
        return replace(self, program=lean, kept=self.kept[kept])

    def by_parts(self, last: BlockAnswer) -> BlockAnswer | None:
        """Solve only the requests whose choice could change near the last prices, the others fixed (K17).

        None if the program has no such part, or no part's answer proves to be the optimum of the whole.
        """
        if self.accept is None or self.path is None or not has_parts(self.program):
            return None
        sifting = Sifting(self.program, last, self.of_part, self.accept, self.vertex)
        rows = np.ones(self.n_rows, dtype=np.bool_) if self.path.near is None else self.path.near
        answer = sifting.run(rows)
        if answer is not None:
            self.path.hold_near(np.flatnonzero(sifting.near).astype(np.int32))
        return answer

    def of_part(self, part: BlockProgram, rows: Ints) -> BlockAnswer | None:
        """Solve a part of the program over some of its coupling rows, at `PART_TOLERANCE` times the tolerances."""
        looser = replace(
            self.settings,
            tolerance=PART_TOLERANCE * self.settings.tolerance,
            absolute_tolerance=PART_TOLERANCE * self.settings.absolute_tolerance,
            threads=1 if len(part.row) <= ALONE[0] and part.n_rows <= ALONE[1] else self.settings.threads,
        )
        ask = replace(self, program=part, kept=rows, settings=looser)
        lean = ask.without_loose_rows()
        ask = lean if lean.program.n_rows else ask
        if self.watch() or ask.program.n_rows > MOST_ROWS:
            return None
        return ask.by(ask.program, ask.kept, lambda answer: True)

    def answer(self) -> BlockAnswer | None:
        """Solve with the coupling rows that are likely to bind; if that fails, with all rows."""
        if self.program.n_rows > MOST_ROWS:
            return None
        screened = is_worth_it(self.program)
        answer = self.by_likely_rows() if screened else None
        if answer is None and not self.watch():
            answer = self.by(self.program, self.kept, self.accept)
        if screened and self.path is not None and answer is not None:
            self.path.hold_near(self.kept[near(self.program, answer.x)])
        return answer

    def by(self, program: BlockProgram, kept: Ints, accept: Accept | None) -> BlockAnswer | None:
        """Solve a program with the coupling rows `kept`: from the kept path if there is one, else cold."""
        run = _Run(program, self.settings, self.watch, self.vertex, self.path, kept, self.n_rows)
        if self.path is not None and self.path.passed:
            answer = run.solve(True, accept)
            if answer is not None or self.watch():
                return answer
        return run.solve(False, accept)

    def by_likely_rows(self) -> BlockAnswer | None:
        """Solve with the coupling rows that were near their bounds in the last answer, or in a sample (K6).

        If the answer violates rows that were left out, these and all rows near their bounds are added for another
        solve. None after `GUESSES` tries, or if too many rows may bind.
        """
        known = None if self.path is None else self.path.near_rows(self.kept)
        rows = likely_rows(self.program, self.settings.n_threads, self.watch) if known is None else known
        for _ in range(GUESSES):
            if rows is None or len(rows) > MOST_SHARE * self.program.n_rows:
                return None
            answer = self.by(self.program.of_rows(rows), self.kept[rows], self.ends if self.accept else None)
            if answer is None:
                return None
            if not exceeded(self.program, answer.x).any():
                return answer
            close = near(self.program, answer.x)
            close[rows] = True
            rows = np.flatnonzero(close).astype(np.int32)
        return None

    def ends(self, answer: BlockAnswer) -> bool:
        """Whether a run with some of the rows is finished: its answer is accepted, or it violates other rows."""
        return bool(exceeded(self.program, answer.x).any()) or self.accept is None or self.accept(answer)


class _Run:
    """Solves of one program, from the path or cold."""

    def __init__(
        self,
        program: BlockProgram,
        settings: Settings,
        watch: Watch,
        vertex: bool,
        path: PricePath | None,
        kept: Ints,
        n_rows: int,
    ) -> None:
        self.kept, self.n_rows = kept, n_rows  # rows of the whole program that this one has, and their total number
        self.program, self.settings, self.watch, self.vertex, self.path = program, settings, watch, vertex, path
        self.scaled, self.scale, self.factor = program.equilibrated()
        self.tolerance = min(settings.tolerance, settings.absolute_tolerance)
        self.goal = max(GOAL * self.tolerance, LEAST_GOAL)
        self.iterations = 0

    def solve(self, warm: bool, accept: Accept | None) -> BlockAnswer | None:
        """Return the answer of a start from the path or of Mehrotra's start; None on failure."""
        method = BlockMethod(self.scaled, self.settings.n_threads, self.watch)
        if warm and not (self.path is not None and started_from(method, self.path, self.scale, self.factor, self.kept)):
            return None
        stop, early = self.stop(method, warm), max(ENOUGH * self.tolerance, self.goal)
        if accept is not None and not self.vertex:
            answer = self.answer(method, early, stop)
            if answer is not None and accept(answer):
                return answer
            if method.iterations >= self.settings.max_interior_iterations or self.watch():
                return None
        return self.answer(method, self.goal, stop)

    def answer(self, method: BlockMethod, goal: float, stop: Stop) -> BlockAnswer | None:
        """Iterate to the goal, then project onto the face."""
        before = method.iterations
        figures, stopped = method.run(goal, self.settings.max_interior_iterations, stop)
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
        prices *= self.scale / self.factor
        coupling = np.zeros(self.n_rows)
        coupling[self.kept] = prices[:m]
        return BlockAnswer(snapped(self.scaled, x[:n]), coupling, self.iterations, prices[m:])

    def corner(self, method: BlockMethod, face: Face, prices: Floats, x: Floats) -> Floats:
        """Return a vertex of the face; if that fails, the point itself."""
        second = BlockMethod(face_program(self.scaled, face), self.settings.n_threads, self.watch)
        figures, stopped = second.run(self.goal, self.settings.max_interior_iterations, lambda i, f: self.watch())
        self.iterations += second.iterations
        if stopped or not figures.worst <= self.tolerance:
            return x
        corner = onto_face(second, face_of(second))
        return corner if within(method, corner, prices, ENOUGH * self.tolerance) else x

    def stop(self, method: BlockMethod, warm: bool) -> Stop:
        """Return the stopping rule: it asks the watch and records the path; a warm run also stops if rows close too
        slowly.
        """
        recorder = None if self.path is None else Recorder(method, self.scale, self.factor, self.path, self.kept)
        first: list[float] = []

        def must_stop(iteration: int, figures: Figures) -> bool:
            if recorder is not None:
                recorder.look(figures)
            first.append(figures.primal)
            slow = warm and len(first) > TRIAL and figures.primal > max(SLOW * first[0], self.tolerance)
            return slow or self.watch()

        return must_stop


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
