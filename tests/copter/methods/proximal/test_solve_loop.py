"""The main loop, each part of it in turn: what it asks the parts for, what it counts, and what ends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from copter import Settings, Status
from copter.methods.choose import KEPT, Choice
from copter.methods.proximal import solve as loop
from copter.methods.proximal.iterate import Iterate
from copter.methods.proximal.newton import Rows, Subproblem
from copter.methods.proximal.price_descent import descent_direction
from copter.methods.proximal.pricing import Priced
from copter.methods.proximal.proximal_point import Progress
from copter.methods.proximal.residuals import PrimalSide
from copter.methods.proximal.solve import FallbackResult, Solve
from copter.runtime.settings import Internals
from tests.copter.twins import Floats

INF = np.inf
CHOICE = Choice("proximal", "for this test")
OTHER = Choice("simplex", "another method")


class Parts:
    """Stands for the parts of the loop: what they return is set here, what they are asked is kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.took, self.stops = 0.0, 0.25, False
        self.bounds: list[float] = [0.0]  # of the pricing passes, the last of them again and again
        self.dual, self.objective, self.violation = 0.0, 10.0, 0.0
        self.new, self.progress = 1, Progress(np.array([-3.0]), 5.0, 2, 6, 0.5, True, np.zeros(2))
        self.ray: Floats | None = None
        self.proof = False
        self.seconds: list[float] = []
        self.screens: list[bool] = []
        self.controls: list[Any] = []
        self.grown: list[Any] = []
        self.swept: list[Any] = []
        self.purified = 0
        for name in ("price_all", "primal_side", "descend", "solve_working_set", "improving_ray", "farkas", "purify"):
            monkeypatch.setattr(loop, name, getattr(self, name))
        monkeypatch.setattr(loop, "solve_in_one_call", lambda *_: None)

    def watch(self, limit_s: float = 1e6) -> Any:
        parts = self

        class Stands:
            interrupted = False
            elapsed_s = property(lambda _: parts.clock)

            def __call__(self) -> bool:
                return parts.stops or self.interrupted

        made = Stands()
        made.limit_s = limit_s  # type: ignore[attr-defined]
        return made

    def price_all(
        self, matrix: Any, ws: Any, rows: Any, y: Floats, threads: int, seconds: float, screen: bool
    ) -> Priced:
        self.seconds.append(seconds)
        self.screens.append(screen)
        self.clock += self.took
        bound = self.bounds.pop(0) if len(self.bounds) > 1 else self.bounds[0]
        slots = np.zeros(self.new, dtype=np.int32)
        return Priced(y - 1.0, bound, True, 0.0, np.array([self.dual]), slots, slots)

    def primal_side(self, ws: Any, rows: Any) -> PrimalSide:
        return PrimalSide(self.objective, self.violation, self.violation, 1.0)

    def descend(self, ws: Any, rows: Any, y: Floats, sigma: float, sweeps: int) -> Floats:
        self.swept.append((sigma, sweeps))
        return y + 2.0

    def solve_working_set(self, ws: Any, rows: Any, y: Floats, sigma: float, control: Any) -> Progress:
        self.controls.append((y, sigma, control))
        return self.progress

    def improving_ray(self, ws: Any, rows: Any, displacement: Floats) -> Floats | None:
        return self.ray

    def farkas(self, matrix: Any, ws: Any, rows: Any, direction: Floats, threads: int) -> tuple[bool, Any]:
        self.direction = direction
        return self.proof, SimpleNamespace(y=np.array([8.0]), slot=np.zeros(1), column=np.zeros(1))

    def purify(self, ws: Any, rows: Any, must_stop: Callable[[], bool]) -> int:
        self.purified += 1
        self.objective, self.violation = 10.0 + 1e-9, self.after_purifying
        ws.x[:] = 7.0
        return 1

    after_purifying = 0.0

    def iterate(self, cold: bool = True, sigma: float = 10.0) -> Any:
        parts = self
        made = Iterate(sigma)
        made.cold, made.y = cold, np.array([-1.0])
        made.ws = SimpleNamespace(size=2, x=np.ones(2), cost=np.array([1.0, 2.0]), slots=None)  # type: ignore[assignment]

        def grow(matrix: Any, slot: Any, column: Any, guide: Any = "none") -> int:
            parts.grown.append(guide)
            return parts.new

        made.ws.grow = grow  # type: ignore[method-assign]
        made.ws.expecting = lambda matrix, slot, column: made.ws  # type: ignore[method-assign]
        made.refreshed = made.shrunk = 0  # type: ignore[attr-defined]

        def refresh(matrix: Any, reach: float) -> None:
            made.refreshed += 1  # type: ignore[attr-defined]

        def shrink(matrix: Any) -> None:
            made.shrunk += 1  # type: ignore[attr-defined]

        made.refresh, made.shrink = refresh, shrink  # type: ignore[method-assign]
        return made


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    return Parts(monkeypatch)


