"""Learning in the loop: what jobs are seen to do reaches the estimator, costs what it touches, and shapes plans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter import Settings
from copter_frontends.policies.hops import (
    GroupFormulation,
    HopsPolicy,
    IterationTimes,
    ModelledThroughputs,
    ThroughputDatabase,
    ThroughputError,
    ThroughputEstimator,
    profile_by_gpu,
    profiled,
)
from copter_frontends.policies.hops.records import SPEED_MOVED
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.cluster_events import ClusterEvent
from copter_frontends.vocabulary import Cluster, Job
from copter_papers.hops.workload import MODELS, hops_jobs, iteration_source, iteration_times

KINDS = {"rtx3090-w780": (4, 4), "rtx3090-yk8100": (4, 4), "titanxp": (4, 4)}


def truth(cluster: Cluster) -> dict[str, dict[str, IterationTimes]]:
    return {name: {kind: iteration_times(model, kind) for kind in cluster.types} for name, model in MODELS.items()}


def by_gpu(cluster: Cluster) -> ThroughputEstimator:
    estimator = ThroughputEstimator()
    profile_by_gpu(estimator, truth(cluster), {kind: cluster.capacity(kind) for kind in cluster.types})
    return estimator


# In the simulator -----------------------------------------------------------------------------------------------------


def test_what_jobs_do_in_the_simulator_is_learned() -> None:
    cluster = Cluster.of(KINDS)
    source, estimator = iteration_source(cluster), by_gpu(cluster)
    jobs, _ = hops_jobs(16, 120.0, seed=2, scale=0.05)
    before = {job.application: estimator.rate(job, "rtx3090-w780", 1, 1, ("x",)) for job in jobs}
    for job in jobs:
        assert estimator.rate(job, "rtx3090-yk8100", 1, 1, ("x",)) == before[job.application], "blurred at first"
    policy = HopsPolicy(cluster, estimator)
    result = Simulation(cluster, jobs, policy, source, policy.round_s).run()
    assert result.summary()["jobs_completed"] == len(jobs), result.skipped
    rows = list(estimator.database.all_measured())
    assert {row[0] for row in rows} <= {job.application for job in jobs}
    for name, kind, _, spread, count, _, per_gpu in rows:
        if not spread:  # what was seen is what the simulator does
            assert per_gpu == pytest.approx(iteration_times(MODELS[name], kind).throughput(count, 1), rel=1e-9)
    seen = {(name, count): kind for name, kind, server, spread, count, *_ in rows if not spread and server}
    assert len(seen) >= 4


def test_who_does_not_learn_is_not_told() -> None:
    cluster = Cluster.of(KINDS)
    source = iteration_source(cluster)
    policy = HopsPolicy(cluster, ModelledThroughputs(cluster, source))
    assert not policy.learns
    jobs, _ = hops_jobs(4, 120.0, seed=2, scale=0.02)
    assert Simulation(cluster, jobs, policy, source, 60.0).run().summary()["jobs_completed"] == 4


def test_a_job_whose_server_fails_is_not_asked_what_it_did_there() -> None:
    cluster = Cluster.of({"titanxp": (2, 4)})
    source = iteration_source(cluster)
    policy = HopsPolicy(cluster, by_gpu(cluster))
    jobs, _ = hops_jobs(6, 600.0, seed=5, scale=0.5)
    events = [ClusterEvent(600.0, "fail", "titanxp", ("titanxp-0",))]
    result = Simulation(cluster, jobs, policy, source, 60.0, events=events).run(rounds=15)
    assert len(result.rounds) == 15
    assert list(policy.book.throughputs.database.all_measured())  # type: ignore[attr-defined]


# Profiling ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_profile_finds_the_pattern_and_the_throughput(name: str) -> None:
    true = iteration_times(MODELS[name], "titanxp")
    found = profiled([true], [1.0], np.random.default_rng(3), iterations=400)
    hidden = true.loading.cached.mean_s + 3 * true.loading.cached.deviation_s < true.forward_s + true.backward_s
    if true.pattern == 2 or not hidden:
        assert found.pattern == true.pattern
    assert found.throughput(1, 1) == pytest.approx(true.throughput(1, 1), rel=0.06)
    assert found.throughput(4, 1) == pytest.approx(true.throughput(4, 1), rel=0.06)


def test_profiles_without_servers_are_refused() -> None:
    with pytest.raises(ThroughputError, match="0, 1 and 200"):
        profiled([], [1.0], np.random.default_rng(0))


# An observation costs what it touches ---------------------------------------------------------------------------------

SERVERS = {"v100": ("a", "b", "c"), "k80": ("d", "e")}
seen_once = st.tuples(
    st.sampled_from(["bert", "vgg"]),
    st.sampled_from([("v100", ("a",)), ("v100", ("b",)), ("v100", ("a", "c")), ("k80", ("d",)), ("k80", ("d", "e"))]),
    st.integers(1, 3),
    st.floats(1.0, 100.0),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(seen_once, min_size=1, max_size=25))
def test_records_in_memory_are_those_of_the_database_read_anew(history: list[tuple]) -> None:  # type: ignore[type-arg]
    database = ThroughputDatabase()
    estimator = ThroughputEstimator(database)
    for name, (kind, servers), each, rate in history:
        estimator.observe(Job("j", name), kind, dict.fromkeys(servers, each), rate)
    fresh = ThroughputEstimator(database)
    for name in ("bert", "vgg"):
        for kind, servers in SERVERS.items():
            for server in servers:
                assert estimator.server_speed(kind, server) == pytest.approx(
                    fresh.server_speed(kind, server), rel=2 * SPEED_MOVED
                )
                for gpus, nodes in ((1, 1), (2, 1), (3, 1), (2, 2), (4, 2)):
                    mine = estimator.per_gpu(Job("j", name), kind, server, gpus, nodes)
                    assert mine == pytest.approx(
                        fresh.per_gpu(Job("j", name), kind, server, gpus, nodes), rel=2 * SPEED_MOVED
                    )


def test_an_observation_makes_only_its_own_jobs_offers_again() -> None:
    cluster = Cluster.of({"titanxp": (4, 4)})
    policy = HopsPolicy(cluster, by_gpu(cluster), round_s=300.0)
    names = list(MODELS)[:4]
    for i, name in enumerate(names):
        policy.add_job(Job(f"j{i}", name, work_samples=1e6), [2, 3])
    policy.plan(0.0)
    held = policy.held["j0"]
    true = iteration_times(MODELS[names[0]], "titanxp").throughput(held.gpus, 1) * held.gpus
    policy.update_job("j0", observed=true)  # the first record
    policy.plan(300.0)
    before, version = dict(policy.book.offers), policy.book.throughputs.version
    policy.update_job("j0", observed=true)
    policy.plan(600.0)
    assert policy.book.throughputs.version == version, "what confirms the estimate changes nothing"
    assert all(policy.book.offers[job] is offers for job, offers in before.items())
    held = policy.held["j0"]
    policy.update_job("j0", observed=0.8 * true)
    policy.plan(900.0)
    other = [job for job in before if job != "j0"]
    assert policy.book.offers["j0"] is not before["j0"]
    assert all(policy.book.offers[job] is before[job] for job in other)


def as_fresh(policy: HopsPolicy) -> None:
    """The policy's edited program is worth what a new one on the same groups is."""
    fresh = GroupFormulation(policy.groups, Settings(threads=1))
    fresh.set_free(policy.groups.size)
    fresh.set_wishes(policy.formulation.wishes)
    expected = fresh.solve()
    found = policy.formulation.solve()
    assert found.objective == pytest.approx(expected.objective, rel=1e-5)
    assert found.bound == pytest.approx(expected.bound, rel=1e-5)


