"""Drafts of models with whole and continuous requests side by side, each step against a slow twin."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog, milp

from copter import IntegerStatus, Model, Session, Settings
from copter.problem.linear_program import LinearProgram
from copter.shims import IDLE, RestrictedShim, RoundingShim, restricted, rounding
from copter.shims.draft import Draft
from copter.shims.restricted import candidates, drafted, one_opt, restricted_program
from copter.shims.shares import Shares

SEEDS = range(6)
COLUMNS, ROWS, WHOLE, ALL = 3, 3, 6, 10
Floats = np.ndarray


def mixed(seed: int) -> Model:
    """Six integer requests, one of them fixed, and four continuous ones, some with least shares, on three resources."""
    rng = np.random.default_rng(seed)
    model = Model("max")
    for row in range(ROWS):
        model.add_resources(row, int(rng.integers(9, 14)))
    for request in range(ALL):
        usage = {row: rng.integers(0, 5, COLUMNS).astype(float) for row in range(ROWS)}
        costs = rng.uniform(0.5, 5.0, COLUMNS)
        if request < WHOLE:
            model.add_request(request, costs, usage, integer=True)
        else:
            lower = np.where(rng.random(COLUMNS) < 0.4, 0.1, 0.0)
            model.add_request(request, costs, usage, limit=1.5, lower=lower, upper=1.1)
    model.fix(0, 1)
    return model


def every_column(model: Model) -> tuple[Floats, Floats]:
    """(slots, columns) of all requests in order."""
    slots = np.repeat([model.ledger.slot(request) for request in model.requests], COLUMNS).astype(np.int32)
    return slots, np.tile(np.arange(COLUMNS, dtype=np.int32), len(model.requests))


def drawn(model: Model, x: Floats | None = None) -> Draft:
    """A draft that knows every column, with these values of an LP."""
    slots, columns = every_column(model)
    return Draft(model, slots, columns, np.zeros(len(slots)) if x is None else x)


def point(model: Model, draft: Draft) -> Floats:
    """The draft as a point of the model's linear program."""
    assert draft.shares is not None
    x = np.zeros(COLUMNS * len(model.requests))
    at = {model.ledger.slot(request): COLUMNS * place for place, request in enumerate(model.requests)}
    for slot, column in enumerate(draft.column.tolist()):
        if column != IDLE:
            x[at[slot] + column] = 1.0
    for key, value in zip(draft.shares.key.tolist(), draft.share.tolist(), strict=True):
        x[at[key >> 32] + (key & 0xFFFFFFFF)] = value
    return x


def require_right(model: Model, draft: Draft) -> Floats:
    """The draft's value and what it leaves of every row are those of its point, which is returned."""
    lp, x = model.to_linear_program(), point(model, draft)
    assert draft.value() == pytest.approx(-float(lp.c @ x))
    np.testing.assert_allclose(draft.left, lp.row_upper[:ROWS] - lp.A[:ROWS] @ x, atol=1e-9)
    return x


def best_point(lp: LinearProgram, x: Floats | None = None, fixed: Floats | None = None) -> float:
    """The largest value of a maximised program, with some columns fixed."""
    low, high = lp.col_lower.copy(), lp.col_upper.copy()
    if x is not None and fixed is not None:
        low[fixed], high[fixed] = x[fixed], x[fixed]
    found = linprog(-lp.c, lp.A, lp.row_upper, bounds=np.column_stack((low, high)))
    return -float(found.fun)


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


def test_a_plan_that_the_search_finds_is_not_called_the_one_before() -> None:
    model = Model("max")
    model.add_resources("gpu", 10)
    for name, worth, size in (("big", 10.0, 7), ("one", 6.9, 5), ("mid", 5.1, 5)):
        model.add_request(name, [worth], {"gpu": [size]}, integer=True)
    session = Session(model)
    before = RestrictedShim()(model, session.solve())
    assert before.objective == pytest.approx(12.0)
    model.add_request("two", [6.9], {"gpu": [5]}, integer=True)
    solution = session.solve()
    rounded = RoundingShim()(model, solution, before)
    assert (rounded.kept_previous, rounded.objective) == (True, pytest.approx(12.0))
    plan = RestrictedShim()(model, solution, before)
    assert (plan.kept_previous, plan.objective) == (False, pytest.approx(13.8))


def test_what_has_to_be_and_cannot_is_not_searched() -> None:
    model = Model("max")
    model.add_resources("r", 4)
    for name in ("a", "b"):
        model.add_request(name, [1.0], {"r": [3]}, integer=True)
        model.fix(name, 0)
    plan = RestrictedShim()(model, Session(model).solve())
    assert (plan.status, set(plan.conflict), plan.short) == (IntegerStatus.PRIMAL_INFEASIBLE, {"a", "b"}, ("r",))


