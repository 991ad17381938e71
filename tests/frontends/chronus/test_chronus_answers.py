"""What users are answered: quotes, promises by what is left of a lease, promises that survive failures, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.chronus import ChronusPolicy, Profiler, Standing, StepReward
from copter_frontends.policies.chronus.expected_demand import ExpectedDemand
from copter_frontends.policy_kit import ThroughputTable, TimedThroughputs, TrainingThroughputs
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Cluster, InvalidJobError, Job, configurations_of
from copter_frontends.vocabulary.named_clusters import scaled_cluster

LEASE_S = 1200.0
RATES = ThroughputTable({"any": {"v100": 1.0}})


def policy_of(nodes: int = 1, **knobs: object) -> ChronusPolicy:
    policy = ChronusPolicy(Cluster.of({"v100": (nodes, 8)}), RATES, **knobs)  # type: ignore[arg-type]
    policy.plan(0.0)
    return policy


def job_of(name: str, seconds: float, gpus: int = 8) -> Job:
    return Job(name, "any", work_samples=seconds, requested_gpus=gpus)


def add(policy: ChronusPolicy, job: Job, deadline_s: float) -> Standing:
    policy.set_reward(job.id, StepReward.strict(deadline_s))
    policy.add_job(job)
    assert policy.last_admission is not None
    return policy.last_admission.standing


def test_what_is_left_of_the_lease_and_the_deadlines_own_lease_count() -> None:
    """Work of 1,400 s by 2,400 s: no two whole leases fit before it, a part of the first and one more do."""
    policy = policy_of()
    assert add(policy, job_of("short", 1400.0), 1.5 * LEASE_S) is Standing.GUARANTEED
    record = policy.book.records["short"]
    assert record.leases.tolist() == [0, 1]
    assert "short" in policy.plan(300.0).allocations
    assert add(policy, job_of("next", 2400.0), 4.0 * LEASE_S + 200.0) is Standing.GUARANTEED
    assert policy.book.records["next"].leases.tolist() == [2, 3, 4]  # 60 s and a restart of the last lease
    assert add(policy_of(), job_of("not", 2400.0), 2789.0) is Standing.WAITING
    assert add(policy_of(), job_of("just", 2400.0), 2790.0) is Standing.GUARANTEED


def test_a_quote_is_the_earliest_deadline_and_holds_nothing() -> None:
    policy = policy_of(2)
    add(policy, job_of("first", 3000.0, 16), 6.0 * LEASE_S)
    before = {name: record.leases.tolist() for name, record in policy.book.records.items()}
    job = job_of("asked", 5000.0)
    quotes = {each.gpus: each for each in policy.quote(job)}
    assert set(quotes) == {4, 8, 16}
    assert {name: record.leases.tolist() for name, record in policy.book.records.items()} == before
    assert "asked" not in policy.book.records
    assert quotes[16].ends_s < quotes[8].ends_s < quotes[4].ends_s
    ends_s = quotes[8].ends_s
    assert add(policy, job, ends_s - 1.0) is Standing.WAITING
    policy.remove_job("asked")
    assert add(policy, job, ends_s) is Standing.GUARANTEED
    assert policy.quote(job_of("too large", 100.0, 17), gpus=[64]) == []


def test_a_quote_of_random_jobs_is_kept() -> None:
    """Whatever is promised already: the deadline that is quoted is promised to the next job that asks for it."""
    rng = np.random.default_rng(5)
    policy, kept = policy_of(3), 0
    for number in range(40):
        if number % 8 == 7:
            policy.plan((number // 8 + 1) * LEASE_S)
        job = Job(
            f"j{number}", "any", policy._now_s, rng.uniform(500.0, 9000.0), requested_gpus=int(2 ** rng.integers(0, 5))
        )
        best = policy.quote(job, gpus=[job.requested_gpus])[0]
        kept += add(policy, job, best.ends_s - job.submit_s + 0.01) is Standing.GUARANTEED
    assert kept == 40


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_promises_survive_the_loss_of_any_node_that_is_spared_for(lost: int) -> None:
    policy = policy_of(3, spare_nodes=1)
    plain = policy_of(3)
    told = [add(policy, job_of(f"j{k}", 4000.0), 5.0 * LEASE_S) for k in range(3)]
    also = [add(plain, job_of(f"j{k}", 4000.0), 5.0 * LEASE_S) for k in range(3)]
    assert told.count(Standing.GUARANTEED) == 2  # what it costs
    assert also.count(Standing.GUARANTEED) == 3
    for each in (policy, plain):
        each.plan(300.0)
        each.remove_resources("v100", 8, [f"v100-{lost}"])
        each.plan(600.0)
    assert not policy.broken_promises
    assert set(plain.broken_promises.values()) == {True}
    with pytest.raises(SettingsError, match="spare_nodes is -1"):
        policy_of(spare_nodes=-1)


def test_a_job_that_would_cost_those_to_come_more_than_it_earns_is_told() -> None:
    demand = ExpectedDemand(1, LEASE_S)
    few = demand.displaced(0, 1, 99.0, np.full(2, 8), 0.0, 8)
    assert 0.0 <= few < 1.0 < demand.displaced(0, 8, 99.0, np.full(40, 8), 0.0, 8)  # before any hours tell
    for hour in range(6):
        for _ in range(6):
            demand.note(0, 2, 2, 99.0, hour * 3600.0)
    large = demand.displaced(0, 8, 99.0, np.full(40, 8), 6 * 3600.0, 8)
    assert large > 99.0
    assert demand.displaced(0, 1, 99.0, np.full(2, 8), 6 * 3600.0, 8) < 40.0
    quiet = ExpectedDemand(1, LEASE_S)
    quiet.note(0, 1, 1, 1e-3, 0.0)
    assert quiet.displaced(0, 8, 99.0, np.full(40, 8), 72 * 3600.0, 8) < 1.0  # three days in which nobody came
    policy = policy_of(selective=True)
    policy.selector.demand = demand
    assert add(policy, job_of("large", 30 * LEASE_S), 60 * LEASE_S) is Standing.UNGUARANTEED
    assert "worth more to the jobs that come" in policy.notices[-1].reason
    assert add(policy, job_of("small", LEASE_S, 1), 3 * LEASE_S) is Standing.GUARANTEED


@pytest.mark.parametrize("application", ["cifar10", "bert", "imagenet", "yolov3"])
def test_rates_by_the_clock_are_what_a_simulation_takes(application: str) -> None:
    cluster = scaled_cluster(56)
    model = GoodputModel(configurations_of(cluster))
    rates = TrainingThroughputs(cluster, model)
    assert isinstance(rates, TimedThroughputs)
    job = Job("one", application, work_samples=3e5, requested_gpus=2, batch_size=256)
    policy = ChronusPolicy(cluster, rates)
    result = Simulation(cluster, [job], policy, model, policy.round_s).run()
    fastest = max(rates.rate(job, kind, 2) for kind in cluster.types)
    taken_s = float(result.jobs["jct_s"][0]) - rates.restart_s(job)
    assert taken_s == pytest.approx(rates.work(job) / fastest, rel=1e-6)
    kind = max(cluster.types, key=lambda each: rates.rate(job, each, 2))
    half = rates.time_done(job, kind, 2, 0.5)
    assert rates.work(job) * 0.5 / rates.rate(job, kind, 2, 0.5) == pytest.approx(
        (1.0 - half) * rates.work(job) / rates.rate(job, kind, 2)
    )


def test_a_lease_shorter_than_a_jobs_restart_is_told() -> None:
    cluster = scaled_cluster(56)
    rates = TrainingThroughputs(cluster, GoodputModel(configurations_of(cluster)))
    policy = ChronusPolicy(cluster, rates, lease_s=200.0, round_s=100.0, restart_s=10.0)
    job = Job("slow to start", "imagenet", work_samples=1e6, requested_gpus=1, batch_size=256)
    policy.set_reward(job.id, StepReward.strict(1e6))
    with pytest.raises(InvalidJobError, match="a start takes the job 250 s, a lease is 200 s"):
        policy.add_job(job)
    assert job.id not in policy.jobs


def test_a_job_is_profiled_only_where_it_runs_and_a_start_is_no_slowness() -> None:
    table = ThroughputTable({"any": {"a100": 1.0}, "both": {"k80": 0.5, "a100": 1.0}})
    profiler = Profiler(most_user_gpus=None)
    policy = ChronusPolicy(Cluster.of({"k80": (1, 8), "a100": (1, 8)}), table, profiler=profiler)
    policy.plan(0.0)
    policy.add_job(Job("only", "any", work_samples=1000.0, requested_gpus=2))
    policy.add_job(Job("both", "both", work_samples=1000.0, requested_gpus=2))
    assert {kind: list(each.queue) for kind, each in policy.profiling.by_type.items()} == {
        "k80": ["both"],
        "a100": ["only"],
    }
    kinds = {name: held.gpu_type for name, held in policy.plan(300.0).allocations.items()}
    assert kinds == {"only": "a100", "both": "k80"}
    assert policy.follows
    cluster = scaled_cluster(56)
    rates = TrainingThroughputs(cluster, GoodputModel(configurations_of(cluster)))
    modes = ChronusPolicy(cluster, rates).modes
    bert = Job("b", "bert", work_samples=1e5, requested_gpus=1, batch_size=96)
    whole_s = rates.work(bert) / rates.rate(bert, "a100", 1)
    share = 180.0 / whole_s  # of its time, in 300 s of which 120 are its start
    progress = next(p for p in np.linspace(0.0, 1.0, 100_001) if rates.time_done(bert, "a100", 1, float(p)) >= share)
    modes.note_profile(bert, "a100", 1, 300.0, (0.0, float(progress)))
    assert modes.measured(bert, "a100", 1) == pytest.approx(1.0, abs=0.01)
    assert modes.seconds(bert, "a100", 1, rates.rate(bert, "a100", 1)) == whole_s