def begun(parts: Parts, iterate: Any = None, settings: Settings | None = None, **given: Any) -> Solve:
    """A solve of a matrix of one row, 1 <= Ax <= 3."""
    rows = {"row_lower": np.array([1.0]), "row_upper": np.array([3.0]), "row_scale": np.ones(1)}
    matrix: Any = SimpleNamespace(n_rows=1, any_integer=lambda slots: True, **rows)
    given = {"watch": parts.watch(), **given}
    made = Solve(matrix, iterate or parts.iterate(), settings or Settings(method="proximal"), CHOICE, **given)
    made.passes, made.grown = 5, 1
    return made


def residuals_at(solve: Solve, gap: float) -> Any:
    """Residuals of this relative gap."""
    solve.best = None
    _, priced = solve.price()
    return replace(solve.residuals(priced), gap=gap)


# The whole loop ---------------------------------------------------------------------------------------------------


def test_a_solve_prices_improves_and_ends_where_the_gap_is_closed(parts: Parts) -> None:
    parts.bounds = [5.0, 9.0, 10.0]
    solve = begun(parts, parts.iterate(cold=False, sigma=900.0))
    solve.passes = 0
    found = solve.run()
    assert (found.status, found.passes, found.newton_steps, found.proximal_steps) == (Status.OPTIMAL, 3, 12, 4)
    assert found.objective == 10.0 + 1e-9, "at the vertex"
    assert 0.0 < found.residuals.gap < 1e-9
    assert found.priced.bound == 10.0
    assert found.elapsed_s == 0.75
    assert (found.choice, found.ray) == (CHOICE, None)
    iterate: Any = solve.iterate
    assert (iterate.refreshed, iterate.shrunk, iterate.cold) == (1, 1, False)
    assert [sigma for _, sigma, _ in parts.controls] == [160.0, 5.0], "at most warm_sigma at the start"
    assert [y.tolist() for y, _, _ in parts.controls] == [[-1.0], [-3.0]]
    assert parts.purified == 1
    assert iterate.ws.x.tolist() == [7.0, 7.0]


def test_a_round_in_which_nothing_changed_is_kept(parts: Parts) -> None:
    parts.bounds = [10.0]
    found = begun(parts, parts.iterate(cold=False, sigma=3.0)).run()
    assert (found.status, found.choice) == (Status.OPTIMAL, KEPT)
    assert parts.controls == []


@pytest.mark.parametrize("status", [Status.TIME_LIMIT, Status.ITERATION_LIMIT])
def test_limits_end_the_loop_with_the_best_bound(parts: Parts, status: Status) -> None:
    parts.bounds = [5.0, 8.0, 2.0]
    settings = Settings(
        method="proximal", time_limit_s=0.7, internals=Internals(max_pricing_passes=3 if "ITER" in status.name else 99)
    )
    parts.took = 0.25 if status is Status.TIME_LIMIT else 0.0
    solve = begun(parts, parts.iterate(cold=False), settings)
    solve.passes = 0
    found = solve.run()
    assert (found.status, found.passes, found.priced.bound) == (status, 3, 8.0)
    assert parts.purified == 0
    assert solve.iterate.shrunk == 0  # type: ignore[attr-defined]


def test_a_callback_ends_the_loop(parts: Parts) -> None:
    told: list[tuple[int, float, float]] = []

    def callback(passes: int, gap: float, violation: float) -> bool | None:
        told.append((passes, gap, violation))
        return passes == 7 or None

    parts.violation = 0.5
    found = begun(parts, parts.iterate(cold=False), callback=callback).run()
    assert found.status is Status.INTERRUPTED
    assert told == [(6, 10.0 / 11.0, 0.5), (7, 10.0 / 11.0, 0.5)]


