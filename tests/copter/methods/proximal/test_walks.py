"""Before and after the walk to a vertex: what is put on bounds, which rows and limits are tight, what excess goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from copter.methods.proximal.newton import Rows
from copter.methods.proximal.purification import purify
from copter.methods.proximal.purify import Walk
from copter.methods.proximal.working_set import WorkingSet
from tests.copter.twins import Group, flat, working_set

INF = np.inf


def columns(lower: list[float], upper: list[float], limits: list[tuple[int, float]], usage: Any = None) -> WorkingSet:
    """Groups of so many columns with these limits; one row that sums all columns unless given."""
    low, high = np.array(lower), np.array(upper)
    matrix = np.ones((1, len(low))) if usage is None else np.array(usage)
    groups, at = [], 0
    for count, limit in limits:
        part = slice(at, at + count)
        groups.append(Group(np.zeros(count), low[part], high[part], limit, matrix[:, part], np.zeros(count)))
        at += count
    return working_set(flat(groups), np.zeros(len(low)))


def walk_of(ws: WorkingSet, lower: float = -INF, upper: float = INF) -> Walk:
    """A walk of a working set over one row."""
    return Walk(ws.groups(), ws.x, np.array([lower]), np.array([upper]), np.array([2.0]))


def test_columns_near_a_bound_are_put_on_it() -> None:
    """Near: a billionth of their range, or of one where that is infinite."""
    ws = columns([0.0, 1.0, 0.0, -INF, 2.0], [4.0, 3.0, INF, 5.0, 2.0], [(5, INF)])
    ws.x = np.array([3.9e-9, 1.0 + 2.1e-9, 0.9e-9, 5.0 - 0.9e-9, 2.0])
    walk_of(ws)
    assert ws.x.tolist() == [0.0, 1.0 + 2.1e-9, 0.0, 5.0, 2.0]
    ws.x = np.array([4.0 - 3.9e-9, 3.0 - 2.1e-9, 1.1e-9, 5.0 - 1.1e-9, 2.0])
    walk_of(ws)
    assert ws.x.tolist() == [4.0, 3.0 - 2.1e-9, 1.1e-9, 5.0 - 1.1e-9, 2.0]
    ws.upper[:3], ws.x = 1.0, np.array([1e-9, 1.0 - 1e-9, 0.5, 0.0, 2.0])
    ws.lower[1] = 0.0
    walk_of(ws)
    assert ws.x.tolist() == [0.0, 1.0, 0.5, 0.0, 2.0], "just as near"
    assert purify(WorkingSet(), Rows(np.array([-INF]), np.array([INF]), np.ones(1))) == 0


@pytest.mark.parametrize(
    ("lower", "upper", "activity", "tight"),
    [
        (-INF, 3.0, 3.0 - 3.9e-7, True),
        (-INF, 3.0, 3.0 - 4.1e-7, False),
        (-INF, 3.0, 3.0 + 3.9e-7, True),
        (-INF, -3.0, -3.0 - 3.9e-7, True),
        (2.0, INF, 2.0 + 0.9e-7, True),
        (2.0, INF, 2.0 + 1.1e-7, False),
        (2.0, 3.0, 2.0 + 3.9e-7, True),
        (-2.0, 3.0, 2.0, False),
        (0.0, 3.0, -3.0, False),
        (-INF, INF, 0.0, False),
    ],
)
def test_rows_near_a_side_are_tight(lower: float, upper: float, activity: float, tight: bool) -> None:
    """Near: 1e-7 of one more than the upper side, where there is one."""
    ws = columns([-9.0], [9.0], [(1, INF)])
    ws.x[:] = activity
    walk = walk_of(ws, lower, upper)
    assert list(walk.activity) == pytest.approx([activity])
    assert (list(walk.row_tight), walk.n_tight) == ([int(tight)], int(tight))


def test_limits_without_room_are_tight() -> None:
    """A billionth of one more than the limit is no room."""
    limits = [3.0, 3.0, INF, 0.25, 0.25]
    ws = columns([0.0] * 6, [9.0] * 6, [(2, limits[0]), *((1, limit) for limit in limits[1:])])
    ws.x = np.array([1.0, 2.0 - 3.9e-9, 3.0 - 4.1e-9, 1.0, 0.25 - 1.2e-9, 0.25 - 1.3e-9])
    walk = walk_of(ws)
    assert list(walk.limit_tight) == [1, 0, 0, 1, 0]
    assert list(walk.room) == pytest.approx([3.9e-9, 4.1e-9, INF, 1.2e-9, 1.3e-9], rel=1e-6, abs=0.0)


@pytest.mark.parametrize(("rows", "walks"), [(64, True), (65, False)])
def test_up_to_64_tight_rows_there_is_a_walk(rows: int, walks: bool) -> None:
    ws = columns([0.0] * 66, [9.0] * 66, [(1, 2.0), (65, INF)], np.ones((rows, 66)))
    ws.x[:] = [2.5 + 1e-8, *[1.0] * 65]
    steps = purify(ws, Rows(np.full(rows, -INF), np.full(rows, 67.5), np.ones(rows)))
    assert (steps > 0, ws.x[1:].tolist() != [1.0] * 65) == (walks, walks)
    assert ws.x[0] <= 2.0, "an excess goes in either case"


def test_a_walk_asks_before_each_step_whether_to_stop() -> None:
    ws, asked = columns([0.0] * 9, [9.0] * 9, [(9, INF)]), []
    ws.x[:] = 1.0
    steps = purify(ws, Rows(np.array([-INF]), np.array([9.0]), np.ones(1)), lambda: len(asked.append(1) or asked) > 3)
    assert (steps, len(asked)) == (3, 4)


def test_an_excess_goes_from_the_column_between_bounds_with_the_most_room() -> None:
    ws = columns([1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0], [5.0] * 7, [(3, 4.0), (1, 1.0), (2, 5.0), (1, 3.0)])
    ws.x = np.array([2.5, 1.75, 0.0, 0.5, 2.25, 3.0, 3.5])
    walk_of(ws).settle()
    assert ws.x.tolist() == [2.5, 1.5, 0.0, 0.5, 2.25, 2.75, 3.0]
    ws.x = np.array([2.0, 0.75, 1.25, 1.0, 2.0, 5.0, 3.0])
    walk_of(ws).settle()
    assert ws.x.tolist() == [2.0, 0.75, 1.25, 1.0, 2.0, 5.0, 3.0], "sums at their limits stay, as do columns at bounds"
    ws.x = np.array([5.0, 0.25, 0.0, 1.5, 2.5, 5.0, 3.0])
    walk_of(ws).settle()
    assert ws.x.tolist() == [5.0, 0.0, 0.0, 1.0, 2.0, 5.0, 3.0], "no further than its lower bound"
