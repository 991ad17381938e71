"""Rounds of models whose requests have least sums: pivots on their blocks, as without them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from copter import Model, PrivateRows, Session, Settings, Status
from copter.methods import choose
from tests.copter.by_highs import highs


def promised(model: Model, name: object, rng: np.random.Generator, rows: int, least: float) -> None:
    """Add a request with four columns that takes one at most, and one at least if that is promised."""
    usage = np.zeros((rows, 4))
    usage[rng.choice(rows, 4), np.arange(4)] = rng.integers(1, 4, 4)
    usage[:, 3] = 0.0  # the last column uses nothing, so that every promise can be kept
    model.add_request(
        name, np.append(rng.uniform(1.0, 9.0, 3), 0.1), usage=sp.csc_array(usage), resources=list(range(rows)),
        at_least=least,
    )  # fmt: skip


@pytest.mark.parametrize("rows", [3, 80])
@pytest.mark.parametrize("seed", range(4))
def test_requests_with_least_sums_are_solved_by_pivots_on_their_blocks(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = Model(sense="max")
    for row in range(rows):
        model.add_resources(row, float(rng.integers(2, 9)))
    names = list(range(6 * rows + 60))
    for name in names:
        promised(model, name, rng, rows, 1.0 if rng.random() < 0.5 else -np.inf)
    session = Session(model, Settings(tolerance=1e-9, absolute_tolerance=1e-9))
    for edit in range(6):
        solution = session.solve()
        assert solution.status is Status.OPTIMAL
        assert (solution.method, solution.why) == (choose.SUM_PIVOTS.method, choose.SUM_PIVOTS.why)
        lp = model.to_linear_program()
        assert solution.objective == pytest.approx(highs(lp)[1], rel=1e-8)
        reduced = lp.c - lp.A.T @ solution.y
        at_lower, at_upper = solution.x <= lp.col_lower + 1e-9, solution.x >= lp.col_upper - 1e-9
        assert (reduced[~at_upper] <= 1e-6).all()
        assert (reduced[~at_lower] >= -1e-6).all()
        activity = lp.A @ solution.x
        assert (solution.y[activity < lp.row_upper - 1e-7] <= 1e-6).all()
        assert (solution.y[activity > lp.row_lower + 1e-7] >= -1e-6).all()
        gone, changed = rng.choice(names, 5, replace=False).tolist(), rng.integers(rows)
        model.remove_requests(gone)
        for name in gone:
            promised(model, name, rng, rows, 1.0 if rng.random() < 0.5 else -np.inf)
        model.update_limits(names[:3], np.ones(3), np.full(3, 1.0 if edit % 2 else -np.inf))
        model.set_count(int(changed), float(rng.integers(2, 9)))


def test_the_last_answer_with_least_sums_is_kept() -> None:
    rng = np.random.default_rng(1)
    model = Model(sense="max")
    for row in range(3):
        model.add_resources(row, 5.0)
    for name in range(70):
        promised(model, name, rng, 3, 1.0)
    session = Session(model)
    first, again = session.solve(), session.solve()
    assert again.iterations == 0
    assert (first.objective, first.y.tolist()) == (again.objective, again.y.tolist())


def test_promises_that_cannot_be_kept_are_found_infeasible() -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 10.0)
    for name in range(100):
        model.add_request(name, [1.0], {"gpu": [1.0]}, at_least=1.0)
    assert Session(model).solve().status is Status.PRIMAL_INFEASIBLE


def test_other_private_rows_are_left_to_the_block_methods() -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 60.0)
    for name in range(100):
        model.add_request(name, [1.0, 2.0], {"gpu": [1.0, 2.0]}, at_least=0.5)
    model.add_request("pair", [1.0, 1.0], {"gpu": [1.0, 2.0]}, private_rows=PrivateRows([[1.0, 2.0]], upper=1.5))
    solution = Session(model).solve()
    assert solution.status is Status.OPTIMAL
    assert solution.why != choose.SUM_PIVOTS.why
    assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_a_request_of_one_column_gets_the_price_of_its_sum(seed: int) -> None:
    """The sum of a single column bounds the column; its price is the column's reduced cost."""
    rng = np.random.default_rng(seed)
    model = Model(sense="max")
    model.add_resources("gpu", float(rng.integers(20, 60)))
    for name in range(30):
        bounds = {"limit": float(rng.integers(1, 4)), "upper": float(rng.choice([1.0, 2.0, np.inf]))}
        least = 0.5 if rng.random() < 0.4 else -np.inf
        model.add_request(
            name, [float(rng.integers(-3, 9))], {"gpu": [float(rng.integers(1, 4))]}, at_least=least, **bounds
        )
    session = Session(model)
    for name in (0, 5, 9):
        solution = session.solve()
        lp = model.to_linear_program()
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(highs(lp)[1], rel=1e-7)
        reduced, activity = lp.c - lp.A.T @ solution.y, lp.A @ solution.x
        assert (reduced[solution.x < lp.col_upper - 1e-7] <= 1e-6).all()
        assert (reduced[solution.x > lp.col_lower + 1e-7] >= -1e-6).all()
        assert (solution.y[activity < lp.row_upper - 1e-7] <= 1e-6).all()
        assert (solution.y[activity > lp.row_lower + 1e-7] >= -1e-6).all()
        model.update_cost(name, [5.0])


def test_equal_requests_that_lose_their_room_take_one_pivot_together() -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 500.0)
    for rack in range(60):
        model.add_resources(rack, 500.0)
    for name in range(60):
        model.add_request(name, [99.0], {"gpu": [8.0], name: [1.0]})
    session = Session(model)
    assert session.solve().objective == 60 * 99.0
    model.set_count("gpu", 20.0)
    solution = session.solve()
    assert solution.objective == pytest.approx(2.5 * 99.0)
    assert (solution.why, solution.iterations) == (choose.SMALL.why, 1)