def test_a_server_that_changes_its_bin_keeps_the_session() -> None:
    cluster = Cluster.of({"titanxp": (4, 4), "gtx1080ti": (2, 4)})
    estimator = by_gpu(cluster)
    policy = HopsPolicy(cluster, estimator, round_s=300.0, stay_bonus=0.0)
    jobs = [Job(f"j{i}", name, work_samples=1e6) for i, name in enumerate(list(MODELS)[:8])]
    for job in jobs:
        policy.add_job(job, [1, 2, 3])
    policy.plan(0.0)
    model, groups = policy.model, len(policy.groups)
    for server, rate in (("titanxp-0", 90.0), ("titanxp-1", 100.0), ("titanxp-2", 100.0), ("titanxp-3", 100.0)):
        estimator.observe(Job("other", "other"), "titanxp", {server: 1}, rate)
    policy.plan(300.0)
    assert policy.model is model, "rows get other right-hand sides; nothing is written anew"
    assert len(policy.groups) > groups
    assert any(group.servers == ("titanxp-0",) for group in policy.groups.groups)
    as_fresh(policy)
    for _ in range(60):  # the server is as fast as the others again: its bin empties and stays
        estimator.observe(Job("other", "other"), "titanxp", {"titanxp-0": 1}, 100.0)
    again = policy.plan(600.0)
    assert policy.model is model
    assert any(group.servers == () for group in policy.groups.groups)
    assert sum(allocation.gpus for allocation in again.allocations.values()) <= 24
    assert not policy.skipped
    as_fresh(policy)
