"""The relaxation is a lower bound: of the optimum, of list schedules, and at any prices."""

import dataclasses

import numpy as np
import pytest
from hare_exhaustive import optimum, small_instance

from copter import LinearProgram, Status
from copter_frontends.hare import (
    HareInstance,
    HareScheduler,
    Relaxation,
    RelaxationSolver,
    TimeGrid,
    sufficient_horizon_s,
)
from copter_frontends.hare.bound import certified_bound
from copter_frontends.hare.instance import least_round_s
from copter_frontends.hare.workload import random_instance


def highs_value(program: LinearProgram) -> float:
    """Optimal value by HiGHS."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    found = milp(
        program.c,
        constraints=LinearConstraint(program.A, program.row_lower, program.row_upper),
        bounds=Bounds(program.col_lower, program.col_upper),
    )
    assert found.status == 0
    return float(found.fun) + program.offset


@pytest.mark.parametrize("block", range(10))
def test_the_bound_is_at_most_the_exhaustive_optimum(block: int) -> None:
    """250 instances: the certified bound is at most the best of all schedules, which is at most the list schedule."""
    ratios = []
    for seed in range(25 * block, 25 * block + 25):
        instance = small_instance(seed)
        found = HareScheduler(growth=1.25).schedule(instance)
        best = optimum(instance)
        assert found.relaxation.bound <= best * (1 + 1e-9), f"seed {seed}"
        assert found.schedule.objective >= best * (1 - 1e-9), f"seed {seed}"
        ratios.append(found.relaxation.bound / best)
    assert np.mean(ratios) > 0.6


@pytest.mark.parametrize("seed", range(6))
def test_the_value_is_that_of_highs(seed: int) -> None:
    instance = random_instance(12, {"a": 5, "b": 3, "c": 9}, seed)
    grid = TimeGrid.geometric(0.0, sufficient_horizon_s(instance))
    found = RelaxationSolver(tolerance=1e-7).solve(instance, grid)
    value = highs_value(Relaxation.of(instance, grid).program())
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(value, rel=1e-6)
    assert found.bound <= value * (1 + 1e-7)
    assert found.bound == pytest.approx(value, rel=1e-6)
    assert found.violation <= 1e-6
    assert 5 <= found.iterations <= 60


def test_any_prices_and_any_guesses_prove_a_bound() -> None:
    rng = np.random.default_rng(0)
    instance = random_instance(8, {"a": 4, "b": 4}, 3)
    relaxation = Relaxation.of(instance, TimeGrid.geometric(0.0, sufficient_horizon_s(instance)))
    value = highs_value(relaxation.program())
    for size in (0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0):
        price = size * rng.uniform(-0.5, 1.0, relaxation.capacity.shape)
        lam, nu = rng.normal(0, 1e4, instance.n_jobs), rng.uniform(-1, 10, instance.n_jobs)
        assert certified_bound(relaxation, price, lam, nu) <= value * (1 + 1e-9)
    free = certified_bound(relaxation, np.zeros(relaxation.capacity.shape), np.zeros(8), np.zeros(8))
    assert free == pytest.approx(relaxation.constant, rel=1e-12)


def test_a_warm_solve_finds_what_a_cold_one_finds() -> None:
    base, fresh = random_instance(40, {"a": 30, "b": 20, "c": 10}, 1), random_instance(40, {"a": 1, "b": 1, "c": 1}, 2)
    grid = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(base))
    warm, jobs = RelaxationSolver(tolerance=1e-6), list(base.jobs)
    assert not warm.solve(base, grid).warm
    went_on = 0
    for step in range(5):
        del jobs[step]
        jobs += [dataclasses.replace(job, id=f"{job.id}-{step}") for job in fresh.jobs[2 * step : 2 * step + 2]]
        instance = HareInstance.of(jobs, {"a": 30, "b": 20 + step, "c": 10})
        one, two = warm.solve(instance, grid), RelaxationSolver(tolerance=1e-6).solve(instance, grid)
        went_on += one.warm
        assert one.status is two.status is Status.OPTIMAL
        assert one.objective == pytest.approx(two.objective, rel=3e-6)
        assert one.bound <= two.objective * (1 + 1e-9)
    assert went_on >= 3


def test_a_rolled_grid_goes_on_warm() -> None:
    instance = random_instance(30, {"a": 10, "b": 10}, 4)
    grid = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(instance))
    solver = RelaxationSolver(tolerance=1e-5)
    solver.solve(instance, grid)
    later = grid.rolled(0.01 * sufficient_horizon_s(instance))
    found = solver.solve(instance, later)
    assert found.warm
    assert found.objective == pytest.approx(RelaxationSolver(1e-5).solve(instance, later).objective, rel=3e-5)
    solver.reset()
    assert not solver.solve(instance, later).warm


def test_the_same_solve_again_has_the_same_bits() -> None:
    """As for every session of the engine: for a given number of threads."""
    instance = random_instance(50, {"a": 10, "b": 20}, 5)
    grid = TimeGrid.geometric(0.0, sufficient_horizon_s(instance))
    one, two, four = (RelaxationSolver(threads=k).solve(instance, grid) for k in (1, 1, 4))
    assert one.objective == two.objective
    assert (one.gpu_seconds == two.gpu_seconds).all()
    assert four.objective == pytest.approx(one.objective, rel=1e-4)


def test_progress_is_an_edit_of_bounds() -> None:
    """Jobs that get on inside an interval keep their columns; what is left of their work is a bound."""
    instance = random_instance(12, {"a": 5, "b": 3, "c": 9}, 3)
    jobs = [dataclasses.replace(job, arrival_s=0.0) for job in instance.jobs]
    grid = TimeGrid.geometric(0.0, 1.5 * sufficient_horizon_s(instance))
    solver = RelaxationSolver(tolerance=1e-6)
    solver.solve(HareInstance.of(jobs, {"a": 5, "b": 3, "c": 9}), grid)
    further = [dataclasses.replace(job, rounds=max(job.rounds * 9 // 10, 1), weight=job.weight + 1.0) for job in jobs]
    instance = HareInstance.of(further, {"a": 5, "b": 3, "c": 9})
    found = solver.solve(instance, grid)
    assert (found.edits.added, found.edits.removed, found.edits.changed, found.edits.requests) == (0, 0, 12, 12)
    assert found.objective == pytest.approx(highs_value(Relaxation.of(instance, grid).program()), rel=1e-5)


def test_the_clock_moves_and_only_what_it_passes_is_edited() -> None:
    """Elapsed resources go, the grid's later edges keep theirs, and the answer is that of a fresh solve."""
    instance = random_instance(40, {"a": 10, "b": 10}, 4)
    grid = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(instance))
    solver = RelaxationSolver()
    solver.solve(instance, grid)
    assert len(solver.engine.model.resources) == 2 * grid.intervals
    for step in range(1, 4):
        later = grid.rolled(step * 0.02 * sufficient_horizon_s(instance))
        found, fresh = solver.solve(instance, later), RelaxationSolver().solve(instance, later)
        assert found.warm
        assert found.status is fresh.status is Status.OPTIMAL
        assert found.bound <= fresh.objective * (1 + 1e-12)
        assert fresh.bound <= found.objective * (1 + 1e-12)
        edges = {edge for _, edge in solver.engine.model.resources}
        assert edges == set(later.right.tolist())


