"""Models with very many coupling rows: HiGHS gives the first vertex, pivots go on from its basis (K18)."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp

from copter import Model, PrivateRows, Session, Settings
from copter.highs import process, vertex
from copter.highs.linear import AT_LOWER, AT_UPPER, BASIC, LinearTask, Vertex, by_highspy, by_scipy
from copter.methods import choose
from copter.methods.block_round import BlockRound
from copter.methods.blocks.basis import entered
from copter.methods.blocks.program import program_of, whole_matrix
from copter.model.matrix.bounds import live_slots
from copter.problem.checker import is_improving_ray
from copter.runtime.watch import Watch

pytest.importorskip("highspy")


def model_of(rows: int, requests: int, seed: int) -> Model:
    """Requests with two options on three of the resources."""
    rng = np.random.default_rng(seed)
    model = Model(sense="max")
    for row in range(rows):
        model.add_resource(row, float(rng.integers(1, 5)))
    for request in range(requests):
        usage = {int(row): rng.integers(0, 3, 2).astype(float) for row in rng.choice(rows, 3, replace=False)}
        worth = rng.integers(5, 50, 2).astype(float)
        model.add_request(request, worth, usage, limit=float(rng.integers(1, 3)), upper=[1.0, 2.0])
    return model


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask HiGHS for a first vertex however few rows there are."""
    monkeypatch.setattr(choose, "VERTEX_ROWS", 0)
    monkeypatch.setattr(choose, "VERTEX_WORK", 5e3)
    monkeypatch.setattr(choose, "COLD_COLUMNS", 0)
    monkeypatch.setattr(choose, "is_small", lambda facts, settings: False)


def highs_of(model: Model) -> float:
    """HiGHS's objective."""
    lp = model.to_linear_program()
    sign = 1.0 if lp.sense == "min" else -1.0
    task = LinearTask(sign * lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper, np.inf)
    found = by_highspy(task)
    return float(lp.c @ found.x)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("seed", range(4))
def test_the_first_solve_has_highss_objective_and_a_basis(seed):
    model = model_of(300, 600, seed)
    session = Session(model)
    found = session.solve()
    assert found.method == "highs"
    assert found.objective == pytest.approx(highs_of(model), rel=1e-9)
    assert found.gap <= 1e-6
    rng = np.random.default_rng(seed)
    for step in range(5):
        for row in rng.choice(300, 20, replace=False):
            model.set_count(int(row), float(rng.integers(0, 5)))
        model.remove_request(step)
        found = session.solve()
        assert found.method in ("basis", "kept")
        assert found.objective == pytest.approx(highs_of(model), rel=1e-9)


@pytest.mark.usefixtures("always")
def test_scipys_highs_gives_a_point_where_highspy_is_missing(monkeypatch):
    model = model_of(300, 500, 1)
    matrix, slots = model.ledger.matrix, live_slots(model.ledger.matrix)
    program = program_of(matrix, slots)
    n = program.n_columns
    whole = whole_matrix(program)
    ends = program.lower[n:], program.upper[n:], program.lower[:n], program.upper[:n]
    mine = by_scipy(LinearTask(program.cost, whole, *ends, np.inf))
    assert mine.statuses is None
    assert program.cost @ mine.x == pytest.approx(-highs_of(model), rel=1e-9)
    reduced = program.cost - whole.T @ mine.y
    assert (reduced[mine.x < ends[3] - 1e-6] >= -1e-6).all()
    assert (reduced[mine.x > 1e-6] <= 1e-6).all()
    monkeypatch.setattr("copter.methods.block_round.optimal_vertex", lambda task, watch: by_scipy(task))
    found = Session(model).solve()
    assert found.method == "highs"
    assert found.objective == pytest.approx(highs_of(model), rel=1e-7)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("seed", range(3))
def test_models_with_private_rows_go_on_from_the_vertex(seed):
    rng = np.random.default_rng(seed)
    model = Model(sense="max")
    for row in range(120):
        model.add_resource(row, float(rng.integers(2, 9)))
    for request in range(240):
        usage = {int(row): rng.integers(0, 4, 3).astype(float) for row in rng.choice(120, 3, replace=False)}
        own = PrivateRows(sp.csr_array(np.array([[1.0, 2.0, 0.5]])), [-np.inf], [1.2])
        model.add_request(request, rng.integers(5, 50, 3).astype(float), usage, private_rows=own)
    session, methods = Session(model), []
    for _ in range(6):
        found = session.solve()
        methods.append(found.method)
        assert found.objective == pytest.approx(highs_of(model), rel=1e-8)
        assert found.gap <= 1e-6
        for row in rng.choice(120, 5, replace=False):
            model.set_count(int(row), float(rng.integers(0, 9)))
        model.update_cost(int(rng.integers(240)), rng.integers(5, 50, 3).astype(float))
    assert methods == ["highs", *["basis"] * 5]


