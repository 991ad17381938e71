"""The relaxation is a lower bound: of the optimum, of list schedules, and at any prices."""

import dataclasses
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hare_exhaustive import optimum, small_instance

from copter import LinearProgram, Session, Settings, Status, verify
from copter.session.playback import Playback
from copter.storage.tape import TapeReader, recorded
from copter.storage.tape.layout import BASE, ROUND
from copter_frontends.policies.hare import (
    HareInstance,
    HareJob,
    HareScheduler,
    Relaxation,
    RelaxationSolver,
    TimeGrid,
    sufficient_horizon_s,
)
from copter_frontends.policies.hare.bound import certified_bound
from copter_frontends.policies.hare.instance import least_round_s
from copter_frontends.vocabulary import InvalidJobError
from copter_papers.hare.workload import random_instance


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


def test_requests_added_and_removed_are_those_of_jobs_that_come_and_go() -> None:
    """In a large program too: a job whose columns change with the clock or the prices is edited in place."""
    gpus = {"a": 10, "b": 10, "c": 10}
    jobs = list(random_instance(160, gpus, 4).jobs)
    grid = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(HareInstance.of(jobs, gpus)))
    solver, known = RelaxationSolver(), set[str]()
    changed, models = 0, set[int]()
    for step in range(5):
        here = jobs[4 * step : 120 + 6 * step]  # four have gone, six have come
        instance = HareInstance.of(here, gpus)
        now = step * 0.02 * sufficient_horizon_s(instance)
        found = solver.solve(instance, grid.rolled(now) if step else grid)
        names = {job.id for job in here}
        models.add(id(solver.engine.model))
        assert found.passes > 0
        assert (found.edits.added, found.edits.removed) == (len(names - known), len(known - names))
        assert set(solver.engine.model.requests) == names
        assert found.edits.requests == len(names)
        changed, known = changed + (found.edits.changed if step else 0), names
    assert changed > 0
    assert len(models) == 1
    fresh = RelaxationSolver().solve(instance, grid.rolled(now))
    assert found.bound <= fresh.objective * (1 + 1e-12)
    assert fresh.bound <= found.objective * (1 + 1e-12)


def test_a_tape_of_a_large_program_adds_and_removes_each_job_once(tmp_path: Path) -> None:
    """What is on the tape: one addition and one removal per job at most, everything else in place; and HiGHS agrees."""
    gpus = {"a": 10, "b": 10, "c": 10}
    jobs = list(random_instance(150, gpus, 7).jobs)
    grid = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(HareInstance.of(jobs, gpus)))
    solver = RelaxationSolver()
    with recorded(tmp_path / "tape"):
        for step in range(4):
            instance = HareInstance.of(jobs[5 * step : 130 + 5 * step], gpus)
            solver.solve(instance, grid.rolled(0.02 * step * sufficient_horizon_s(instance)) if step else grid)
    added, removed, columns = [], [], 0
    for record in TapeReader(tmp_path / "tape"):
        added += record.value()["model"]["requests"] if record.kind == BASE else []
        for kind, content in record.value()[:-1] if record.kind == ROUND else ():
            for name, arguments in content if kind == "edit" else ():
                added += arguments[0] if name == "add_own" else []
                removed += arguments[0] if name == "remove" else []
                columns += name == "columns"
    assert sorted(added) == sorted({job.id for job in jobs[:145]})
    assert sorted(removed) == sorted({job.id for job in jobs[:15]})
    assert columns > 0
    for played in Playback(tmp_path / "tape"):
        program = played.session.model.to_linear_program()
        sharp = Session(played.session.model, Settings(tolerance=1e-7)).solve().objective
        assert sharp == pytest.approx(highs_value(program), rel=1e-5)
    assert verify.main([str(tmp_path / "tape")]) == 0


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


def some_instance(seed: int, most: int = 9) -> HareInstance:
    """Jobs that arrive at different times, some of which one type cannot run, and that synchronise."""
    base, rng = random_instance(9, {"a": 5, "b": 3, "c": 9}, seed), np.random.default_rng(seed)
    jobs = []
    for at, job in enumerate(base.jobs):
        train = {kind: seconds for kind, seconds in job.train_s.items() if at % 3 or kind != "b"}
        sync = {kind: float(rng.uniform(0.0, 2.0)) for kind in train}
        jobs.append(
            dataclasses.replace(
                job, train_s=train, sync_s=sync, arrival_s=float(rng.uniform(0.0, 300.0)), weight=1.0 + at
            )
        )
    return HareInstance.of(jobs, {kind: min(count, most) for kind, count in (("a", 5), ("b", 3), ("c", 9))})