def test_a_status_of_improving_ends_with_residuals_of_the_point_as_it_is(parts: Parts) -> None:
    parts.progress = replace(parts.progress, converged=False)
    parts.ray = np.array([1.0, 0.0])
    found = begun(parts, parts.iterate(cold=False)).run()
    assert (found.status, found.ray) == (Status.DUAL_INFEASIBLE, parts.ray)


def test_a_vertex_that_is_not_optimal_is_left_again(parts: Parts) -> None:
    parts.bounds, parts.after_purifying = [10.0], 0.5
    solve = begun(parts, parts.iterate(cold=False))
    found = solve.run()
    assert found.residuals.primal == 0.0
    assert solve.iterate.ws.x.tolist() == [1.0, 1.0]
    for change in ("no integers", "not asked", "no columns"):
        parts.purified, parts.violation = 0, 0.0
        other = begun(
            parts, parts.iterate(), Settings(method="proximal", internals=Internals(purify=change != "not asked"))
        )
        if change == "no integers":
            other.matrix.any_integer = lambda slots: False  # type: ignore[method-assign]
        elif change == "no columns":
            other.iterate.ws.size = 0  # type: ignore[misc]
        other.run()
        assert parts.purified == 0


@pytest.mark.parametrize("change", ["", "cold", "many are new", "stood still", "late", "other method", "interrupted"])
def test_steps_begin_before_the_first_pass_where_little_is_new(parts: Parts, change: str) -> None:
    parts.bounds = [10.0]
    iterate = parts.iterate(cold=change == "cold")
    iterate.fresh_share, iterate.moves = 0.021 if change == "many are new" else 0.02, change != "stood still"
    iterate.pass_s, parts.stops = 0.11 if change == "late" else 0.1, change == "interrupted"
    fallback = SimpleNamespace(comes_first=True) if change == "other method" else None
    solve = begun(parts, iterate, watch=parts.watch(1.0), fallback=fallback)
    assert solve.goes_ahead() == (change == "")
    if change:
        return
    solve.grown = 0
    found = solve.run()
    assert (found.status, found.passes, len(parts.controls)) == (Status.OPTIMAL, 6, 1)
    goal = 0.3 * solve.settings.tolerance
    assert parts.controls[0][2].tolerance == goal, "as where a pass has found no column"
    parts.ray, parts.progress = np.array([1.0]), replace(parts.progress, converged=False)
    iterate.moves = True
    found = begun(parts, iterate).run()
    assert (found.status, found.passes) == (Status.DUAL_INFEASIBLE, 6), "and a pass gives it a bound"


# Pricing ----------------------------------------------------------------------------------------------------------


def test_a_pass_gets_the_time_that_is_left_and_a_little(parts: Parts) -> None:
    solve = begun(parts, watch=parts.watch(3.0))
    solve.price()
    assert (parts.seconds, solve.passes, solve.iterate.pass_s) == ([3.002], 6, 0.25)
    parts.clock = 9.0
    solve.iterate.pass_s = 0.001
    solve.price()
    assert parts.seconds[-1] == 2e-3
    assert solve.iterate.pass_s == 0.25


def test_a_pass_that_cannot_end_in_time_is_not_made_but_later_tried(parts: Parts) -> None:
    solve = begun(parts, watch=parts.watch(3.0))
    parts.bounds = [-INF]
    solve.iterate.pass_s = 4.0
    solve.price()
    assert parts.seconds == [0.0]
    assert solve.iterate.pass_s == pytest.approx(3.6)
    solve.iterate.pass_s = 3.0 - 0.25 + 2e-3  # just as long as there is
    parts.took = 0.5
    solve.price()
    assert parts.seconds[-1] == solve.iterate.pass_s, "a pass that was cut short is expected to take as long as before"
    parts.took = 2.0
    solve.watch.limit_s, solve.iterate.pass_s = 1e3, 0.5
    solve.price()
    assert solve.iterate.pass_s == 3.0, "or half as long again as it had"


def test_new_columns_come_in_guided_by_prices_unless_it_is_too_late(parts: Parts) -> None:
    cold, warm = begun(parts), begun(parts, parts.iterate(cold=False))
    cold.price()
    warm.price()
    assert parts.grown == [None, pytest.approx([-2.0])]
    assert warm.grown == 1
    parts.stops = True
    warm.price()
    assert (warm.grown, len(parts.grown)) == (0, 2)
    parts.stops, parts.new = False, 0
    warm.price()
    assert (warm.grown, len(parts.grown)) == (0, 2)