def test_scipy_knows_equalities_and_two_sides():
    task = LinearTask(
        np.array([1.0, -2.0, 0.5]),
        sp.csc_array(np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])),
        np.array([3.0, -1.0, -np.inf]),
        np.array([3.0, 2.0, 0.5]),
        np.zeros(3),
        np.full(3, 4.0),
        np.inf,
    )
    one, other = by_highspy(task), by_scipy(task)
    assert one.x == pytest.approx(other.x, abs=1e-9)
    assert one.y == pytest.approx(other.y, abs=1e-9)
    assert set(one.statuses) <= {AT_LOWER, BASIC, AT_UPPER}
    assert (one.statuses == BASIC).sum() == 3


def test_an_infeasible_program_has_no_vertex():
    task = LinearTask(
        np.ones(1), sp.csc_array(np.ones((1, 1))), np.array([2.0]), np.array([np.inf]), np.zeros(1), np.ones(1), np.inf
    )
    assert by_highspy(task) == by_scipy(task) == Vertex(no_optimum=True)


def test_a_basis_that_fits_no_block_is_not_taken():
    model = model_of(300, 400, 2)
    program = program_of(model.ledger.matrix, live_slots(model.ledger.matrix))
    n, rows = program.n_columns, len(program.lower) - program.n_columns
    blocks = len(program.column_start) - 1
    names = np.arange(blocks, dtype=np.int32), np.zeros(blocks, dtype=np.int64)
    nothing = Vertex(np.zeros(n), np.zeros(rows), np.full(n + rows, AT_LOWER, dtype=np.int8))
    every = Vertex(np.zeros(n), np.zeros(rows), np.full(n + rows, BASIC, dtype=np.int8))
    assert entered(program, *names, nothing) is None
    assert entered(program, *names, every) is None
    assert entered(program, *names, Vertex(np.zeros(n), np.zeros(rows))) is None


@pytest.mark.usefixtures("always")
def test_without_a_process_the_other_methods_answer(monkeypatch):
    def refused() -> process.Worker:
        raise OSError("no process")

    monkeypatch.setattr(process, "taken", refused)
    model = model_of(300, 400, 3)
    found = Session(model).solve()
    assert found.method == "blocks"
    assert found.objective == pytest.approx(highs_of(model), rel=1e-6)


@pytest.mark.usefixtures("always")
def test_a_killed_process_is_no_harm(monkeypatch):
    worker = process.taken()
    start = process.Worker.start

    def killed(self, task, reports):
        os.kill(self.process.pid, signal.SIGSTOP)  # so that it cannot have answered
        start(self, task, reports)
        os.kill(self.process.pid, signal.SIGKILL)

    monkeypatch.setattr(process, "taken", lambda: worker)
    monkeypatch.setattr(process.Worker, "start", killed)
    found = Session(model_of(300, 600, 4)).solve()
    assert found.status == "optimal"
    assert found.method != "highs"
    assert worker.process.wait(10) == -signal.SIGKILL


@pytest.mark.usefixtures("always")
def test_time_ends_the_process():
    task = LinearTask(
        np.ones(1), sp.csc_array(np.ones((1, 1))), np.zeros(1), np.ones(1), np.zeros(1), np.ones(1), np.inf
    )
    assert vertex.optimal_vertex(task, Watch(0.0)) is None
    solution = Session(model_of(400, 3000, 5), Settings(time_limit_s=1e-3)).solve()
    assert solution.status == "time_limit"


@pytest.mark.usefixtures("always")
def test_without_an_optimum_the_interior_points_of_the_whole_give_the_verdict(monkeypatch):
    monkeypatch.setattr(BlockRound, "by_interior_points", lambda self: pytest.fail("it proves no verdict"))
    model = model_of(300, 400, 6)
    model.set_count(0, 10_000.0, lower=9_000.0)
    found = Session(model).solve()
    assert found.status == "primal_infeasible"
    assert found.conflict
    model = model_of(300, 400, 6)
    model.add_request("free", [1.0], {0: [0.0]}, limit=np.inf)
    found = Session(model).solve()
    assert found.status == "dual_infeasible"
    assert is_improving_ray(model.to_linear_program(), found.ray)


@pytest.mark.usefixtures("always")
def test_an_interrupted_first_solve_is_made_again(monkeypatch):
    start = process.Worker.start

    def interrupted(worker, task, reports):
        start(worker, task, reports)
        signal.raise_signal(signal.SIGINT)

    session = Session(model_of(300, 600, 7))
    with monkeypatch.context() as during:
        during.setattr(process.Worker, "start", interrupted)
        assert session.solve().status == "interrupted"
    assert session.solve().objective == pytest.approx(highs_of(session.model), rel=1e-9)


def test_small_models_are_not_sent():
    assert choose.vertex_work(10_000, choose.VERTEX_ROWS) == np.inf
    assert choose.vertex_work(10_000, 2_000) < choose.vertex_work(10_000, 4_000) < choose.vertex_work(20_000, 4_000)
