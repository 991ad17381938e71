"""The order of methods, by name and by default; and that watching a solve changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import copter
from copter import LinearProgram, Model, PrivateRows, Session, Settings, Status
from copter.methods import choose
from copter.methods.choose import ModelFacts, ProgramFacts
from copter.problem.solution import Solution
from copter.runtime.settings import Internals
from tests.copter.by_highs import highs

MODEL_METHODS = ("auto", "basis", "blocks", "proximal", "price_descent", "simplex", "interior")
PROGRAM_METHODS = ("auto", "blocks", "proximal", "price_descent", "simplex", "interior")


def jobs(rows: int, requests: int, seed: int, private: bool = False) -> Model:
    """Requests of three columns that share some resources."""
    rng = np.random.default_rng(seed)
    model = Model(sense="max")
    for row in range(rows):
        model.add_resources(row, float(rng.integers(4, 9)))
    for request in range(requests):
        usage = np.zeros((rows, 3))
        usage[rng.choice(rows, 3, replace=rows < 3), np.arange(3)] = rng.integers(1, 4, 3)
        rows_of_its_own = PrivateRows([[1.0, 2.0, 1.0]], upper=1.5) if private else None
        model.add_request(
            request, rng.uniform(1.0, 9.0, 3), usage=sp.csc_array(usage), resources=list(range(rows)),
            private_rows=rows_of_its_own,
        )  # fmt: skip
    return model


@pytest.mark.parametrize(("columns", "warm", "share"), [(5_001, False, 300.0), (5_001, True, 2_000.0)])
def test_large_programs_pivot_for_less_than_the_block_methods_take(columns: int, warm: bool, share: float) -> None:
    assert choose.round_work(columns, warm) == share * columns
    assert choose.round_work(5_000, warm) == choose.SIMPLEX_WORK


def small_program(seed: int) -> LinearProgram:
    """A covering program that every method solves."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((6, 15), density=0.5, rng=rng, data_sampler=lambda size: rng.uniform(1.0, 3.0, size))
    return LinearProgram(
        c=rng.uniform(1.0, 5.0, 15), A=A.tocsc(), row_lower=np.full(6, 1.0), row_upper=np.full(6, np.inf),
        col_lower=np.zeros(15), col_upper=np.full(15, 3.0),
    )  # fmt: skip


def facts(
    columns: int = 500, rows: int = 3, private: bool = False, basis: bool = True, only_sums: bool = False
) -> ModelFacts:
    return ModelFacts(columns, rows, private, basis, only_sums=only_sums)


@pytest.mark.parametrize(
    ("given", "order"),
    [
        (facts(), ["basis", "basis", "simplex", "proximal", "interior"]),
        (facts(basis=False), ["basis", "basis", "simplex", "proximal", "interior"]),
        (facts(columns=5000, basis=False), ["basis", "proximal", "interior"]),
        (facts(columns=50_000), ["proximal", "interior"]),
        (facts(columns=2_000_000, basis=False), ["proximal"]),
        (facts(rows=100), ["basis", "basis", "simplex", "blocks", "proximal", "interior"]),
        (facts(columns=50_000, rows=100, basis=False), ["blocks", "proximal", "interior"]),
        (facts(columns=50_000, rows=2000), ["basis", "highs", "blocks", "interior", "proximal"]),
        (facts(columns=2_000_000, rows=2000), ["basis", "highs", "blocks", "proximal"]),
        (facts(private=True), ["basis", "blocks", "simplex", "interior"]),
        (facts(columns=40_000, private=True), ["basis", "blocks", "interior"]),
        (facts(columns=40_001, private=True), ["blocks", "interior"]),
        (facts(private=True, only_sums=True), ["basis", "basis", "blocks", "simplex", "interior"]),
        (facts(columns=40_001, private=True, only_sums=True), ["blocks", "interior"]),
        (facts(columns=8_000, rows=8_001, basis=False), ["interior", "proximal"]),
        (facts(columns=8_000, rows=8_000, basis=False), ["highs", "blocks", "interior", "proximal"]),
        (facts(columns=0, basis=False), ["proximal", "interior"]),
    ],
)
def test_the_order_for_a_model(given: ModelFacts, order: list[str]) -> None:
    found = choose.for_model(given, Settings())
    assert [choice.method for choice in found] == order
    assert all(choice.why for choice in found)


@pytest.mark.parametrize(
    ("given", "order"),
    [
        (ProgramFacts(500, 10, 20, False), ["simplex"]),
        (ProgramFacts(50_000, 100, 200, False), []),
        (ProgramFacts(500, 10, 20, True), ["simplex", "interior"]),
        (ProgramFacts(50_000, 100, 2000, True), ["simplex", "blocks", "interior"]),
        (ProgramFacts(5_000_000, 100, 2000, True), ["blocks", "interior"]),
        (ProgramFacts(50_000, 20_000, 2000, True), ["interior"]),
    ],
)
def test_the_order_for_a_program(given: ProgramFacts, order: list[str]) -> None:
    assert [choice.method for choice in choose.for_program(given, Settings())] == order