def test_the_best_prices_are_those_nearest_to_a_proof(parts: Parts) -> None:
    """By the larger of the gap and the dual residual; the later of two that are as near."""
    solve = begun(parts)
    parts.bounds, found = [5.0, 7.0, 7.0, 6.0], []
    for _ in range(4):
        _, best = solve.price()
        found.append(best)
    assert [each.bound for each in found] == [5.0, 7.0, 7.0, 7.0]
    assert found[1] is not found[2]
    assert found[3] is found[2]
    parts.bounds, parts.dual = [10.0], 3.0
    assert solve.price()[1] is found[2], "no gap, but a reduced cost of the wrong sign"
    parts.dual = 0.2
    assert solve.price()[1].bound == 10.0
    merit = begun(parts, offset=5.0)
    parts.bounds, parts.dual = [9.0], 0.0
    assert merit.price()[0].gap == pytest.approx(1.0 / (1.0 + 15.0 + 14.0))


# Improving --------------------------------------------------------------------------------------------------------


def test_cold_solves_sweep_in_their_first_two_passes(parts: Parts) -> None:
    solve = begun(parts, settings=Settings(method="proximal", descent_sweeps=9))
    far = residuals_at(solve, 0.011)
    solve.passes = 2
    assert solve.improve(far) is None
    assert parts.swept == [(10.0, 9)]
    assert solve.iterate.y.tolist() == [1.0]
    assert parts.controls == []
    for change in ("third pass", "near", "warm", "nothing new", "no sweeps"):
        solve = begun(parts, parts.iterate(cold=change != "warm"))
        given = residuals_at(solve, 0.01 if change == "near" else 0.5)
        solve.passes = 3 if change == "third pass" else 2
        solve.grown = 0 if change == "nothing new" else 1
        if change == "no sweeps":
            solve.settings = replace(solve.settings, descent_sweeps=0)
        solve.improve(given)
        assert len(parts.swept) == 1, change
    assert len(parts.controls) == 5


@pytest.mark.parametrize(
    ("gap", "grown", "goal"),
    [(0.05, 1, 0.005), (0.5, 1, 0.01), (1e-7, 1, 0.3e-6), (0.05, 0, 0.3e-6), (4e-6, 1, 0.4e-6)],
)
def test_the_working_sets_goal_is_a_tenth_of_the_gap(parts: Parts, gap: float, grown: int, goal: float) -> None:
    """At most a hundredth, at least three tenths of the tolerance; without new columns the least at once."""
    solve = begun(parts, parts.iterate(cold=False), offset=4.0)
    given = residuals_at(solve, gap)
    solve.grown = grown
    assert solve.improve(given) is None
    control = parts.controls[0][2]
    assert solve.settings.tolerance == 1e-6
    assert control.tolerance == pytest.approx(goal, rel=1e-12)
    assert (control.offset, control.trust_radius) == (4.0, 0.5)
    assert control.direction is Subproblem.newton_direction
    assert control.stop() is False
    parts.stops = True
    assert control.stop() is True
    assert (solve.newton_steps, solve.proximal_steps, solve.iterate.sigma) == (6, 2, 5.0)
    assert solve.by is CHOICE


def test_the_direction_is_that_of_the_method(parts: Parts) -> None:
    made = begun(parts)
    other = Solve(made.matrix, made.iterate, made.settings, Choice("price_descent", "asked for"))
    assert other.direction is descent_direction
    assert (other.offset, other.passes, other.newton_steps, other.proximal_steps) == (0.0, 0, 0, 0)
    assert (other.stalled_steps, other.trust_exits, other.fallback) == (0, 0, None)
    assert other.watch.limit_s == made.settings.time_limit_s


def test_prices_leave_the_trust_region_three_times_at_most(parts: Parts) -> None:
    solve = begun(parts, parts.iterate(cold=False))
    given = residuals_at(solve, 0.5)
    parts.progress = replace(parts.progress, converged=False, left_trust_region=True)
    for _ in range(4):
        solve.stalled_steps = 9
        assert solve.improve(given) is None
        assert solve.stalled_steps == 0
    assert [control.trust_radius for _, _, control in parts.controls] == [0.5, 0.5, 0.5, INF]
    cold = begun(parts)
    cold.improve(given)
    assert parts.controls[-1][2].trust_radius == INF