def test_a_deadline_gives_a_certified_bound_too() -> None:
    instance = random_instance(50, {"a": 10, "b": 20}, 6)
    grid = TimeGrid.geometric(0.0, sufficient_horizon_s(instance))
    cut = RelaxationSolver().solve(instance, grid, deadline_s=0.0)
    assert cut.status is Status.TIME_LIMIT
    assert cut.bound <= RelaxationSolver(1e-6).solve(instance, grid).objective


def test_the_least_round_counts_gpus() -> None:
    """Five tasks on two fast GPUs (1 s) and one slow (2.5 s), 0.1 s of synchronisation: 2 + 2 + 1 by 2.6 s."""
    train, sync = np.array([[1.0, 2.5]]), np.array([[0.1, 0.1]])
    assert least_round_s(train, sync, np.array([5]), np.array([2, 1]))[0] == pytest.approx(2.6)
    assert least_round_s(train, sync, np.array([2]), np.array([2, 1]))[0] == pytest.approx(1.1)


def test_the_grid_keeps_its_later_edges_as_it_rolls() -> None:
    grid = TimeGrid.geometric(0.0, 7500.0)
    assert grid.intervals == 23
    assert TimeGrid.geometric(0.0, 7500.0, 1.25).intervals == 40
    later = grid.rolled(100.0)
    assert later.edges[0] == 100.0
    assert np.isin(grid.edges[grid.edges > 100.0], later.edges).all()
    assert later.intervals > (grid.edges > 100.0).sum()
    assert grid.rolled(100.0, resplit=False).intervals == (grid.edges > 100.0).sum()
    assert grid.overlap(later)[0].sum() == 0.0
    assert later.overlap(grid).sum(axis=1) == pytest.approx(np.ones(later.intervals))
    assert grid.until(9000.0).edges[-1] >= 9000.0
