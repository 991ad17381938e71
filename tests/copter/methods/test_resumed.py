"""Models with more coupling rows than columns: each round pivots from the last optimum of the whole program."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from copter import Model, Session, Settings, Status
from copter.methods import choose
from copter.methods.choose import ModelFacts
from copter.methods.simplex.resumed import Resumed
from copter.methods.simplex.warm_basis import WarmBasis
from copter.runtime.watch import Watch
from tests.copter.by_highs import highs
from tests.copter.methods.test_choose import small_program

ROWS, REQUESTS, COLUMNS = 1_100, 80, 5  # columns of a request
LARGE = Settings(basis_columns=0)  # no model counts as small


def covering(seed: int) -> tuple[Model, np.random.Generator]:
    """Requests whose columns cover some of many rows; a spare column covers any row dearly."""
    rng = np.random.default_rng(seed)
    model = Model(sense="min")
    for row in range(ROWS):
        model.set_count(row, np.inf, lower=float(rng.integers(1, 4)))
    for request in range(REQUESTS):
        add(model, rng, request)
    model.add_request("spare", [500.0], sp.csc_array(np.ones((ROWS, 1))), resources=list(range(ROWS)), limit=np.inf)
    return model, rng


def add(model: Model, rng: np.random.Generator, request: int) -> None:
    usage = sp.random_array((ROWS, COLUMNS), density=0.05, rng=rng, format="csc")
    usage.data = np.ceil(3.0 * usage.data)
    cost = rng.uniform(1.0, 9.0, COLUMNS)
    model.add_request(request, cost, usage, resources=list(range(ROWS)), limit=np.inf, upper=4.0)


def change(model: Model, rng: np.random.Generator, what: str) -> None:
    """Make one edit of a kind."""
    at = int(rng.integers(REQUESTS))
    if what == "rows":
        some = rng.choice(ROWS, 30, replace=False).tolist()
        model.update_counts(some, np.full(30, np.inf), lower=rng.integers(1, 4, 30).astype(float))
    elif what == "costs":
        model.update_cost(at, rng.uniform(1.0, 9.0, COLUMNS))
    elif what == "bounds":
        model.update_bounds(at, upper=float(rng.integers(0, 5)))
    else:
        model.remove_request(at)
        add(model, rng, at)


@pytest.mark.parametrize("seed", range(3))
def test_edited_rounds_pivot_from_the_last_optimum_to_that_of_a_fresh_solve(seed: int) -> None:
    model, rng = covering(seed)
    session = Session(model, LARGE)
    assert session.solve().method == "interior"
    for what in ("rows", "costs", "rows", "costs", "bounds", "request"):
        change(model, rng, what)
        solution = session.solve()
        assert solution.status is Status.OPTIMAL
        if what in ("rows", "costs"):
            assert (solution.method, solution.why) == (choose.RESUMED.method, choose.RESUMED.why)
        assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-6)
        assert solution.objective == pytest.approx(Session(model, LARGE).solve().objective, rel=1e-6)
        assert solution.gap <= 1e-6
    assert session.solve().method == "kept"


def test_an_impossible_round_is_proven_and_the_next_one_starts_anew() -> None:
    model, _ = covering(7)
    session = Session(model, LARGE)
    first = session.solve()
    model.update_bounds("spare", upper=0.0)
    model.set_count(0, np.inf, lower=1e4)
    found = session.solve()
    assert found.status is Status.PRIMAL_INFEASIBLE
    assert found.ray is not None
    model.update_bounds("spare", upper=np.inf)
    model.set_count(0, np.inf, lower=1.0)
    assert session.solve().objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-6)
    assert first.status is Status.OPTIMAL


def test_too_much_work_leaves_the_round_to_interior_points_and_then_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rng = covering(3)
    session = Session(model, LARGE)
    session.solve()
    monkeypatch.setattr("copter.methods.whole_program.RESUMED_WORK", 0.0)
    ways, tries = [], []
    solve = Resumed.solve
    monkeypatch.setattr(Resumed, "solve", lambda *given: tries.append(len(ways)) or solve(*given))
    for _ in range(6):
        change(model, rng, "rows")
        found = session.solve()
        assert found.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-6)
        ways.append(found.method)
    assert set(ways) == {"interior"}
    assert tries == [0, 1, 3]  # after the first failure no rest, after the second one round, after the third three


def test_it_is_ready_once_an_optimum_is_noted() -> None:
    lp, resumed = small_program(1), Resumed()
    assert not resumed.is_ready
    with Watch(10.0) as watch:
        assert resumed.solve(lp, Settings(), watch, np.inf) is None
    optimum, x, y = highs(lp)[1:]
    resumed = Resumed()
    resumed.note(lp, x, y)
    assert resumed.is_ready
    with Watch(10.0) as watch:
        found = resumed.solve(lp, Settings(), watch, np.inf)
    assert found is not None
    assert found.objective == pytest.approx(optimum)
    assert isinstance(resumed.basis, WarmBasis)


def test_pivots_from_an_optimum_come_first_where_nothing_is_eliminated() -> None:
    facts = ModelFacts(8_000, 8_001, False, False, has_optimum=True)
    assert [each.method for each in choose.for_model(facts, Settings())] == ["basis", "interior", "proximal"]
    assert choose.for_model(facts, Settings())[0] is choose.RESUMED
    coupled = ModelFacts(8_002, 8_001, False, False, has_optimum=True)
    assert choose.RESUMED not in choose.for_model(coupled, Settings())


def test_a_solve_whose_time_is_over_keeps_the_basis_and_does_not_count_as_a_failure() -> None:
    lp, resumed = small_program(2), Resumed()
    optimum, x, y = highs(lp)[1:]
    resumed.note(lp, x, y)
    with Watch(0.0) as watch:
        assert resumed.solve(lp, Settings(), watch, np.inf) is None
    assert (resumed.failures, resumed.is_ready) == (0, True)
    with Watch(10.0) as watch:
        found = resumed.solve(lp, Settings(), watch, np.inf)
    assert found is not None
    assert found.objective == pytest.approx(optimum)
