"""A vertex by pivots on the working columns: as good as the point, and nearly whole."""

from __future__ import annotations

import numpy as np
import pytest

import copter.methods.proximal.solve
from copter import Model, Session, Settings, Status, choose
from copter.methods.proximal.working_set import WorkingSet
from copter.problem.solution import Solution
from tests.copter.highs import highs


def tied(rows: int, requests: int, integer: bool = True, seed: int = 1) -> Model:
    """Requests of ten kinds: many optima, most of them far from a vertex."""
    rng = np.random.default_rng(seed)
    model = Model("max")
    for row in range(rows):
        model.add_resources(row, float(requests * 5 // rows // 6 + 1))
    kinds = [
        (
            model.add_template({row: rng.integers(0, 3, 5).astype(float) for row in rng.choice(rows, 3).tolist()}),
            np.round(rng.uniform(1, 5, 5), 2),
        )
        for _ in range(10)
    ]
    for request in range(requests):
        shape, cost = kinds[int(rng.integers(10))]
        model.add_request(request, cost, template=shape, integer=integer)
    return model


def fractional(solution: Solution) -> int:
    """Requests with a column strictly between zero and one."""
    x = solution.x.reshape(-1, 5)
    return int(((x > 1e-7) & (x < 1.0 - 1e-7)).any(axis=1).sum())


@pytest.mark.parametrize(("rows", "requests"), [(4, 300), (12, 500), (30, 900)])
def test_tied_requests_end_at_a_vertex(rows: int, requests: int, monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[int] = []
    real = copter.methods.proximal.solve.purify

    def counted(ws: WorkingSet, *given: object) -> int:
        walked.append(real(ws, *given))  # type: ignore[arg-type]
        return walked[-1]

    monkeypatch.setattr(copter.methods.proximal.solve, "purify", counted)
    model = tied(rows, requests)
    solution = Session(model, Settings(basis_columns=0)).solve()
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-6)
    assert fractional(solution) <= rows  # equation F12
    assert walked == [0]  # pivots found it


@pytest.mark.parametrize("seed", range(3))
def test_where_pivots_have_no_answer_the_walk_ends_at_a_vertex_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("copter.methods.by_prices.vertex_of", lambda *_: None)
    model = tied(6, 200, seed=seed)
    solution = Session(model, Settings(basis_columns=0)).solve()
    assert solution.status is Status.OPTIMAL
    assert fractional(solution) <= 6


def test_a_continuous_model_gets_its_optimum_as_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise AssertionError("nothing asks for a vertex")

    monkeypatch.setattr(copter.methods.proximal.solve, "purify", refused)
    model = tied(12, 500, integer=False)
    solution = Session(model, Settings(basis_columns=0)).solve()
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-6)


@pytest.mark.parametrize(
    ("fractional_columns", "tight", "working", "pays"),
    [(28, 7, 22_620, False), (6_279, 7, 2_845_666, False), (11_660, 50, 29_293, True), (21_002, 7, 81_666, True)],
)
def test_a_handful_is_walked_and_thousands_are_not(
    fractional_columns: int, tight: int, working: int, pays: bool
) -> None:
    assert choose.crossover_pays(fractional_columns, tight, working) is pays
