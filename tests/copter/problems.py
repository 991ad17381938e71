"""Tiny linear programs with answers worked out by hand, in HiGHS's signs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from copter import LinearProgram, Status

INF = np.inf


@dataclass(frozen=True)
class Problem:
    """A program and what is known of its answer: x and y only where they are unique."""

    name: str
    lp: LinearProgram
    objective: float | None = None
    x: tuple[float, ...] | None = None
    y: tuple[float, ...] | None = None
    statuses: tuple[Status, ...] = field(default=(Status.OPTIMAL,))

    def __str__(self) -> str:
        return self.name


def lp(c: list[float], a: list[list[float]], **other: object) -> LinearProgram:
    """A program from dense rows; the shape is right for no rows and for no columns too."""
    return LinearProgram(c, np.array(a, dtype=float).reshape(len(a), len(c)), **other)  # type: ignore[arg-type]


DUPLICATES = sp.coo_array(([1.0, 1.0, 3.0, 2.0, -1.0], ([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])), shape=(2, 2))

OPTIMAL = (
    Problem(
        "inequalities",
        lp([3, 2], [[1, 1], [1, 3]], row_upper=[4, 8], col_upper=[3, INF], sense="max"),
        11,
        (3, 1),
        (2, 0),
    ),
    Problem("equality", lp([1, 2], [[1, 1]], row_lower=[3], row_upper=[3], col_upper=[2, INF]), 4, (2, 1), (2,)),
    Problem(
        "equality, maximised",
        lp([1, 2], [[1, 1]], row_lower=[3], row_upper=[3], col_upper=[INF, 2], sense="max"),
        5,
        (1, 2),
        (1,),
    ),
    Problem(
        "range, lower side tight",
        lp([1, 0], [[1, 1]], row_lower=[2], row_upper=[5], col_upper=[INF, 1]),
        1,
        (1, 1),
        (1,),
    ),
    Problem(
        "range, upper side tight",
        lp([1, 0], [[1, 1]], row_lower=[2], row_upper=[5], col_lower=[0, 1], sense="max"),
        4,
        (4, 1),
        (1,),
    ),
    Problem("range, slack", lp([-1, 1], [[1, -1]], row_lower=[-9], row_upper=[9], col_upper=[2, 3]), -2, (2, 0), (0,)),
    Problem(
        "free columns",
        lp([0, 1], [[-1, 1], [1, 1]], row_lower=[-2, 0], col_lower=-INF),
        -1,
        (1, -1),
        (0.5, 0.5),
    ),
    Problem(
        "fixed column",
        lp([1, 1], [[1, 1]], row_lower=[5], col_lower=[2, 0], col_upper=[2, INF]),
        5,
        (2, 3),
        (1,),
    ),
    Problem(
        "all fixed",
        lp([1, 1], [[1, 1]], row_upper=[9], col_lower=[2, -3], col_upper=[2, -3]),
        -1,
        (2, -3),
        (0,),
    ),
    Problem("free row, no lower bound", lp([-1], [[1]], col_lower=[-INF], col_upper=[4]), -4, (4,), (0,)),
    Problem(
        "no lower bounds",
        lp([1, 0.5], [[1, 1]], row_lower=[-3], col_lower=-INF, col_upper=[INF, 1]),
        -3.5,
        (-4, 1),
        (1,),
    ),
    Problem(
        "upper bound only",
        lp([1, 2], [[1, 1]], row_lower=[-3], row_upper=[7], col_lower=[-INF, -1], col_upper=[INF, 1]),
        -4,
        (-2, -1),
        (1,),
    ),
    Problem(
        "empty row",
        lp([1, 0.5], [[1, 1], [0, 0]], row_lower=[-INF, -1], row_upper=[2, 1], sense="max"),
        2,
        (2, 0),
        (1, 0),
    ),
    Problem(
        "empty column",
        lp([-1, 2, 0], [[1, 0, 0]], row_upper=[3], col_lower=[0, 1, 0], col_upper=[INF, 3, 0]),
        -1,
        (3, 1, 0),
        (-1,),
    ),
    Problem("empty free column without cost", lp([1, 0], [[1, 0]], row_lower=[1], col_lower=[0, -INF]), 1, None, (1,)),
    Problem(
        "duplicate entries",
        LinearProgram([1, 1], DUPLICATES, row_lower=[6, 1], row_upper=[INF, 1]),
        2.5,
        (1.5, 1),
        (0.5, -0.5),
    ),
    Problem("offset", lp([2], [[1]], row_lower=[3], offset=10), 16, (3,), (2,)),
    Problem("offset, maximised", lp([2], [[1]], row_upper=[3], offset=-10, sense="max"), -4, (3,), (2,)),
    Problem("no rows", lp([1, -1], [], col_lower=[-2, 0], col_upper=[5, 3]), -5, (-2, 3), ()),
    Problem("no columns", lp([], [[], []], row_lower=[-1, -INF], row_upper=[0, 2], offset=3), 3, (), (0, 0)),
    Problem("no cost", lp([0, 0], [[1, 1]], row_lower=[1], row_upper=[1]), 0, None, (0,)),
    Problem(
        "degenerate vertex",
        lp([-1, -1], [[1, 0], [0, 1], [1, 1], [1, 2]], row_upper=[1, 1, 2, 3]),
        -2,
        (1, 1),
    ),
    Problem("whole edge optimal", lp([1, 1], [[1, 1]], row_upper=[2], sense="max"), 2, None, (1,)),
    Problem(
        "redundant equalities",
        lp([1, 3], [[1, 1], [2, 2]], row_lower=[1, 2], row_upper=[1, 2]),
        1,
        (1, 0),
    ),
    Problem(
        "sizes far apart",
        lp([1e3, 1e-3], [[1e4, 1], [1e-3, 1e-4]], row_lower=[1e4, 1e-3], col_upper=[INF, 1e3]),
        901.0,
        (0.9, 1e3),
    ),
    Problem(
        "transport",
        lp(
            [4, 6, 9, 5, 3, 8],
            [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]],
            row_lower=[-INF, -INF, 10, 20, 5],
            row_upper=[20, 30, INF, INF, INF],
        ),
        140.0,
        (10, 0, 0, 0, 20, 5),
        (0, 0, 4, 3, 8),
    ),
)

INFEASIBLE = tuple(
    Problem(name, program, statuses=(Status.PRIMAL_INFEASIBLE,))
    for name, program in (
        ("rows cross", lp([1, 1], [[1, 1], [1, 1]], row_lower=[3, -INF], row_upper=[INF, 2])),
        ("bounds against row", lp([1, 1], [[1, 1]], row_lower=[3], col_upper=[1, 1])),
        ("empty row without zero", lp([1], [[0.0]], row_lower=[1])),
        ("empty row below zero", lp([-1], [[0.0]], row_upper=[-1], sense="max")),
        ("no columns", lp([], [[]], row_lower=[1])),
        ("equalities", lp([0, 0], [[1, 1], [1, -1], [1, 0]], row_lower=[2, 0, 5], row_upper=[2, 0, 5])),
        ("maximised", lp([1, 1], [[1, 2], [3, 1]], row_lower=[-INF, 9], row_upper=[2, INF], sense="max")),
        ("fixed columns", lp([1, 1], [[1, 1]], row_upper=[1], col_lower=[1, 1], col_upper=[1, 1])),
    )
)

UNBOUNDED = tuple(
    Problem(name, program, statuses=(Status.DUAL_INFEASIBLE,))
    for name, program in (
        ("one column", lp([1], [[0.0]], sense="max")),
        ("one free column", lp([1], [], col_lower=-INF)),
        ("along a row", lp([-1, 0], [[1, -1]], row_upper=[1])),
        ("free direction", lp([1, 1], [[1, -1]], row_lower=[0], row_upper=[0], col_lower=-INF)),
        ("among bounded columns", lp([1, 1, 2], [[1, 1, 0]], row_upper=[4], col_upper=[1, 1, INF], sense="max")),
    )
)

NEITHER = (
    Problem(
        "infeasible and unbounded",
        lp([-1, 0], [[0, 1], [0, 1]], row_lower=[2, -INF], row_upper=[INF, 1]),
        statuses=(Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE),
    ),
)

ALL = OPTIMAL + INFEASIBLE + UNBOUNDED + NEITHER
