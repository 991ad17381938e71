"""The time-sharing penalty: service in the window, turns in a crowd, no GPU idle."""

from __future__ import annotations

import pytest

from copter.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.sia import SiaPolicy, TimeSharing
from copter_frontends.sia.time_sharing import Service
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Cluster, Job, configurations_of


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
    restarts = simulation.result().jobs["restarts"]
    assert 1 <= restarts.min() <= restarts.max() <= restarts.min() + 1  # nobody is passed over


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(SettingsError, match="window_s is 0"):
        TimeSharing(0.0)
    with pytest.raises(SettingsError, match="weight is nan"):
        TimeSharing(60.0, float("nan"))
