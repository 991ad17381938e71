"""Drafts of models with whole and continuous requests side by side, each step against a slow twin."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from mixed_models import ALL, COLUMNS, ROWS, SEEDS, WHOLE, best_point, drawn, mixed, point, require_right

from copter import IntegerStatus, Model, Session
from copter.shims import IDLE, RestrictedShim, RoundingShim, restricted, rounding
from copter.shims.draft import Draft


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_go_as_far_towards_others_as_all_rows_hold(seed: int) -> None:
    model, rng = mixed(seed), np.random.default_rng(seed)
    draft = drawn(model)
    shares = draft.shares
    assert shares is not None
    base = shares.base
    np.testing.assert_array_equal(draft.share, base)
    require_right(model, draft)
    free, parts = draft.left.copy(), []
    usage = model.to_linear_program().A[:ROWS].toarray()[:, COLUMNS * WHOLE :]
    for scale in (0.05, 3.0, 0.3, 1.0, 0.0):
        wanted = shares.within(base + scale * rng.random(len(base)))
        draft.give(wanted)
        more = usage @ (wanted - base)
        part = min([1.0] + [float(f / m) for f, m in zip(free, more, strict=True) if m > f])
        np.testing.assert_allclose(draft.share, base + part * (wanted - base), rtol=1e-9, atol=1e-12)
        if part == 1.0:
            np.testing.assert_array_equal(draft.share, wanted)
        require_right(model, draft)
        assert draft.holds()
        parts.append(part)
    assert parts[0] == 1.0 or seed
    assert min(parts) < 1.0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_draft_begins_with_what_has_to_be_and_the_lp_s_shares(seed: int) -> None:
    model, rng = mixed(seed), np.random.default_rng(seed)
    asked = np.clip(rng.uniform(-0.1, 0.4, COLUMNS * ALL), 0.0, 1.0)
    draft = drawn(model, asked)
    x = require_right(model, draft)
    lp = model.to_linear_program()
    own = np.arange(COLUMNS * WHOLE, COLUMNS * ALL)
    least, wanted = lp.col_lower[own], np.maximum(asked[own], lp.col_lower[own])
    usage = lp.A[:ROWS].toarray()
    free = lp.row_upper[:ROWS] - usage[:, 1] - usage[:, own] @ least
    more = usage[:, own] @ (wanted - least)
    part = min([1.0] + [float(f / m) for f, m in zip(free, more, strict=True) if m > f])
    np.testing.assert_allclose(x[own], least + part * (wanted - least), rtol=1e-9, atol=1e-12)
    assert np.flatnonzero(x[: COLUMNS * WHOLE]).tolist() == [1]
    assert draft.shares is not None
    few = Draft(model)
    assert few.shares is not None
    assert few.share.sum() == pytest.approx(least.sum()), "without an LP what has to be"


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_are_improved_to_the_best_that_the_whole_columns_leave(seed: int) -> None:
    model = mixed(seed)
    draft = drawn(model)
    draft.fill()
    before = draft.share
    draft.improve_shares(lambda: 0.0)
    assert draft.share is before, "no time"
    worth = -draft.value()
    for left_s in (60.0, float("inf")):
        draft.share, draft.last_check = before, None
        draft.left = draft.matrix.row_upper[:ROWS] - model.to_linear_program().A[:ROWS] @ point(model, draft)
        draft.improve_shares(lambda left_s=left_s: left_s)
        x = require_right(model, draft)
        best = best_point(model.to_linear_program(), x, np.arange(COLUMNS * WHOLE))
        assert -draft.value() == pytest.approx(best, abs=1e-4)
        assert -draft.value() >= worth
        assert draft.holds()
    after = draft.share
    draft.improve_shares(lambda: float("inf"))
    assert -draft.value() >= best - 1e-4
    assert draft.holds()
    assert after.shape == draft.share.shape


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plan_before_is_taken_over_with_its_shares(seed: int) -> None:
    model = mixed(seed)
    session = Session(model)
    plan = session.solve_integer("rounding")
    model.remove_request(2)
    model.remove_request(7)
    model.add_request("new", np.ones(COLUMNS), {0: np.ones(COLUMNS)})
    model.add_request("other", np.ones(COLUMNS), {0: np.ones(COLUMNS)}, integer=True)
    greedy = np.full(COLUMNS * len(model.requests), 0.5)  # an LP that gives the shares all that there is
    for draft in (drawn(model), Draft(model), drawn(model, greedy)):
        kept = draft.previous(plan)
        require_right(model, kept)
        assert kept.holds()
        assert kept.shares is not None
        for request in model.requests:
            slot = model.ledger.slot(request)
            mine = kept.shares.key >> 32 == slot
            found = dict(zip((kept.shares.key[mine] & 0xFFFFFFFF).tolist(), kept.share[mine].tolist(), strict=True))
            if kept.column[slot] != IDLE:
                found = {int(kept.column[slot]): 1.0}
            expected = {} if request in ("new", "other") else plan.shares(request)
            assert {c: v for c, v in found.items() if v} == pytest.approx(expected)
    model.remove_resources(0, 3)
    less = drawn(model).previous(plan)
    require_right(model, less)
    assert not less.conflict


@pytest.mark.parametrize("seed", SEEDS)
def test_plans_have_the_best_shares_beside_their_columns_and_name_what_was_split(seed: int) -> None:
    model = mixed(seed)
    solution = Session(model).solve()
    lp = model.to_linear_program()
    plan = RoundingShim()(model, solution)
    x = np.zeros(COLUMNS * ALL)
    listed = np.zeros(COLUMNS * ALL, dtype=bool)
    split = 0
    for at, request in enumerate(model.requests):
        for column, value in plan.shares(request).items():
            x[COLUMNS * at + column] = value
        values = solution.of(request)
        split += at < WHOLE and bool(((values > 1e-9) & (values < 1 - 1e-6)).any())
    place = {model.ledger.slot(request): COLUMNS * at for at, request in enumerate(model.requests)}
    listed[[place[key >> 32] + (key & 0xFFFFFFFF) for key in plan.share_key.tolist()]] = True
    assert (lp.A @ x <= lp.row_upper + 1e-9).all()
    assert plan.objective == pytest.approx(float(lp.c @ x))
    assert plan.objective == pytest.approx(best_point(lp, x, np.flatnonzero(~listed)), abs=1e-4)
    assert plan.fractional_requests == split
    assert plan.continuous == set(range(WHOLE, ALL))


def test_a_limit_of_time_that_is_not_reached_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "time", SimpleNamespace(perf_counter=lambda: 1e6))
    monkeypatch.setattr(restricted, "time", SimpleNamespace(perf_counter=lambda: 1e6))
    for seed in SEEDS:
        model = mixed(seed)
        solution = Session(model).solve()
        draft, _, _ = rounding.rounded(RoundingShim(), model, solution, None)
        timed, _, _ = rounding.rounded(RoundingShim(time_limit_s=60.0), model, solution, None)
        np.testing.assert_allclose(timed.share, draft.share, atol=1e-6)
        asked: list[float | None] = []

        def search(lp: object, name: str, left_s: float | None, *_: object, asked=asked, **__: object) -> object:
            asked.append(left_s)
            return SimpleNamespace(x=None)

        monkeypatch.setattr(restricted, "solve_integer", search)
        for limit_s in (60.0, float("inf"), 1.0, 0.0):
            RestrictedShim("dive", limit_s)(model, solution)
        assert asked == [60.0, None, 1.0], "no search without time"


def test_whole_solutions_split_nothing() -> None:
    model = Model("max")
    model.add_resources("r", 10)
    for request in range(3):
        model.add_request(request, [1.0, 2.0], {"r": [1, 2]}, integer=True)
    plan = Session(model).solve_integer(RoundingShim())
    assert (plan.fractional_requests, [plan.column(request) for request in range(3)]) == (0, [1, 1, 1])


def test_what_rounding_errors_let_in_goes_again() -> None:
    model = Model("max")
    model.add_resources("r", 1.0)
    for request, worth in (("less", 1.0), ("more", 2.0)):
        model.add_request(request, [worth], {"r": [0.5 + 2e-10]}, integer=True)
    plan = Session(model).solve_integer(RoundingShim())
    assert (plan.column("more"), plan.column("less"), plan.objective) == (0, None, 2.0)


def test_a_better_plan_before_is_filled_up() -> None:
    model = Model("max")
    model.add_resources("gpu", 10)
    model.add_request("big", [10.0], {"gpu": [7]}, integer=True)
    for name in ("one", "two"):
        model.add_request(name, [6.9], {"gpu": [5]}, integer=True)
    session = Session(model)
    before = RestrictedShim()(model, session.solve())
    assert before.objective == pytest.approx(13.8)
    model.add_resources("gpu", 1)
    model.add_request("small", [0.5], {"gpu": [1]}, integer=True)
    plan = RoundingShim()(model, session.solve(), before)
    assert (plan.kept_previous, plan.column("small")) == (True, 0)
    assert plan.objective == pytest.approx(14.3)
    searched = RestrictedShim()(model, session.solve(), before)
    assert (searched.kept_previous, searched.objective) == (True, pytest.approx(14.3)), "nothing better was found"


def test_shares_of_neighbours_are_kept_apart() -> None:
    model = Model("max")
    model.add_resources("r", 100.0)
    for request, costs in enumerate([[1.0, 9.0, 1.0], [9.0, 1.0, 1.0], [1.0, 1.0, 9.0]]):
        model.add_request(request, costs, {"r": [1.0, 1.0, 1.0]})
    plan = Session(model).solve_integer()
    assert [plan.shares(request) for request in range(3)] == [{column: pytest.approx(1.0)} for column in (1, 0, 2)]


@pytest.mark.parametrize(
    ("gives_back", "units", "status"),
    [
        ((), 2.0, IntegerStatus.PRIMAL_INFEASIBLE),
        (("r",), 2.0, IntegerStatus.PRIMAL_INFEASIBLE),
        (("r", "s"), 1.0, IntegerStatus.NONE_FOUND),
        (("r", "s"), 2.0, IntegerStatus.OPTIMAL),
    ],
)
def test_what_others_may_give_back_of_every_row_is_not_called_impossible(
    gives_back: tuple[str, ...], units: float, status: IntegerStatus
) -> None:
    model = Model("max")
    for name in ("r", "s", "t"):
        model.add_resources(name, 4)
    for name in ("a", "b"):
        model.add_request(name, [1.0], {"r": [3], "s": [3], "t": [1]}, integer=True)
        model.fix(name, 0)
    for name in gives_back:
        model.add_request(f"of {name}", [-0.5, -0.5], {name: [0.0, -units], "t": [1.0, 0.0]}, integer=True)
    assert Draft(model).can_be_relieved() == (len(gives_back) == 2)
    plan = Session(model).solve_integer(RoundingShim())
    assert plan.status is status
    if status is IntegerStatus.OPTIMAL:
        assert (plan.column("of r"), plan.column("of s"), plan.objective) == (1, 1, pytest.approx(1.0))
    else:
        assert (set(plan.conflict), set(plan.short)) == ({"a", "b"}, {"r", "s"})


@pytest.mark.parametrize("seed", SEEDS)
def test_a_column_is_taken_where_what_it_uses_is_left(seed: int) -> None:
    model, rng = mixed(seed), np.random.default_rng(seed)
    draft = drawn(model)
    usage = model.to_linear_program().A[:ROWS].toarray()
    for request in rng.permutation(np.arange(1, WHOLE)).tolist():
        column, left = int(rng.integers(0, COLUMNS)), draft.left.copy()
        use = usage[:, COLUMNS * request + column]
        slot = model.ledger.slot(request)
        took = draft.take(slot, column, np.arange(ROWS, dtype=np.int32), use)
        assert took == bool((use <= left).all())
        assert draft.column[slot] == (column if took else IDLE)
        np.testing.assert_array_equal(draft.left, left - use if took else left)


def test_a_column_between_two_whole_numbers_is_in_conflict() -> None:
    model = Model("max")
    model.add_resources("r", 4)
    model.add_request("odd", [1.0, 1.0], {"r": [1, 1]}, lower=[-0.9, 0.0], upper=[-0.5, 1.0], integer=True)
    model.add_request("fine", [1.0, 1.0], {"r": [1, 1]}, lower=[-0.9, 0.0], upper=[0.0, 1.0], integer=True)
    draft = Draft(model)
    assert draft.conflict == [model.ledger.slot("odd")]
    assert Session(model).solve_integer(RoundingShim()).conflict == ("odd",)
    model = Model("min")
    model.add_resources("r", 4)
    model.add_request("alone", [3.0], {"r": [1]}, lower=-0.7, upper=-0.4, integer=True)
    plan = Session(model).solve_integer()
    assert (plan.status.value, plan.conflict) == ("primal_infeasible", ("alone",))


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_that_fit_are_given_to_the_last_bit(seed: int) -> None:
    model, rng = mixed(seed), np.random.default_rng(seed)
    for row in range(ROWS):
        model.set_count(row, 1e3)
    draft = drawn(model)
    assert draft.shares is not None
    for _ in range(20):
        wanted = draft.shares.within(rng.uniform(0.0, 0.5, draft.shares.size))
        draft.give(wanted)
        np.testing.assert_array_equal(draft.share, wanted)
    require_right(model, draft)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_exceeded_by_columns_and_shares_together(seed: int) -> None:
    model, rng = mixed(seed), np.random.default_rng(seed)
    lp, draft = model.to_linear_program(), drawn(model)
    assert draft.shares is not None
    over = set()
    for scale in (0.0, 0.5, 9.0):
        draft.share = draft.shares.within(draft.shares.base + scale * rng.random(draft.shares.size))
        x = point(model, draft)
        row, coefficient, value = draft.all_terms()
        used = np.bincount(row, weights=coefficient * value, minlength=ROWS)
        np.testing.assert_allclose(used, lp.A[:ROWS] @ x)
        expected = np.flatnonzero(used > lp.row_upper[:ROWS]).tolist()
        assert draft.exceeded().tolist() == expected
        assert draft.holds() == (not expected)
        over |= set(expected)
    assert over


def test_only_what_uses_a_row_that_is_short_is_let_go() -> None:
    model = Model("max")
    for name in ("r", "s"):
        model.add_resources(name, 4)
    for name, worth, usage in (
        ("other", 1.0, {"s": [2.0]}),
        ("gives", 1.5, {"r": [-1.0], "s": [1.0]}),
        ("cheap", 2.0, {"r": [3.0]}),
        ("dear", 3.0, {"r": [3.0]}),
    ):
        model.add_request(name, [worth], usage, integer=True)
    draft = Draft(model)
    draft.take_all(np.arange(4, dtype=np.int32), np.zeros(4, dtype=np.int32))
    assert draft.exceeded().tolist() == [0]
    draft.repair()
    assert draft.column.tolist() == [0, 0, IDLE, 0]
    assert draft.left.tolist() == [2.0, 1.0]


def test_the_plan_before_is_repaired_where_a_little_has_gone() -> None:
    model = Model("max")
    model.set_count("r", 1.0)
    for name, worth in (("less", 1.0), ("more", 2.0)):
        model.add_request(name, [worth], {"r": [0.5]}, integer=True)
    plan = Session(model).solve_integer(RoundingShim())
    assert plan.objective == 3.0
    model.set_count("r", 1.0 - 4e-10)
    kept = Draft(model).previous(plan)
    kept.repair()
    assert kept.holds()
    assert kept.column.tolist() == [IDLE, 0]


def test_shares_step_back_where_rounding_errors_exceed_a_row() -> None:
    """In float64 the sums are at the limit, exactly they are above it now and then."""
    rng, first = np.random.default_rng(0), 0
    for _ in range(60):
        model = Model("max")
        sizes = rng.uniform(0.01, 3.0, (2, 30))
        wanted = rng.uniform(0.0, 1.0, 30)
        for row in range(2):
            model.set_count(row, float(sizes[row] @ wanted) * 0.7)
        for request in range(30):
            model.add_request(request, [1.0], {row: [sizes[row, request]] for row in range(2)})
        slots = np.arange(30, dtype=np.int32)
        draft = Draft(model, slots, np.zeros(30, dtype=np.int32), np.zeros(30))
        draft.give(wanted)
        assert draft.holds()
        np.testing.assert_allclose(draft.share, 0.7 * wanted, rtol=1e-9)
        first += bool((np.abs(draft.share / wanted / 0.7 - 1.0) < 1e-14).all())
    assert 0 < first < 60, "some step back, most do not"


def test_whole_numbers_are_allowed_no_slack_however_much_there_is() -> None:
    model = Model("max")
    for name, count in (("few", 10.0), ("none", 0.0), ("many", 5e9), ("all", np.inf)):
        model.set_count(name, count)
    draft = Draft(model)
    assert draft.room.tolist() == pytest.approx([1.1e-8, 1e-9, 0.5, 1e-9])
    model.add_request("a", [1.0], {"many": [5e9 + 1.0]}, integer=True)
    assert not Draft(model).take(0, 0, np.array([2], dtype=np.int32), np.array([5e9 + 1.0]))
