"""The plain relaxation of a round: shares of tasks in the summed amounts of like servers (PS8)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from copter import LinearProgram
from copter_frontends.policies.servers.board import Floats, Ints, Shapes
from copter_frontends.policies.servers.pattern_kernels import how_many_fit
from copter_frontends.policies.servers.rooms import Rooms


class Relaxation(NamedTuple):
    """A round's relaxation and what its columns and rows stand for.

    Attributes
    ----------
    program : LinearProgram
        Rows are the waiting shapes', then each room's dimensions with the GPUs last; amounts are in units of `scale`.
    waiting : ndarray (w,) of int64
        The waiting shapes.
    shape, room : ndarray (columns,) of int64
    scale : ndarray (dimensions + 1,) of float64
    """

    program: LinearProgram
    waiting: Ints
    shape: Ints
    room: Ints
    scale: Floats


def relaxation_of(rooms: Rooms, shapes: Shapes, asked: Ints, whole: bool = False) -> Relaxation:
    """Return the relaxation, or with `whole` the integer program, of as many tasks of each shape in each room.

    Parameters
    ----------
    rooms : Rooms
    shapes : Shapes
    asked : ndarray (shapes,) of int64
        Waiting tasks of each shape.
    whole : bool
    """
    waiting = np.flatnonzero(asked)
    free = np.column_stack((rooms.free, rooms.gpu.sum(axis=1))).astype(np.float64)
    most = how_many_fit(shapes, waiting, rooms.kind, rooms.free, rooms.gpu)
    room, own = np.nonzero(most)
    shape, (n, dims) = waiting[own], free.shape
    needs = np.column_stack((shapes.need, shapes.gpus * shapes.milli))[shape].astype(np.float64)
    scale = np.maximum(free.max(axis=0, initial=0.0), 1.0)
    row = np.column_stack((own, len(waiting) + room[:, None] * dims + np.arange(dims)))
    value = np.column_stack((np.ones(len(own)), needs / scale))
    there = value.ravel() != 0.0
    ends = np.concatenate(([0], np.cumsum(there.reshape(value.shape).sum(axis=1))))
    rows = sp.csc_array((value.ravel()[there], row.ravel()[there], ends), shape=(len(waiting) + n * dims, len(own)))
    program = LinearProgram(
        shapes.worth[shape].astype(np.float64), rows,
        row_upper=np.concatenate((asked[waiting], (free / scale * rooms.servers[:, None]).ravel())),
        col_upper=np.minimum(most[room, own] * rooms.servers[room], asked[shape]).astype(np.float64),
        sense="max", integrality=int(whole),
    )  # fmt: skip
    return Relaxation(program, waiting, shape, room, scale)
