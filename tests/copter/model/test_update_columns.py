"""Other columns of requests in place: what is kept, what is not, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge import assert_optimal

from copter import Model, PrivateRows, Session, Settings, Status
from copter.model.matrix.moves import MOST, Move, Moves
from copter.runtime.errors import (
    DimensionError,
    DuplicateHandleError,
    EditNotAllowedError,
    InvalidDataError,
    StaleSolutionError,
    UnknownHandleError,
)
from tests.copter.block_player import BlockPlayer
from tests.copter.by_highs import highs
from tests.copter.consistent import require_consistent
from tests.copter.plain import Player, bits, innards, small


def with_rows(jobs: int = 30, columns: int = 6, seed: int = 0) -> Model:
    """Jobs with as many columns and two private rows each, one of them an equation."""
    rng, model = np.random.default_rng(seed), Model("min")
    for k in range(8):
        model.add_resources(k, 0.4 * jobs)
    for job in range(jobs):
        usage = {k: np.where(rng.random(columns) < 0.4, rng.uniform(0.5, 1.5, columns), 0.0) for k in range(8)}
        rows = PrivateRows(np.vstack((np.ones(columns), rng.uniform(0.5, 1.0, columns))), [1.0, 0.0], [1.0, 0.9])
        model.add_request(job, rng.uniform(1.0, 2.0, columns), usage, limit=np.inf, upper=1.0, private_rows=rows)
    return model


def widened(model: Model, jobs: list[int], seed: int = 1, kept: bool = True) -> None:
    """Give jobs one column more, behind the present ones."""
    rng, sizes, costs, rows = np.random.default_rng(seed), [], [], []
    usage: dict[int, list[float]] = {k: [] for k in range(8)}
    first = 0
    n = sum(len(model.cost(job)) + 1 for job in jobs)
    for job in jobs:
        cost, own = model.cost(job), model.private_rows(job)
        lp = model.ledger.matrix.slabs[model.ledger.slot(job)].template
        assert own is not None
        sizes.append(len(cost) + 1)
        costs += [*cost, 0.9]
        for k in range(8):
            dense = np.zeros(len(cost))
            for j in range(len(cost)):
                at = slice(lp.column_start[j], lp.column_start[j + 1])
                dense[j] = lp.coefficient[at][lp.row[at] == model.ledger.row(k)].sum()
            usage[k] += [*dense, float(rng.random() < 0.3)]
        block = np.zeros((2, n))
        block[:, first : first + sizes[-1]] = np.hstack((own.matrix.toarray(), [[1.0], [0.7]]))
        rows.append(block)
        first += sizes[-1]
    more = {"kept": np.concatenate([[*range(size - 1), -1] for size in sizes]), "kept_rows": [0, 1] * len(jobs)}
    private = PrivateRows(np.vstack(rows), [1.0, 0.0] * len(jobs), [1.0, 0.9] * len(jobs))
    model.update_columns(
        jobs, sizes, costs, {k: np.array(v) for k, v in usage.items()}, limit=np.inf, upper=1.0,
        private_rows=private, private_sizes=2, **(more if kept else {}),
    )  # fmt: skip


# The program --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Player, BlockPlayer])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_an_edited_model_is_the_fresh_one_and_both_are_solved_as_highs_solves_them(
    kind: type[Player], seed: int
) -> None:
    rng, player = np.random.default_rng(seed), kind()
    for edit in (kind.more, kind.more, kind.more, kind.declare, kind.add, kind.add, kind.add, kind.add):
        edit(player, rng)
    session = Session(player.model)
    session.solve()
    for edit in (kind.columns, kind.add, kind.columns, kind.remove, kind.columns):
        edit(player, rng)
        require_consistent(player.model.ledger)
        if rng.random() < 0.6:
            session.solve()
    fresh, solution = player.plain.build(), session.solve()
    assert bits(player.model) == bits(fresh)
    program = player.model.to_linear_program()
    if 0 in program.shape:
        return
    status, best, _, _ = highs(program)
    assert solution.status is Session(fresh).solve().status
    if solution.status is Status.OPTIMAL:
        assert solution.objective == pytest.approx(best, rel=2e-6, abs=2e-6)
        assert_optimal(program, solution.x, solution.y)
    else:
        assert "kOptimal" not in str(status)


def test_a_request_keeps_its_name_its_place_and_whether_it_is_whole() -> None:
    model = small()
    model.update_integrality("p", True)
    before = model.ledger.slot("p")
    model.update_columns(["p"], [2], [5.0, 6.0], {"b": [1, 2]}, limit=2.0)
    assert model.requests == ("p", "q", "own")
    assert (model.ledger.slot("p"), model.is_integer("p"), model.is_integer("q")) == (before, True, False)
    assert (model.limit("p"), model.cost("p").tolist(), model.template_of("p")) == (2.0, [5.0, 6.0], None)
    assert model.templates[0].users == 1
    assert model.to_linear_program().A.toarray()[1, :2].tolist() == [1, 2]


def test_a_failed_batch_takes_it_back_to_the_last_bit() -> None:
    model, session = with_rows(), None
    session = Session(model)
    solution = session.solve()
    before, moved = innards(model), len(model.ledger.moves._of_slot)
    with pytest.raises(ZeroDivisionError), model.batch():  # noqa: PT012
        widened(model, [3, 4, 7])
        model.remove_request(4)
        widened(model, [3])
        raise ZeroDivisionError
    assert innards(model) == before
    assert moved == 0
    assert not any(model.ledger.moves._of_slot.values())
    assert solution.of(3).tolist() == session.last_solution.of(3).tolist()
    assert session.solve().iterations == 0


# What is kept -------------------------------------------------------------------------------------------------------


def test_the_next_solve_starts_from_the_columns_and_rows_that_are_continued() -> None:
    """A basis that follows its columns needs fewer pivots than one whose blocks start anew, and ends as low."""
    steps = {}
    for kept in (True, False):
        model = with_rows()
        session = Session(model)
        session.solve()
        widened(model, list(range(0, 30, 2)), kept=kept)
        solution = session.solve()
        steps[kept] = solution.iterations
        assert solution.objective == pytest.approx(Session(model).solve().objective, rel=1e-7)
    assert steps[True] < 0.7 * steps[False], steps


@pytest.mark.parametrize("settings_", [Settings(basis_columns=0), Settings(method="blocks")], ids=["newton", "blocks"])
def test_values_follow_their_columns_in_every_method(settings_: Settings) -> None:
    model = Model("max")
    model.add_resources("gpu", 3.0)
    model.add_request("a", [1.0, 3.0], {"gpu": [1, 2]})
    model.add_request("b", [2.0, 2.5], {"gpu": [1, 2]})
    session = Session(model, settings_)
    session.solve()
    model.update_columns(["a"], [3], [0.5, 3.0, 1.0], {"gpu": [1, 2, 1]}, kept=[-1, 1, 0])
    session._follow_columns()
    ws = session._iterate.ws
    values = dict(zip(ws.key.tolist(), ws.x.tolist(), strict=True))
    slot = model.ledger.slot("a") << 32
    assert values[slot | 1] == pytest.approx(1.0, abs=1e-5)
    assert np.all(ws.generation == model.ledger.matrix.generation[ws.key >> 32])
    assert session.solve().of("a") == pytest.approx([0.0, 1.0, 0.0], abs=1e-5)


def test_the_last_plan_follows_too() -> None:
    model = Model("max")
    model.add_resources("gpu", 2)
    model.add_request("a", [1.0, 1.5], {"gpu": [1, 2]}, integer=True)
    session = Session(model)
    assert session.solve_integer().column("a") == 1
    model.update_columns(["a"], [3], [0.1, 1.5, 1.0], {"gpu": [1, 2, 1]}, kept=[-1, 1, 0])
    session._follow_columns()
    assert session._plan is not None
    assert session._plan.column("a") == 1
    assert session.solve_integer().column("a") == 1
    model.update_columns(["a"], [1], [1.0], {"gpu": [1]})
    assert session.solve_integer().column("a") == 0


def test_a_solution_from_before_has_no_values_for_it() -> None:
    model = small()
    solution = Session(model).solve()
    model.update_columns(["p"], [1], [5.0], {"b": [1]})
    assert len(solution.of("q")) == 3
    with pytest.raises(StaleSolutionError, match="'p' has got other columns"):
        solution.of("p")


def test_saved_and_journaled_sessions_have_it(tmp_path: Path) -> None:
    model = with_rows()
    session = Session(model, journal=tmp_path / "journal")
    session.solve()
    session.save(tmp_path / "session")
    widened(model, [1, 2])
    expected = innards(model)
    best = session.solve()
    session.journal(None)
    again = Session.load(tmp_path / "session")
    assert innards(again.model) == expected
    assert again.solve().objective == pytest.approx(best.objective, rel=1e-9)
    again.journal(None)
    copied = pickle.loads(pickle.dumps(session))
    assert innards(copied.model) == expected
    assert copied.solve().objective == pytest.approx(best.objective, rel=1e-9)


def test_requests_that_have_moved_to_other_slots_start_anew() -> None:
    model = with_rows(10)
    session, other = Session(model), Session(model)
    best = session.solve().objective
    other.solve()
    model.remove_request(0)
    widened(model, [5])
    session.compact()
    assert other.solve().objective == pytest.approx(session.solve().objective, rel=1e-7)
    assert session.solve().objective < best


# Moves --------------------------------------------------------------------------------------------------------------


def test_moves_are_followed_through_several_edits_up_to_a_number() -> None:
    moves, ints = Moves(), lambda *each: np.array(each, dtype=np.int32)
    for age in range(0, 2 * MOST + 4, 2):
        moves.note(3, Move(age, age + 2, ints(1, 0, -1), ints(0), 1))
    now = 2 * MOST + 4
    assert moves.between(3, 0, now) is None  # forgotten
    assert moves.between(3, 2, now - 4) is None
    found = moves.between(3, now - 4, now)
    assert found is not None
    assert found.columns.tolist() == [0, 1, -1]
    assert moves.between(3, now, now) is None
    key = np.array([3 << 32, 3 << 32 | 1, 5 << 32])
    moved = moves.followed(key, np.array([now - 2, now - 2, 9]), np.array([0, 0, 0, now, 0, 9]))
    assert moved is not None
    assert (moved[0].tolist(), moved[1].tolist()) == ([3 << 32, 3 << 32 | 1, 5 << 32], [1, 0, 2])


# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "error", "words"),
    [
        (lambda m: m.update_columns(["ghost"], [1], [1], {"a": [1]}), UnknownHandleError, "ghost"),
        (lambda m: m.update_columns(["p", "p"], [1, 1], [1, 1], {"a": [1, 1]}), DuplicateHandleError, "different"),
        (lambda m: m.update_columns(["p"], [2], [1], {"a": [1]}), DimensionError, "sizes sum to 2"),
        (lambda m: m.update_columns(["p"], [0], [], {"a": []}), DimensionError, "at least one column"),
        (lambda m: m.update_columns(["p"], [1], [np.nan], {"a": [1]}), InvalidDataError, "'p': cost of column 0"),
        (lambda m: m.update_columns(["p"], [2], [1, 1], {"a": [1, 1]}, kept=[0]), DimensionError, "kept has shape"),
        (lambda m: m.update_columns(["p"], [1], [1], {"a": [1]}, kept=[3]), InvalidDataError, "'p'.*names 3.*0 to 2"),
        (lambda m: m.update_columns(["p"], [2], [1, 1], {"a": [1, 1]}, kept=[1, 1]), InvalidDataError, "'p'.*1 twice"),
        (lambda m: (m.fix("p", 0), m.update_columns(["p"], [1], [1], {"a": [1]})), EditNotAllowedError, "'p' is fixed"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(edit: object, error: type[Exception], words: str) -> None:
    model = small()
    program = model.to_linear_program()
    with pytest.raises(error, match=words):
        edit(model)  # type: ignore[operator]
    again = model.to_linear_program()
    assert (program.A != again.A).nnz == 0
    assert program.c.tolist() == again.c.tolist()
    require_consistent(model.ledger)
