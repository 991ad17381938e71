"""The Profiler: order, submission control, size by the arrivals, the formula, and promises kept beside it."""

from __future__ import annotations

import pytest
from test_chronus_policy import simulate

from copter.errors import SettingsError
from copter_frontends.chronus import Profiler, Standing
from copter_frontends.chronus.profiled_rates import ProfiledRates, iteration_time
from copter_frontends.chronus.workload import synthetic_workload
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job


def test_first_come_first_served_for_the_profile_time() -> None:
    profiler = Profiler(nodes=1)
    for number, gpus in enumerate((6, 4, 1)):
        profiler.submit(f"job-{number}", gpus, 0.0)
    assert profiler.step(0.0, 8, 80) == []
    assert list(profiler.running) == ["job-0"]
    assert profiler.step(300.0, 8, 80) == ["job-0"]
    assert list(profiler.running) == ["job-1", "job-2"]
    assert profiler.waits_s == [0.0, 300.0, 300.0]


def test_submission_control_holds_one_user_back_and_no_other() -> None:
    profiler = Profiler(nodes=10, users=dict.fromkeys(("a1", "a2", "a3", "a4"), "a"))
    for job_id in ("a1", "a2", "a3", "a4", "b"):
        profiler.submit(job_id, 8, 0.0)
    profiler.step(0.0, 8, 80)
    assert list(profiler.running) == ["a1", "a2", "a3", "b"]
    profiler.step(300.0, 8, 80)
    assert list(profiler.running) == ["a4"]


def test_its_size_follows_the_arrivals_hour_by_hour() -> None:
    profiler = Profiler()
    for number in range(240):
        profiler.submit(f"job-{number}", 4, 15.0 * number)
    profiler.step(3600.0, 8, 800)
    assert profiler.gpus == 80  # 960 GPUs per hour for 300 s each
    profiler.step(3900.0, 8, 800)
    assert profiler.gpus == 80
    crowded = Profiler()
    for number in range(240):
        crowded.submit(f"job-{number}", 4, 15.0 * number)
    crowded.step(3600.0, 8, 16)  # no more is free of promises
    assert crowded.gpus == 16
    assert len(crowded.running) == 4
    with pytest.raises(SettingsError, match="must be positive"):
        Profiler(profile_s=0.0)


def test_two_nodes_tell_of_more() -> None:
    assert iteration_time(1.0, 1.2, 1) == 1.0
    assert iteration_time(1.0, 1.2, 2) == pytest.approx(1.2)
    assert iteration_time(1.0, 1.2, 8) == pytest.approx(1.6)
    with pytest.raises(SettingsError):
        iteration_time(1.0, 1.2, 0)


def test_rates_beyond_two_nodes_follow_the_formula_and_errors_are_fixed() -> None:
    cluster = Cluster.of({"v100": (8, 8)})
    table = ThroughputTable({"any": {"v100": {8: 8.0, 16: 14.0, 64: 999.0}}}, {"any": 1000.0})
    job = Job("job", "any", requested_gpus=64)
    rates = ProfiledRates(cluster, table)
    assert rates.rate(job, "v100", 16) == 14.0
    one, two = 1 / 8, 2 / 14
    assert rates.rate(job, "v100", 64) == pytest.approx(8 / (one + 3 * (two - one)))
    assert rates.work(job) == 1000.0
    noisy = ProfiledRates(cluster, table, noise=0.3, seed=1)
    assert noisy.work(job) == noisy.work(job) != 1000.0
    assert noisy.work(Job("other", "any")) != noisy.work(job)


def test_promises_are_kept_beside_a_profiling_cluster() -> None:
    work = synthetic_workload(70, 8.0, "mix2", 1.4, 3, hostile=0.1)
    profiler = Profiler()
    policy, jct_s = simulate(work, 3, profiler=profiler)
    promised = {n.job_id: n.step for n in policy.notices if n.standing is Standing.GUARANTEED}
    assert len(profiler.waits_s) == len(work.jobs)
    assert promised
    assert not [n for n in policy.notices if n.standing is Standing.DEMOTED]
    for job_id, step in promised.items():
        assert jct_s[job_id] <= work.rewards[job_id].steps[step][0] + 1e-3
