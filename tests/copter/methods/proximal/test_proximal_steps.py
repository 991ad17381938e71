"""Proximal steps one by one: sigma, counts, the gap, what ends them; duals of blocks and rows, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from copter import Settings
from copter.methods.proximal import proximal_point as steps
from copter.methods.proximal.newton import Point, Region, Rows
from copter.methods.proximal.proximal_point import Control, Progress, blocks_minimum, bounded_minimum, restricted_dual
from tests.copter.twins import Floats, Group, flat, working_set

INF = np.inf


def test_prices_of_the_wrong_sign_are_zero() -> None:
    rows = Rows(np.array([-INF, -INF, 1.0, 1.0, 1.0, 1.0]), np.array([2.0, 2.0, INF, INF, 2.0, 2.0]), np.ones(6))
    signed = steps.signed_prices(np.array([-3.0, 3.0, -3.0, 3.0, -3.0, 3.0]), rows)
    assert signed.tolist() == [-3.0, 0.0, 0.0, 3.0, -3.0, 3.0]


def test_rows_add_the_bound_that_their_price_selects() -> None:
    rows = Rows(np.array([-INF, 1.0, 5.0]), np.array([2.0, INF, 7.0]), np.ones(3))
    assert steps.rows_value(np.array([-3.0, 0.5, 0.0]), rows) == -3.0 * 2.0 + 0.5 * 1.0
    assert steps.rows_value(np.array([0.0, 0.0, -1.0]), rows) == -7.0
    assert steps.rows_value(np.array([0.0, 0.0, 1.0]), rows) == 5.0


def test_the_minimum_over_blocks_is_the_sum_of_easy_and_bounded_ones() -> None:
    """One job at its limit; one fixed; one whose columns have bounds of their own; one without a limit."""
    start = np.array([0, 2, 3, 5, 7], dtype=np.int32)
    limit = np.array([2.0, INF, 1.5, INF])
    lower = np.array([0.0, 0.0, 4.0, 0.0, 0.25, -INF, 0.0])
    upper = np.array([2.0, 3.0, 4.0, 1.0, 1.0, 1.0, INF])
    reduced = np.array([-1.0, -3.0, 0.5, -2.0, -1.0, -4.0, 2.0])
    easy, rest = 2.0 * -3.0 + 4.0 * 0.5, (-2.0 * 1.0 - 1.0 * 0.5) + (-4.0 * 1.0 + 0.0)
    value, wrong = blocks_minimum(reduced, lower, upper, start, limit)
    assert value == pytest.approx(easy + rest, rel=1e-15)
    assert wrong.tolist() == [0.0] * 4
    only = slice(0, 3)
    value, wrong = blocks_minimum(reduced[only], lower[only], upper[only], start[:3], limit[:2])
    assert value == easy
    assert wrong.tolist() == []


def test_reduced_costs_of_an_infinite_bound_are_left_out() -> None:
    """A positive one where there is no lower bound; a negative one where there is neither upper bound nor limit."""
    lower, upper = np.array([-INF, 0.0, 0.0, -INF, 1.0, -2.0]), np.array([1.0, INF, INF, INF, 2.0, 2.0])
    counts, none = np.ones(6, dtype=np.int64), np.full(6, INF)
    reduced = np.array([2.0, -3.0, 4.0, 0.0, -0.5, 0.5])
    value, wrong = bounded_minimum(reduced, lower, upper, counts, none, np.arange(6))
    assert wrong.tolist() == [2.0, -3.0, 0.0, 0.0, 0.0, 0.0]
    assert value == -0.5 * 2.0 + 0.5 * -2.0
    limit = np.array([INF, 5.0, INF, INF, INF, INF])
    lower[1] = 0.5
    value, wrong = bounded_minimum(reduced, lower, upper, counts, limit, np.arange(6))
    assert wrong.tolist() == [2.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert value == -3.0 * 5.0 - 0.5 * 2.0 + 0.5 * -2.0
    np.testing.assert_array_equal(bounded_minimum(-reduced, -upper, -lower, counts, none, np.arange(6))[1], -np.array(
        [2.0, -3.0, 0.0, 0.0, 0.0, 0.0]
    ))  # fmt: skip


def test_a_large_reduced_cost_that_is_not_wrong_counts_whole() -> None:
    """Sizes on both sides of one, so that no sign or threshold is taken for another."""
    lower, upper = np.array([0.0, -1.0, 2.0]), np.array([3.0, 5.0, 4.0])
    counts, none = np.ones(3, dtype=np.int64), np.full(3, INF)
    for reduced in ([-0.25, 0.25, 0.0], [-8.0, 8.0, -0.5], [0.0, 0.0, 0.0]):
        cost = np.array(reduced)
        value, wrong = bounded_minimum(cost, lower, upper, counts, none, np.arange(3))
        assert value == np.minimum(cost * lower, cost * upper).sum()
        assert not wrong.any()


def a_program(n: int = 2) -> tuple[Any, Rows]:
    """Groups of one column each, costs -1, -2, ..., one row."""
    groups = [
        Group(np.array([-1.0 - j]), np.zeros(1), np.ones(1), 1.0, np.array([[1.0]]), np.zeros(1)) for j in range(n)
    ]
    problem = flat(groups)
    return working_set(problem, problem.center), Rows(np.array([-INF]), np.array([1.0]), np.ones(1))


def test_the_restricted_dual_is_that_of_rows_and_blocks() -> None:
    ws, rows = a_program()
    value, wrong = restricted_dual(ws, rows, np.array([-1.5]))
    assert value == -1.5 * 1.0 + (0.0 - 0.5)
    assert wrong.tolist() == []
    assert restricted_dual(ws, rows, np.array([0.7]))[0] == 0.0 - 1.0 - 2.0, "a price of the wrong sign is zero"


class Script:
    """Stands for the ascent of each step: prices, x, residual and Newton steps from a list."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, taken: list[tuple[float, list[float], float, int]]) -> None:
        self.taken, self.sigmas, self.slacks, self.centers = taken, [], [], []  # type: ignore[var-annotated]
        monkeypatch.setattr(steps, "Subproblem", self.subproblem)
        monkeypatch.setattr(steps, "Ascent", lambda *_: None)
        monkeypatch.setattr(steps, "maximise", self.maximise)

    def subproblem(self, ws: Any, rows: Any, center: Floats, slack: Floats, sigma: float, n_threads: int) -> Any:
        self.problem = SimpleNamespace(x=np.zeros(0), dual=None, begin=self.begin)
        self.begin(center, slack, sigma)
        return self.problem

    def begin(self, center: Floats, slack: Floats, sigma: float) -> None:
        self.sigmas.append(sigma)
        self.slacks.append(slack.tolist())
        self.centers.append(center.tolist())
        self.problem.x = np.array(self.taken[min(len(self.sigmas), len(self.taken)) - 1][1])

    def maximise(self, problem: Any, ascent: Any, y: Floats, *_: Any) -> tuple[Point, int]:
        price, _, residual, count = self.taken[min(len(self.sigmas), len(self.taken)) - 1]
        return Point(np.array([price]), np.array([0.25]), np.array([float(residual)])), count


