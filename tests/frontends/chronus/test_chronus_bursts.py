"""Jobs that arrive together: answers as one after the other, all or none, and cost that waiting jobs do not add to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.policies.chronus import ChronusPolicy, StepReward, arrival_kernel, exact_plan, salvage
from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.expected_demand import ExpectedDemand
from copter_frontends.policies.chronus.options import jobs_and_leases
from copter_frontends.policies.chronus.slo_record import SloRecord
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, DuplicateJobError, InvalidJobError, Job, JoinedAtOnce, UnknownJobError

TABLE = ThroughputTable({"training": {"a100": 1.0, "v100": 0.6}})
LEASE_S = 1200.0


@pytest.fixture(autouse=True)
def _without_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """No exact programs, whose parts end by the clock: two policies with the same jobs could plan differently."""
    monkeypatch.setattr(exact_plan, "MOST", 0)
    monkeypatch.setattr(salvage, "EXACT", 0)


def policy_of(selective: bool = False, spare_nodes: int = 0) -> ChronusPolicy:
    cluster = Cluster.of({"a100": (3, 8), "v100": (2, 8)})
    return ChronusPolicy(cluster, TABLE, selective=selective, spare_nodes=spare_nodes)


def drawn(rng: np.random.Generator, number: int, now_s: float) -> tuple[Job, StepReward | None]:
    """A job of some leases for 1 to 16 GPUs, and deadlines that it can meet, or none."""
    work_s = rng.uniform(0.3, 5.0) * 3600.0
    gpus = int(2 ** rng.integers(0, 5))
    first_s = work_s * rng.uniform(1.1, 2.5)
    reward = (StepReward.strict(first_s), StepReward.soft(first_s), None)[rng.integers(0, 3)]
    return Job(f"job-{number}", "training", now_s, work_samples=work_s, requested_gpus=gpus), reward


def told(policy: ChronusPolicy) -> dict[str, Any]:
    """What was promised, and all that it was decided by."""
    return {
        "records": {
            name: (each.promised, each.mode, each.step, each.reach, each.leases.tolist(), each.joined_s)
            for name, each in policy.book.records.items()
        },
        "notices": policy.notices,
        "last": policy.last_admission,
        "present": list(policy.lease.records),
        "used": policy.lease.used.tolist(),
    }


@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0, 1]))
@settings(max_examples=12, deadline=None)
def test_a_burst_is_answered_as_its_jobs_one_by_one(seed: int, selective: bool, spare_nodes: int) -> None:
    rng = np.random.default_rng(seed)
    together, single = (policy_of(selective, spare_nodes) for _ in range(2))
    made = 0
    for now_s in (0.0, 300.0, 600.0, LEASE_S, LEASE_S + 300.0):
        for policy in (together, single):
            policy.plan(now_s)
        jobs = []
        for _ in range(int(rng.integers(1, 9))):
            job, reward = drawn(rng, made, now_s)
            made += 1
            jobs.append(job)
            for policy in (together, single):
                if reward is not None:
                    policy.set_reward(job.id, reward)
        together.add_jobs(jobs)
        for job in jobs:
            single.add_job(job)
        assert told(together) == told(single)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_free_leases_are_those_that_a_draft_would_choose(seed: int) -> None:
    """Without selection, the first job of a burst gets what :class:`.Draft` places; the compiled pass is its peer."""
    rng = np.random.default_rng(seed)
    policy = policy_of()
    policy.plan(0.0)
    for number in range(10):
        job, reward = drawn(rng, number, 0.0)
        if reward is None:
            continue
        first = policy.grid.lease_at(0.0) + 1
        record = SloRecord.of(job, reward, policy.modes_of(job))
        horizon = policy.book.horizon(record.last_s, first)
        use = policy.book.promised_gpus(2, first, horizon)
        draft = Draft(policy.book.options([record], first, horizon, False), policy.gpus()[:, None] - use)
        scarcity = np.exp(3.0 * use.sum(axis=1) / np.maximum(horizon * policy.gpus(), 1))
        placed = any(draft.place(row) for row in draft.ranked(0, scarcity))
        policy.set_reward(job.id, reward)
        policy.add_job(job)
        held = policy.book.records.get(job.id)
        if placed and held is not None and held.joined_s == -np.inf:
            assert held.leases.tolist() == (np.flatnonzero(draft.taken[0]) + first).tolist()
            assert (held.mode, held.step) == (draft.options.mode[draft.row[0]], draft.options.step[draft.row[0]])
        elif placed:
            assert held is not None
            assert held.promised >= 0


def plain_choice(free: list[int], gpus: int, need: int) -> list[int] | None:
    """The leases with most free GPUs, late ones first, one after the other; None if too few have room."""
    fits = sorted((lease for lease, there in enumerate(free) if there >= gpus), key=lambda at: (-free[at], -at))
    return sorted(fits[:need]) if len(fits) >= need else None


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_what_a_pass_knows_of_leases_is_what_reading_all_of_them_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds, leases, most = 2, int(rng.integers(1, 40)), 12
    free = rng.integers(0, most + 1, (kinds, leases))
    use = most - free
    sizes = np.arange(1, most + 1)  # more than there are slots for, some of the time
    known = arrival_kernel.Known.nothing(sizes[: int(rng.integers(1, most + 1))], kinds, leases, most)
    known = known._replace(slot=np.concatenate((known.slot, np.full(most + 1 - len(known.slot), -1))))
    for _ in range(30):
        kind, gpus, last = int(rng.integers(kinds)), int(rng.integers(1, most + 1)), int(rng.integers(1, leases + 1))
        need = int(rng.integers(1, last + 1))
        table = np.array([[kind, gpus, need, last]])
        ahead = free[kind, :last].tolist()
        assert arrival_kernel._room(known, table, 0, free) == sum(there >= gpus for there in ahead)
        mine, every = use[kind, :last].sum(), (use + free)[kind, :last].sum()
        dear = np.exp(arrival_kernel.SCARCE * mine / max(every, 1))
        assert arrival_kernel._scarcity(known, kind, last, use, free) == pytest.approx(dear, rel=1e-12)
        assert arrival_kernel._most(known, free[kind, :last], need).tolist() == sorted(ahead)[-need:]
        taken = rng.random(leases) < 0.5
        before, plain = taken.copy(), plain_choice(ahead, gpus, need)
        assert arrival_kernel._choose(known, table, 0, free, taken) == (plain is not None)
        if plain is None:
            assert (taken == before).all()
            continue
        assert np.flatnonzero(taken).tolist() == plain
        free[kind, plain] -= gpus
        use[kind, plain] += gpus
        arrival_kernel._forget(known, kind, plain[0])
    assert not known.zeros.any()


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_jobs_and_leases_are_those_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    taken = rng.random((int(rng.integers(0, 6)), int(rng.integers(0, 9)))) < 0.3
    for mine, plain in zip(jobs_and_leases(taken), np.nonzero(taken), strict=True):
        assert mine.tolist() == plain.tolist()


def test_on_an_error_no_job_of_a_burst_is_added() -> None:
    policy = policy_of()
    assert isinstance(policy, JoinedAtOnce)
    policy.plan(0.0)
    good, large = (Job(name, "training", 0.0, work_samples=6e3, requested_gpus=n) for name, n in (("a", 4), ("b", 64)))
    policy.set_reward("a", StepReward.strict(4e4))
    for jobs, fault in (((good, large), InvalidJobError), ((good, good), DuplicateJobError)):
        with pytest.raises(fault):
            policy.add_jobs(jobs)
        assert (policy.jobs, policy.book.records, policy.notices) == ({}, {}, [])
    policy.add_jobs((good,))
    with pytest.raises(UnknownJobError):
        policy.remove_jobs(("a", "b"))
    assert list(policy.jobs) == ["a"]
    policy.remove_jobs(("a",))
    assert (policy.jobs, policy.book.records) == ({}, {})


def test_expected_demand_fades_by_the_time_since_the_last_job() -> None:
    demand = ExpectedDemand(1, LEASE_S)
    demand.note(0, 2, 3, 60.0, 0.0)
    demand.note(0, 2, 3, 60.0, 4 * 3600.0)
    np.testing.assert_allclose(demand.seen.sum(axis=(1, 2)), np.array([6.0, 12.0, 60.0]) * (1.0 + np.exp(-1.0)))
