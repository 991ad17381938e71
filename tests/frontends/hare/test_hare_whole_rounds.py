"""Hare's rounds at scale: no program where GPUs are plenty, rows that follow edits, compiled passes, longer chunks."""

from __future__ import annotations

import dataclasses
import random
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter.runtime.errors import InvalidDataError, SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hare import HareInstance, HareJob, TimeGrid
from copter_frontends.policies.hare.bound import job_bounds
from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.columns import FEW
from copter_frontends.policies.hare.formulation import Relaxation, sufficient_horizon_s
from copter_frontends.policies.hare.instance import least_round_s
from copter_frontends.policies.hare.list_kernel import BLOCK, list_schedule
from copter_frontends.policies.hare.repair import fill, shrink
from copter_frontends.policies.hare.round_kernel import kept_or_wanted, least_rounds
from copter_frontends.policies.hare.shim import middle_order, schedule_in_order
from copter_frontends.policies.hare.solver import RelaxationSolver
from copter_frontends.policies.hare.standing import Standing
from copter_frontends.policies.hare.task_book import TaskBook
from copter_frontends.policies.hare.task_policy import FAR_CHUNKS, WORTH, HareTaskPolicy, smith_means
from copter_frontends.policies.hare.task_times import JobTimes
from copter_frontends.policies.hare.task_training import TasksGoodput
from copter_frontends.vocabulary import (
    Allocation,
    Cluster,
    DuplicateJobError,
    InvalidJobError,
    Job,
    UnknownJobError,
    configurations_of,
)
from copter_frontends.vocabulary.named_clusters import scaled_cluster

GPUS = {"a": 3, "b": 5, "c": 2}


def drawn_instance(seed: int, jobs: int = 12, gpus: dict[str, int] | None = None) -> HareInstance:
    rng = random.Random(seed)
    made = []
    for n in range(jobs):
        kinds = rng.sample(sorted(GPUS), rng.randint(1, 3))
        train = {kind: rng.uniform(0.5, 4.0) for kind in kinds}
        sync = {kind: rng.choice([0.0, rng.uniform(0.0, 1.0)]) for kind in kinds}
        made.append(HareJob(f"j{n}", rng.randint(1, 60), rng.randint(1, 9), train, sync, rng.choice([1.0, 1.0, 5.0])))
    return HareInstance.of(made, gpus or GPUS)


# Programs that need not be solved ---------------------------------------------------------------------------------


def test_where_gpus_are_plenty_no_program_is_solved_from_round_to_round() -> None:
    instance = drawn_instance(1, 60, dict.fromkeys(GPUS, 500))
    grid = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(instance))
    solver = RelaxationSolver()
    for now in (0.0, 1.0, 3.0):
        later = grid.rolled(now) if now else grid
        moved = [dataclasses.replace(job, arrival_s=now) for job in instance.jobs]
        found = solver.solve(HareInstance.of(moved, dict.fromkeys(GPUS, 500)), later)
        assert found.passes == 0
        assert found.edits.added == found.edits.removed == 0
        assert found.gap <= 1e-4
        assert found.violation <= 1e-9
        assert not found.price.any()


@given(st.integers(0, 10_000), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_the_relaxation_lies_between_two_numbers_that_are_known_without_it(seed: int, gpus: int) -> None:
    instance = drawn_instance(seed, 15, dict.fromkeys(GPUS, gpus))
    grid = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(instance))
    low, high = RelaxationSolver().range_of(instance, grid)
    found = RelaxationSolver().solve(instance, grid)
    assert low <= found.bound * (1 + 1e-12)
    assert found.bound <= high * (1 + 1e-9)
    assert found.objective <= high * (1 + 1e-3)


def test_without_prices_a_kept_point_that_is_near_enough_needs_no_program() -> None:
    instance = drawn_instance(2, 60, dict.fromkeys(GPUS, 8))
    grid, solver = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(instance)), RelaxationSolver()
    found = solver.solve(instance, grid)
    assert found.passes > 0
    kept = solver._kept
    assert kept is not None
    bound = Relaxation.of(instance, grid).constant
    standing = Standing.at_prices(
        Relaxation.of(instance, grid).in_units(solver._unit_s, solver._unit_weight),
        np.zeros_like(found.price),
        kept.standing.lam,
        kept.standing.nu,
    )
    kept.standing = dataclasses.replace(standing, v=kept.standing.v, value=kept.standing.value)
    far = (found.objective - bound) / found.objective
    again = solver.solve(instance, grid, tolerance=1.001 * far)
    assert again.passes == 0
    assert again.warm
    assert again.objective == pytest.approx(found.objective)
    assert again.bound == pytest.approx(bound)


