"""One cold solve of a block program: interior points, then the optimal face, then a vertex where one is wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.blocks.face import Face, face_of, face_program, onto_face
from copter.blocks.interior import BlockMethod, Figures
from copter.blocks.program import BlockProgram
from copter.runtime.watch import Watch
from copter.settings import Settings

Floats = NDArray[np.float64]

GOAL = 1e-3  # of the tolerance, on the scaled program
LEAST_GOAL = 1e-10
ENOUGH = 1e-1  # of the tolerance, that the point on the face keeps to
MOST_ROWS = 3000  # coupling rows of a reduced matrix that is held dense
SNAP = 1e-11  # a value this close to a bound, relative to the largest value, is put on it


@dataclass(frozen=True, slots=True)
class BlockAnswer:
    """One optimum, as minimised.

    Attributes
    ----------
    x : ndarray (columns,)
    y, private : ndarray (coupling rows,), (private rows,)
        Prices.
    iterations : int
    vertex : bool
    """

    x: Floats
    y: Floats
    iterations: int
    private: Floats
    vertex: bool = False


def solve_blocks(program: BlockProgram, settings: Settings, watch: Watch, vertex: bool) -> BlockAnswer | None:
    """Solve to within the settings' tolerances; None where that does not succeed or the time is up.

    Parameters
    ----------
    program : BlockProgram
    settings : Settings
    watch : Watch
    vertex : bool
        Whether x shall be a vertex of the optimal face.
    """
    if program.n_columns == 0:
        return None
    n_rows = program.n_rows
    program, kept = program.without_loose_rows()
    if program.n_rows > MOST_ROWS:
        return None
    scaled, scale, factor = program.equilibrated()
    tolerance = min(settings.tolerance, settings.absolute_tolerance)
    goal = max(GOAL * tolerance, LEAST_GOAL)
    method = BlockMethod(scaled, settings.n_threads)
    with np.errstate(all="ignore"):
        figures, stopped = method.run(goal, settings.max_interior_iterations, stop_by(watch))
        if stopped or not figures.worst <= tolerance:
            return None
        face = face_of(method)
        prices = method.state.y.copy()
        x = on_the_face(method, face, prices, ENOUGH * tolerance)
        iterations = method.iterations
        if x is None:
            return None
        if vertex and not watch():
            second = BlockMethod(face_program(scaled, face), settings.n_threads)
            figures, stopped = second.run(goal, settings.max_interior_iterations, stop_by(watch))
            iterations += second.iterations
            if not stopped and figures.worst <= tolerance:
                corner = onto_face(second, face_of(second))
                x = corner if within(method, corner, prices, ENOUGH * tolerance) else x
    n, m = program.n_columns, program.n_rows
    prices *= scale / factor
    coupling = np.zeros(n_rows)
    coupling[kept] = prices[:m]
    return BlockAnswer(snapped(scaled, x[:n]), coupling, iterations, prices[m:])


def on_the_face(method: BlockMethod, face: Face, prices: Floats, tolerance: float) -> Floats | None:
    """The first point that holds: on the face with its rows closed, on the face as it is, or not moved at all."""
    point = method.state.x.copy()
    for x in (onto_face(method, face), face.x, point):
        if within(method, x, prices, tolerance):
            return x
    return None


def stop_by(watch: Watch) -> Callable[[int, Figures], bool]:
    """A stopping test that asks the watch alone."""

    def stop(iteration: int, figures: Figures) -> bool:
        return watch()

    return stop


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
    """Values next to a bound put on it."""
    n = program.n_columns
    near = SNAP * (1.0 + float(np.abs(x).max(initial=0.0)))
    lower, upper = program.lower[:n], program.upper[:n]
    x = np.where(x - lower < near, lower, x)
    return np.where(upper - x < near, upper, x)
