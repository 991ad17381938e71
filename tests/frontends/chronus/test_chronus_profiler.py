"""The Profiler: order, submission control, size by the arrivals, the formula, and promises kept beside it."""

from __future__ import annotations

import pytest
from test_chronus_policy import simulate

from copter.runtime.errors import SettingsError
from copter_frontends.policies.chronus import ChronusPolicy, Profiler, Standing, StepReward
from copter_frontends.policy_kit import ThroughputTable, iteration_time
from copter_frontends.vocabulary import Cluster, Job
from copter_papers.chronus.profiled_rates import ProfiledRates
from copter_papers.chronus.workload import synthetic_workload

RATES = ThroughputTable({"any": {"v100": 1.0}})


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
    roomy = Profiler(headroom=1.5)
    for number in range(240):
        roomy.submit(f"job-{number}", 4, 15.0 * number)
    roomy.step(3600.0, 8, 800)
    assert roomy.gpus == 120
    with pytest.raises(SettingsError, match="must be positive"):
        Profiler(profile_s=0.0)
    with pytest.raises(SettingsError, match=r"headroom is 0\.9"):
        Profiler(headroom=0.9)


@pytest.mark.parametrize(("nodes", "gpus"), [(None, 16), (1, 8), (2, 16), (4, 16)])
def test_a_large_job_is_profiled_on_two_nodes_at_most(nodes: int | None, gpus: int) -> None:
    policy = ChronusPolicy(Cluster.of({"v100": (8, 8)}), RATES, profiler=Profiler(nodes=nodes))
    policy.add_job(Job("large", "any", 0.0, work_samples=3600.0, requested_gpus=32))
    assert policy.profiler is not None
    assert policy.profiler.queue["large"].gpus == gpus


def test_profiled_jobs_run_and_the_profilers_idle_gpus_are_nobodys() -> None:
    policy = ChronusPolicy(Cluster.of({"v100": (2, 8)}), RATES, profiler=Profiler(nodes=1))
    policy.add_job(Job("first", "any", 0.0, work_samples=9000.0, requested_gpus=16))
    for now_s in (0.0, 300.0):
        policy.plan(now_s)
    assert policy.profiler is not None
    assert "first" not in policy.profiler
    policy.add_job(Job("next", "any", 310.0, work_samples=9000.0, requested_gpus=3))
    assert policy.plan(600.0).allocations["next"].gpus == 3
    assert "first" not in policy.held, "16 GPUs are not free beside a node for profiles"


def test_no_gpu_is_profiled_on_that_is_promised() -> None:
    policy = ChronusPolicy(Cluster.of({"v100": (2, 8)}), RATES, profiler=Profiler(nodes=1))
    policy.set_reward("promised", StepReward.strict(36000.0))
    policy.add_job(Job("promised", "any", 0.0, work_samples=10000.0, requested_gpus=8))
    assert policy.profiler is not None
    for now_s in (0.0, 300.0, 600.0):
        policy.plan(now_s)
    assert policy.book.most_in_one_lease(1, 0).tolist() == [8]
    policy.profiler.nodes = 2
    policy.plan(900.0)
    assert (policy.profiler.target, policy.profiler.gpus) == (16, 8)


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
    profiler = Profiler(every=True)
    policy, jct_s = simulate(work, 3, profiler=profiler)
    promised = {n.job_id: n.step for n in policy.notices if n.standing is Standing.GUARANTEED}
    assert len(profiler.waits_s) == len(work.jobs)
    assert promised
    assert not [n for n in policy.notices if n.standing is Standing.DEMOTED]
    for job_id, step in promised.items():
        assert jct_s[job_id] <= work.rewards[job_id].steps[step][0] + 1e-3


def profiled(true_s: float, deadline_s: float) -> ChronusPolicy:
    """A policy that believes a job of 6,000 s, after its profile on a cluster where the job takes `true_s`."""
    cluster = Cluster.of({"v100": (2, 8)})
    table = ThroughputTable({"any": {"v100": {1: 1.0}}}, {"any": 6000.0})
    policy = ChronusPolicy(cluster, table, profiler=Profiler())
    policy.set_reward("job", StepReward.strict(deadline_s))
    policy.add_job(Job("job", "any"))
    policy.plan(0.0)
    policy.update_job("job", progress=300.0 / true_s)
    policy.plan(300.0)
    return policy


def test_a_profile_feeds_the_rates_and_says_where_they_are_wrong() -> None:
    slow = profiled(12_000.0, 100_000.0)
    assert slow.modes.modes_of(slow.jobs["job"])[0].total_s == pytest.approx(12_000.0)
    told = [n.reason for n in slow.notices if n.standing is Standing.WAITING]
    assert len(told) == 1
    assert "contradicts the declared rate: it takes 2 times as long" in told[0]
    assert slow.book.records["job"].standing is Standing.GUARANTEED
    right = profiled(6_100.0, 100_000.0)
    assert right.modes.modes_of(right.jobs["job"])[0].total_s == 6000.0
    assert not [n for n in right.notices if n.standing is Standing.WAITING]
    late = profiled(12_000.0, 9_000.0)  # the declared rate would do, the measured one does not
    late.plan(1200.0)
    assert late.notices[-1].standing is Standing.UNGUARANTEED


def test_a_deadline_that_passes_while_the_job_waits_for_its_profile_is_told_and_harms_nobody() -> None:
    cluster = Cluster.of({"v100": (2, 8)})
    table = ThroughputTable({"any": {"v100": {1: 1.0, 8: 8.0}}}, {"any": 6000.0})
    policy = ChronusPolicy(cluster, table, profiler=Profiler(nodes=1))
    policy.set_reward("first", StepReward.strict(100_000.0))
    policy.set_reward("hasty", StepReward.strict(500.0))
    policy.add_job(Job("first", "any", requested_gpus=8))
    policy.add_job(Job("hasty", "any"))
    for k in range(5):
        policy.plan(300.0 * k)
    told = {n.job_id: n for n in policy.notices}
    assert told["first"].standing is Standing.GUARANTEED
    assert "passed while it waited for its profile" in told["hasty"].reason
    assert "hasty" not in policy.book.records
    assert "hasty" in policy.jobs  # it runs as best effort