def test_a_grid_without_room_says_nothing_about_the_upper_number() -> None:
    instance = drawn_instance(3, 40, dict.fromkeys(GPUS, 1))
    low, high = RelaxationSolver().range_of(instance, TimeGrid.geometric(0.0, 5.0))
    assert (low > 0.0, high) == (True, np.inf)
    none = HareInstance.of([], dict.fromkeys(GPUS, 1))
    assert RelaxationSolver().range_of(none, TimeGrid.geometric(0.0, 5.0)) == (0.0, 0.0)


def test_a_solve_ends_once_what_is_left_is_within_a_larger_tolerance() -> None:
    instance = drawn_instance(1, 60, dict.fromkeys(GPUS, 2))
    grid = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(instance))
    exact, loose = (RelaxationSolver().solve(instance, grid, tolerance=each) for each in (0.0, 0.05))
    assert exact.gap <= 1e-4 < loose.gap <= 0.05
    assert loose.passes <= exact.passes
    assert loose.iterations < exact.iterations
    assert loose.bound <= exact.bound * (1 + 1e-9)


def test_where_gpus_are_scarce_the_program_is_solved_after_rounds_without_prices() -> None:
    plenty, scarce = (dict.fromkeys(GPUS, count) for count in (500, 2))
    instance = drawn_instance(2, 40, plenty)
    solver = RelaxationSolver()
    grid = TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(HareInstance.of(instance.jobs, scarce)))
    assert solver.solve(instance, grid).passes == 0
    found = solver.solve(HareInstance.of(instance.jobs, scarce), grid)
    fresh = RelaxationSolver().solve(HareInstance.of(instance.jobs, scarce), grid)
    assert found.passes > 0
    assert found.price.any()
    assert found.gap <= 1e-4
    assert found.bound <= fresh.objective * (1 + 1e-12)
    assert fresh.bound <= found.objective * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_latest_means_end_no_job_later(seed: int) -> None:
    """HR25: as late as HR8 lets a job work and still end at C_n."""
    instance = drawn_instance(seed)
    grid = TimeGrid.geometric(0.0, sufficient_horizon_s(instance))
    data, found = Relaxation.of(instance, grid), RelaxationSolver().solve(instance, grid)
    assert (found.latest_mean_s >= found.mean_busy_s).all()
    ends = data.floor + np.maximum(data.excess + found.latest_mean_s, 0.0)
    assert ends == pytest.approx(found.completion_s)
    later = data.floor + np.maximum(data.excess + found.latest_mean_s + 1.0, 0.0)
    assert later == pytest.approx(found.completion_s + 1.0)  # a second later is too late for every job
    assert found.completion_s == pytest.approx(data.completion_s(found.gpu_seconds))


# Chunks -----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 40)), min_size=1, max_size=8), st.integers(1, 6)
)  # fmt: skip
def test_near_chunks_are_short_and_later_ones_twice_as_long_each(pairs: list[tuple[int, int]], near: int) -> None:
    jobs = [HareJob(f"j{n}", rounds, 1, {"a": 1.0}) for n, (rounds, _) in enumerate(pairs)]
    instance = HareInstance.of(jobs, {"a": 1})
    size = np.minimum([most for _, most in pairs], instance.rounds)
    chunks = Chunks.growing(instance, size, near)
    for n, (rounds, _) in enumerate(pairs):
        own = slice(chunks.first[n], chunks.first[n + 1])
        each = chunks.rounds[own].tolist()
        assert (chunks.job[own] == n).all()
        assert sum(each) == rounds
        assert chunks.first_round[own].tolist() == [sum(each[:k]) for k in range(len(each))]
        expected = [int(size[n])] * near + [int(size[n]) * 2**k for k in range(1, len(each) + 1)]
        assert each[:-1] == expected[: len(each) - 1]
        assert 0 < each[-1] <= expected[len(each) - 1]


