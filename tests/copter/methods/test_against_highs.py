"""Hundreds of seeded cluster programs, each against HiGHS and against the independent checker."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest
import scipy.sparse as sp
from judge import assert_optimal, is_improving_ray, is_infeasibility_ray

from copter import LinearProgram, Model, Session, Settings, Solution, Status, solve
from copter.testing import sia_like_model, sia_like_value
from tests.copter.by_highs import highs
from tests.copter.consistent import require_consistent

SEEDS = range(30)
SHAPES = (
    # jobs, GPUs a type, types, capped
    (4, 16, 1, False),
    (6, 8, 3, False),
    (12, 64, 2, False),
    (12, 128, 2, True),
    (25, 32, 3, False),
    (40, 16, 4, True),
    (40, 24, 1, False),
    (60, 40, 7, False),
    (3, 256, 2, False),
)


def negated(model: Model) -> Model:
    """The same model as a minimisation."""
    twin = Model(sense="min", offset=-model.offset)
    for resource in model.resources:
        twin.add_resources(resource, model.count(resource))
    template = twin.add_template(usage_of(model))
    for request in model.requests:
        twin.add_request(request, -model.cost(request), template=template)
    return twin


def usage_of(model: Model) -> dict[Hashable, np.ndarray]:
    """Usage of the one template of a generated model."""
    first = model.to_linear_program().A[: len(model.resources), : len(model.cost(model.requests[0]))].toarray()
    return dict(zip(model.resources, first, strict=True))


def require_vertex(model: Model, solution: Solution) -> None:
    """At most as many requests with a fractional value as resources without a unit to spare (F12)."""
    lp = model.to_linear_program()
    m = len(model.resources)
    spare = lp.row_upper[:m] - (lp.A @ solution.x)[:m]
    tight = int((spare <= 1e-6 * (1.0 + lp.row_upper[:m])).sum())
    fractional = 0
    for request in model.requests:
        values = solution.of(request)
        fractional += bool(np.any((values > 1e-7) & (values < 1 - 1e-7)))
    assert fractional <= tight


def require_same_as_highs(model: Model, solution: Solution, tolerance: float = 1e-6) -> None:
    """Optimal, for HiGHS and for the checker; the bound certified and on its side of the optimum."""
    lp = model.to_linear_program()
    _, best, _, _ = highs(lp)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(best, rel=tolerance, abs=tolerance)
    judged = assert_optimal(lp, solution.x, solution.y, tolerance)
    assert judged.objective == pytest.approx(solution.objective, rel=1e-12, abs=1e-12)
    assert judged.bound == pytest.approx(solution.bound, rel=1e-9, abs=1e-9)
    assert solution.bound_is_certified
    sign = 1.0 if model.sense == "max" else -1.0
    assert sign * (solution.bound - best) >= -1e-9 * (1.0 + abs(best))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cluster_program(shape: tuple[int, int, int, bool], seed: int) -> None:
    jobs, gpus, types, capped = shape
    model = sia_like_model(jobs, gpus, types, seed, capped)
    session = Session(model)
    solution = session.solve()
    require_same_as_highs(model, solution)
    require_vertex(model, solution)
    session._iterate.check_consistent(model.ledger.matrix)
    require_consistent(model.ledger)


@pytest.mark.parametrize("seed", range(30))
def test_minimisation_is_the_mirror_of_maximisation(seed: int) -> None:
    model = sia_like_model(15, 32, 3, 100 + seed)
    twin = negated(model)
    solution, mirrored = Session(model).solve(), Session(twin).solve()
    require_same_as_highs(twin, mirrored)
    require_vertex(twin, mirrored)
    assert mirrored.objective == -solution.objective
    np.testing.assert_array_equal(mirrored.y, -solution.y)
    np.testing.assert_array_equal(mirrored.x, solution.x)


@pytest.mark.parametrize("seed", range(30))
def test_ties(seed: int) -> None:
    """Few kinds of jobs and rounded values: many optimal points, and a vertex among them is wanted."""
    rng = np.random.default_rng(seed)
    model = sia_like_model(1, 64, 3, seed)
    template = model.ledger.matrix.slabs[0].template
    kind, gpus = np.array(template.row, dtype=np.int64), template.coefficient
    kinds = [np.round(sia_like_value(rng, kind, gpus, 3), 2) for _ in range(4)]
    for job in range(60):
        model.add_request(f"tied-{job}", kinds[job % 4], template=template)
    solution = Session(model).solve()
    require_same_as_highs(model, solution)
    require_vertex(model, solution)


@pytest.mark.parametrize("jobs", [1, 2, 200])
def test_far_too_many_gpus_and_far_too_few(jobs: int) -> None:
    for gpus in (8, 2048 if jobs < 3 else 64):
        model = sia_like_model(jobs, gpus, 2, 9)
        solution = Session(model).solve()
        require_same_as_highs(model, solution)
        require_vertex(model, solution)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8, 1e-9])
def test_tolerance_on_request(tolerance: float) -> None:
    for seed in range(5):
        model = sia_like_model(30, 64, 3, seed)
        settings = Settings(tolerance=tolerance, absolute_tolerance=tolerance)
        solution = Session(model, settings).solve()
        require_same_as_highs(model, solution, tolerance)


@pytest.mark.parametrize("seed", range(30))
def test_requests_of_every_kind(seed: int) -> None:
    """Bounds of every sort, limits or none, usage of their own, resources given back (negative usage)."""
    rng = np.random.default_rng(seed)
    model = Model(sense=("max", "min")[seed % 2], offset=float(rng.normal()))
    for k in range(4):
        model.add_resources(k, float(rng.integers(5, 30)))
    for job in range(12):
        n = int(rng.integers(1, 7))
        usage = sp.random_array((4, n), density=0.5, rng=rng, data_sampler=lambda size: rng.normal(1.0, 1.0, size))
        lower = rng.choice([0.0, 0.1, -1.0], n) if job % 3 == 0 else 0.0
        upper = lower + rng.uniform(0.0, 2.0, n) if job % 2 else 3.0
        limit = float(rng.choice([1.0, 2.5, np.inf])) + max(0.0, float(np.sum(lower)))
        model.add_request(
            job, rng.normal(size=n), usage, resources=range(4), limit=limit, lower=lower, upper=upper,
            scale=float(rng.choice([1.0, -2.0])), offset=float(rng.normal()),
        )  # fmt: skip
    session = Session(model)
    require_same_as_highs(model, session.solve())
    session._iterate.check_consistent(model.ledger.matrix)
    require_consistent(model.ledger)


@pytest.mark.parametrize("seed", range(60))
def test_general_program(seed: int) -> None:
    """Random rows, ranges, equalities, free columns: the status and optimum are those of HiGHS."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 12)), int(rng.integers(1, 18))
    a = sp.random_array((m, n), density=0.4, rng=rng, data_sampler=lambda size: np.round(rng.normal(0, 3, size), 1))
    inside = rng.uniform(-1, 2, n)
    activity = a @ inside
    kind = rng.integers(0, 4, m)
    low = np.where(kind == 0, -np.inf, np.where(kind == 1, activity, activity - rng.uniform(0, 2, m)))
    high = np.where(kind == 0, activity + 1, np.where(kind == 1, activity, activity + rng.uniform(0, 2, m)))
    col_low = np.where(rng.random(n) < 0.2, -np.inf, inside - rng.uniform(0, 2, n))
    col_high = np.where(rng.random(n) < 0.3, np.inf, inside + rng.uniform(0, 2, n))
    if seed % 6 == 0:
        high = np.where(kind == 0, activity - 30.0, high)
    lp = LinearProgram(rng.normal(size=n), a, low, high, col_low, col_high, sense=("min", "max")[seed % 2])
    status, best, _, _ = highs(lp)
    solution = solve(lp)
    if solution.status is Status.OPTIMAL:
        assert "kOptimal" in str(status)
        assert solution.objective == pytest.approx(best, rel=3e-6, abs=3e-6)
        assert_optimal(lp, solution.x, solution.y)
    elif solution.status is Status.PRIMAL_INFEASIBLE:
        assert "Infeasible" in str(status)
        assert is_infeasibility_ray(lp, solution.ray)
    else:
        assert solution.status is Status.DUAL_INFEASIBLE
        assert "kUnbounded" in str(status) or "kInfeasible" in str(status)
        assert is_improving_ray(lp, solution.ray)
