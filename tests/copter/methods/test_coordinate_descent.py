"""The thesis's method (4.3.2): sweeps over all columns, the active ones, warm x and multipliers, against HiGHS."""

from __future__ import annotations

import numpy as np
import pytest

from copter import LinearProgram, Model, PrivateRows, Session, Settings, Status, solve
from copter.methods.proximal.coordinate_descent import all_columns
from copter.methods.proximal.sweep import Sweep
from copter.methods.proximal.working_set import WorkingSet
from copter.runtime.errors import SettingsError
from copter.runtime.settings import Internals
from tests.copter.by_highs import highs
from tests.copter.twins import Group, flat

DESCENT = Settings(method="coordinate_descent", tolerance=1e-4, absolute_tolerance=1e-3, threads=1)


def add_job(model: Model, job: int, rng: np.random.Generator) -> None:
    """A job that takes 1, 2 or 4 GPUs of one of two types."""
    gpus, kind = np.array([1.0, 2.0, 4.0] * 2), np.repeat([0, 1], 3)
    value = rng.uniform(0.5, 2.0, 2)[kind] * gpus ** rng.uniform(0.3, 0.9)
    model.add_request(job, value, usage={"ab"[k]: np.where(kind == k, gpus, 0.0) for k in (0, 1)})


def job_model(rng: np.random.Generator, jobs: int = 40) -> Model:
    """Jobs that want more GPUs than there are."""
    model = Model("max")
    model.add_resources("a", 24)
    model.add_resources("b", 16)
    for job in range(jobs):
        add_job(model, job, rng)
    return model


def test_a_program_worked_out_by_hand() -> None:
    """max 3a + 2b with a + b <= 4, a + 3b <= 6, 0 <= a, b <= 3: (3, 1), 11, and duals 2 and 0."""
    lp = LinearProgram([3.0, 2.0], [[1.0, 1.0], [1.0, 3.0]], row_upper=[4.0, 6.0], col_upper=3.0, sense="max")
    found = solve(lp, DESCENT)
    assert found.status is Status.OPTIMAL
    assert found.method == "coordinate_descent"
    assert found.objective == pytest.approx(11.0, rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_rounds_of_jobs_have_highs_objective_and_a_bound_that_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = job_model(rng)
    session = Session(model, DESCENT)
    for number in range(4):
        found = session.solve()
        best = highs(model.to_linear_program())[1]
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(best, rel=3e-4)
        assert found.bound >= best - 1e-9 * abs(best)
        model.remove_requests([2 * number, 2 * number + 1])
        add_job(model, 1000 + number, rng)
        model.set_count("a", 23 - number)


def test_a_warm_round_takes_fewer_sweeps_than_a_cold_one() -> None:
    rng = np.random.default_rng(3)
    model = job_model(rng, 120)
    session = Session(model, DESCENT)
    session.solve()
    add_job(model, 500, rng)
    warm, cold = session.solve(), Session(model, DESCENT).solve()
    assert warm.objective == pytest.approx(cold.objective, rel=3e-4)
    assert warm.iterations < cold.iterations


def test_every_column_of_every_request_is_swept_and_kept_values_stay() -> None:
    model = job_model(np.random.default_rng(1), 5)
    matrix, ws = model.ledger.matrix, WorkingSet()
    all_columns(matrix, ws)
    assert ws.size == 30
    ws.x[7] = 0.5
    model.remove_requests([0])
    add_job(model, 9, np.random.default_rng(2))
    ws.refresh(matrix)
    all_columns(matrix, ws)
    assert ws.size == 30
    assert ws.x[ws.x > 0.0].tolist() == [0.5]


def test_active_sweeps_move_only_what_the_whole_sweep_has_kept() -> None:
    """Kept: what is above its bound, and what is within the margin of the cheapest. The dear third column is not."""
    group = Group(np.array([-2.0, -1.9, 5.0]), np.zeros(3), np.ones(3), 1.0, np.zeros((1, 3)), np.zeros(3))
    problem, x = flat([group]), np.zeros(3)
    passes = Sweep(problem.columns, np.array([-np.inf]), np.array([np.inf]), np.ones(1), group.center, 10.0, x)
    passes.begin(np.zeros(1))
    passes.sweep_and_keep(0.5)
    x[2] = 0.25  # nobody looks at it again before the next sweep over all
    passes.sweep_active()
    assert x[2] == 0.25
    passes.sweep_and_keep(0.5)
    passes.sweep_active()
    np.testing.assert_allclose(x, [1.0, 0.0, 0.0], atol=1e-12)


def test_a_program_without_an_optimum_ends_at_a_limit_without_a_ray() -> None:
    lp = LinearProgram([1.0], [[1.0]], row_lower=2.0, row_upper=np.inf, col_upper=1.0)
    found = solve(lp, Settings(method="coordinate_descent", internals=Internals(max_pricing_passes=20)))
    assert (found.status, found.ray) == (Status.ITERATION_LIMIT, None)


def test_private_rows_are_refused() -> None:
    model = Model("max")
    model.add_resources("a", 1)
    model.add_request(0, [1.0, 1.0], usage={"a": [1.0, 1.0]}, private_rows=PrivateRows([[1.0, 1.0]], 0.0, 1.0))
    with pytest.raises(SettingsError, match=r"coordinate_descent.*private rows"):
        Session(model, DESCENT).solve()
