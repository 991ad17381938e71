"""The rules of the ranking baselines on cases worked by hand (docs/papers/baselines.md, B13-B18)."""

from __future__ import annotations

import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.policies.baselines.fair_share import FairnessPolicy
from copter_frontends.policies.baselines.srtf import SrtfPolicy
from copter_frontends.policies.baselines.themis import ThemisPolicy
from copter_frontends.policies.baselines.tiresias import TiresiasPolicy
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job, SchedulingPolicy

FOUR = {"a": (1, 4)}


def running(policy: SchedulingPolicy, now_s: float) -> set[str]:
    return set(policy.plan(now_s).allocations)


# Tiresias


def test_a_job_leaves_the_first_queue_when_its_gpu_seconds_reach_the_threshold():
    policy = TiresiasPolicy(Cluster.of(FOUR), thresholds_gpu_s=(480.0,))
    policy.add_job(Job("wide", "cifar10", requested_gpus=4))
    assert running(policy, 0.0) == {"wide"}
    policy.add_job(Job("late", "cifar10", submit_s=60.0, requested_gpus=4))
    assert running(policy, 60.0) == {"wide"}  # 240 GPU seconds: still first in the first queue
    assert running(policy, 120.0) == {"late"}  # 480: demoted
    assert [policy.queue_of(j) for j in ("wide", "late")] == [1, 0]
    assert running(policy, 180.0) == {"late"}
    assert running(policy, 240.0) == {"wide"}  # both in the second queue, where the first come is first served


def test_service_is_gpus_times_seconds():
    policy = TiresiasPolicy(Cluster.of(FOUR), thresholds_gpu_s=(100.0, 400.0))
    policy.add_job(Job("wide", "cifar10", requested_gpus=3))
    policy.add_job(Job("thin", "cifar10", requested_gpus=1))
    for now_s in (0.0, 60.0, 120.0, 180.0):
        policy.plan(now_s)
    assert [policy.queue_of(j) for j in ("wide", "thin")] == [2, 1]  # 540 and 180 GPU seconds


def test_the_knob_promotes_a_job_that_has_waited_long_enough_and_its_count_starts_anew():
    policy = TiresiasPolicy(Cluster.of(FOUR), thresholds_gpu_s=(240.0,), promote_knob=2.0)
    policy.add_job(Job("old", "cifar10", requested_gpus=4))
    policy.plan(0.0)
    policy.add_job(Job("new", "cifar10", submit_s=30.0, requested_gpus=4))
    assert running(policy, 60.0) == {"new"}  # old has run 60 s
    assert running(policy, 90.0) == {"new"}
    assert policy.queue_of("old") == 1
    assert running(policy, 180.0) == {"old"}  # it has waited 120 s, twice as long
    assert policy.queue_of("old") == 0


def test_thresholds_must_increase():
    with pytest.raises(SettingsError, match="increase"):
        TiresiasPolicy(Cluster.of(FOUR), thresholds_gpu_s=(7200.0, 3600.0))
    with pytest.raises(SettingsError, match="promote_knob"):
        TiresiasPolicy(Cluster.of(FOUR), promote_knob=-1.0)


# Shortest remaining time first

TWO_TYPES = {"slow": (1, 2), "fast": (1, 2)}
RATES = ThroughputTable({"short": {"slow": 1.0, "fast": 2.0}, "long": {"slow": 1.0, "fast": 2.0}})


def test_the_job_with_the_least_left_goes_first_and_takes_the_fastest_type():
    policy = SrtfPolicy(Cluster.of(TWO_TYPES), RATES)
    policy.add_job(Job("l", "long", work_samples=100.0, requested_gpus=2))
    assert policy.plan(0.0).allocations["l"].gpu_type == "fast"
    policy.add_job(Job("s", "short", submit_s=1.0, work_samples=10.0, requested_gpus=2))
    kinds = {job: held.gpu_type for job, held in policy.plan(60.0).allocations.items()}
    assert kinds == {"s": "fast", "l": "slow"}


def test_progress_counts():
    policy = SrtfPolicy(Cluster.of({"fast": (1, 2)}), RATES)
    policy.add_job(Job("l", "long", work_samples=100.0, requested_gpus=2))
    policy.add_job(Job("s", "short", work_samples=10.0, requested_gpus=2))
    assert running(policy, 0.0) == {"s"}
    policy.update_job("l", progress=0.95)
    assert running(policy, 60.0) == {"l"}  # 2.5 s left, not 5


# Finish-time fairness


def test_rho_is_age_and_time_left_over_the_fair_time():
    policy = FairnessPolicy(Cluster.of({"a": (1, 4)}), ThroughputTable({"x": {"a": 2.0}}))
    job = Job("j", "x", work_samples=200.0, requested_gpus=4)  # 100 s alone
    policy.add_job(job)
    policy.add_job(Job("k", "x", work_samples=200.0, requested_gpus=4))
    policy.count_contention()
    assert policy.contention("j") == 2.0
    assert policy.fair_s(job) == pytest.approx(200.0)
    policy.update_job("j", progress=0.5)
    assert policy.rho(job, 150.0) == pytest.approx((150.0 + 50.0) / 200.0)


def test_themis_offers_to_the_least_fairly_treated_first():
    table = ThroughputTable({"x": {"a": 1.0}})
    policy = ThemisPolicy(Cluster.of({"a": (1, 4)}), table, filter_share=0.0)
    policy.add_job(Job("old", "x", work_samples=1000.0, requested_gpus=4))
    policy.add_job(Job("new", "x", submit_s=300.0, work_samples=1000.0, requested_gpus=4))
    assert running(policy, 360.0) == {"old"}
    policy.update_job("old", progress=0.5)  # rho 0.86 / 2 against 1.06 / 2
    assert running(policy, 360.0) == {"new"}


def test_beyond_the_offer_themis_leaves_running_jobs_alone():
    table = ThroughputTable({"x": {"a": 1.0}})
    policy = ThemisPolicy(Cluster.of({"a": (2, 1)}), table, filter_share=0.7)
    for i in range(3):
        policy.add_job(Job(f"{i}", "x", submit_s=10.0 * i, work_samples=1000.0))
    assert running(policy, 30.0) == {"0", "1"}
    policy.update_job("0", progress=0.9)
    policy.update_job("1", progress=0.8)
    # Only the worst, "2", is in the offer; of the others, both running, "1" has the larger rho.
    assert running(policy, 390.0) == {"2", "1"}


def test_the_filter_is_a_share():
    with pytest.raises(SettingsError, match="filter_share"):
        ThemisPolicy(Cluster.of(FOUR), ThroughputTable({}), filter_share=1.0)


# What all share


def test_a_job_is_split_over_nodes_only_where_it_must_be():
    policy = TiresiasPolicy(Cluster.of({"a": (2, 4)}))
    for i, gpus in enumerate((3, 3, 2)):
        policy.add_job(Job(f"{i}", "cifar10", requested_gpus=gpus))
    found = policy.plan(0.0).allocations
    assert found["0"].nodes == (("a-0", 3),)
    assert found["1"].nodes == (("a-1", 3),)
    assert found["2"].nodes == (("a-0", 1), ("a-1", 1))


def test_a_pin_takes_gpus_from_jobs_that_are_not_pinned():
    policy = TiresiasPolicy(Cluster.of({"a": (1, 4)}))
    policy.add_job(Job("j", "cifar10", requested_gpus=4))
    policy.add_job(Job("k", "cifar10", requested_gpus=4))
    held = policy.plan(0.0).allocations["j"]
    policy.pin("k", held)
    assert running(policy, 60.0) == {"k"}