def test_longer_chunks_are_no_better_than_the_bound() -> None:
    instance = drawn_instance(5, 30)
    grid = TimeGrid.geometric(0.0, sufficient_horizon_s(instance))
    found = RelaxationSolver().solve(instance, grid)
    chunks = Chunks.growing(instance, np.minimum(2, instance.rounds), 2)
    plan = schedule_in_order(instance, chunks, middle_order(instance, chunks, found.latest_mean_s))
    assert len(chunks) < int(instance.rounds.sum()) // 2
    assert plan.objective >= found.bound * (1 - 1e-12)


# Compiled passes --------------------------------------------------------------------------------------------------


def plain_least_round_s(train: np.ndarray, sync: np.ndarray, tasks: np.ndarray, gpus: np.ndarray) -> np.ndarray:
    """HR2 by bisection over all jobs at once, in NumPy."""
    fastest = np.min(train + sync, axis=1)
    low, high = fastest.copy(), np.min(train * tasks[:, None] + sync, axis=1)
    usable = np.isfinite(train)
    per_task = np.where(usable, train, 1.0)

    def fits(seconds: np.ndarray) -> np.ndarray:
        count = np.floor((seconds[:, None] - sync) / per_task * (1 + 1e-12))
        return np.asarray((np.where(usable, np.maximum(count, 0.0), 0.0) * gpus).sum(axis=1) >= tasks)

    at_once = fits(low)
    for _ in range(60):
        middle = 0.5 * (low + high)
        enough = fits(middle)
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return np.where(at_once, fastest, low)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_round_is_that_of_the_plain_bisection(seed: int) -> None:
    instance = drawn_instance(seed, 40)
    rows = np.random.default_rng(seed).integers(0, 3, (40, 3))
    rows[np.arange(40), np.argmin(instance.train_s, axis=1)] += 1
    for gpus in (instance.gpus, rows):
        usable = np.where(np.atleast_2d(gpus) > 0, instance.train_s, np.inf)
        mine = least_round_s(usable, instance.sync_s, instance.tasks, gpus)
        assert (mine == plain_least_round_s(usable, instance.sync_s, instance.tasks, gpus)).all()


@pytest.mark.parametrize("seed", range(6))
def test_gpus_kept_and_wanted_are_those_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = drawn_instance(seed, 15)
    held, wanted = (rng.integers(0, 2, (15, 3)) for _ in range(2))
    stays, order, left = rng.integers(0, 2, 15), rng.permutation(15), instance.gpus.copy()
    mine, rest = np.zeros_like(wanted), left.copy()
    kept_or_wanted(order, stays, held, wanted, instance.tasks, instance.train_s, rest, mine)
    given: dict[int, list[int]] = {}
    for n in order.tolist():
        keeps = stays[n] and (held[n] <= left).all()
        given[n] = held[n].tolist() if keeps else np.minimum(wanted[n], left).tolist()
        left -= given[n]
    for n in order.tolist():
        if not any(given[n]):
            want = int(instance.tasks[n])
            for g in np.argsort(instance.train_s[n], kind="stable").tolist():
                take = min(want, int(left[g])) if np.isfinite(instance.train_s[n, g]) else 0
                given[n][g], want = take, want - take
                left[g] -= take
    assert mine.tolist() == [given[n] for n in range(15)]
    assert rest.tolist() == left.tolist()


