"""Before and after the walk to a vertex: what is put on bounds, which rows and limits are tight, what excess goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from copter.methods.proximal import purification
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.purification import purify, settle
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


class Watched:
    """Stands for the walk; it keeps what the walk would have got."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given: list[Any] = []
        monkeypatch.setattr(purification, "Walk", self.begin)

    def begin(self, groups: Any, x: Any, span: Any, along: Any, room: Any, limit_tight: Any) -> Any:
        self.given = [x.copy(), span.copy(), along, room.copy(), limit_tight.tolist()]
        return self

    def run(self, most: int, must_stop: Any) -> int:
        assert most == 20_000
        assert must_stop() is False
        return 7


def watched_rows(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The rows of each walk that is prepared, as (activity, lower, upper, scale, tight)."""
    made: list[Any] = []
    monkeypatch.setattr(purification, "WalkRows", lambda *given: made.append(given) or given)
    return made


def test_columns_near_a_bound_are_put_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Near: a billionth of their range, or of one where that is infinite."""
    watch = Watched(monkeypatch)
    ws = columns([0.0, 1.0, 0.0, -INF, 2.0], [4.0, 3.0, INF, 5.0, 2.0], [(5, INF)])
    row = Rows(np.array([-INF]), np.array([INF]), np.ones(1))
    ws.x = np.array([3.9e-9, 1.0 + 2.1e-9, 0.9e-9, 5.0 - 0.9e-9, 2.0])
    assert purify(ws, row) == 7
    assert ws.x.tolist() == [0.0, 1.0 + 2.1e-9, 0.0, 5.0, 2.0]
    assert watch.given[1].tolist() == [4.0, 2.0, 1.0, 1.0, 0.0]
    ws.x = np.array([4.0 - 3.9e-9, 3.0 - 2.1e-9, 1.1e-9, 5.0 - 1.1e-9, 2.0])
    purify(ws, row)
    assert ws.x.tolist() == [4.0, 3.0 - 2.1e-9, 1.1e-9, 5.0 - 1.1e-9, 2.0]
    ws.upper[:3], ws.x = 1.0, np.array([1e-9, 1.0 - 1e-9, 0.5, 0.0, 2.0])
    ws.lower[1] = 0.0
    purify(ws, row)
    assert ws.x.tolist() == [0.0, 1.0, 0.5, 0.0, 2.0], "just as near"
    assert purify(WorkingSet(), row) == 0


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
def test_rows_near_a_side_are_tight(
    monkeypatch: pytest.MonkeyPatch, lower: float, upper: float, activity: float, tight: bool
) -> None:
    """Near: 1e-7 of one more than the upper side, where there is one."""
    Watched(monkeypatch)
    made = watched_rows(monkeypatch)
    ws = columns([-9.0], [9.0], [(1, INF)])
    ws.x[:] = activity
    purify(ws, Rows(np.array([lower]), np.array([upper]), np.array([2.0])))
    found, low, high, scale, is_tight = made[0]
    assert found == pytest.approx([activity])
    assert (low.tolist(), high.tolist(), scale.tolist()) == ([lower], [upper], [2.0])
    assert is_tight.tolist() == [int(tight)]


def test_limits_without_room_are_tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A billionth of one more than the limit is no room."""
    watch = Watched(monkeypatch)
    watched_rows(monkeypatch)
    limits = [3.0, 3.0, INF, 0.25, 0.25]
    ws = columns([0.0] * 6, [9.0] * 6, [(2, limits[0]), *((1, limit) for limit in limits[1:])])
    ws.x = np.array([1.0, 2.0 - 3.9e-9, 3.0 - 4.1e-9, 1.0, 0.25 - 1.2e-9, 0.25 - 1.3e-9])
    purify(ws, Rows(np.array([-INF]), np.array([INF]), np.ones(1)))
    assert watch.given[4] == [1, 0, 0, 1, 0]
    assert watch.given[3] == pytest.approx([3.9e-9, 4.1e-9, INF, 1.2e-9, 1.3e-9], rel=1e-6, abs=0.0)


@pytest.mark.parametrize(("rows", "steps"), [(64, 7), (65, 0)])
def test_up_to_64_tight_rows_there_is_a_walk(monkeypatch: pytest.MonkeyPatch, rows: int, steps: int) -> None:
    Watched(monkeypatch)
    watched_rows(monkeypatch)
    ws = columns([0.0], [9.0], [(1, 2.0)], np.ones((rows, 1)))
    ws.x[:] = 2.5
    assert purify(ws, Rows(np.full(rows, -INF), np.full(rows, 2.5), np.ones(rows))) == steps
    assert ws.x.tolist() == [2.0], "an excess goes in either case"


def test_an_excess_goes_from_the_column_between_bounds_with_the_most_room() -> None:
    ws = columns([1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0], [5.0] * 7, [(3, 4.0), (1, 1.0), (2, 5.0), (1, 3.0)])
    ws.x = np.array([2.5, 1.75, 0.0, 0.5, 2.25, 3.0, 3.5])
    settle(ws)
    assert ws.x.tolist() == [2.5, 1.5, 0.0, 0.5, 2.25, 2.75, 3.0]
    ws.x = np.array([2.0, 0.75, 1.25, 1.0, 2.0, 5.0, 3.0])
    settle(ws)
    assert ws.x.tolist() == [2.0, 0.75, 1.25, 1.0, 2.0, 5.0, 3.0], "sums at their limits stay, as do columns at bounds"
    ws.x = np.array([5.0, 0.25, 0.0, 1.5, 2.5, 5.0, 3.0])
    settle(ws)
    assert ws.x.tolist() == [5.0, 0.0, 0.0, 1.0, 2.0, 5.0, 3.0], "no further than its lower bound"
