"""Jobs that join Hops together are as jobs that join one by one; a window's new jobs are all in its program."""

from __future__ import annotations

import numpy as np
import pytest

from copter_frontends.policies.hops import HopsPolicy
from copter_frontends.vocabulary import Cluster, DuplicateJobError, InvalidJobError, Job, JoinedAtOnce

CLUSTER = {"t4": (4, 4), "a100": (2, 8)}


def jobs(count: int, first: int = 0) -> list[Job]:
    names = ("cifar10", "bert", "deepspeech2")
    most = (None, 4, 8)
    return [Job(f"j{first + i}", names[i % 3], 10.0 * i, min_gpus=1, max_gpus=most[i % 3]) for i in range(count)]


def test_jobs_that_join_together_are_as_one_by_one() -> None:
    one, many = HopsPolicy(Cluster.of(CLUSTER)), HopsPolicy(Cluster.of(CLUSTER))
    assert isinstance(many, JoinedAtOnce)
    for step in range(7):
        fresh = jobs(9, 9 * step)
        many.add_jobs(fresh)
        for job in fresh:
            one.add_job(job)
        gone = [job_id for at, job_id in enumerate(one.jobs) if (at + step) % 3 == 0]
        many.remove_jobs(gone)
        for job_id in gone:
            one.remove_job(job_id)
        assert list(many.jobs) == list(one.jobs)
        assert list(many.book.offers) == list(one.book.offers)
        assert many.book.age_s == one.book.age_s
        assert many.book.requirements == one.book.requirements
        assert many.plan(60.0 * step).allocations == one.plan(60.0 * step).allocations


def test_one_wrong_job_and_none_is_added() -> None:
    policy = HopsPolicy(Cluster.of(CLUSTER))
    policy.add_jobs(jobs(3))
    for wrong, error in (
        ([*jobs(2, 10), jobs(1)[0]], DuplicateJobError),
        ([*jobs(1, 20), *jobs(1, 20)], DuplicateJobError),
        ([*jobs(2, 10), Job("wide", "bert", min_gpus=1000)], InvalidJobError),
    ):
        with pytest.raises(error):
            policy.add_jobs(wrong)
        assert list(policy.jobs) == list(policy.book.offers) == list(policy.book.age_s) == ["j0", "j1", "j2"]
        assert list(policy.book.smallest) == list(policy.book.requirements) == ["j0", "j1", "j2"]


def test_the_program_has_each_job_of_the_window_with_its_own_gains() -> None:
    policy = HopsPolicy(Cluster.of(CLUSTER), stay_bonus=0.0)
    policy.add_jobs(jobs(30))
    policy.plan(0.0)
    program = policy.programs.whole
    assert set(program.model.requests) == set(program.wishes)
    assert len({wish.offers.key for wish in program.wishes.values()}) > 1, "of several templates"
    for job, wish in program.wishes.items():
        np.testing.assert_allclose(program.model.cost(job), wish.weight * wish.offers.gain)
