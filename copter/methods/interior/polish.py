"""Projection of a point onto the nearby optimal face: variables near a bound are put exactly on it (equation I8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.interior.iteration import System
from copter.methods.interior.point import Point
from copter.methods.interior.sparse_lu import SparseLU
from copter.methods.interior.standard_form import StandardForm
from copter.methods.path_following import FACE_ROUNDS

Floats = NDArray[np.float64]

DELTA = 1e-13  # added to the diagonal of the normal equations, whose largest weight is 1
LEAST_ROOM = 1e-3  # least room of a column inside its bounds; a column moves in proportion to its room
SLOPE = 1e-11  # added to the diagonal of the rows of the augmented system
THRESHOLDS = (1.0, 1e3, 1e-3)  # ratios z / t above which a column counts as at its bound, in order of trial
MOST_ENTRIES = 5_000_000  # matrices with more entries are not factorised as augmented systems


@dataclass(frozen=True, slots=True)
class Face:
    """Which columns are at a bound, and the room of the others."""

    inside: NDArray[np.bool_]
    t: Floats
    room: Floats


def face_of(form: StandardForm, point: Point, threshold: float) -> Face:
    """Return the face: a column is at a bound if its reduced cost is more than 1/threshold times its distance."""
    boxed = np.isfinite(form.width)
    at_lower = ~form.free & (point.t < threshold * point.z) & ~(boxed & (point.w < point.v) & (point.w < point.t))
    at_upper = boxed & (point.w < threshold * point.v) & ~at_lower
    inside = ~(at_lower | at_upper)
    room = np.where(form.free, np.maximum(1.0, np.abs(point.t)), np.minimum(point.t, np.where(boxed, point.w, np.inf)))
    t = np.where(at_lower, 0.0, np.where(at_upper, form.width, point.t))
    return Face(inside, t, np.where(inside, np.maximum(room, LEAST_ROOM), 0.0))


def polished(
    form: StandardForm, system: System, point: Point, must_stop: Callable[[], bool] | None = None
) -> Iterator[tuple[Floats, Floats]]:
    """Yield points (t, y) on the face nearest to the point, a cheap one first, then more accurate ones.

    The columns inside their bounds move as little as possible, in units of their room, so that the equations hold. The
    prices move as little as possible so that these columns' reduced costs vanish. A column stops at a bound that it
    would cross.
    """
    yield by_normal_equations(form, system, point)
    if form.matrix.nnz <= MOST_ENTRIES:
        for threshold in THRESHOLDS:
            corrected = by_augmented_system(form, point, threshold, must_stop)
            if corrected is not None:
                yield corrected


def by_normal_equations(form: StandardForm, system: System, point: Point) -> tuple[Floats, Floats]:
    """Return both corrections, from one more factorisation of the normal equations."""
    face = face_of(form, point, THRESHOLDS[0])
    theta = (face.room / max(float(face.room.max(initial=0.0)), 1e-300)) ** 2
    system.factorise(theta, DELTA)
    t, y = face.t, point.y
    for _ in range(FACE_ROUNDS):
        t = t + theta * (form.transpose @ system.solve(form.right - form.matrix @ t))
        t = np.where(form.free, t, np.clip(t, 0.0, form.width))
        wrong = np.where(face.inside, form.cost - form.transpose @ y, 0.0)
        y = y + system.solve(form.matrix @ (theta * wrong))
    return t, y


def by_augmented_system(
    form: StandardForm, point: Point, threshold: float, must_stop: Callable[[], bool] | None = None
) -> tuple[Floats, Floats] | None:
    """Return both corrections from the augmented system, whose condition number is the root of the normal
    equations'.
    """
    face = face_of(form, point, threshold)
    inside = np.flatnonzero(face.inside)
    room, rows = face.room[inside], form.matrix.shape[0]
    inner = sp.csc_array(sp.csc_array(form.matrix)[:, inside] @ sp.diags_array(room))
    blocks = [[sp.eye_array(len(inside)), inner.T], [inner, -SLOPE * sp.eye_array(rows)]]
    try:
        whole = sp.csc_matrix(sp.block_array(blocks))
        factor = SparseLU(whole, must_stop)
    except RuntimeError:  # singular to working precision
        return None
    t, y = face.t.copy(), point.y
    for _ in range(FACE_ROUNDS):
        short = np.concatenate((np.zeros(len(inside)), form.right - form.matrix @ t))
        t[inside] += room * factor.solve(short)[: len(inside)]
        t = np.where(form.free, t, np.clip(t, 0.0, form.width))
        wrong = room * (form.cost - form.transpose @ y)[inside]
        y = y + factor.solve(np.concatenate((wrong, np.zeros(rows))))[len(inside) :]
    return t, y
