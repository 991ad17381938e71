"""Jobs that join and leave Hadar together are as jobs that do so one by one, and so they are in a simulation."""

from __future__ import annotations

import numpy as np
import pytest
from policy_state import policy_state

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.policies.hadar.job_book import JobBook
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import (
    Allocation,
    Cluster,
    DuplicateJobError,
    InvalidJobError,
    Job,
    JoinedAtOnce,
    UnknownJobError,
    configurations_of,
)

CLUSTER = {"t4": (4, 4), "a100": (2, 8)}


def jobs(count: int, first: int = 0) -> list[Job]:
    names = ("cifar10", "bert", "deepspeech2")
    return [Job(f"j{first + i}", names[i % 3], 0.0, requested_gpus=1 + i % 4) for i in range(count)]


def test_jobs_that_join_and_leave_together_are_as_one_by_one() -> None:
    one, many = HadarPolicy(Cluster.of(CLUSTER)), HadarPolicy(Cluster.of(CLUSTER))
    assert isinstance(many, JoinedAtOnce)
    for step in range(6):
        fresh = jobs(7, 7 * step)
        many.add_jobs(fresh)
        for job in fresh:
            one.add_job(job)
        gone = [job_id for at, job_id in enumerate(one.book.ids) if (at + step) % 3 == 0]
        many.remove_jobs(gone)
        for job_id in gone:
            one.remove_job(job_id)
        assert many.book.ids == one.book.ids, "rows are filled in the same order"
        assert policy_state(many) == policy_state(one)
        assert many.plan(360.0 * step).allocations == one.plan(360.0 * step).allocations


def test_one_wrong_job_and_none_is_added_or_removed() -> None:
    policy = HadarPolicy(Cluster.of(CLUSTER))
    policy.add_jobs(jobs(3))
    before = policy_state(policy)
    with pytest.raises(DuplicateJobError):
        policy.add_jobs([*jobs(2, 10), jobs(1)[0]])
    with pytest.raises(DuplicateJobError):
        policy.add_jobs([*jobs(1, 20), *jobs(1, 20)])
    with pytest.raises(InvalidJobError, match="fits nowhere"):
        policy.add_jobs([*jobs(2, 10), Job("wide", "bert", requested_gpus=1000)])
    with pytest.raises(UnknownJobError):
        policy.remove_jobs(["j0", "nobody"])
    with pytest.raises(UnknownJobError, match="named twice"):
        policy.remove_jobs(["j0", "j0"])
    assert policy_state(policy) == before
    policy.add_jobs([])
    policy.remove_jobs([])
    assert policy_state(policy) == before


@pytest.mark.parametrize("seed", range(20))
def test_rows_follow_their_jobs_whatever_leaves(seed: int) -> None:
    rng, book = np.random.default_rng(seed), JobBook(("t4",))
    count = int(rng.integers(1, 12))
    book.add_many(
        jobs(count), [1 + i for i in range(count)], [10.0 + i for i in range(count)], [[1.0]] * count, [0.0] * count
    )
    gone = [str(job_id) for job_id in rng.permutation(book.ids)[: int(rng.integers(0, count + 1))]]
    book.remove_many(gone)
    assert sorted(book.ids) == sorted({f"j{i}" for i in range(count)} - set(gone))
    assert [book.jobs[row].id for row in range(len(book))] == book.ids
    assert {job_id: book.row(job_id) for job_id in book.ids} == book.index
    for row, job_id in enumerate(book.ids):
        number = int(job_id[1:])
        assert (int(book.gpus[row]), float(book.total[row])) == (1 + number, 10.0 + number)


class OneByOne(HadarPolicy):
    """Hadar, told of each job by itself."""

    add_jobs = remove_jobs = None  # type: ignore[assignment]

    def add_job(self, job: Job) -> None:
        HadarPolicy.add_jobs(self, [job])

    def remove_job(self, job_id: str) -> None:
        HadarPolicy.remove_jobs(self, [job_id])


def test_a_simulation_skips_the_job_that_fits_nowhere_and_no_other() -> None:
    cluster, results = Cluster.of(CLUSTER), []
    source = GoodputModel(configurations_of(cluster))
    table = [Job(f"j{i}", "cifar10", 40.0 * (i // 4), requested_gpus=1, work_samples=2e6) for i in range(12)]
    table.insert(5, Job("wide", "cifar10", 40.0, requested_gpus=1000, work_samples=2e6))
    for kind in (HadarPolicy, OneByOne):
        policy = kind(cluster, round_s=60.0)
        seen: list[dict[str, Allocation]] = []
        simulation = Simulation(cluster, table, policy, source, 60.0)
        result = simulation.run(8, None, lambda _, seen=seen, policy=policy: seen.append(dict(policy.held)))  # type: ignore[misc]
        assert [skipped.id for skipped in result.skipped] == ["wide"]
        results.append(seen)
    assert results[0] == results[1]
    assert any(results[0])
