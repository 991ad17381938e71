"""Sparse pivots that look at few blocks (K17): the same vertices as HiGHS, few pivots where all is degenerate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter import Model, Session, Status
from copter.methods.blocks import basis
from copter.methods.blocks.basis import LastRound
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.sparse_dual import SparseDual
from tests.copter.by_highs import highs
from tests.copter.methods.test_many_rows import KINDS, Placement


@pytest.fixture(autouse=True)
def sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sparse factors in small models too."""
    monkeypatch.setattr(basis, "DENSE_ROWS", 20)


def last_of(session: Session) -> LastRound:
    """What the session keeps of its pivots."""
    last = session._iterate.pivots().last
    assert last is not None
    assert isinstance(last.dual, SparseDual)
    return last


def assert_optimal(session: Session, model: Model) -> None:
    """The session's answer, that of a new session and HiGHS's are the same."""
    solution, fresh, best = session.solve(), Session(model).solve(), highs(model.to_linear_program())[1]
    assert solution.status == fresh.status == Status.OPTIMAL
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert fresh.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(66, 90),
    st.integers(110, 260),
    st.booleans(),
    st.lists(st.sampled_from(KINDS), min_size=2, max_size=8),
)
def test_edited_equals_fresh_equals_highs(
    seed: int, resources: int, requests: int, alike: bool, kinds: list[str]
) -> None:
    case = Placement(seed, resources, requests, alike)
    session = Session(case.model)
    assert_optimal(session, case.model)
    for kind in kinds:
        case.edit(kind)
        assert_optimal(session, case.model)


def test_a_third_of_the_costs_and_two_failures_at_once() -> None:
    case = Placement(3, 90, 270, False)
    session = Session(case.model)
    for _ in range(3):
        case.edit("count")
        assert_optimal(session, case.model)
    for at in case.rng.choice(270, 90, replace=False):
        case.model.update_cost(case.alive[at], case.worth(40 if case.alive[at] % 50 == 49 else 3))
    assert_optimal(session, case.model)
    case.edit("fail")
    assert_optimal(session, case.model)
    case.edit("count")
    assert_optimal(session, case.model)


def test_thousands_of_equal_options_do_not_cycle() -> None:
    """Rows of equal sizes, requests of 50 equal options: no more than a few pivots a row."""
    model, rows, rng = Model(sense="max"), 80, np.random.default_rng(0)
    for i in range(rows):
        model.add_resources(i, 1.0)
    for j in range(60):
        used: dict[int, list[float]] = {}
        for option in range(50):
            used.setdefault(int(rng.integers(rows)), [0.0] * 50)[option] = 1.0
        model.add_request(j, np.full(50, 7.0), used)
    session = Session(model)
    assert_optimal(session, model)
    for k in range(6):
        model.set_count(k, float(k % 2))
        assert_optimal(session, model)
        assert last_of(session).dual.pivots <= 8 * rows


def test_all_counts_zero_and_back() -> None:
    case = Placement(1, 80, 200, False)
    session = Session(case.model)
    case.edit("count")
    assert_optimal(session, case.model)
    counts = dict.fromkeys(range(80), 5.0)
    for i in counts:
        case.model.set_count(i, 0.0)
    solution = session.solve()
    assert solution.status == Status.OPTIMAL
    assert solution.objective == pytest.approx(0.0, abs=1e-9)
    for i, count in counts.items():
        case.model.set_count(i, count)
    assert_optimal(session, case.model)


def test_duplicate_and_empty_rows() -> None:
    """Each resource twice, with equal use and counts, and ten that nobody uses."""
    model, rng = Model(sense="max"), np.random.default_rng(5)
    for i in range(80):
        model.add_resources(i, 3.0)
    for j in range(150):
        used: dict[int, list[float]] = {}
        for option, i in enumerate(rng.choice(35, 3, replace=False)):
            for row in (int(i), int(i) + 35):
                used[row] = [1.0 if at == option else 0.0 for at in range(3)]
        model.add_request(j, rng.integers(1, 20, 3).astype(float), used)
    session = Session(model)
    assert_optimal(session, model)
    for k in range(6):
        model.set_count(k, float(2 + k % 3))
        assert_optimal(session, model)
        assert last_of(session).dual.pivots <= 400


