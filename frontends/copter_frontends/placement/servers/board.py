"""Servers and task shapes as arrays: servers in the same state (type and free amounts) are one class with a count."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

WHOLE_GPU = 1000
"""Thousandths of a GPU."""
UP, DRAINING, FAILED = 0, 1, 2
"""Status of a server: takes tasks, only keeps the ones that it has, holds none."""


class Shapes(NamedTuple):
    """Task shapes: tasks of one shape are alike for the program.

    Attributes
    ----------
    need : ndarray (shapes, dimensions) of int64
        Need in every divisible dimension (thousandths of a core, MiB).
    gpus, milli : ndarray (shapes,) of int64
        Number of GPUs, and thousandths of each; less than 1000 only for a single GPU.
    allowed : ndarray (shapes, types) of bool
        Whether the shape's selector takes the type of server.
    worth : ndarray (shapes,) of int64
        Worth of a running task, in whole units, so that bounds are exact.
    share : ndarray (shapes,) of float64
        Share of the shape among the tasks that are expected; sums to one. Shapes that differ in worth only have it on
        the first one.
    like : ndarray (shapes,) of int64
        That first shape: its scores are the shape's.
    """

    need: Ints
    gpus: Ints
    milli: Ints
    allowed: Bools
    worth: Ints
    share: Floats
    like: Ints


class Waiting(NamedTuple):
    """Waiting tasks, shape after shape.

    Attributes
    ----------
    task : ndarray (tasks,) of int64
        Those of a shape stand first come, first.
    first, ends : ndarray (shapes,) of int64
        Where those of each shape begin and end; kernels move the beginnings on, and exchange tasks of one shape.
    by_size : ndarray (shapes,) of int64
        Shapes, the largest first.
    """

    task: Ints
    first: Ints
    ends: Ints
    by_size: Ints


class Board(NamedTuple):
    """Free amounts of every server, and the classes of servers in one state as linked lists.

    Attributes
    ----------
    kind, status, running : ndarray (servers,) of int64
        Type, status, and number of running tasks.
    free : ndarray (servers, dimensions) of int64
    gpu : ndarray (servers, most GPUs) of int64
        Free thousandths of every GPU.
    state, after, before : ndarray (servers,) of int64
        Class of the server (-1 unless it takes tasks), and its neighbours in the class's list (-1 at the ends).
    state_kind, state_count, state_head : ndarray (states,) of int64
    state_free : ndarray (states, dimensions) of int64
    state_gpu : ndarray (states, most GPUs) of int64
        In decreasing order.
    slots : ndarray (power of two,) of int64
        Hash table of the classes.
    made : ndarray (1,) of int64
        Number of classes that have been made; those without servers stay until the table is built anew.
    left : ndarray (states,) of float64
        What the scheme's rule thinks of the free amounts; NaN where it has not been computed.
    score : ndarray (states, shapes) of float32
        Score of the shape's next task on a server of the class; NaN where it has not been computed.
    choice : ndarray (states, shapes) of int8
        Place in `state_gpu` of the GPU that a task with a part of a GPU gets.
    ordered, rest, cut : ndarray of int64
        Scratch of the kernels: GPUs in order, and what a task would leave free of the dimensions and the GPUs.
    """

    kind: Ints
    status: Ints
    running: Ints
    free: Ints
    gpu: Ints
    state: Ints
    after: Ints
    before: Ints
    state_kind: Ints
    state_count: Ints
    state_head: Ints
    state_free: Ints
    state_gpu: Ints
    slots: Ints
    made: Ints
    left: Floats
    score: NDArray[np.float32]
    choice: NDArray[np.int8]
    ordered: Ints
    rest: Ints
    cut: Ints


def board_of(kind: Ints, status: Ints, running: Ints, free: Ints, gpu: Ints, shapes: int, states: int) -> Board:
    """Return a board without classes, with room for some; `enter_all` makes them."""
    n, bits = len(kind), int(np.ceil(np.log2(4 * states + 4)))
    lone = np.full((3, n), -1, dtype=np.int64)
    return Board(
        kind, status, running, free, gpu, lone[0], lone[1], lone[2],
        np.zeros(states, dtype=np.int64), np.zeros(states, dtype=np.int64), np.full(states, -1, dtype=np.int64),
        np.zeros((states, free.shape[1]), dtype=np.int64), np.zeros((states, gpu.shape[1]), dtype=np.int64),
        np.full(1 << bits, -1, dtype=np.int64), np.zeros(1, dtype=np.int64),
        np.full(states, np.nan), np.full((states, shapes), np.nan, dtype=np.float32),
        np.zeros((states, shapes), dtype=np.int8),
        *(np.zeros(size, dtype=np.int64) for size in (gpu.shape[1], free.shape[1], gpu.shape[1])),
    )  # fmt: skip
