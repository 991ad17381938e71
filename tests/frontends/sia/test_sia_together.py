"""Jobs that join, leave and are pinned in Sia together are as jobs that do so one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from policy_state import policy_state

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import (
    Allocation,
    Cluster,
    DuplicateJobError,
    InvalidJobError,
    Job,
    JoinedAtOnce,
    PinnedAtOnce,
    UnknownJobError,
    configurations_of,
)
from copter_frontends.vocabulary.semantics import DEFAULT

CLUSTER = {"t4": (4, 4), "a100": (2, 8)}
PREFERS = replace(DEFAULT, prefer_types=("a100", "t4"))


def jobs(count: int, first: int = 0) -> list[Job]:
    names = ("cifar10", "bert", "deepspeech2")
    return [
        Job(f"j{first + i}", names[i % 3], 10.0 * i, weight=1.0 + i % 2, max_gpus=(None, 4, 8)[i % 3])
        for i in range(count)
    ]


def assert_alike(many: SiaPolicy, one: SiaPolicy) -> None:
    assert policy_state(many) == policy_state(one)
    book, other = many.formulation.jobs, one.formulation.jobs
    assert list(book) == list(other)
    assert book.numbers_of(book.rows()).tobytes() == other.numbers_of(other.rows()).tobytes()
    assert many.formulation.stranded == one.formulation.stranded
    for job in book:
        assert many.model.cost(job).tolist() == one.model.cost(job).tolist()


@pytest.mark.parametrize("semantics", [DEFAULT, PREFERS])
def test_jobs_that_join_leave_and_are_pinned_together_are_as_one_by_one(semantics) -> None:
    one, many = (SiaPolicy(Cluster.of(CLUSTER), semantics=semantics) for _ in range(2))
    assert isinstance(many, JoinedAtOnce)
    assert isinstance(many, PinnedAtOnce)
    held: dict[str, Allocation] = {}
    for step in range(5):
        fresh = jobs(40, 40 * step)
        many.add_jobs(fresh)
        for job in fresh:
            one.add_job(job)
        there = list(one.formulation.jobs)
        gone = [job_id for at, job_id in enumerate(there) if (at + step) % 3 == 0]
        many.remove_jobs(gone)
        for job_id in gone:
            one.remove_job(job_id)
        stay = [job_id for job_id in held if job_id not in gone]
        pins = {job_id: held[job_id] if at % 2 else None for at, job_id in enumerate(stay)}
        many.pin_jobs(pins)
        for job_id, allocation in pins.items():
            one.pin(job_id, allocation)
        assert_alike(many, one)
        held = dict(many.plan(60.0 * step).allocations)
        assert held == one.plan(60.0 * step).allocations


def test_one_wrong_job_and_none_is_added_or_removed() -> None:
    policy = SiaPolicy(Cluster.of(CLUSTER))
    policy.add_jobs([*jobs(3), Job("own", "bert", reservation=("t4", 4))])
    before, arrivals = policy_state(policy), policy.formulation.arrivals
    wide = Job("wide", "bert", min_gpus=1000)
    for wrong, error in (
        ([*jobs(2, 10), jobs(1)[0]], DuplicateJobError),
        ([*jobs(1, 20), *jobs(1, 20)], DuplicateJobError),
        ([*jobs(2, 10), wide], InvalidJobError),
        ([*jobs(2, 10), Job("too-much", "bert", reservation=("t4", 16))], InvalidJobError),
        ([Job("held", "bert", preemptible=False), wide], InvalidJobError),
    ):
        with pytest.raises(error):
            policy.add_jobs(wrong)
        assert policy.formulation.arrivals == arrivals
        assert list(policy.reservations.jobs) == ["own"]
    for unknown in (["j0", "nobody"], ["j0", "j0"]):
        with pytest.raises(UnknownJobError):
            policy.remove_jobs(unknown)
    policy.add_jobs([])
    policy.remove_jobs([])
    policy.pin_jobs({})
    assert list(policy.formulation.jobs) == ["j0", "j1", "j2", "own"]
    assert policy_state(policy) == before


class Pinned(SiaPolicy):
    """A policy with its own way to pin a job."""

    def __init__(self) -> None:
        super().__init__(Cluster.of(CLUSTER), round_s=60.0)
        self.seen = list[str]()

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        self.seen.append(job_id)
        super().pin(job_id, allocation)


def test_a_policy_with_its_own_way_to_pin_sees_every_pin() -> None:
    cluster = Cluster.of(CLUSTER)
    model = GoodputModel(configurations_of(cluster))
    own, usual = Pinned(), SiaPolicy(cluster, round_s=60.0)
    runs = [Simulation(cluster, jobs(12), each, model) for each in (own, usual)]
    for run in runs:
        run.run(rounds=4)
    assert own.seen, "jobs restart for more than a round"
    assert [each.gpus_used for each in runs[0].records] == [each.gpus_used for each in runs[1].records]
    assert own.held == usual.held
