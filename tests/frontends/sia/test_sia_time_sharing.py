"""The time-sharing penalty: service in the window, turns in a crowd, no GPU idle."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.sia import SiaPolicy, TimeSharing
from copter_frontends.policies.sia.time_sharing import Service
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Cluster, Job, Plan, configurations_of


def test_service_is_counted_within_the_window() -> None:
    service = Service()
    service.note(0.0, True)
    service.note(120.0, False)
    assert service.seconds(180.0, 180.0) == 120.0
    assert service.seconds(240.0, 180.0) == 60.0
    service.note(240.0, True)
    assert service.seconds(300.0, 180.0) == 60.0
    assert service.seconds(420.0, 180.0) == 180.0


def test_a_turn_keeps_its_bonus_and_a_whole_window_costs_it_for_as_long() -> None:
    service, sharing = Service(), TimeSharing(180.0, weight=2.0)
    assert service.bonus(0.0, sharing) == 2.0
    service.note(0.0, True)
    assert service.bonus(60.0, sharing) == 2.0  # whoever waits is worth no more: the turn goes on
    assert service.bonus(120.0, sharing) == 2.0
    assert service.bonus(180.0, sharing) == 0.0
    service.note(180.0, False)
    assert service.bonus(300.0, sharing) == 0.0
    assert service.bonus(360.0, sharing) == 2.0 * 1.5  # it has waited for a window since


def test_a_job_that_waits_is_worth_what_it_lacks() -> None:
    service, sharing = Service(), TimeSharing(180.0, weight=1.0)
    service.note(0.0, True)
    service.note(120.0, False)
    assert service.bonus(180.0, sharing) == pytest.approx(1 / 3 * (1 + 60 / 240))
    assert service.bonus(240.0, sharing) == pytest.approx(2 / 3 * (1 + 120 / 300))
    service.note(240.0, True)
    assert service.bonus(360.0, sharing) == pytest.approx(2 / 3 * (1 + 120 / 300))


def test_who_waits_longer_goes_first() -> None:
    early, late, sharing = Service(), Service(), TimeSharing(180.0)
    early.note(0.0, False)
    late.note(600.0, False)
    assert late.bonus(900.0, sharing) < early.bonus(900.0, sharing) < 2 * sharing.weight


def run(sharing: TimeSharing | None) -> tuple[list[float], Simulation]:
    cluster = Cluster.of({"a100": (1, 8)})
    jobs = [Job(f"j{i}", "deepspeech2", 0.0) for i in range(24)]
    policy = SiaPolicy(cluster, time_sharing=sharing)
    simulation = Simulation(cluster, jobs, policy, GoodputModel(configurations_of(cluster)))
    for _ in range(30):
        record = simulation.step()
        assert record.gpus_used["a100"] == 8  # work-conserving
    return simulation.result().jobs["first_start_s"].astype(float).tolist(), simulation


def test_jobs_take_turns_and_every_gpu_is_used() -> None:
    alone, _ = run(None)
    shared, simulation = run(TimeSharing(180.0))
    assert sum(start == start for start in shared) == 24  # all have started
    assert sum(start == start for start in alone) < 24
    result = simulation.result().jobs
    assert result["restarts"].min() >= 1
    assert result["gpu_seconds"].max() <= 2.0 * result["gpu_seconds"].min()  # nobody is passed over


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(SettingsError, match="window_s is 0"):
        TimeSharing(0.0)
    with pytest.raises(SettingsError, match="weight is nan"):
        TimeSharing(60.0, float("nan"))


def test_the_published_penalty_is_the_share_of_the_window_without_service() -> None:
    service = Service()
    assert service.penalty(0.0, 180.0) == 1.0
    service.note(0.0, True)
    assert service.penalty(60.0, 180.0) == pytest.approx(2 / 3)
    assert service.penalty(120.0, 180.0) == pytest.approx(1 / 3)
    assert service.penalty(180.0, 180.0) == 0.0  # a whole window: nothing for the next one
    service.note(180.0, False)
    assert service.penalty(300.0, 180.0) == 0.0
    assert service.penalty(360.0, 180.0) == 1.0


def test_under_the_published_penalty_jobs_take_turns_and_idle_gpus_are_used() -> None:
    cluster = Cluster.of({"t4": (1, 4)})
    model = GoodputModel(configurations_of(cluster))
    ran: dict[bool, set[str]] = {}
    for sharing in (None, TimeSharing(180.0, published=True)):
        policy = SiaPolicy(cluster, model, time_sharing=sharing)
        policy.add_job(Job("a", "cifar10"))
        assert all("a" in policy.plan(60.0 * t).allocations for t in range(6)), "alone it is worth the least value"
        for name in "bcdefgh":
            policy.add_job(Job(name, "cifar10"))
        ran[sharing is None] = {job for t in range(6, 24) for job in policy.plan(60.0 * t).allocations}
    assert len(ran[True]) < 8, "without turns some wait to the end"
    assert ran[False] == set("abcdefgh")


def test_a_plan_takes_its_time_where_that_is_charged() -> None:
    cluster = Cluster.of({"t4": (1, 4)})
    model = GoodputModel(configurations_of(cluster))
    ends = []
    for factor in (0.0, 1.0):
        policy = SiaPolicy(cluster, model)
        plan = policy.plan

        def slow(now_s: float, deadline_s: float = 60.0, plan: Callable[..., Plan] = plan) -> Plan:
            time.sleep(0.2)
            return plan(now_s, deadline_s)

        policy.plan = slow  # type: ignore[method-assign]
        jobs = [Job("only", "cifar10", work_samples=5e5)]
        result = Simulation(cluster, jobs, policy, model, 60.0, plan_latency=factor).run()
        ends.append(float(result.jobs["jct_s"][0]))
    assert ends[1] >= ends[0] + 0.2
    with pytest.raises(ValueError, match="plan_latency"):
        Simulation(cluster, [], SiaPolicy(cluster), model, plan_latency=-1.0)
