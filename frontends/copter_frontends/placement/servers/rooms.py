"""Rooms: classes of servers that are alike for the tasks that wait, though what is free on them may differ."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from copter_frontends.placement.servers.board import Board, Ints, Shapes
from copter_frontends.placement.servers.pattern_kernels import useful_states


class Rooms(NamedTuple):
    """Classes of servers on which one of the waiting shapes fits.

    Attributes
    ----------
    kind : ndarray (rooms,) of int64
        A type of server that stands for all types of the room: the waiting shapes' selectors do not tell them apart.
    free : ndarray (rooms, dimensions) of int64
    gpu : ndarray (rooms, most GPUs) of int64
    servers : ndarray (rooms,) of int64
        How many.
    of_server : ndarray (servers,) of int64
        Each server's room, or -1.
    """

    kind: Ints
    free: Ints
    gpu: Ints
    servers: Ints
    of_server: Ints


def rooms_of(board: Board, shapes: Shapes, waiting: Ints) -> Rooms:
    """Return the rooms of a round before its tasks are placed.

    What no pattern can use is cut off: if no waiting shape needs more than R of one dimension for each unit of another,
    no server's use of the first exceeds R times what is free of the second (PS7). Servers that differ beyond that are
    one room, and no bound changes.
    """
    count = board.state_count
    asked = np.flatnonzero(waiting)
    states = useful_states(board, shapes, count, asked)
    free, gpu = board.state_free[states].copy(), board.state_gpu[states]
    need = shapes.need[asked].astype(np.float64)
    for _ in range(2):
        for d in range(free.shape[1]):
            for e in range(free.shape[1]):
                if d != e and len(asked) and (need[:, e] > 0).all():
                    ratio = float((need[:, d] / need[:, e]).max()) * (1.0 + 1e-12)
                    free[:, d] = np.minimum(free[:, d], np.floor(ratio * free[:, e] + 1e-6).astype(np.int64))
    if not shapes.gpus[asked].any():
        gpu = np.zeros_like(gpu)
    takes = shapes.allowed[asked]
    first = np.zeros(takes.shape[1], dtype=np.int64)
    if not takes.all():
        _, at, same = np.unique(takes.T, axis=0, return_index=True, return_inverse=True)
        first = at[same.ravel()]
    key = np.column_stack((first[board.state_kind[states]], free, gpu))
    own, room = np.unique(key, axis=0, return_inverse=True)
    of_state = np.full(len(count) + 1, -1, dtype=np.int64)
    of_state[states] = room.ravel()
    dims = free.shape[1]
    return Rooms(
        own[:, 0].copy(), own[:, 1 : 1 + dims].copy(), own[:, 1 + dims :].copy(),
        np.bincount(room.ravel(), count[states], len(own)).astype(np.int64), of_state[board.state],
    )  # fmt: skip