def plain_list_schedule(instance: HareInstance, chunks: Chunks, order: list[int], free_s: list[float]) -> list[float]:
    """HR19, task by task: the ends of all jobs. GPUs of a type are alike, so that only their free times count."""
    types = range(len(instance.gpus))
    first = np.concatenate(([0], np.cumsum(instance.gpus))).tolist()
    free = [sorted(free_s[first[g] : first[g + 1]]) for g in types]
    ready = instance.arrival_s.tolist()
    for b in order:
        n, count = int(chunks.job[b]), float(chunks.rounds[b])
        train, sync, done = instance.train_s[n], instance.sync_s[n], ready[n]
        for _ in range(int(instance.tasks[n])):
            usable = [g for g in types if free[g] and np.isfinite(train[g])]
            ends = {g: max(ready[n], free[g][0]) + count * (train[g] + sync[g]) for g in usable}
            g = min(usable, key=lambda g: (ends[g], train[g], g))
            early = [at for at, time in enumerate(free[g]) if time <= ready[n]]
            at = early[-1] if early else 0
            begin = max(ready[n], free[g].pop(at))
            done = max(done, begin + count * (train[g] + sync[g]))
            free[g] = sorted([*free[g], begin + count * train[g] + (count - 1.0) * sync[g]])
        ready[n] = done
    return ready


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_the_list_schedule_is_that_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = drawn_instance(seed, 12, {kind: int(rng.integers(1, 7)) for kind in GPUS})
    chunks = Chunks.cut(instance, np.maximum(instance.rounds // 3, 1))
    order = middle_order(instance, chunks, rng.uniform(0.0, 50.0, 12))
    free = rng.choice([0.0, 3.0, 7.0], int(instance.gpus.sum()))
    found = schedule_in_order(instance, chunks, order, free_s=free)
    assert found.completion_s.tolist() == plain_list_schedule(instance, chunks, order.tolist(), free.tolist())


@pytest.mark.parametrize(("seed", "gpus"), [(1, 40), (2, 70), (3, 100)])
def test_blocks_of_gpus_that_fill_and_empty_are_those_of_a_plain_loop(seed: int, gpus: int) -> None:
    rng = np.random.default_rng(seed)
    instance = drawn_instance(seed, 150, {kind: gpus + 7 * g for g, kind in enumerate(GPUS)})
    chunks = Chunks.cut(instance, np.maximum(instance.rounds // 4, 1))
    order = middle_order(instance, chunks, rng.uniform(0.0, 50.0, 150))
    assert int(instance.tasks[chunks.job].sum()) > 20 * BLOCK
    free = rng.choice([0.0, 3.0, 7.0, 200.0], int(instance.gpus.sum()))
    found = schedule_in_order(instance, chunks, order, free_s=free)
    assert found.completion_s.tolist() == plain_list_schedule(instance, chunks, order.tolist(), free.tolist())
    assert set(found.gpu.tolist()) <= set(range(int(instance.gpus.sum())))


def test_no_pass_is_compiled_within_a_round() -> None:
    passes = (least_rounds, kept_or_wanted, list_schedule, job_bounds, shrink, fill)
    cluster = scaled_cluster(56)
    policy = relaxed(cluster)
    before = [len(each.signatures) for each in passes]
    assert all(before)
    for n in range(80):
        policy.add_job(Job(f"j{n}", "cifar10", work_samples=4e6, requested_gpus=1 + n % 8))
    policy.plan(0.0)
    for n in range(0, 80, 2):
        policy.update_job(f"j{n}", progress=0.1)
    policy.remove_job("j3")
    policy.plan(300.0)
    assert policy.replans == 2
    assert [len(each.signatures) for each in passes] == before


# The book and the policy ------------------------------------------------------------------------------------------


def test_the_book_is_what_a_plain_list_would_be() -> None:
    rng, book = random.Random(4), TaskBook(("x", "y"))
    plain: dict[str, list[float]] = {}
    for step in range(1500):
        if plain and rng.random() < 0.48:
            job = rng.choice(sorted(plain))
            book.remove(job)
            del plain[job]
        else:
            job, tasks = f"j{step}", rng.randint(1, 9)
            times = JobTimes(rng.randint(1, 50), {"y": rng.uniform(1, 5)}, {"y": 0.5}, 7.0)
            book.add(job, times, tasks, 2.0, "m")
            plain[job] = [times.train_s["y"], times.rounds, tasks, 0.0, 0]
        if plain:
            job = rng.choice(sorted(plain))
            book.progress(job, 0.25)
            plain[job][3] = 0.25 * plain[job][1]
            book.hold(job, Allocation("y", 3, (("n", 3),)))
            plain[job][4] = 3
        if step % 50 == 0:
            rows = book.rows()
            assert [job.id for job in book.jobs_at(rows)] == list(plain)
            assert book.train_s[rows, 1].tolist() == [each[0] for each in plain.values()]
            assert np.isinf(book.train_s[rows, 0]).all()
            assert book.rounds[rows].tolist() == [each[1] for each in plain.values()]
            assert book.tasks[rows].tolist() == [each[2] for each in plain.values()]
            assert book.done[rows] == pytest.approx([each[3] for each in plain.values()])
            assert book.held[rows, 1].tolist() == [each[4] for each in plain.values()]
            assert (book.restart_s[rows] == 7.0).all()
    some = set(list(plain)[::2])
    assert [job.id for job in book.jobs_at(book.rows(some))] == [job for job in plain if job not in some]


def test_who_keeps_as_many_gpus_of_each_type_keeps_its_very_nodes() -> None:
    cluster = scaled_cluster(56)
    policy = HareTaskPolicy(cluster, TasksGoodput(GoodputModel(configurations_of(cluster)), cluster))
    for n in range(6):
        policy.add_job(Job(f"j{n}", "cifar10", work_samples=4e7, requested_gpus=2))
    first = policy.plan(0.0).allocations
    policy.add_job(Job("late", "cifar10", work_samples=4e7, requested_gpus=2))
    second = policy.plan(300.0)
    assert second.start == ("late",)
    assert not second.move
    for job, held in first.items():
        assert second.allocations[job] is held


def relaxed(cluster: Cluster) -> HareTaskPolicy:
    """Return a policy that solves the relaxation whenever jobs have changed."""
    tasks = TasksGoodput(GoodputModel(configurations_of(cluster)), cluster)
    return HareTaskPolicy(cluster, tasks, relaxation="always")


def with_jobs(jobs: int, relaxation: Literal["worthwhile", "always"]) -> HareTaskPolicy:
    """Return a policy on 56 GPUs with jobs of up to 8 GPUs each."""
    cluster = scaled_cluster(56)
    tasks = TasksGoodput(GoodputModel(configurations_of(cluster)), cluster)
    policy = HareTaskPolicy(cluster, tasks, relaxation=relaxation)
    for n in range(jobs):
        policy.add_job(Job(f"j{n}", "cifar10", work_samples=(1 + n % 7) * 4e6, requested_gpus=1 + n % 8))
    return policy


def test_of_two_orders_the_better_plan_is_carried_out() -> None:
    """The order by work and weight, and where GPUs have prices that of the relaxation."""
    cluster = scaled_cluster(56)
    policy = relaxed(cluster)
    for n in range(150):
        policy.add_job(Job(f"j{n}", "cifar10", work_samples=(1 + n % 7) * 4e6, requested_gpus=1 + n % 8))
    plan = policy.plan(0.0)
    rows, instance = policy._left(0.0, policy.room())
    ell, order = instance.least_round_s(), policy._order_of(instance, 0.0, 60.0, np.inf)
    assert order.priced
    mean = smith_means(instance, ell, 0.0)
    chunks, _ = policy._chunks(instance, ell, mean)
    plain = policy._placed(instance, chunks, mean, ell, 0.0)
    better, alone = policy._better(instance, chunks, order, ell, plain, 0.0)[0].objective, plain[0].objective
    assert len(rows) == 150
    assert better <= alone
    assert -plan.objective == pytest.approx(better)
    assert -plan.bound <= better


@pytest.mark.parametrize(("jobs", "solved"), [(4, 0), (24, 1)])
def test_the_relaxation_is_solved_only_where_it_may_close_a_tenth_of_the_gap(jobs: int, solved: int) -> None:
    plain, always = with_jobs(jobs, "worthwhile"), with_jobs(jobs, "always")
    plan, other = plain.plan(0.0), always.plan(0.0)
    assert (plain.replans, always.replans) == (solved, 1)
    assert (plain.programs_needless, plain.programs_solved) == (1 - solved, solved)
    assert -plan.bound <= -plan.objective * (1 + 1e-12)
    left = 1.0 - WORTH
    assert other.objective - plan.objective <= 1e-9 * abs(other.objective) or solved
    assert -plan.objective + plan.bound >= left * (-other.objective + other.bound) - 1e-9
    with pytest.raises(SettingsError, match="relaxation"):
        HareTaskPolicy(scaled_cluster(56), relaxation="never")  # type: ignore[arg-type]


def test_a_large_relaxation_is_solved_only_if_it_is_asked_for() -> None:
    plain, always = with_jobs(150, "worthwhile"), with_jobs(150, "always")
    plan, other = plain.plan(0.0), always.plan(0.0)
    assert (plain.replans, plain.programs_needless, always.replans) == (0, 0, 1)
    _, instance = plain._left(0.0, plain.room())
    assert plain._columns(instance) > FEW
    data = Relaxation.of(instance, TimeGrid.geometric(0.0, 2 * sufficient_horizon_s(instance)))
    assert -plan.bound == pytest.approx(data.constant)
    assert -plan.bound <= -other.bound * (1 + 1e-12)
    assert plain.explained("j0")["bound_s"] == -plan.bound
    again = plain.plan(300.0)  # nothing has come or gone: the bound stays
    assert again.bound == plan.bound


def test_jobs_that_cannot_start_soon_are_cut_into_few_chunks() -> None:
    cluster = scaled_cluster(56)
    policy = HareTaskPolicy(cluster, TasksGoodput(GoodputModel(configurations_of(cluster)), cluster))
    for n in range(300):
        policy.add_job(Job(f"j{n}", "cifar10", work_samples=(1 + n % 7) * 4e7, requested_gpus=4))
    _, instance = policy._left(0.0, policy.room())
    ell = instance.least_round_s()
    mean = smith_means(instance, ell, 0.0)
    count = np.diff(policy._chunks(instance, ell, mean)[0].first)
    by_rank = count[np.argsort(mean, kind="stable")]
    assert by_rank[:10].min() > FAR_CHUNKS
    assert by_rank[-100:].max() <= FAR_CHUNKS


def test_jobs_added_in_one_call_are_those_added_one_by_one_and_on_an_error_none_is_added() -> None:
    one, many = with_jobs(0, "worthwhile"), with_jobs(0, "worthwhile")
    jobs = [Job(f"j{n}", "cifar10", work_samples=(1 + n % 7) * 4e6, requested_gpus=1 + n % 8) for n in range(70)]
    for job in jobs:
        one.add_job(job)
    many.add_jobs(jobs)
    many.add_jobs(())
    for name in one.book._arrays():
        assert getattr(one.book, name)[:70].tolist() == getattr(many.book, name)[:70].tolist()
    assert one.plan(0.0).allocations == many.plan(0.0).allocations
    before = many.jobs.copy()
    for wrong in (jobs[3], Job("new", "no such application", requested_gpus=1)):
        with pytest.raises((DuplicateJobError, InvalidJobError)):
            many.add_jobs([Job("later", "cifar10", work_samples=4e6), wrong])
        assert many.jobs == before
        assert "later" not in many.book
        assert len(many.book.rows()) == 70


def test_the_book_notes_many_jobs_gpus_as_one_by_one() -> None:
    given = {
        "j0": Allocation("v100", 2, (("n", 2),)),
        "j1": Allocation("k80", 3, (("m", 2), ("n", 1)), (("k80", 2), ("v100", 1))),
    }
    one, many = TaskBook(("v100", "k80")), TaskBook(("v100", "k80"))
    for book in (one, many):
        for job in ("j0", "j1", "j2"):
            book.add(job, JobTimes(5, {"v100": 1.0}, {}), 4, 1.0, "m")
            book.hold(job, Allocation("v100", 1, (("n", 1),)))
    for job, held in given.items():
        one.hold(job, held)
    many.hold_all(given)
    assert many.held[:3].tolist() == one.held[:3].tolist() == [[2, 0], [1, 2], [1, 0]]
    many.release_all(["j1", "gone"])
    assert many.held[:3].tolist() == [[2, 0], [0, 0], [1, 0]]


def test_a_job_that_is_not_known_or_progress_that_is_none_changes_nothing() -> None:
    cluster = scaled_cluster(56)
    policy = HareTaskPolicy(cluster, TasksGoodput(GoodputModel(configurations_of(cluster)), cluster))
    policy.add_job(Job("one", "cifar10", work_samples=4e6, requested_gpus=2))
    with pytest.raises(UnknownJobError):
        policy.update_job("two", progress=0.5)
    with pytest.raises(InvalidDataError, match="progress"):
        policy.update_job("one", progress=1.5)
    assert policy.book.done[policy.book.rows()].tolist() == [0.0]
