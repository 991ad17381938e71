"""Moves from the middle of the optimal face to one of its vertices (equation I9)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.interior.augmented_system import MOST_AUGMENTED, AugmentedSystem
from copter.methods.interior.iteration import PredictorCorrector
from copter.methods.interior.normal_equations import is_dear
from copter.methods.interior.point import Misfit, Point
from copter.methods.interior.polish import THRESHOLDS, face_of, polished
from copter.methods.interior.standard_form import StandardForm
from copter.methods.path_following import vertex_costs

Floats = NDArray[np.float64]

SNAP = 1e-9  # a column this close to a bound, relative to the largest value, is put on it


def face_program(form: StandardForm, point: Point) -> tuple[StandardForm, NDArray[np.int64], Floats]:
    """Return the optimal face as a program: (form, its columns, values of the other columns).

    Its costs are those of :func:`vertex_costs` (zero for free columns).
    """
    face = face_of(form, point, THRESHOLDS[0])
    columns = np.flatnonzero(face.inside)
    rest = np.where(face.inside, 0.0, face.t)
    part = StandardForm(
        matrix=form.matrix[:, columns],
        right=form.right - form.matrix @ rest,
        cost=np.where(form.free[columns], 0.0, vertex_costs(len(columns))),
        width=form.width[columns],
        free=form.free[columns],
        row=form.row,
        column=np.arange(len(columns)),
        sign=np.ones(len(columns)),
        origin=np.zeros(len(columns)),
    )
    return part, columns, rest


def vertices(
    form: StandardForm,
    point: Point,
    goal: float,
    max_iterations: int,
    stop: Callable[[int, Misfit], bool],
    must_stop: Callable[[], bool],
) -> list[Floats]:
    """Return candidate vertices of the face that contains the point, the most polished last."""
    part, columns, rest = face_program(form, point)
    if not len(columns):
        return []
    method = PredictorCorrector(part, goal, max_iterations, stop, must_stop)
    progress = method.run()
    dear = is_dear(method.system)
    if not (progress.converged or progress.stopped or dear) and form.matrix.nnz <= MOST_AUGMENTED:
        method = PredictorCorrector(
            part, goal, max_iterations, stop, must_stop, AugmentedSystem(part.matrix, must_stop)
        )
        progress = method.run()
    if progress.stopped:
        return []
    result = []
    for values, _ in polished(part, method.system, progress.point, must_stop):
        t = rest.copy()
        near = SNAP * (1.0 + float(np.abs(values).max(initial=0.0)))
        values = np.where(~part.free & (values < near), 0.0, values)
        t[columns] = np.where(part.width - values < near, part.width, values)
        result.append(t)
        if dear:  # the next step factorises the augmented system
            break
    return result
