"""List scheduling: feasibility, rules, chunks, sequences."""

import dataclasses
from bisect import bisect_left, bisect_right
from itertools import pairwise

import numpy as np
import pytest
from hare_exhaustive import small_instance
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.policies.hare import (
    Chunks,
    HareInstance,
    HareJob,
    HareScheduler,
    faults,
    middle_order,
    schedule_in_order,
    sufficient_horizon_s,
)
from copter_frontends.vocabulary import InvalidJobError

TIMES = st.floats(0.1, 5.0)


@st.composite
def instances(draw: st.DrawFn) -> HareInstance:
    gpus = {kind: draw(st.integers(1, 3)) for kind in "ab"[: draw(st.integers(1, 2))]}
    jobs = [
        HareJob(
            f"j{i}",
            draw(st.integers(1, 9)),
            draw(st.integers(1, 4)),
            {kind: draw(TIMES) for kind in gpus},
            {kind: draw(st.floats(0.0, 1.0)) for kind in gpus},
            draw(st.floats(0.1, 10.0)),
            draw(st.floats(0.0, 10.0)),
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    return HareInstance.of(jobs, gpus)


@settings(max_examples=150, deadline=None)
@given(instances(), st.sampled_from(["earliest_finish", "paper"]), st.integers(0, 2**31), st.integers(20, 200))
def test_no_task_ever_starts_before_its_round_may(instance, rule, seed, most):
    """Whatever the order of jobs: all rules of the problem hold, chunked or not."""
    chunks = Chunks.of(instance, most)
    mean = np.random.default_rng(seed).uniform(0, 20, instance.n_jobs)
    schedule = schedule_in_order(instance, chunks, middle_order(instance, chunks, mean), rule)
    assert faults(schedule) == []
    assert schedule.makespan_s > 0


def one_by_one(instance: HareInstance, chunks: Chunks, order: np.ndarray) -> tuple[list[float], list[int]]:
    """Starts and GPUs of all tasks, each on the GPU where it is synchronised first.

    Ties go to the faster type, then to the GPU that has been idle for the shortest time, or was given its last task
    later.
    """
    free = [
        [(0.0, first + m) for m in range(count)]
        for first, count in zip(instance.first_gpu.tolist(), instance.gpus.tolist(), strict=False)
    ]
    ready, starts, where = instance.arrival_s.tolist(), {}, {}
    offset = np.concatenate(([0], np.cumsum(instance.tasks[chunks.job])))
    for b in order.tolist():
        n, rounds = int(chunks.job[b]), float(chunks.rounds[b])
        train, sync, done = instance.train_s[n].tolist(), instance.sync_s[n].tolist(), ready[n]
        for k in range(int(instance.tasks[n])):
            able = [g for g in range(len(train)) if free[g] and np.isfinite(train[g])]
            g = min(able, key=lambda g: (max(ready[n], free[g][0][0]) + rounds * (train[g] + sync[g]), train[g], g))
            idle = bisect_right([time for time, _ in free[g]], ready[n])
            time, gpu = free[g].pop(max(idle - 1, 0))
            begin = max(ready[n], time)
            until = begin + rounds * train[g] + (rounds - 1.0) * sync[g]
            free[g].insert(bisect_left([time for time, _ in free[g]], until), (until, gpu))
            starts[offset[b] + k], where[offset[b] + k] = begin, gpu
            done = max(done, begin + rounds * (train[g] + sync[g]))
        ready[n] = done
    return [starts[t] for t in sorted(starts)], [where[t] for t in sorted(where)]


@st.composite
def whole_numbers(draw: st.DrawFn) -> HareInstance:
    """Instances in which many GPUs are free at the same time."""
    gpus = {kind: draw(st.integers(1, 6)) for kind in "ab"}
    jobs = [
        HareJob(
            f"j{i}",
            draw(st.integers(1, 4)),
            draw(st.integers(1, 7)),
            {kind: float(draw(st.integers(1, 3))) for kind in gpus},
            {kind: float(draw(st.integers(0, 1))) for kind in gpus},
            arrival_s=float(draw(st.integers(0, 4))),
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    return HareInstance.of(jobs, gpus)


@settings(max_examples=60, deadline=None)
@given(whole_numbers(), st.integers(0, 2**31))
def test_tasks_that_are_placed_at_once_are_where_they_would_be_one_by_one(instance: HareInstance, seed: int) -> None:
    chunks = Chunks.of(instance, 200)
    mean = np.random.default_rng(seed).uniform(0, 20, instance.n_jobs)
    order = middle_order(instance, chunks, mean)
    found = schedule_in_order(instance, chunks, order)
    start, where = one_by_one(instance, chunks, order)
    np.testing.assert_allclose(found.start_s, start)
    np.testing.assert_array_equal(found.gpu, where)


@settings(max_examples=40, deadline=None)
@given(instances())
def test_no_schedule_ends_after_the_sum_of_what_it_can_take(instance):
    """The relaxation's completion times stay within twice its horizon of training and the synchronisations."""
    found = HareScheduler().schedule(instance)
    assert faults(found.schedule) == []
    assert found.relaxation.bound <= found.schedule.objective * (1 + 1e-9)
    synchronising = float((instance.rounds * instance.sync_s.max(axis=1)).max())
    assert found.relaxation.completion_s.max() <= 2.0 * sufficient_horizon_s(instance) + synchronising


def test_the_paper_rule_takes_the_gpu_that_is_free_first_however_slow():
    job = HareJob("j", 1, 3, {"fast": 1.0, "slow": 10.0})
    instance = HareInstance.of([job], {"slow": 1, "fast": 1})
    chunks = Chunks.of(instance)
    order = np.zeros(1, dtype=np.int64)
    assert schedule_in_order(instance, chunks, order, "paper").completion_s[0] == 10.0
    assert schedule_in_order(instance, chunks, order).completion_s[0] == 3.0


def test_equal_finishes_go_to_the_faster_gpu():
    jobs = [HareJob("first", 1, 1, {"fast": 1.0}), HareJob("second", 1, 1, {"fast": 1.0, "slow": 2.0})]
    instance = HareInstance.of(jobs, {"slow": 1, "fast": 1})
    schedule = schedule_in_order(instance, Chunks.of(instance), np.arange(2))
    assert schedule.gpu.tolist() == [1, 1]
    assert schedule.completion_s.tolist() == [1.0, 2.0]


def test_only_training_occupies_a_gpu():
    jobs = [HareJob("a", 1, 1, {"g": 1.0}, {"g": 5.0}), HareJob("b", 1, 1, {"g": 1.0})]
    instance = HareInstance.of(jobs, {"g": 1})
    schedule = schedule_in_order(instance, Chunks.of(instance), np.arange(2))
    assert schedule.start_s.tolist() == [0.0, 1.0]
    assert schedule.completion_s.tolist() == [6.0, 2.0]


def test_tasks_of_a_round_may_follow_each_other():
    """Relaxed scale-fixed synchronisation (Figure 4): three tasks on two GPUs."""
    job = HareJob("n", 2, 3, {"g": 1.0})
    instance = HareInstance.of([job], {"g": 2})
    schedule = schedule_in_order(instance, Chunks.of(instance), np.arange(2))
    assert schedule.completion_s[0] == 4.0
    assert sorted(len(tasks) for tasks in schedule.sequences().values()) == [3, 3]


def test_chunks_keep_within_the_number_of_tasks_and_lose_no_round():
    jobs = [HareJob("long", 1_000_003, 4, {"g": 0.2}), HareJob("short", 7, 2, {"g": 30.0})]
    instance = HareInstance.of(jobs, {"g": 8})
    chunks = Chunks.of(instance, 1000)
    assert np.bincount(chunks.job, weights=chunks.rounds).tolist() == [1_000_003, 7]
    assert int(instance.tasks[chunks.job].sum()) <= 1000
    assert (chunks.rounds > 0).all()
    assert chunks.first_round[chunks.first[:-1]].tolist() == [0, 0]
    with pytest.raises(InvalidJobError, match="max_tasks"):
        Chunks.of(instance, 5)


def test_a_chunk_takes_as_long_as_its_rounds_in_lockstep():
    instance = HareInstance.of([HareJob("j", 10, 2, {"g": 1.0}, {"g": 0.5})], {"g": 2})
    whole = schedule_in_order(instance, Chunks.of(instance, 2), np.arange(1))
    single = schedule_in_order(instance, Chunks.of(instance), np.arange(10))
    assert whole.completion_s[0] == pytest.approx(single.completion_s[0])
    assert faults(whole) == []


def test_an_order_that_breaks_rounds_is_refused():
    instance = HareInstance.of([HareJob("j", 2, 1, {"g": 1.0})], {"g": 1})
    with pytest.raises(InvalidJobError, match="chunk 1 of job 0 before chunk 0"):
        schedule_in_order(instance, Chunks.of(instance), np.array([1, 0]))
    with pytest.raises(InvalidJobError, match="rule is 'best'"):
        schedule_in_order(instance, Chunks.of(instance), np.array([0, 1]), "best")  # type: ignore[arg-type]


def test_faults_are_found():
    instance = small_instance(3)
    schedule = HareScheduler().schedule(instance).schedule
    assert faults(schedule) == []
    early = dataclasses.replace(schedule, start_s=schedule.start_s - 100.0)
    assert "a task starts before its job arrives" in faults(early)
    late = dataclasses.replace(schedule, completion_s=schedule.completion_s + 1.0)
    assert faults(late) == ["a completion time is not that of the job's last task"]


@settings(max_examples=60, deadline=None)
@given(whole_numbers(), st.integers(0, 2**31))
def test_jobs_and_gpus_that_are_busy_and_tasks_that_run_already_are_waited_for(
    instance: HareInstance, seed: int
) -> None:
    rng, chunks = np.random.default_rng(seed), Chunks.of(instance, 200)
    order = middle_order(instance, chunks, rng.uniform(0, 20, instance.n_jobs))
    ready = rng.uniform(0.0, 9.0, instance.n_jobs)
    free = rng.uniform(0.0, 9.0, int(instance.gpus.sum()))
    left = np.array([int(rng.integers(0, k + 1)) for k in instance.tasks], dtype=np.int64)
    synced = rng.uniform(0.0, 30.0, instance.n_jobs)
    found = schedule_in_order(instance, chunks, order, ready_s=ready, free_s=free, first_tasks=left, synced_s=synced)
    firsts, at = chunks.first[:-1].tolist(), 0
    done = np.maximum(ready, instance.arrival_s)
    for b in range(len(chunks)):
        n = int(chunks.job[b])
        count = int(left[n]) if b in firsts else int(instance.tasks[n])
        ends = []
        for t in range(at, at + count):
            g = int(np.searchsorted(np.cumsum(instance.gpus), found.gpu[t], side="right"))
            train, sync, rounds = instance.train_s[n, g], instance.sync_s[n, g], float(chunks.rounds[b])
            assert found.start_s[t] >= max(done[n], free[found.gpu[t]]) - 1e-9
            ends.append(found.start_s[t] + rounds * (train + sync))
        done[n] = max([done[n], synced[n], *ends])
        at += count
    assert at == len(found.start_s)


@settings(max_examples=60, deadline=None)
@given(instances(), st.integers(0, 2**31), st.integers(20, 200))
def test_chunks_stand_in_the_order_of_their_middles(instance: HareInstance, seed: int, most: int) -> None:
    """H_i of HR18: the middle of its rounds, around the job's mean busy time."""
    chunks, mean = Chunks.of(instance, most), np.random.default_rng(seed).uniform(0, 20, instance.n_jobs)
    ell, middles, before = instance.least_round_s(), [], dict.fromkeys(range(instance.n_jobs), 0)
    for b, (n, rounds) in enumerate(zip(chunks.job.tolist(), chunks.rounds.tolist(), strict=True)):
        middle = np.mean([before[n] + r for r in range(1, rounds + 1)])
        before[n] += rounds
        middles.append((mean[n] + (middle - 0.5 * (instance.rounds[n] + 1)) * ell[n], b))
    found = middle_order(instance, chunks, mean)
    keys = [middles[b][0] for b in found.tolist()]
    assert sorted(found.tolist()) == list(range(len(chunks)))
    assert all(one <= other + 1e-9 for one, other in pairwise(keys))
