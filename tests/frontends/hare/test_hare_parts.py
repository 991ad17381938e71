"""What a warm round rests on: feasible points, a job's best at prices, and rounds that free some jobs only."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from copter import Status
from copter_frontends.policies.hare import HareInstance, Relaxation, RelaxationSolver, TimeGrid, sufficient_horizon_s
from copter_frontends.policies.hare.bound import best_prices
from copter_frontends.policies.hare.repair import repaired
from copter_frontends.policies.hare.standing import Standing
from copter_papers.hare.workload import random_instance, random_jobs

GPUS = {"a": 30, "b": 20, "c": 10}


def relaxation(seed: int, jobs: int = 8, spare: float = 1.5) -> Relaxation:
    instance = random_instance(jobs, {"a": 4, "b": 3}, seed)
    return Relaxation.of(instance, TimeGrid.geometric(0.0, spare * sufficient_horizon_s(instance)))


def best_of_one_job(data: Relaxation, n: int, price: np.ndarray) -> float:
    """min w e + y v over job n's own rows, by HiGHS: what HR12 is the dual of."""
    _, intervals, types = data.shape
    share = np.broadcast_to(data.alpha[n], (intervals, types))
    late = np.append((share * data.start[n][:, None]).ravel(), -1.0)
    rows = np.zeros((intervals, intervals * types + 1))
    for i in range(intervals):
        rows[i, i * types : (i + 1) * types] = 1.0
    found = linprog(
        np.append(price.ravel(), data.weight[n]),
        A_ub=np.vstack((rows, late)),
        b_ub=np.append(data.parallel[n], -data.excess[n]),
        A_eq=np.append(share.ravel(), 0.0)[None, :],
        b_eq=[1.0],
    )
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("seed", range(4))
def test_a_jobs_best_at_prices_is_its_linear_programs_value(seed: int) -> None:
    """HR12 with the best of both its prices: never more than the program's value, and nearly that."""
    data, rng = relaxation(seed), np.random.default_rng(seed)
    price = rng.uniform(0.0, 1.0, data.capacity.shape) * rng.choice([0.0, 1e-3, 1e-1], data.capacity.shape)
    phi, lam, nu = best_prices(data, price, np.full(8, 1e4), 0.5 * data.weight)
    exact = np.array([best_of_one_job(data, n, price) for n in range(8)])
    assert (phi <= exact + 1e-7 * (1 + np.abs(exact))).all()
    assert phi.sum() >= exact.sum() - 1e-3 * (data.constant + exact.sum())
    assert (nu >= 0).all()
    assert (nu <= data.weight).all()
    again, _, _ = best_prices(data, price, lam, nu)
    assert again == pytest.approx(phi, rel=1e-6, abs=1e-6 * data.constant)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.integers(0, 2**31), st.floats(0.0, 3.0))
def test_any_point_is_repaired_to_a_feasible_one(seed: int, draw: int, size: float) -> None:
    data = relaxation(seed, spare=3.0)
    rng = np.random.default_rng(draw)
    near = size * rng.uniform(0.0, 1.0, data.shape) * data.parallel[:, :, None]
    before = near.copy()
    v = repaired(data, near, rng.uniform(0.0, 1.0, 8), least_share=float(rng.choice([0.0, 1e-3])))
    assert v is not None
    assert data.violation(v) <= 1e-9
    assert (near == before).all()


def test_no_room_is_said() -> None:
    data = relaxation(0)
    assert repaired(data.with_capacity(1e-3 * data.capacity), np.zeros(data.shape), data.weight) is None


def test_the_regrets_are_the_gap() -> None:
    """Value less bound is the sum of the jobs' regrets and of prices times room."""
    instance = random_instance(40, GPUS, 1)
    data = Relaxation.of(instance, TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(instance)))
    solver = RelaxationSolver()
    found = solver.solve(instance, TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(instance)))
    stand = Standing.at_prices(data, found.price, np.full(40, 1e4), 0.5 * data.weight)
    stand = stand.with_point(data, found.gpu_seconds)
    idle = ((data.capacity - found.gpu_seconds.sum(axis=0)) * stand.price).sum()
    assert stand.regret(data).sum() + idle == pytest.approx(stand.value - stand.bound, rel=1e-6)
    assert (stand.regret(data) >= -1e-9 * stand.value).all()


def test_a_warm_round_frees_some_jobs_and_ends_where_a_cold_one_does() -> None:
    rng, kinds = np.random.default_rng(5), tuple(GPUS)
    gpus = {kind: 20 * count for kind, count in GPUS.items()}
    jobs = random_jobs(400, kinds, rng)
    instance = HareInstance.of(jobs, gpus)
    grid = TimeGrid.geometric(0.0, 1.5 * sufficient_horizon_s(instance))
    solver, freed = RelaxationSolver(), []
    assert solver.solve(instance, grid).free_jobs == 400
    for step in range(4):
        for place, job in enumerate(random_jobs(4, kinds, rng, first=1000 + 10 * step)):
            jobs[97 * place + step] = job
        instance = HareInstance.of(jobs, gpus)
        warm, cold = solver.solve(instance, grid), RelaxationSolver().solve(instance, grid)
        freed.append(warm.free_jobs)
        assert warm.warm
        assert warm.status is cold.status is Status.OPTIMAL
        assert warm.gap <= 1e-4
        assert warm.violation <= 1e-12
        assert warm.objective == pytest.approx(cold.objective, rel=2e-4)
        assert warm.bound <= cold.objective * (1 + 1e-12)
        assert cold.bound <= warm.objective * (1 + 1e-12)
    assert min(freed) <= 200


def test_a_warm_round_in_no_time_is_feasible_all_the_same() -> None:
    instance = random_instance(200, {kind: 10 * count for kind, count in GPUS.items()}, 3)
    grid = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(instance))
    solver, jobs = RelaxationSolver(), list(instance.jobs)
    solver.solve(instance, grid)
    jobs[0] = dataclasses.replace(jobs[0], id="new", weight=1000.0)
    changed = HareInstance.of(jobs, {kind: 10 * count for kind, count in GPUS.items()})
    found = solver.solve(changed, grid, deadline_s=0.0)
    assert found.status in (Status.TIME_LIMIT, Status.OPTIMAL)
    assert found.violation <= 1e-12
    assert found.bound <= found.objective
    assert solver.solve(changed, grid).gap <= 1e-4


def test_the_same_instance_again_costs_little() -> None:
    instance = random_instance(60, GPUS, 9)
    grid = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(instance))
    solver = RelaxationSolver()
    first, second = solver.solve(instance, grid), solver.solve(instance, grid)
    assert second.iterations <= first.iterations
    assert second.gap <= 1e-4
