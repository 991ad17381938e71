"""Hadar's edits: many jobs' progress at once, kept rates, and values of what changed only."""

from __future__ import annotations

import numpy as np
import pytest

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.policies.hadar.formulation import bundle_values
from copter_frontends.policies.hadar.round_values import NO_VALUE, _feasible_thresholds, eligible_gpus
from copter_frontends.policy_kit import GoodputThroughputs, ThroughputTable, rates_at_start
from copter_frontends.vocabulary import Job, ToldAtOnce, UnknownJobError, configurations_of
from copter_frontends.vocabulary.named_clusters import scaled_cluster

CLUSTER = scaled_cluster(56)
TYPES = tuple(CLUSTER.types)


def policy_with(jobs: int) -> HadarPolicy:
    policy = HadarPolicy(CLUSTER)
    for n in range(jobs):
        policy.add_job(Job(f"j{n}", ("cifar10", "bert")[n % 2], work_samples=4e6, requested_gpus=1 + n % 4))
    return policy


def test_progress_told_at_once_is_what_it_is_told_job_by_job() -> None:
    one, many = policy_with(30), policy_with(30)
    one.plan(0.0)
    many.plan(0.0)
    told = {f"j{n}": {"progress": n / 40} for n in range(20)}
    told["j25"] = {"progress": 0.5, "restarts": 1}
    for job_id, facts in told.items():
        one.update_job(job_id, **facts)
    assert isinstance(many, ToldAtOnce)
    many.update_jobs(told)
    assert many.book.progress.tolist() == one.book.progress.tolist()
    assert many.plan(360.0).allocations == one.plan(360.0).allocations
    assert many.edit_clock.seconds == 0.0  # taken up by the plan


def test_impossible_news_of_one_of_many_jobs_changes_nothing() -> None:
    policy = policy_with(4)
    policy.update_jobs({"j0": {"progress": 0.25}})
    with pytest.raises(InvalidDataError, match=r"job 'j2': progress is 1\.5"):
        policy.update_jobs({"j1": {"progress": 0.5}, "j2": {"progress": 1.5}})
    with pytest.raises(InvalidDataError, match="job 'j2': progress is nan"):
        policy.update_jobs({"j2": {"progress": float("nan")}})
    with pytest.raises(UnknownJobError, match="nobody"):
        policy.update_jobs({"j1": {"progress": 0.5}, "nobody": {"progress": 0.5}})
    with pytest.raises(TypeError, match="mood"):
        policy.update_jobs({"j1": {"mood": 1}})
    assert policy.book.progress.tolist() == [0.25, 0.0, 0.0, 0.0]


def test_the_book_s_ids_are_its_jobs_after_any_departures() -> None:
    policy = policy_with(200)  # more than there is room for at first
    for n in (0, 199, 57, 58, 120):
        policy.remove_job(f"j{n}")
    policy.add_job(Job("new", "cifar10", work_samples=1e6))
    book = policy.book
    assert book.ids == [job.id for job in book.jobs]
    assert {job_id: book.row(job_id) for job_id in book.ids} == {job_id: n for n, job_id in enumerate(book.ids)}
    assert len(book.gpus) == len(book.rates) == len(book.sent) == len(book) == 196
    assert book.gpus.tolist() == [job.requested_gpus for job in book.jobs]


def test_kept_rates_are_those_of_every_type() -> None:
    model = GoodputModel(configurations_of(CLUSTER))
    known, fresh = GoodputThroughputs(CLUSTER, model), GoodputThroughputs(CLUSTER, model)
    for n in range(12):
        job = Job(f"j{n}", ("cifar10", "bert")[n % 2], work_samples=1e6, requested_gpus=2 + n % 3)
        rates = rates_at_start(known, job, TYPES, job.requested_gpus)
        assert rates == [fresh.rate(job, kind, job.requested_gpus) for kind in TYPES]
    table = ThroughputTable({"a": {"t4": 2.0}, "b": {"t4": 3.0}}, {"a": 1.0, "b": 1.0})
    each = [rates_at_start(table, Job(name, "cifar10"), ("t4", "k80"), 1) for name in "ab"]
    assert each == [[2.0, 0.0], [3.0, 0.0]]  # of jobs, not of shapes


def test_jobs_that_fit_on_any_type_have_room_and_larger_ones_are_counted() -> None:
    rng = np.random.default_rng(1)
    rate, gpus = rng.choice([0.0, 1.0, 2.0, 3.0], (60, 3)), rng.integers(1, 12, 60)
    for capacity in ([8, 5, 9], [8, 0, 9], [20, 30, 40]):
        left = np.array(capacity)
        counted = eligible_gpus(rate, left) >= gpus[:, None]
        runs = rate > 0
        assert (_feasible_thresholds(gpus, rate, left)[runs] == counted[runs]).all()


def test_what_a_job_keeps_is_worth_its_own_and_the_rest_is_valued_again() -> None:
    policy = policy_with(12)
    policy.plan(0.0)
    values = policy.formulation.refresh(policy.terms(360.0))
    book = policy.book
    bundles = book.held.copy()
    moved = int(np.flatnonzero(bundles.any(axis=1))[0])
    bundles[moved] = 0
    bundles[moved, 1] = book.gpus[moved]
    bundles[moved + 1] = 0
    worth = bundle_values(book, values, bundles)
    for row in range(len(book)):
        if not bundles[row].any():
            assert worth[row] == 0.0
        elif (bundles[row] == book.held[row]).all():
            assert worth[row] == values.own[row]
        else:
            assert worth[row] == max(values.pure[row, 1], NO_VALUE)


def test_news_is_taken_up_in_the_order_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in the order of a set, which differs from process to process."""
    policy, seen = policy_with(30), []
    monkeypatch.setattr(policy, "update_job", lambda job_id, **_: seen.append(job_id))
    policy.update_jobs({f"j{n}": {"restarts": 1} for n in reversed(range(30))})
    assert seen == [f"j{n}" for n in reversed(range(30))]