def test_the_work_limit_follows_the_last_rounds() -> None:
    case = Placement(2, 90, 270, False)
    session = Session(case.model)
    for _ in range(5):
        case.edit("count")
        assert_optimal(session, case.model)
    state, last = session._iterate.pivots(), last_of(session)
    assert 0 < len(state.shares) <= basis.SHARES
    expected = basis.SHARE_GROWTH * max(state.shares)
    assert state.most_cold(last) == min(max(expected, basis.LEAST_SHARE), basis.MOST_SHARE)


def test_pivots_that_meet_their_limit_leave_the_round_to_the_next_method(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Placement(4, 90, 270, False)
    session = Session(case.model)
    for _ in range(3):
        case.edit("count")
        assert_optimal(session, case.model)
    monkeypatch.setattr(basis, "LEAST_SHARE", 0.0)
    monkeypatch.setattr(basis, "MOST_SHARE", 0.0)
    case.edit("counts")
    assert_optimal(session, case.model)
    assert session._iterate.pivots().gave_up
    monkeypatch.undo()
    monkeypatch.setattr(basis, "DENSE_ROWS", 20)
    case.edit("counts")
    assert_optimal(session, case.model)
    assert not session._iterate.pivots().gave_up
    assert session.last_solution is not None
    assert session.last_solution.method == "basis"


@pytest.mark.parametrize("seed", range(6))
def test_no_block_is_overlooked(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two pivots the reduced costs of settled blocks have the signs that their bounds require.

    Options of a request share rows, so that a price moves several of its reduced costs.
    """
    monkeypatch.setattr(basis, "SLICE", 1)
    case = Placement(seed, 90, 400, False)
    for at in range(0, 400, 3):
        shared = {int(i): list(case.rng.uniform(0.2, 3.0, 5)) for i in case.rng.choice(72, 3, replace=False)}
        case.model.remove_request(case.alive[at])
        case.model.add_request(case.alive[at], case.worth(5), shared)
    session = Session(case.model)
    assert_optimal(session, case.model)
    case.edit("counts")
    assert_optimal(session, case.model)
    state, seen = session._iterate.pivots(), 0
    for kind in ("counts", "fail", "counts", "counts"):
        case.edit(kind)
        program = state.follow(case.model.ledger).program
        last = last_of(session)

        def look() -> bool:
            nonlocal seen
            seen += 1
            assert_settled(program, last)  # noqa: B023
            return False

        assert basis.ended(last, look, 100.0) == basis.Ending.OPTIMAL  # type: ignore[arg-type]
    assert seen > 30


def assert_settled(program: BlockProgram, last: LastRound) -> None:
    """Every block whose only basic variable is its key holds its others at the bounds of their reduced costs."""
    dual, n, blocks = last.dual, program.n_columns, len(program.column_start) - 1
    owner = np.repeat(np.arange(blocks), np.diff(program.column_start))
    column = np.repeat(np.arange(n), np.diff(program.start))
    usage = program.value * last.scale[program.row] * np.asarray(dual.prices)[program.row]
    reduced = program.cost * last.factor - np.bincount(column, usage, minlength=n)
    heads, keys, low, high = np.asarray(dual.heads), np.asarray(dual.keys), *np.asarray(dual.bounds)
    own = heads[(heads >= 0) & (heads < n + blocks)]
    settled = np.ones(blocks, dtype=bool)
    settled[np.append(owner, np.arange(blocks))[own]] = False
    key_cost = np.where(keys < n, reduced[np.minimum(keys, n - 1)], 0.0)
    away = reduced - key_cost[owner]
    away[np.asarray(dual.at_uppers)[:n] > 0] *= -1.0
    free = settled[owner] & (low[:n] < high[:n])
    free[keys[keys < n]] = False
    assert away[free].min() > -1e-5
