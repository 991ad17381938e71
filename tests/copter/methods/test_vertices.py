"""The walk to a vertex: as good as the point, and nearly whole (F12)."""

from __future__ import annotations

import numpy as np
import pytest

import copter.methods.proximal.solve
from copter import Model, Session, Settings, Status
from copter.problem.solution import Solution
from tests.copter.by_highs import highs


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
def test_tied_requests_end_at_a_vertex(rows: int, requests: int) -> None:
    model = tied(rows, requests)
    solution = Session(model, Settings(basis_columns=0)).solve()
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-6)
    assert fractional(solution) <= rows  # equation F12


def test_a_continuous_model_gets_its_optimum_as_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise AssertionError("nothing asks for a vertex")

    monkeypatch.setattr(copter.methods.proximal.solve, "purify", refused)
    model = tied(12, 500, integer=False)
    solution = Session(model, Settings(basis_columns=0)).solve()
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-6)
