"""The steps of the restricted shim: its candidates, program, moves, search and time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mixed_models import ALL, COLUMNS, ROWS, SEEDS, WHOLE, drawn, every_column, mixed, require_right
from scipy.optimize import LinearConstraint, milp

from copter import IntegerStatus, Model, Session, Settings
from copter.problem.linear_program import LinearProgram
from copter.shims import IDLE, RestrictedShim, RoundingShim, restricted
from copter.shims.draft import Draft
from copter.shims.restricted import candidates, drafted, one_opt, restricted_program
from copter.shims.shares import Shares


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
        asked.append((name, left_s, None if settings is None else settings.internals.hand_over_s, seed))
        return SimpleNamespace(x=None)

    monkeypatch.setattr(restricted, "solve_integer", search)
    monkeypatch.setattr(restricted, "is_small", lambda columns, entries: small)
    model = mixed(0)
    RestrictedShim("exact", seed=3)(model, Session(model).solve())
    RestrictedShim()(model, Session(model).solve())
    assert asked == [(name, None, None if small else 0.0, seed) for name, seed in (("exact", 3), ("dive", 0))]


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