def test_a_request_that_was_rounded_to_its_worse_column_moves_to_the_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """The LP has a on 0.7 of its first column as e wants half of r; but e does not fit, and a's second column does."""
    monkeypatch.setattr(restricted, "solve_integer", lambda *_, **__: SimpleNamespace(x=None))
    model = Model("max")
    model.add_resources("r", 4.9)
    model.add_resources("s", 3)
    model.add_request("a", [2.0, 4.0], {"r": [1, 4]}, integer=True)
    model.add_request("e", [10.0], {"r": [6], "s": [6]}, integer=True)
    solution = Session(model).solve()
    assert solution.of("a") == pytest.approx([0.7, 0.3], abs=1e-4)
    assert RoundingShim()(model, solution).objective == pytest.approx(2.0)
    assert RestrictedShim()(model, solution).objective == pytest.approx(4.0)


def test_the_search_and_the_shares_have_what_is_left_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding takes 5 s of 60 and the search 40."""
    now, log = [1e6], list[Any]()
    rounds = restricted.rounded

    def rounded(*arguments: Any) -> Any:
        now[0] += 5.0
        return rounds(*arguments)

    def search(lp: LinearProgram, name: str, left_s: float, *_: object, **__: object) -> object:
        log.append(("search", left_s))
        now[0] += 40.0
        return SimpleNamespace(x=None)

    monkeypatch.setattr(restricted, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(restricted, "rounded", rounded)
    monkeypatch.setattr(restricted, "solve_integer", search)
    monkeypatch.setattr(Draft, "improve_shares", lambda _, left_s: log.append(("shares", left_s())))
    monkeypatch.setattr(Draft, "fill", lambda _, stop=lambda: False: log.append(("fill", stop())))
    model = mixed(0)
    for limit_s in (60.0, 45.0):
        log.clear()
        RestrictedShim(time_limit_s=limit_s)(model, Session(model).solve())
        own = log[log.index(("search", limit_s - 5.0)) :]
        assert own[1:] == [("fill", limit_s == 45.0), ("shares", limit_s - 45.0)]


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


@pytest.mark.parametrize("seed", SEEDS)
def test_the_program_of_the_candidates_is_the_models_beside_what_has_to_be(seed: int) -> None:
    model = mixed(seed)
    lp, draft = model.to_linear_program(), drawn(model)
    slots, columns = (each[COLUMNS : COLUMNS * WHOLE] for each in every_column(model))
    found = restricted_program(draft, slots, columns)
    assert found.integrality.tolist() == [True] * len(slots) + [False] * COLUMNS * (ALL - WHOLE)
    whole = milp(
        -lp.c,
        constraints=LinearConstraint(lp.A, lp.row_lower, lp.row_upper),
        integrality=lp.integrality,
        bounds=(lp.col_lower, lp.col_upper),
    )
    mine = milp(
        found.c,
        constraints=LinearConstraint(found.A, found.row_lower, found.row_upper),
        integrality=found.integrality,
        bounds=(found.col_lower, found.col_upper),
    )
    assert mine.fun - lp.c[1] == pytest.approx(whole.fun)
    column = draft.column.copy()
    chosen = mine.x[: len(slots)] > 0.5
    column[slots[chosen]] = columns[chosen]
    made = drafted(draft, column, mine.x[len(slots) :])
    require_right(model, made)
    assert made.value() == pytest.approx(whole.fun, abs=1e-6)
    assert made.column.tolist() == column.tolist()
    too_much = drafted(draft, column, Shares.within(draft.shares, np.full(COLUMNS * (ALL - WHOLE), 9.0)))  # type: ignore[arg-type]
    require_right(model, too_much)
    assert too_much.holds()


@pytest.mark.parametrize("seed", range(24))
def test_requests_move_to_better_columns_the_greatest_gain_first(seed: int) -> None:
    model, rng = mixed(seed), np.random.default_rng(seed)
    for request in range(WHOLE):
        model.update_cost(request, rng.uniform(-0.9, 1.2, COLUMNS))
    lp = model.to_linear_program()
    usage, worth = lp.A[:ROWS].toarray(), lp.c
    draft = drawn(model)
    for request in (1, 3, 5):
        use = usage[:, COLUMNS * request]
        draft.take(model.ledger.slot(request), 0, np.arange(ROWS, dtype=np.int32), use)
    slots, columns = (each[: COLUMNS * WHOLE] for each in every_column(model))
    listed = np.sort(rng.permutation(len(slots))[:13])
    now = {request: int(draft.column[model.ledger.slot(request)]) for request in range(WHOLE)}
    left = draft.left.copy()
    places = [(at // COLUMNS, at % COLUMNS) for at in listed.tolist()]
    for _ in range(len(places)):
        gains = []
        for request, column in places:
            had = now[request]
            if request == 0 or (had != IDLE and (request, had) not in places):
                continue  # fixed, or on a column that is not listed
            gain = worth[COLUMNS * request + column] - (worth[COLUMNS * request + had] if had != IDLE else 0.0)
            if gain > 1e-12:
                gains.append((-gain, len(gains), request, column, had))
        moved: set[int] = set()
        for _, _, request, column, had in sorted(gains):
            room = left + (usage[:, COLUMNS * request + had] if had != IDLE else 0.0)
            use = usage[:, COLUMNS * request + column]
            if request not in moved and (use <= room).all():
                left, now[request] = room - use, column
                moved.add(request)
        if not moved:
            break
    one_opt(draft, slots[listed], columns[listed])
    assert {request: int(draft.column[model.ledger.slot(request)]) for request in range(WHOLE)} == now
    np.testing.assert_allclose(draft.left, left, atol=1e-9)


def test_the_search_that_finds_nothing_leaves_a_plan_that_is_no_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restricted, "solve_integer", lambda *_, **__: SimpleNamespace(x=None))
    for seed in SEEDS:
        model = mixed(seed)
        solution = Session(model).solve()
        plan = RestrictedShim()(model, solution)
        assert plan.objective >= RoundingShim()(model, solution).objective


@pytest.mark.parametrize("seed", SEEDS)
def test_candidates_are_what_the_lp_and_the_draft_have_of_those_that_can_choose(seed: int) -> None:
    model = mixed(seed)
    model.update_bounds(1, upper=[0.5, 1.0, 1.0])
    solution = Session(model).solve()
    draft = drawn(model)
    draft.fill()
    slots, columns, _ = solution.working_columns_by_slot()
    listed = set(zip(slots.tolist(), columns.tolist(), strict=True))
    listed |= {(slot, column) for slot, column in enumerate(draft.column.tolist()) if column != IDLE}
    whole = {model.ledger.slot(request) for request in range(1, WHOLE)}
    listed -= {(model.ledger.slot(1), 0)}
    found = candidates(draft, solution)
    assert list(zip(*(each.tolist() for each in found), strict=True)) == sorted(
        each for each in listed if each[0] in whole
    )


@pytest.mark.parametrize("small", [True, False])
def test_a_large_round_is_searched_at_once_in_this_process(small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def search(lp: LinearProgram, name: str, left_s: float | None, settings: Settings | None, seed: int) -> object:
        asked.append((name, left_s, None if settings is None else settings.hand_over_s, seed))
        return SimpleNamespace(x=None)

    monkeypatch.setattr(restricted, "solve_integer", search)
    monkeypatch.setattr(restricted, "is_small", lambda columns, entries: small)
    model = mixed(0)
    RestrictedShim("exact", seed=3)(model, Session(model).solve())
    RestrictedShim()(model, Session(model).solve())
    assert asked == [(name, None, None if small else 0.0, seed) for name, seed in (("exact", 3), ("dive", 0))]


def test_a_column_that_must_be_below_zero_is_no_whole_one() -> None:
    model = Model("max")
    model.add_resources("r", 4)
    model.add_request("odd", [1.0, 1.0], {"r": [1, 1]}, lower=[-1.0, 0.0], upper=[-0.5, 1.0], integer=True)
    model.add_request("fine", [1.0, 1.0], {"r": [1, 1]}, lower=[-1.0, 0.0], upper=[0.0, 1.0], integer=True)
    draft = Draft(model)
    assert draft.conflict == [model.ledger.slot("odd")]
    assert Session(model).solve_integer(RoundingShim()).conflict == ("odd",)


def test_shares_beside_the_columns_that_the_search_chose_are_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is cut: it has the best columns, and no shares yet."""

    def cut(lp: LinearProgram, *_: object, **__: object) -> object:
        rows = LinearConstraint(lp.A, lp.row_lower, lp.row_upper)
        x = milp(lp.c, constraints=rows, integrality=lp.integrality, bounds=(lp.col_lower, lp.col_upper)).x
        return SimpleNamespace(x=np.where(lp.integrality, x, lp.col_lower))

    monkeypatch.setattr(restricted, "solve_integer", cut)
    model = Model(sense="max")
    model.add_resources("gpu", 11)
    model.add_request("big", [10.0], {"gpu": [7]}, integer=True)
    for name in ("one", "two"):
        model.add_request(name, [6.9], {"gpu": [5]}, integer=True)
    model.add_request("part", [1.0], {"gpu": [1.0]}, limit=9.0)
    solution = Session(model).solve()
    assert RoundingShim()(model, solution).objective == pytest.approx(14.0)
    plan = RestrictedShim()(model, solution)
    assert (plan.column("big"), plan.shares("part")) == (None, {0: pytest.approx(1.0)})
    assert plan.objective == pytest.approx(14.8)


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


def test_a_move_that_another_makes_room_for_comes_later() -> None:
    model = Model("max")
    model.add_resources("r", 4)
    model.add_request("a", [1.0, 5.0], {"r": [1, 3]}, integer=True)
    model.add_request("b", [1.0, 2.0], {"r": [3, 1]}, integer=True)
    draft = Draft(model)
    slots, columns = np.array([0, 0, 1, 1], dtype=np.int32), np.array([0, 1, 0, 1], dtype=np.int32)
    draft.take_all(slots[[0, 2]], columns[[0, 2]])
    one_opt(draft, slots, columns)
    assert (draft.column.tolist(), draft.left.tolist()) == ([1, 1], [0.0])


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
