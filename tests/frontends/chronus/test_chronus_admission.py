"""What admission keeps from one answer to the next, and what it says about room, against reading all again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from chronus_instances import lease_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.policies.chronus import ChronusPolicy, StepReward
from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.held_leases import HeldLeases
from copter_frontends.policies.chronus.job_book import Admission, SloBook
from copter_frontends.policies.chronus.selector import scarcity_of
from copter_frontends.policies.chronus.shim import improve
from copter_frontends.policies.chronus.slo_record import SloRecord, Standing
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
        if held.taken[at].any()
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


def summed(book: SloBook, kinds: int, first: int, horizon: int) -> np.ndarray:
    """GPUs promised from a lease on, job by job and lease by lease."""
    result: Counter[tuple[int, int]] = Counter()
    for record in book.records.values():
        if record.mode >= 0:
            mode = record.modes[record.mode]
            result.update({(mode.kind, int(lease)): mode.taken for lease in record.leases})
    return np.array([[result[kind, first + at] for at in range(horizon)] for kind in range(kinds)])


def last_promised(book: SloBook) -> int:
    """The lease after the last one that a job has."""
    return max((int(r.leases[-1]) + 1 for r in book.records.values() if r.mode >= 0 and len(r.leases)), default=0)


def require_same_totals(policy: ChronusPolicy, now_s: float) -> None:
    """The book's totals are the records' sums, from the lease after the present one on."""
    first, kinds = policy.grid.lease_at(now_s) + 1, len(policy.nodes.types)
    horizon = max(last_promised(policy.book) - first, 0) + 3
    expected = summed(policy.book, kinds, first, horizon)
    np.testing.assert_array_equal(policy.book.promised_gpus(kinds, first, horizon), expected)
    np.testing.assert_array_equal(policy.book.most_in_one_lease(kinds, first), expected.max(axis=1))


@given(st.integers(0, 10**6))
@settings(max_examples=6, deadline=None)
def test_totals_are_the_sums_of_what_jobs_have_after_any_edits(seed: int) -> None:
    """Jobs come, go and tell of progress, nodes go and come back, plans are made, in any order."""
    rng = np.random.default_rng(seed)
    table = ThroughputTable({"training": {"a100": 1.0, "v100": 0.6}})
    policy = ChronusPolicy(Cluster.of({"a100": (3, 8), "v100": (2, 8)}), table)
    now_s, made = 0.0, 0
    policy.plan(now_s)
    for _ in range(40):
        edit = rng.choice(["come", "go", "told", "lose", "gain", "plan"], p=[0.4, 0.12, 0.15, 0.06, 0.06, 0.21])
        known = list(policy.jobs)
        if edit == "come":
            job, reward = drawn(rng, made, now_s)
            made += 1
            policy.set_reward(job.id, reward)
            policy.add_job(job)
        elif edit == "go" and known:
            policy.remove_job(str(rng.choice(known)))
        elif edit == "told" and known:
            job_id = str(rng.choice(known))
            policy.update_job(job_id, progress=min(policy.service[job_id].progress + rng.uniform(0.0, 0.4), 1.0))
        elif edit == "lose" and policy.nodes.capacity("a100") > 16:
            policy.remove_resources("a100", 8)
        elif edit == "gain" and policy.nodes.capacity("a100") < 32:
            policy.add_resources("a100", 8)
        elif edit == "plan":
            now_s += 300.0
            policy.plan(now_s)
            assert list(policy.lease.records.values()) == policy.book.holders(policy.lease.number)
            used = np.zeros_like(policy.lease.used)
            for record in policy.lease.records.values():
                used[record.modes[record.mode].kind] += record.modes[record.mode].taken
            assert policy.lease.used.tolist() == used.tolist()
        require_same_totals(policy, now_s)


def by_all_leases(policy: ChronusPolicy, job: Job, reward: StepReward, now_s: float) -> Admission:
    """What a job would be answered if every promised job's leases were read: what is free first, then moves."""
    first, book = policy.grid.lease_at(now_s) + 1, policy.book
    record = SloRecord.of(job, reward, policy.modes_of(job))
    held = HeldLeases.of(book, first)
    ends = max(policy.grid.ended_by(record.last_s) + 1, last_promised(book)) - first
    options, taken = held.with_one_more(record, book, max(ends, 1))
    use = summed(book, len(policy.nodes.types), first, taken.shape[1])
    draft = Draft.standing(options, np.repeat(policy.gpus()[:, None], taken.shape[1], axis=1), use, taken.copy())
    number = len(held.records)
    if draft is None:
        return Admission(job.id, Standing.WAITING)
    horizon = max(policy.grid.ended_by(record.last_s) + 1 - first, 1)
    gpus = policy.gpus()[:, None]
    near, far = (scarcity_of(use[:, :n], np.repeat(gpus, n, axis=1)) for n in (horizon, use.shape[1]))
    if not (
        any(draft.place(row) for row in draft.ranked(number, near))
        or any(draft.squeeze(row) for row in draft.ranked(number, far))
    ):
        return Admission(job.id, Standing.WAITING)
    moves = []
    for other in sorted(draft.moved):
        before, after = (
            np.flatnonzero(a & ~b) + first
            for a, b in ((taken[other], draft.taken[other]), (draft.taken[other], taken[other]))
        )
        moves += [(held.records[other].job.id, a, b) for a, b in zip(before.tolist(), after.tolist(), strict=True)]
    leases = tuple((np.flatnonzero(draft.taken[number]) + first).tolist())
    return Admission(job.id, Standing.GUARANTEED, int(options.step[draft.row[number]]), leases, tuple(moves))