EVERYWHERE = Region(np.zeros(1), np.ones(1), INF)


def stepped(
    ws: Any, rows: Rows, region: Region = EVERYWHERE, sigma: float = 4.0, most: int = 60, **given: Any
) -> Progress:
    settings = Settings(max_proximal_steps=most, sigma_growth=2.0)
    control = Control(settings, **{"tolerance": 1e-3, "row_tolerance": np.array([0.5]), **given})
    return steps.proximal_point(ws, rows, np.zeros(1), sigma, control, region)


def test_sigma_doubles_after_an_easy_feasible_step_and_halves_after_a_violated_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Easy: at most `EASY_STEPS` Newton steps; after a longer one sigma stays."""
    assert steps.EASY_STEPS == 20
    ws, rows = a_program()
    bad = [0.0, 0.0]  # far from the dual's value
    script = Script(monkeypatch, [(-1.0, bad, 0.5, 20), (-1.0, bad, -0.5, 21), (-1.0, bad, 0.51, 3), (-1.0, bad, 0, 1)])
    found = stepped(ws, rows, most=5)
    assert script.sigmas == [4.0, 8.0, 8.0, 4.0, 8.0]
    assert (found.proximal_steps, found.newton_steps, found.sigma) == (5, 20 + 21 + 3 + 1 + 1, 16.0)
    assert not found.converged
    assert not found.left_trust_region
    assert script.slacks == [[0.0], [0.25], [0.25], [0.25], [0.25]], "the first is the activity within the rows"


def test_sigma_stays_between_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ws, rows = a_program()
    script = Script(monkeypatch, [(-1.0, [0.0, 0.0], 0.0, 1)])
    assert stepped(ws, rows, sigma=0.75e6, most=3).sigma == 1e6
    assert script.sigmas == [0.75e6, 1e6, 1e6]
    script = Script(monkeypatch, [(-1.0, [0.0, 0.0], 9.0, 1)])
    assert stepped(ws, rows, sigma=3e-6, most=3).sigma == 1e-6


def test_eight_violated_steps_in_a_row_end_the_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    ws, rows = a_program()
    bad = [0.0, 0.0]
    script = Script(monkeypatch, [(-1.0, bad, 1.0, 1)] * 7 + [(-1.0, bad, 0.0, 1)] + [(-1.0, bad, -1.0, 1)])
    found = stepped(ws, rows)
    assert found.proximal_steps == len(script.sigmas) == 7 + 1 + 8
    assert not found.converged


def test_a_step_that_closes_the_gap_ends_the_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the price -1.5 the dual is -2, which x = (0, 1) attains; a violated row or a constant's gap goes on."""
    ws, rows = a_program()
    script = Script(monkeypatch, [(-1.5, [0.0, 1.0], 0.6, 3), (-1.5, [0.0, 0.9], 0.1, 2), (-1.5, [0.0, 1.0], 0.5, 1)])
    found = stepped(ws, rows)
    assert (found.converged, found.proximal_steps, found.newton_steps, found.gap) == (True, 3, 6, 0.0)
    assert found.y.tolist() == [-1.5]
    assert ws.x.tolist() == [0.0, 1.0]
    assert script.centers == [[0.0, 0.0], [0.0, 1.0], [0.0, 0.9]]
    assert found.displacement.tolist() == [0.0, 1.0], "the longest step"
    ws.x[:] = 0.0
    Script(monkeypatch, [(-1.5, [0.0, 0.9], 0.1, 2)])
    gap = stepped(ws, rows, most=1, offset=-1.0).gap
    assert gap == pytest.approx(0.2 / (1.0 + 2.8 + 3.0))
    Script(monkeypatch, [(-1.5, [0.0, 0.9], 0.1, 2)])
    ws.x[:] = 0.0
    assert stepped(ws, rows, tolerance=gap, offset=-1.0).converged, "a gap at the tolerance is closed"