def test_a_rows_residual_is_a_share_of_the_tolerance(parts: Parts) -> None:
    """1e-3 of it, times one more than the larger finite side; at most a tenth of the absolute one."""
    solve = begun(parts, settings=Settings(method="proximal", tolerance=1e-4, absolute_tolerance=1e-5))
    lower, upper = np.array([-INF, -7.0, 2.0, -INF, 0.5]), np.array([3.0, 5.0, INF, INF, 1e6])
    solve.rows = Rows(lower, upper, np.ones(5))
    assert solve.row_tolerance() == pytest.approx([4e-7, 8e-7, 3e-7, 1e-7, 1e-6], rel=1e-12)


def stalled(parts: Parts, **given: Any) -> tuple[Solve, Status | None]:
    """A solve whose working set did not converge, and what its certificates say."""
    solve = begun(parts, parts.iterate(cold=False), **given)
    parts.progress = replace(parts.progress, converged=False)
    return solve, solve.improve(residuals_at(solve, 0.5))


def test_a_proof_that_nothing_is_feasible_ends_the_solve(parts: Parts) -> None:
    parts.proof = True
    solve, status = stalled(parts)
    assert status is Status.PRIMAL_INFEASIBLE
    assert solve.ray is not None
    assert solve.ray.tolist() == [8.0]
    assert parts.direction.tolist() == [-3.0]


def test_no_certificate_is_looked_for_after_the_deadline(parts: Parts) -> None:
    parts.proof, parts.ray = True, np.ones(2)
    solve = begun(parts, parts.iterate(cold=False))
    parts.stops = True
    assert solve.look_for_certificates(parts.progress, (np.zeros(1), 1.0)) is None
    assert solve.stalled_steps == 0


def test_new_columns_that_contradict_a_proof_bring_the_prices_back(parts: Parts) -> None:
    solve, status = stalled(parts)
    assert status is None
    assert (solve.iterate.y.tolist(), solve.iterate.sigma, solve.stalled_steps) == ([-1.0], 10.0, 0)
    assert parts.grown[-1] == "none"


def test_a_solve_that_stalls_for_three_times_its_steps_is_given_up(parts: Parts) -> None:
    parts.new = 0
    settings = Settings(method="proximal", max_proximal_steps=4)
    solve, status = stalled(parts, settings=settings)
    statuses = [status]
    given = residuals_at(solve, 0.5)
    statuses += [solve.improve(given) for _ in range(5)]
    assert statuses == [None] * 5 + [Status.NUMERICAL_ERROR]
    assert solve.iterate.y.tolist() == [-3.0]


class Other:
    """Another method."""

    choice = OTHER

    def __init__(self, result: FallbackResult, comes_first: bool = False) -> None:
        self.result, self.comes_first, self.calls = result, comes_first, 0

    def __call__(self) -> FallbackResult:
        self.calls += 1
        return self.result


def test_another_method_is_tried_once_when_the_steps_are_used_up(parts: Parts) -> None:
    parts.new = 0
    other = Other(FallbackResult(moved=True))
    solve, status = stalled(parts, settings=Settings(method="proximal", max_proximal_steps=4), fallback=other)
    assert (status, other.calls) == (None, 0)
    assert solve.improve(residuals_at(solve, 0.5)) is None
    assert (other.calls, solve.fallback, solve.best, solve.by) == (1, None, None, OTHER)


@pytest.mark.parametrize(
    ("result", "by", "keeps"),
    [
        (FallbackResult(), KEPT, True),
        (FallbackResult(moved=True), OTHER, False),
        (FallbackResult(Status.DUAL_INFEASIBLE, np.ones(2)), OTHER, True),
    ],
)
def test_another_method_that_comes_first(parts: Parts, result: FallbackResult, by: Choice, keeps: bool) -> None:
    other = Other(result, comes_first=True)
    solve = begun(parts, fallback=other)
    given = residuals_at(solve, 0.5)
    assert solve.improve(given) is result.status
    assert (other.calls, parts.controls, solve.by) == (1, [], by)
    assert (solve.best is not None) == keeps
    assert solve.ray is result.ray
    solve.improve(given)
    assert (other.calls, len(parts.controls)) == (1, 1)


def test_nothing_is_moved_unless_it_is_said(parts: Parts) -> None:
    assert FallbackResult() == FallbackResult(None, None, False)


@pytest.mark.parametrize("cold", [True, False])
def test_passes_of_warm_solves_screen(parts: Parts, cold: bool) -> None:
    begun(parts, parts.iterate(cold=cold)).price()
    assert parts.screens == [not cold]
