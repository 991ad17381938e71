"""Data loads of running jobs: windows, when a fit is due, and what the theory says after it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from copter_frontends.policies.baselines.fifo import FifoPolicy
from copter_frontends.policies.hops import (
    DataLoading,
    HopsPolicy,
    IterationTimes,
    LearnedLoading,
    Links,
    LoadingRecords,
    LoadingState,
    ThroughputError,
    ThroughputEstimator,
    fit_loading,
    profile_by_gpu,
)
from copter_frontends.policies.hops.loading_records import FIRST_FIT, WINDOW
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Cluster, InvalidJobError, Job
from copter_papers.hops.workload import MODELS, hops_jobs, iteration_source, iteration_times

PARTS = IterationTimes(
    0.1, 0.2, 0.0, DataLoading(LoadingState(0.1), LoadingState(1.0, wait_s=0.5), 0.5), 1e6, 32.0, Links(1e9, 1e9)
)


def two_states(slow: int, cached: int) -> list[float]:
    """So many loads of about a second, and so many of about a tenth, in turn."""
    each = [1.0 + 0.01 * (i % 3) for i in range(slow)] + [0.1 + 0.001 * (i % 3) for i in range(cached)]
    return [each[i] for i in np.random.default_rng(0).permutation(len(each)).tolist()]


def test_a_fit_is_due_at_first_then_at_twice_as_many_then_once_a_window() -> None:
    records = LoadingRecords()
    due_at = []
    for i in range(4 * WINDOW):
        if records.add("bert", "v100", [0.1 + 0.001 * (i % 5)]):
            records.refit("bert", "v100", PARTS)
            due_at.append(i + 1)
    doubled = [FIRST_FIT * 2**k for k in range(20) if FIRST_FIT * 2**k <= WINDOW]
    assert due_at[: len(doubled)] == doubled
    gaps = np.diff(due_at[len(doubled) :])
    assert set(gaps.tolist()) <= {doubled[-1], WINDOW}
    assert gaps[-1] == WINDOW
    assert records.count("bert", "v100") == WINDOW


def test_the_two_states_are_fitted_to_the_latest_loads_alone() -> None:
    records = LoadingRecords()
    records.add("bert", "v100", [7.0] * WINDOW)
    loads = two_states(WINDOW // 4, WINDOW - WINDOW // 4)
    assert records.add("bert", "v100", loads)
    found = records.refit("bert", "v100", PARTS)
    assert found.loading.cached_share == pytest.approx(0.75, abs=1e-6)
    assert found.loading.cached.mean_s == pytest.approx(0.101, abs=1e-4)
    assert found.loading.slow.mean_s == pytest.approx(1.01, abs=1e-3)
    assert replace(found, loading=PARTS.loading) == PARTS


def test_waits_are_seen_on_several_gpus_and_known_on_one() -> None:
    loads = two_states(20, 20)
    alone, together = LoadingRecords(), LoadingRecords()
    alone.add("bert", "v100", loads)
    together.add("bert", "v100", loads, [0.3 if load > 0.5 else 0.0 for load in loads])
    known = alone.refit("bert", "v100", PARTS).loading
    assert (known.cached.wait_s, known.slow.wait_s) == (pytest.approx(0.0, abs=1e-9), pytest.approx(0.5, abs=1e-9))
    seen = together.refit("bert", "v100", PARTS).loading
    assert (seen.cached.wait_s, seen.slow.wait_s) == (pytest.approx(0.0, abs=1e-9), pytest.approx(0.3, abs=1e-9))
    assert (seen.cached.mean_s, seen.slow.mean_s) == (known.cached.mean_s, known.slow.mean_s)


def test_jobs_and_gpu_types_have_windows_of_their_own_and_what_was_not_seen_stays() -> None:
    records = LoadingRecords()
    records.add("bert", "v100", [0.2] * 10)
    assert records.refit("bert", "k80", PARTS) is PARTS
    assert records.refit("vgg", "v100", PARTS) is PARTS
    assert records.refit("bert", "v100", PARTS).loading == fit_loading([0.2] * 10, [0.0] * 10)
    assert len(records) == 1


def test_what_is_no_time_is_refused_and_changes_nothing() -> None:
    records = LoadingRecords()
    for loads, waits in (([0.1, -1.0], None), ([float("nan")], None), ([0.1], [float("inf")]), ([0.1, 0.2], [0.1])):
        with pytest.raises(ThroughputError):
            records.add("bert", "v100", loads, waits)
    assert len(records) == 0


def test_windows_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("copter_frontends.policies.hops.loading_records.MOST_KEYS", 2)
    records = LoadingRecords()
    for key in ("a", "b", "a", "c"):
        records.add(key, "v100", [0.1])
    assert [records.count(key, "v100") for key in "abc"] == [2, 0, 1]


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.unsteady])
def test_loads_of_a_run_bring_the_theory_nearer_to_the_truth_than_a_short_profile(name: str) -> None:
    true = iteration_times(MODELS[name], "titanxp")
    rng = np.random.default_rng(5)
    short = replace(true, loading=fit_loading(true.loading.draw(10, rng)))
    records = LoadingRecords()
    loads, waits = true.loading.draw_with_waits(WINDOW, rng)
    records.add(name, "titanxp", loads.tolist(), waits.tolist())
    found = records.refit(name, "titanxp", short)
    for gpus, nodes in ((1, 1), (4, 1), (4, 2)):
        truth = true.throughput(gpus, nodes)
        assert abs(found.throughput(gpus, nodes) / truth - 1.0) < 0.03
        assert abs(short.throughput(gpus, nodes) / truth - 1.0) > abs(found.throughput(gpus, nodes) / truth - 1.0)


def test_the_theory_of_an_estimator_follows_and_its_records_stay() -> None:
    estimator = ThroughputEstimator()
    job = Job("j", "bert")
    estimator.profile(job, {"v100": PARTS})
    estimator.observe(job, "v100", {"a": 2}, 50.0)
    learned, before = LearnedLoading(estimator), estimator.version
    learned.observe(job, "v100", [0.1] * (FIRST_FIT - 1))
    assert estimator.version == before
    assert estimator.per_gpu(job, "v100", "a", 1, 1) == pytest.approx(PARTS.throughput(1, 1))
    learned.observe(job, "v100", [0.1])
    assert estimator.version > before
    # Loads of 0.1 s are hidden by the backward pass of 0.2: an iteration takes 0.3 s.
    assert estimator.per_gpu(job, "v100", "a", 1, 1) == pytest.approx(32.0 / 0.3)
    assert estimator.per_gpu(job, "v100", "a", 2, 1) == pytest.approx(25.0)
    learned.observe(Job("k", "vgg"), "v100", [0.1] * FIRST_FIT)
    assert estimator.per_gpu(Job("k", "vgg"), "v100", "a", 1, 1) == 0.0, "never profiled there"


def test_a_policy_that_learns_takes_in_loads_on_the_gpus_that_a_job_has() -> None:
    cluster = Cluster.of({"v100": (1, 4)})
    estimator = ThroughputEstimator()
    job = Job("j", "bert", work_samples=1e6)
    estimator.profile(job, {"v100": PARTS})
    policy = HopsPolicy(cluster, estimator)
    policy.add_job(job, [2])
    with pytest.raises(InvalidJobError, match="no GPUs"):
        policy.update_job("j", loads=[0.1] * FIRST_FIT)
    policy.plan(0.0)
    assert policy.learns_loading
    policy.update_job("j", loads=[0.1] * FIRST_FIT, waits=[0.05] * FIRST_FIT)
    found = estimator.database.theory("bert", "v100")
    assert found is not None
    assert found.loading.mean_s == pytest.approx(0.1)
    assert found.loading.cached.wait_s == pytest.approx(0.05)
    assert estimator.per_gpu(job, "v100", "x", 2, 1) == pytest.approx(32.0 / 0.3501)
    assert policy.book.offers["j"] is not None
    told = HopsPolicy(cluster)
    assert not told.learns_loading
    told.add_job(Job("k", "bert", work_samples=1e6), [2])
    told.plan(0.0)
    with pytest.raises(TypeError, match="ThroughputEstimator"):
        told.update_job("k", loads=[0.1])


def test_what_jobs_load_in_the_simulator_mends_the_theory() -> None:
    cluster = Cluster.of({"rtx3090-w780": (4, 4), "rtx3090-yk8100": (4, 4)})
    source, estimator = iteration_source(cluster), ThroughputEstimator()
    truth = {name: {kind: iteration_times(model, kind) for kind in cluster.types} for name, model in MODELS.items()}
    profile_by_gpu(estimator, truth, dict.fromkeys(cluster.types, 16), iterations=10)
    jobs, _ = hops_jobs(30, 600.0, seed=1, scale=0.05)
    before = {
        (name, kind): estimator.database.theory(name, kind)
        for name in {job.application for job in jobs}
        for kind in truth[name]
    }
    policy = HopsPolicy(cluster, estimator)
    result = Simulation(cluster, jobs, policy, source, policy.round_s).run()
    assert result.summary()["jobs_completed"] == len(jobs)
    assert policy.book.loading is not None
    fitted = [at for at in before if policy.book.loading.records.count(*at) >= FIRST_FIT]
    assert len(fitted) > 5
    nearer = 0
    for name, kind in fitted:
        old, new, true = before[name, kind], estimator.database.theory(name, kind), truth[name][kind]
        assert old is not None
        assert new is not None
        assert new.loading.mean_s == pytest.approx(true.loading.mean_s, rel=0.25)
        nearer += abs(new.loading.mean_s - true.loading.mean_s) < abs(old.loading.mean_s - true.loading.mean_s)
    assert nearer > 0.8 * len(fitted)


# What the simulator tells ---------------------------------------------------------------------------------------------


def told_in(seed: int, learns: bool, learns_loading: bool) -> list[tuple[str, dict[str, object]]]:
    """(job, facts with observed rates or loads) that a policy is told of in a few rounds."""
    cluster = Cluster.of({"titanxp": (2, 4)})
    source = iteration_source(cluster)
    found: list[tuple[str, dict[str, object]]] = []

    class Listening(FifoPolicy):
        def update_job(self, job_id: str, **what_changed: object) -> None:
            kept = {name: what_changed.pop(name) for name in ("observed", "loads", "waits") if name in what_changed}
            if kept:
                found.append((job_id, kept))
            super().update_job(job_id, **what_changed)

    Listening.learns, Listening.learns_loading = learns, learns_loading  # type: ignore[method-assign, assignment]
    policy = Listening(cluster)
    jobs, _ = hops_jobs(8, 600.0, seed=3)
    Simulation(cluster, jobs, policy, source, 60.0, seed=seed).run(rounds=8)
    return found


def test_loads_are_drawn_from_the_truth_by_the_seed_and_told_to_who_learns_them() -> None:
    found = told_in(0, True, True)
    assert found
    assert told_in(0, True, True) == found
    assert told_in(1, True, True) != found
    assert told_in(0, False, True) == []
    assert [facts for _, facts in told_in(0, True, False)] == [{"observed": facts["observed"]} for _, facts in found]
    jobs = {job.id: job for job in hops_jobs(8, 600.0, seed=3)[0]}
    for job_id, facts in found:
        true = iteration_times(MODELS[jobs[job_id].application], "titanxp").loading
        loads = np.array(facts["loads"])
        assert (
            (np.abs(loads - true.cached.mean_s) < 6 * true.cached.deviation_s)
            | (np.abs(loads - true.slow.mean_s) < 6 * true.slow.deviation_s)
        ).all()
        alone = jobs[job_id].requested_gpus == 1
        assert ("waits" in facts) != alone
        assert len(loads) == len(facts.get("waits", loads))  # type: ignore[arg-type]
