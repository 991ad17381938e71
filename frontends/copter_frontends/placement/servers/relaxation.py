"""The plain relaxation of a round: shares of tasks in the summed amounts of like servers (PS8)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from copter import LinearProgram
from copter_frontends.placement.servers.board import Floats, Ints, Shapes
from copter_frontends.placement.servers.pattern_kernels import how_many_fit
from copter_frontends.placement.servers.rooms import Rooms

ROUNDING = 1e-9
"""Relative amount by which bounds of the relaxations are raised, to cover amounts that were scaled."""


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


def knapsack(shapes: Shapes, asked: Ints, free: Ints) -> tuple[int, Ints]:
    """Return (bound, prices of the shapes) of the dimension in which the tasks that are asked for are worth least.

    No more of a dimension is used than there is, wherever it is: a knapsack with fractions (PS9).

    Parameters
    ----------
    shapes : Shapes
    asked : ndarray (shapes,) of int64
        Waiting tasks of each shape.
    free : ndarray (dimensions + 1,) of int64
        Summed free amounts, of GPUs last.
    """
    own = np.flatnonzero(asked)
    needs = np.column_stack((shapes.need, shapes.gpus * shapes.milli))[own].astype(np.float64)
    worths, most = shapes.worth[own].astype(np.float64), asked[own].astype(np.float64)
    best, price = float(worths @ most), np.zeros_like(shapes.worth)
    for d, whole in enumerate(free.tolist()):
        need = needs[:, d]
        rate = np.divide(worths, need, out=np.full(len(own), np.inf), where=need > 0)
        order = np.argsort(-rate, kind="stable")
        amount = need[order] * most[order]
        used = np.cumsum(amount)
        share = np.clip(1.0 - (used - whole) / np.maximum(amount, 1.0), 0.0, 1.0)
        bound = float((worths * most)[order] @ share)
        if bound < best:
            least = rate[order[int(np.argmax(share < 1.0))]]  # what the first that does not fit whole gets for a unit
            best, price[own] = bound, np.rint(np.maximum(worths - least * need, 0.0)).astype(np.int64)
    return int(np.floor(best * (1.0 + ROUNDING))), price