@pytest.mark.parametrize("seed", range(4))
def test_the_program_s_numbers_are_those_of_the_page(seed: int) -> None:
    instance = some_instance(seed)
    grid = TimeGrid.geometric(0.0, sufficient_horizon_s(instance))
    relaxation = Relaxation.of(instance, grid)
    edges, ell = grid.edges.tolist(), instance.least_round_s().tolist()
    program, point = relaxation.program(), np.random.default_rng(seed).uniform(0.0, 9.0, relaxation.shape)
    used: dict[tuple[object, ...], float] = {}
    for n, job in enumerate(instance.jobs):
        sync = [job.sync_s[kind] for kind in job.train_s]
        train = list(job.train_s.values())
        half = min(s + 0.5 * p for p, s in zip(train, sync, strict=True))
        shift = 0.5 * (job.rounds - 1) * ell[n] + half
        mean = job.arrival_s + 0.5 * (job.rounds - 1) * ell[n] + 0.5 * min(train)
        floor = max(job.arrival_s + job.rounds * ell[n], mean + shift)
        assert (relaxation.floor[n], relaxation.excess[n]) == (pytest.approx(floor), pytest.approx(shift - floor))
        busy = 0.0
        for i, (begin, end) in enumerate(pairwise(edges)):
            start = max(begin, job.arrival_s)
            assert relaxation.start[n, i] == start
            assert relaxation.parallel[n, i] == pytest.approx(job.tasks * max(end - start, 0.0))
            for g, kind in enumerate(instance.gpu_types):
                assert relaxation.capacity[i, g] == pytest.approx(instance.gpus[g] * (end - begin))
                share = 1.0 / (job.rounds * job.tasks * job.train_s[kind]) if kind in job.train_s else 0.0
                assert relaxation.alpha[n, g] == pytest.approx(share)
                assert relaxation.usable[n, i, g] == (share > 0.0 and end > job.arrival_s)
                if not relaxation.usable[n, i, g]:
                    point[n, i, g] = 0.0
                v = point[n, i, g]
                busy += v * share * start
                for row, amount in ((("c", i, g), v), (("p", n, i), v), (("w", n), v * share)):
                    used[row] = used.get(row, 0.0) + amount
        assert relaxation.mean_busy_s(point)[n] == pytest.approx(busy)
        excess = max(shift - floor + busy, 0.0)
        assert relaxation.completion_s(point)[n] == pytest.approx(floor + excess)
        assert relaxation.first[n] == sum(end <= job.arrival_s for end in edges[1:])
    over = [used["c", i, g] / c - 1.0 for (i, g), c in np.ndenumerate(relaxation.capacity)]
    over += [used["p", n, i] / p - 1.0 for (n, i), p in np.ndenumerate(relaxation.parallel) if p > 0]
    over += [abs(used["w", n] - 1.0) for n in range(instance.n_jobs)]
    assert relaxation.violation(point) == pytest.approx(max(over))
    negative = -1e6 * point
    work = max(abs(relaxation_work(relaxation, negative) - 1.0))
    assert relaxation.violation(negative) == pytest.approx(max(1e6 * point.max(), work))
    # The program has the same rows.
    excess = np.arange(1.0, 1.0 + instance.n_jobs)
    x = np.concatenate((point[relaxation.usable], excess))
    sums, rows = program.A @ x, []
    rows += [(used["c", i, g], -np.inf, c) for (i, g), c in np.ndenumerate(relaxation.capacity)]
    for n in range(instance.n_jobs):
        live = range(int(relaxation.first[n]), relaxation.shape[1])
        rows += [(used["p", n, i], -np.inf, relaxation.parallel[n, i]) for i in live]
        rows.append((used["w", n], 1.0, 1.0))
        rows.append((excess[n] - relaxation.mean_busy_s(point)[n], relaxation.excess[n], np.inf))
    assert sums == pytest.approx([row[0] for row in rows])
    assert program.row_lower.tolist() == [row[1] for row in rows]
    assert program.row_upper == pytest.approx([row[2] for row in rows])
    assert program.c.tolist() == [0.0] * int(relaxation.usable.sum()) + instance.weight.tolist()
    assert program.offset == pytest.approx(sum(w * f for w, f in zip(instance.weight, relaxation.floor, strict=True)))
    assert relaxation.variables == program.shape[1]


def relaxation_work(relaxation: Relaxation, point: np.ndarray) -> np.ndarray:
    """Sum of alpha v of every job."""
    return np.array([sum((each * relaxation.alpha[n]).sum() for each in point[n]) for n in range(len(point))])


def test_units_parts_and_other_capacities_are_the_same_program() -> None:
    instance = some_instance(1, most=1)
    relaxation = Relaxation.of(instance, TimeGrid.geometric(0.0, sufficient_horizon_s(instance)))
    value = highs_value(relaxation.program())
    assert highs_value(relaxation.in_units(60.0, 4.0).program()) * 240.0 == pytest.approx(value)
    assert highs_value(relaxation.with_capacity(2.0 * relaxation.capacity).program()) < value
    some = np.array([1, 4, 6])
    part = relaxation.of_jobs(some)
    assert part.shape == (3, *relaxation.capacity.shape)
    assert part.floor.tolist() == relaxation.floor[some].tolist()
    assert part.alpha.tolist() == relaxation.alpha[some].tolist()
    assert highs_value(part.program()) < value


def test_a_horizon_is_what_the_busiest_type_and_the_longest_job_take_after_the_last_arrival() -> None:
    """Each job on its fastest type: a 10 tasks of 2 s on two GPUs, b 3 of 5 s on one."""
    jobs = [
        HareJob("a", 5, 2, {"x": 2.0, "y": 3.0}, arrival_s=7.0),
        HareJob("b", 3, 1, {"x": 9.0, "y": 5.0}, arrival_s=4.0),
    ]
    instance = HareInstance.of(jobs, {"x": 2, "y": 1})
    assert sufficient_horizon_s(instance) == 7.0 + 15.0 + 15.0
    assert sufficient_horizon_s(instance, 100.0) == 130.0
    assert sufficient_horizon_s(HareInstance.of([], {"x": 2}), 3.0) == 4.0
    with pytest.raises(InvalidJobError, match="'a': it arrives at 7 s, after the horizon of 7 s"):
        Relaxation.of(instance, TimeGrid.geometric(0.0, 7.0))
