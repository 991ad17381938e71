"""The compiled steps against their slow twins in Python: the same points, prices and counts, whatever ends them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from copter import Settings
from copter.methods.proximal import proximal_point
from copter.methods.proximal.newton import Rows, Subproblem
from copter.methods.proximal.proximal_point import Control, Progress, sizes, solve_in_one_call, solve_working_set
from copter.methods.proximal.steps import Steps
from copter.methods.proximal.working_set import WorkingSet
from tests.copter.twins import Floats, Group, flat, working_set

INF = np.inf
ROWS = 3


def program(seed: int, groups: int, room: float, held: float = 0.0) -> tuple[WorkingSet, Rows, Floats]:
    """Requests that want one of one to five columns each, rows of which two are scarce, prices near the optimum's.

    A share `held` of the requests keeps what it has.
    """
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(groups):
        n = int(rng.integers(1, 6))
        usage = rng.integers(0, 4, (ROWS, n)) * (rng.random((ROWS, n)) < 0.5).astype(float)
        x = np.eye(n)[rng.integers(n)] * rng.integers(2)
        stays = held and rng.random() < held
        lower, upper = (x, x) if stays else (np.zeros(n), np.full(n, INF if seed % 2 else 1.0))
        made.append(Group(-rng.random(n), lower, upper, 1.0, usage, x))
    problem = flat(made)
    upper = np.array([room * groups, 1.5 * room * groups, INF])
    rows = Rows(np.array([-INF, 0.0, -INF]), upper, np.array([1.0, 1.0, 2.0]))
    return working_set(problem, problem.center), rows, -rng.random(ROWS) * 0.2


def both(given: tuple[WorkingSet, Rows, Floats], control: Control, steps: Steps) -> tuple[Any, Any, Any, Any]:
    """(progress, x) of the compiled steps, and of their twins."""
    ws, rows, y = given
    twin = ws.take(np.arange(ws.size))
    found = solve_in_one_call(steps, ws, rows, y, 1.0, control)
    return found, ws.x, solve_working_set(twin, rows, y, 1.0, control), twin.x


def same(found: Progress, x: Floats, twin: Progress, other: Floats, ws: WorkingSet) -> None:
    """Both ended in the same way, at points and prices of the same value."""
    assert (found.converged, found.left_trust_region) == (twin.converged, twin.left_trust_region)
    if found.converged:
        assert ws.cost @ x == pytest.approx(ws.cost @ other, rel=3e-8, abs=1e-8)
        assert (found.gap, twin.gap) <= (1e-8, 1e-8)
        for g in range(len(ws.slots)):
            begin, end = ws.start[g], ws.start[g + 1]
            assert x[begin:end].sum() <= ws.limit[g] + 1e-9
            assert np.all((x[begin:end] >= ws.lower[begin:end]) & (x[begin:end] <= ws.upper[begin:end]))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("held", [0.0, 0.2])
def test_the_same_end_as_in_python(seed: int, held: float) -> None:
    steps = Steps()
    for groups in (40, 3, 90):  # one after the other, over the same arrays
        control = Control(Settings(), 1e-8, np.full(ROWS, 1e-9))
        given = program(seed, groups, 0.4, held)
        found, x, twin, other = both(given, control, steps)
        same(found, x, twin, other, given[0])
        if groups == 3 and held:  # the held ones may use more than there is
            continue
        assert found.converged
        rows, used = given[1], given[0].activity_of(x, ROWS)
        assert np.all((used >= rows.lower - 1e-8) & (used <= rows.upper + 1e-8))


def test_a_direction_where_they_do_not_converge() -> None:
    control = Control(Settings(max_proximal_steps=4), 1e-9, np.full(ROWS, 1e-9))
    for seed in range(4):
        ws, rows, y = program(seed, 30, 0.4)
        before = ws.x.copy()
        short = Rows(np.array([-INF, 0.0, 500.0]), rows.upper, rows.scale)  # more than all requests use together
        found, x, twin, other = both((ws, short, y), control, Steps())
        assert not found.converged
        same(found, x, twin, other, ws)
        assert len(found.displacement) == ws.size
        assert found.displacement[x != before].any()
        assert np.isfinite(found.displacement).all()


def test_the_same_edge_of_the_trust_region() -> None:
    control, left = Control(Settings(), 1e-8, np.full(ROWS, 1e-9), trust_radius=0.05), 0
    for seed in range(6):
        given = program(seed, 40, 0.2)
        found, _, twin, _ = both(given, control, Steps())
        unit = sizes(given[0], given[1], given[2])
        assert found.left_trust_region == twin.left_trust_region
        for progress in (found, twin):
            distance = np.abs((progress.y - given[2]) / unit).max()
            assert distance <= 0.05 + 1e-12
            assert distance == pytest.approx(0.05) or not progress.left_trust_region
        left += found.left_trust_region
    assert left


@pytest.mark.parametrize("seed", range(8))
def test_many_columns_are_all_open_and_take_the_same_steps(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    control, found = Control(Settings(threads=1), 1e-8, np.full(ROWS, 1e-9)), []
    for least in (10**9, 0):
        monkeypatch.setattr(proximal_point, "SMALL_WORKING_SET", least)
        ws, rows, y = program(seed, 60, 0.4, 0.1)
        progress = solve_in_one_call(Steps(), ws, rows, y, 1.0, control)
        assert progress is not None
        assert progress.converged
        found.append((progress.proximal_steps, progress.newton_steps, pytest.approx(ws.cost @ ws.x, rel=1e-9)))
    assert found[0][:2] == found[1][:2]
    assert found[0][2].expected == found[1][2]


def test_a_stop_ends_them() -> None:
    asked: list[int] = []
    control = Control(Settings(), 1e-8, np.full(ROWS, 1e-9), stop=lambda: bool(asked.append(1)) or len(asked) > 3)
    ws, rows, y = program(1, 40, 0.2)
    found = solve_in_one_call(Steps(), ws, rows, y, 1.0, control)
    assert found is not None
    assert not found.converged
    assert found.newton_steps == 3


def test_programs_that_are_left_to_the_steps_in_python() -> None:
    ws, rows, y = program(2, 9, 0.4)
    control = Control(Settings(), 1e-8, np.full(ROWS, 1e-9))
    other = replace(control, direction=lambda sub, point: Subproblem.newton_direction(sub, point))
    assert solve_in_one_call(Steps(), ws, rows, y, 1.0, other) is None
    assert solve_in_one_call(Steps(), WorkingSet(), rows, y, 1.0, control) is None
    assert solve_in_one_call(Steps(), ws, rows, np.zeros(65), 1.0, control) is None
    assert solve_in_one_call(Steps(), ws, rows, np.zeros(0), 1.0, control) is None
    ws.lower[0], ws.record = -1.0, None
    assert solve_in_one_call(Steps(), ws, rows, y, 1.0, control) is None
