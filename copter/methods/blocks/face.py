"""Moves from the end of the interior-point method to the optimal face and to one of its vertices (K7, K8)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.interior import BlockMethod
from copter.methods.blocks.program import BlockProgram
from copter.methods.path_following import FACE_ROUNDS, vertex_costs

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST_ROOM = 1e-12  # least room of a column inside its bounds, relative to the largest room


@dataclass(frozen=True, slots=True)
class Face:
    """Which variables (columns, then rows) are strictly inside their bounds, the values of the others, and the room
    to move.
    """

    inside: Mask
    x: Floats
    room: Floats


def face_of(method: BlockMethod) -> Face:
    """Return the face near the method's point: a variable is at a bound if its multiplier exceeds its distance to
    it.
    """
    program, state = method.program, method.state
    below, above = method.bounded_below, method.bounded_above
    low = np.where(below, state.x - program.lower, np.inf)
    high = np.where(above, program.upper - state.x, np.inf)
    at_lower = below & (low < state.z) & ~(above & (high < state.v) & (high < low))
    at_upper = above & (high < state.v) & ~at_lower
    inside = ~(at_lower | at_upper | method.fixed)
    x = np.where(at_lower | method.fixed, program.lower, np.where(at_upper, program.upper, state.x))
    room = np.minimum(np.minimum(low, high), np.maximum(1.0, np.abs(state.x)))
    largest = float(room[inside].max(initial=0.0))
    return Face(inside, x, np.where(inside, np.maximum(room / max(largest, 1e-300), LEAST_ROOM), 0.0))


def onto_face(method: BlockMethod, face: Face) -> Floats:
    """Project the method's point onto the face; returns the values of columns and rows at which the rows hold.

    Variables inside their bounds move as little as possible, in units of their room.
    """
    program, state = method.program, method.state
    n, rows = program.n_columns, state.n_all_rows
    weight = face.room**2
    state.set_weight(weight)
    method.factorise()
    x = face.x.copy()
    left, usage, more = np.empty(rows), np.empty(n), np.empty(rows)
    for _ in range(FACE_ROUNDS):
        state.product(x[:n], left)
        method.solve(x[n:] - left, more)
        state.usage(more, usage)
        x += weight * np.concatenate((usage, -more))
        np.clip(x, program.lower, program.upper, out=x)
    return x


def face_program(program: BlockProgram, face: Face) -> BlockProgram:
    """Return the optimal face as a program: variables at bounds are fixed, costs are those of :func:`vertex_costs`."""
    n = program.n_columns
    cost = vertex_costs(n)
    lower = np.where(face.inside, program.lower, face.x)
    upper = np.where(face.inside, program.upper, face.x)
    signed = np.where(np.isfinite(lower[:n]), cost, np.where(np.isfinite(upper[:n]), -cost, 0.0))
    return replace(program, cost=np.where(face.inside[:n], signed, 0.0), lower=lower, upper=upper)
