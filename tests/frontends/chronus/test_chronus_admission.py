"""What admission keeps from one answer to the next, and what it says about room, against reading all again."""

from __future__ import annotations

import numpy as np
import pytest
from chronus_instances import lease_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.chronus import ChronusPolicy, StepReward
from copter_frontends.chronus.draft import Draft
from copter_frontends.chronus.held_leases import HeldLeases
from copter_frontends.chronus.shim import improve
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job

LEASE_S = 1200.0


def drawn(rng: np.random.Generator, number: int, now_s: float) -> tuple[Job, StepReward]:
    """A job of some leases for 1 to 16 GPUs, and deadlines that it can meet."""
    work_s = rng.uniform(0.3, 5.0) * 3600.0
    job = Job(f"job-{number}", "training", now_s, work_samples=work_s, requested_gpus=int(2 ** rng.integers(0, 5)))
    first_s = work_s * rng.uniform(1.3, 2.0)
    return job, StepReward.strict(first_s) if rng.random() < 0.4 else StepReward.soft(first_s)


def as_rows(held: HeldLeases) -> dict[str, tuple[tuple[int, ...], float, tuple[int, ...]]]:
    return {
        record.job.id: (
            tuple(held.table[at].tolist()),
            float(held.value[at]),
            tuple((np.flatnonzero(held.taken[at]) + held.first).tolist()),
        )
        for at, record in enumerate(held.records)
    }


@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_is_what_the_book_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy = ChronusPolicy(Cluster.of({"a100": (8, 8)}), ThroughputTable({"training": {"a100": 1.0}}))
    made = admitted = 0
    for cycle in range(8):
        now_s = cycle * LEASE_S
        for _ in range(12 if cycle == 0 else 4):
            job, reward = drawn(rng, made, now_s)
            made += 1
            policy.set_reward(job.id, reward)
            policy.add_job(job)
            admitted += policy.last_admission is not None and policy.last_admission.step >= 0
            if rng.random() < 0.3 and policy.book.records:
                policy.remove_job(str(rng.choice(list(policy.book.records))))
            first = max(policy.lease.number, policy.grid.lease_at(now_s)) + 1
            held = policy.selector._held
            if held is not None:
                now, again = held.now(policy.book, first), HeldLeases.of(policy.book, first)
                assert as_rows(now) == as_rows(again)
        policy.plan(now_s)
        for job_id in list(policy.jobs):
            if job_id not in policy.book.records:
                policy.remove_job(job_id)
            elif job_id in policy.held:
                policy.update_job(job_id, progress=min(policy.service[job_id].progress + 0.1, 0.99))
    assert admitted > 4


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_options_with_room_are_those_that_find_leases(seed: int) -> None:
    options, capacity = lease_problem(24, 8, 9, seed, types=2)
    draft, rng = Draft(options, capacity), np.random.default_rng(seed)
    for row in rng.permutation(len(options.job))[: len(options.job) // 2].tolist():
        if draft.row[options.job[row]] < 0:
            draft.place(row)
    rows = np.arange(len(options.job))
    fits = np.array([draft.copy().place(row) if draft.row[options.job[row]] < 0 else False for row in rows.tolist()])
    waiting = draft.row[options.job] < 0
    np.testing.assert_array_equal(draft.roomy(rows)[waiting], fits[waiting])
    able = draft.jobs_with_room(np.arange(options.jobs))
    np.testing.assert_array_equal(able[draft.row < 0], np.isin(np.flatnonzero(draft.row < 0), options.job[fits]))

    def without_its_own(row: int) -> bool:
        other = draft.copy()
        other.remove(int(options.job[row]))
        return other.place(row)

    own = np.array([without_its_own(row) for row in rows.tolist()])
    np.testing.assert_array_equal(draft.roomy(rows, own=True), own)


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_where_nothing_is_moved_jobs_get_better_until_none_can(seed: int) -> None:
    options, capacity = lease_problem(30, 8, 9, seed)
    draft, rng = Draft(options, capacity), np.random.default_rng(seed)
    for row in rng.permutation(len(options.job)).tolist():
        if draft.row[options.job[row]] < 0:
            draft.place(row)
    before = draft.row.copy()
    improve(draft, 0)
    has = np.flatnonzero(before >= 0)
    assert (options.value[draft.row[has]] >= options.value[before[has]]).all()
    assert (draft.row[before < 0] < 0).all()
    assert (draft.free >= 0).all()
    assert (draft.taken.sum(axis=1)[has] == options.need[draft.row[has]]).all()
    for job in has.tolist():
        now = options.value[draft.row[job]]
        better = [row for row in np.flatnonzero(options.job == job).tolist() if options.value[row] > now]
        assert not any(draft.roomy(np.array([row]), own=True)[0] for row in better)
