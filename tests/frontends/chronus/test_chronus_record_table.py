"""The book's arrays say what its records say, whatever happens, and a plan writes only the records that it changes."""

from __future__ import annotations

import numpy as np
import pytest

from copter_frontends.policies.chronus import ChronusPolicy, StepReward
from copter_frontends.policies.chronus.job_book import SloBook, leases_of
from copter_frontends.policies.chronus.record_table import MODE, PROMISED, REACH, STEP
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job

LEASE_S = 1200.0
RATES = ThroughputTable({"training": {"a100": 2.0, "v100": 1.0}})


def policy_of() -> ChronusPolicy:
    policy = ChronusPolicy(Cluster.of({"a100": (3, 8), "v100": (4, 8)}), RATES)
    policy.plan(0.0)
    return policy


def come(policy: ChronusPolicy, rng: np.random.Generator, numbers: range, now_s: float) -> None:
    jobs = []
    for number in numbers:
        work_s = rng.uniform(0.3, 5.0) * 3600.0
        jobs.append(
            Job(f"job-{number}", "training", now_s, work_samples=work_s, requested_gpus=int(2 ** rng.integers(5)))
        )
        first_s = work_s * rng.uniform(1.3, 2.0)
        if rng.random() < 0.8:
            policy.set_reward(
                jobs[-1].id, StepReward.soft(first_s) if rng.random() < 0.5 else StepReward.strict(first_s)
            )
    policy.add_jobs(jobs)


def require_same(book: SloBook, first: int) -> None:
    """Raise AssertionError unless the arrays say what the records say."""
    table, records = book.table, list(book.records.values())
    rows = table.every
    assert table.at(rows) == records
    assert [table.records[table.rows[record.job.id]] for record in records] == records
    numbers = table.numbers(rows)
    told = [(record.promised, record.mode, record.step, record.reach) for record in records]
    assert numbers[[PROMISED, MODE, STEP, REACH]].T.tolist() == [list(each) for each in told]
    assert table.values(rows).tolist() == [record.value for record in records]
    assert [each.tolist() for each in table.leases(rows)] == [each.tolist() for each in leases_of(records)]
    assert table.at(table.holders(first)) == [record for record in records if record.has_lease(first)]
    for begins in (True, False):
        one, other = book.options(records, first, 40, begins), book.options_of_rows(rows, first, 40, begins)
        for name in ("job", "mode", "kind", "gpus", "need", "last", "step", "value", "must"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


@pytest.mark.parametrize("seed", range(4))
def test_the_arrays_say_what_the_records_say(seed: int) -> None:
    rng, now_s, made = np.random.default_rng(seed), 0.0, 0
    policy = policy_of()
    for _ in range(60):
        known = list(policy.jobs)
        edit = rng.choice(["come", "go", "told", "lose", "gain", "plan", "plan"])
        if edit == "come":
            more = int(rng.integers(1, 9))
            come(policy, rng, range(made, made + more), now_s)
            made += more
        elif edit == "go" and known:
            policy.remove_jobs(rng.choice(known, size=min(3, len(known)), replace=False).tolist())
        elif edit == "told" and policy.held:
            had = {job_id: policy.service[job_id].progress for job_id in policy.held}
            policy.update_progress({job_id: min(done + rng.uniform(0.0, 0.3), 1.0) for job_id, done in had.items()})
        elif edit == "lose" and policy.nodes.capacity("a100") > 8:
            policy.remove_resources("a100", 8)
        elif edit == "gain" and policy.nodes.capacity("a100") < 24:
            policy.add_resources("a100", 8)
        elif edit == "plan":
            now_s += 300.0
            policy.plan(now_s)
        require_same(policy.book, policy.grid.lease_at(now_s) + 1)
    assert made > 10


def test_rows_of_jobs_that_have_gone_are_dropped() -> None:
    rng, policy = np.random.default_rng(7), policy_of()
    for begin in range(0, 3000, 500):
        come(policy, rng, range(begin, begin + 500), 0.0)
        policy.remove_jobs(list(policy.jobs)[:-20])
        require_same(policy.book, 1)
    assert len(policy.book.table.records) < 2000


def test_a_plan_inside_a_lease_writes_no_record_that_it_does_not_change() -> None:
    """What the records of other jobs refer to stays the same object, however many jobs have leases."""
    rng, policy = np.random.default_rng(3), policy_of()
    come(policy, rng, range(40), 0.0)
    policy.plan(LEASE_S)
    before = {name: record.leases for name, record in policy.book.records.items()}
    assert len(before) > 5
    come(policy, rng, range(40, 42), LEASE_S)
    policy.plan(LEASE_S + 300.0)
    kept = [name for name, leases in before.items() if policy.book.records[name].leases.tolist() == leases.tolist()]
    assert len(kept) > 5
    assert all(policy.book.records[name].leases is before[name] for name in kept)
