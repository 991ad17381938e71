"""Which groups are left out of a proximal step, how far prices may move for that, and what is then solved (A8)."""

from __future__ import annotations

import numpy as np
import pytest

from copter.methods.proximal import settling
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.settling import Part, Settling
from copter.methods.proximal.working_set import WorkingSet
from tests.copter.twins import Floats, Group, flat, working_set

INF = np.inf


def groups_of_two(count: int, cost: float = -0.5) -> WorkingSet:
    """Groups of two columns each, of which the first is at the limit; two rows."""
    usage = np.array([[1.0, 0.0], [0.0, 3.0]])
    group = Group(np.array([cost, 0.5 * cost]), np.zeros(2), np.ones(2), 1.0, usage, np.array([1.0, 0.0]))
    problem = flat([group] * count)
    return working_set(problem, problem.center)


def settled(
    monkeypatch: pytest.MonkeyPatch, radii: list[float], y: Floats, scale: Floats, cost: float = -0.5
) -> tuple[WorkingSet, Rows, Settling]:
    """A settling whose groups have these radii."""
    ws = groups_of_two(len(radii), cost)
    rows = Rows(np.array([1.0, -INF]), np.array([8.0, 4.0]), scale)

    def found(columns: object, x: Floats, reduced: Floats, weight: Floats, radius: Floats) -> None:
        np.testing.assert_array_equal(x, ws.x)
        np.testing.assert_array_equal(reduced, ws.reduced_costs(y))
        assert len(weight) == 2
        radius[:] = radii

    monkeypatch.setattr(settling, "settled_radius", found)
    return ws, rows, Settling(ws, rows, y)


def test_distances_are_in_units_of_the_prices_or_of_a_share_of_the_largest_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    y = np.array([-2.0, 0.0])
    _, _, found = settled(monkeypatch, [1.0] * 4, y, np.array([0.25, 0.5]))
    assert found.weight == pytest.approx([2.0 + 0.01 * 0.5 / 0.25, 0.01 * 0.5 / 0.5], rel=1e-14)
    assert found.distance(y) == 0.0
    moved = np.array([-3.0, 0.02])
    assert found.distance(moved) == pytest.approx(max(1.0 / 2.02, 0.02 / 0.01))
    y[:] = 9.0
    assert found.base.tolist() == [-2.0, 0.0], "the base stays where it was"
    _, _, found = settled(monkeypatch, [1.0] * 4, np.zeros(2), np.array([0.0, 4.0]), cost=-6.0)
    assert found.weight == pytest.approx([1.0, 0.01 * 6.0 / 4.0]), "a row that nothing uses has the weight one"


def test_the_first_radius_leaves_a_tenth_of_the_groups_open(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settling(WorkingSet(), Rows(np.zeros(2), np.ones(2), np.ones(2)), np.zeros(2)).radius == INF
    radii = list(np.random.default_rng(3).permutation(20).astype(float))
    _, _, found = settled(monkeypatch, radii, np.array([-1.0, -1.0]), np.ones(2))
    assert found.radius == 2.0
    assert found.region.inside(found.base + 2.0 * found.weight)
    assert not found.region.inside(found.base + 2.001 * found.weight)
    part = found.part()
    assert len(part.ws.slots) == 3
    assert settling.SHARE == 0.1
    _, _, few = settled(monkeypatch, [3.0, 1.0, 2.0], np.array([-1.0, -1.0]), np.ones(2))
    assert few.radius == 1.0


def test_a_wider_radius_covers_the_prices_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, found = settled(monkeypatch, [1.0, 2.0, 3.0, 4.0], np.array([-1.0, -1.0]), np.ones(2))
    found.widen(found.base + 0.5 * found.weight)
    assert found.radius == 3.0
    found.widen(found.base - 7.0 * found.weight)
    assert found.radius == pytest.approx(21.0)


def test_prices_come_back_along_the_line_from_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, found = settled(monkeypatch, [1.0] * 4, np.array([-1.0, -2.0]), np.ones(2))
    far = found.base + np.array([4.0, -8.0]) * found.weight
    assert found.brought_back(far, 2.0) == pytest.approx(found.base + np.array([1.0, -2.0]) * found.weight)
    assert found.brought_back(far, 16.0) == pytest.approx(far), "nearer ones stay"


def test_the_part_is_the_open_groups_and_rows_less_what_the_others_use(monkeypatch: pytest.MonkeyPatch) -> None:
    ws, rows, found = settled(monkeypatch, [5.0, 0.5, 6.0, 1.0], np.array([-1.0, -1.0]), np.ones(2))
    ws.x[4:6] = [0.25, 0.5]
    found.radius = 1.0
    part = found.part()
    assert part.columns is not None
    assert part.columns.tolist() == [2, 3, 6, 7]
    assert part.ws.x.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert part.ws.cost.tolist() == [-0.5, -0.25] * 2
    used = np.array([1.0 + 0.25, 3.0 * 0.5])
    np.testing.assert_allclose(part.rows.lower, rows.lower - used)
    np.testing.assert_allclose(part.rows.upper, rows.upper - used)
    assert part.cost == -0.5 * 1.0 - 0.5 * 0.25 - 0.25 * 0.5
    part.ws.x[:] = 0.0
    assert ws.x[2] == 1.0, "a copy"
    assert part.spread(np.arange(1.0, 5.0), 8).tolist() == [0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0]


def test_with_more_than_half_of_the_groups_open_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    ws, rows, found = settled(monkeypatch, [1.0, 1.0, 1.0, 6.0, 7.0], np.array([-1.0, -1.0]), np.ones(2))
    part = found.part()
    assert part.ws is ws
    assert part.rows is rows
    assert (part.columns, part.cost, found.radius) == (None, 0.0, INF)
    values = np.ones(10)
    assert Part(ws, rows, None, 0.0).spread(values, 10) is values