def test_the_longest_step_is_kept_by_its_largest_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    ws, rows = a_program()
    Script(monkeypatch, [(-1.0, [0.5, 0.5], 0, 1), (-1.0, [0.4, 0.9], 0, 1), (-1.0, [0.9, 0.9], 0, 1)])
    assert stepped(ws, rows, most=2).displacement.tolist() == [0.5, 0.5]
    ws.x[:] = 0.0
    Script(monkeypatch, [(-1.0, [0.1, 0.4], 0, 1), (-1.0, [0.5, 0.8], 0, 1)])
    assert stepped(ws, rows, most=2).displacement == pytest.approx([0.4, 0.4]), "the later of two of one length"
    ws.x[:] = 0.0
    Script(monkeypatch, [(-1.0, [0.0, 0.01], 0, 1)])
    assert stepped(ws, rows, most=1).displacement.tolist() == [0.0, 0.01]


def test_reduced_costs_left_out_of_the_dual_are_part_of_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A free column: the dual leaves out its reduced cost, of which the gap knows by its size."""
    group = Group(np.array([3.0]), np.array([-INF]), np.array([INF]), INF, np.array([[1.0]]), np.zeros(1))
    ws, rows = working_set(flat([group]), np.zeros(1)), Rows(np.array([0.0]), np.array([1.0]), np.ones(1))
    Script(monkeypatch, [(1.0, [0.0], 0.0, 1)])
    assert stepped(ws, rows, most=1).gap == pytest.approx(2.0 / (1.0 + 3.0))


def test_prices_that_are_no_longer_inside_end_the_solve_without_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    ws, rows = a_program()
    Script(monkeypatch, [(-1.0, [0.5, 0.5], 0.1, 2), (-9.0, [0.0, 1.0], 0.0, 5)])
    found = stepped(ws, rows, region=Region(np.zeros(1), np.ones(1), 5.0))
    assert (found.proximal_steps, found.newton_steps, found.converged) == (1, 7, False)
    assert found.y.tolist() == [-9.0]
    assert ws.x.tolist() == [0.5, 0.5]


def test_a_stop_ends_the_solve_after_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    ws, rows = a_program()
    Script(monkeypatch, [(-1.0, [0.5, 0.5], 0.1, 2)])
    found = stepped(ws, rows, stop=lambda: True)
    assert (found.proximal_steps, found.converged) == (1, False)
    assert ws.x.tolist() == [0.5, 0.5]
    assert Control(Settings(), 1e-3, np.zeros(1)).stop() is False
    assert Control(Settings(), 1e-3, np.zeros(1)).offset == 0.0


# The trust region --------------------------------------------------------------------------------------------------


def test_prices_beyond_the_trust_radius_come_back_to_its_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distances are in units of the prices, or of a hundredth of the largest cost over a row's scale."""
    ws, rows = a_program()
    asked: list[Region] = []

    def solve(part: Any, rows_: Rows, y: Floats, sigma: float, control: Control, region: Region) -> Progress:
        asked.append(region)
        return Progress(np.array([4.0]), sigma, 3, 7, 0.125, True, displacement=np.zeros(2))

    monkeypatch.setattr(steps, "proximal_point", solve)
    size = 2.0 + 0.01 * 2.0 / 1.0
    for radius, wanted in ((3.0 / size, 1.0), (6.0 / size, 4.0), (INF, 4.0)):
        control = Control(Settings(), 1e-3, np.array([0.5]), trust_radius=radius)
        found = steps.solve_working_set(ws, rows, np.array([-2.0]), 1.0, control)
        assert (asked[-1].base.tolist(), asked[-1].weight.tolist(), asked[-1].radius) == ([-2.0], [size], radius)
        assert found.y == pytest.approx([wanted])
        assert (found.left_trust_region, found.converged) == (wanted == 1.0, wanted == 4.0)


def test_a_row_that_nothing_uses_has_the_size_one() -> None:
    ws, _ = a_program()
    rows = Rows(np.full(2, -INF), np.ones(2), np.array([0.0, 4.0]))
    assert steps.sizes(ws, rows, np.array([0.0, -3.0])) == pytest.approx([1.0, 3.0 + 0.01 * 2.0 / 4.0])