def test_admission_by_totals_answers_as_admission_by_all_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a cluster that is asked for twice what it has: jobs that fit, that others make room for, and that do not."""
    free = moved = refused = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        table = ThroughputTable({"training": {"a100": 1.0, "v100": 0.6}})
        policy = ChronusPolicy(Cluster.of({"a100": (2, 8), "v100": (2, 8)}), table)
        monkeypatch.setattr(policy, "_lease_now", lambda first: None)
        policy.plan(0.0)
        for number in range(60):
            now_s = number // 6 * LEASE_S
            if number % 6 == 0 and number:
                policy.plan(now_s)
            job, reward = drawn(rng, number, now_s)
            expected = by_all_leases(policy, job, reward, now_s)
            policy.set_reward(job.id, reward)
            policy.add_job(job)
            answer = policy.last_admission
            assert answer == expected
            free, moved = free + (answer.step >= 0 and not answer.moves), moved + bool(answer.moves)
            refused += answer.step < 0
    assert min(free, refused) > 10
    assert moved >= 1


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


def test_moves_that_make_no_room_are_tried_as_often_as_the_shim_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst of jobs for which nothing is left: after some failures their answers wait for the next plan."""
    rng = np.random.default_rng(5)
    policy = ChronusPolicy(Cluster.of({"a100": (4, 8)}), ThroughputTable({"training": {"a100": 1.0}}))
    policy.plan(0.0)
    tried, squeeze = [0], type(policy.selector)._admit_with_moves

    def counted(self: object, *given: object) -> Admission:
        answer: Admission = squeeze(self, *given)  # type: ignore[arg-type]
        tried[0] += answer.step < 0
        return answer

    monkeypatch.setattr(type(policy.selector), "_admit_with_moves", counted)
    for number in range(200):
        job, reward = drawn(rng, number, 0.0)
        policy.set_reward(job.id, reward)
        policy.add_job(job)
    most = policy.selector.shim.most_failures
    assert tried[0] == most
    policy.plan(policy.round_s)
    for number in range(200, 260):
        job, reward = drawn(rng, number, policy.round_s)
        policy.set_reward(job.id, reward)
        policy.add_job(job)
    assert tried[0] == 2 * most