@pytest.mark.parametrize("method", MODEL_METHODS)
@pytest.mark.parametrize("rows", [3, 80])
def test_every_method_solves_a_model_by_its_name(method: str, rows: int) -> None:
    model = jobs(rows, 60, seed=rows)
    session = Session(model, Settings(method=method))  # type: ignore[arg-type]
    for edited in range(3):
        solution = session.solve()
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-5)
        assert solution.why
        if method != "auto":
            by = [(method, choose.NAMED), (choose.KEPT.method, choose.KEPT.why)]
            assert (solution.method, solution.why) in by[: 1 + (edited > 0)]  # an edit may leave the answer optimal
        model.update_cost(edited, np.array([9.5, 0.5, 4.0]))
        model.remove_request(edited + 10)


@pytest.mark.parametrize("method", ["auto", "blocks", "simplex", "interior"])
def test_methods_for_private_rows(method: str) -> None:
    model = jobs(4, 20, seed=1, private=True)
    solution = Session(model, Settings(method=method)).solve()  # type: ignore[arg-type]
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-5)
    assert solution.method == ("basis" if method == "auto" else method)


@pytest.mark.parametrize("method", ["basis", "proximal", "price_descent"])
def test_methods_that_do_not_take_private_rows_say_which_do(method: str) -> None:
    session = Session(jobs(4, 20, seed=1, private=True), Settings(method=method))  # type: ignore[arg-type]
    with pytest.raises(copter.SettingsError, match="'blocks', 'interior' or 'simplex'"):
        session.solve()


@pytest.mark.parametrize("method", PROGRAM_METHODS)
def test_every_method_solves_a_program_by_its_name(method: str) -> None:
    lp = small_program(4)
    solution = copter.solve(lp, Settings(method=method, internals=Internals(presolve=False)))  # type: ignore[arg-type]
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(highs(lp)[1], rel=1e-5)
    # A program of 90 entries has no blocks that pay: the interior-point method solves it, and says so.
    expected = {"auto": "simplex", "blocks": "interior"}.get(method, method)
    assert solution.method == expected
    assert solution.why


def test_a_program_has_no_last_round() -> None:
    with pytest.raises(copter.SettingsError, match="Session"):
        copter.solve(small_program(1), Settings(method="basis"))


def test_a_proven_answer_is_kept() -> None:
    model = jobs(3, 2000, seed=3)
    session = Session(model, Settings(basis_columns=0))
    assert session.solve().method == "proximal"
    again = session.solve()
    assert (again.method, again.why) == (choose.KEPT.method, choose.KEPT.why)


@pytest.mark.parametrize("method", MODEL_METHODS)
def test_an_infeasible_model_is_proven_so_by_every_method(method: str) -> None:
    model = jobs(3, 8, seed=5)
    model.set_count(0, 1e6, 1e5)  # at least 100,000: more than all requests together can use
    solution = Session(model, Settings(method=method)).solve()  # type: ignore[arg-type]
    assert solution.status is Status.PRIMAL_INFEASIBLE
    assert solution.ray is not None


# Watching -------------------------------------------------------------------------------------------------------------


def rounds(method: str, rows: int, callback: Callable[..., None] | None, verbose: bool) -> list[Solution]:
    """Solutions of a session over some edits."""
    model = jobs(rows, 60, seed=rows)
    session = Session(model, Settings(method=method, threads=1))  # type: ignore[arg-type]
    found = []
    for edited in range(4):
        solution = session.solve(callback=callback, verbose=verbose)
        _ = solution.x, solution.y
        found.append(solution)
        model.update_cost(edited, np.array([9.5, 0.5, 4.0]))
        model.remove_request(edited + 10)
    return found


def require_same(one: Solution, other: Solution) -> None:
    assert (one.status, one.method, one.why) == (other.status, other.method, other.why)
    assert (one.iterations, one.pricing_passes) == (other.iterations, other.pricing_passes)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.y, other.y)
    assert (one.objective, one.bound) == (other.objective, other.bound)


@pytest.mark.parametrize("method", MODEL_METHODS)
@pytest.mark.parametrize("rows", [3, 80])
def test_watching_a_session_changes_nothing(method: str, rows: int, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[int] = []
    plain = rounds(method, rows, None, False)
    watched = rounds(method, rows, lambda passes, gap, violation: told.append(passes), True)
    for one, other in zip(plain, watched, strict=True):
        require_same(one, other)
    assert len(told) >= len(plain)
    assert "copter" in capsys.readouterr().err


@pytest.mark.parametrize("method", PROGRAM_METHODS)
@pytest.mark.parametrize("presolve", [True, False])
def test_watching_a_one_shot_solve_changes_nothing(method: str, presolve: bool) -> None:
    told: list[int] = []
    for seed in range(5):
        lp = small_program(seed)
        settings = Settings(method=method, internals=Internals(presolve=presolve), threads=1)  # type: ignore[arg-type]
        plain = copter.solve(lp, settings)
        watched = copter.solve(lp, settings, callback=lambda passes, gap, violation: told.append(passes))
        require_same(plain, watched)
    assert told
