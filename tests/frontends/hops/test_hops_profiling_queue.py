"""The profiling queue: new jobs take one GPU of every GPU type for whole rounds before they join."""

from __future__ import annotations

import pytest

from copter_frontends.policies.hops import (
    HopsPolicy,
    IterationTimes,
    ProfilingQueue,
    ThroughputError,
    ThroughputEstimator,
)
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Allocation, Cluster, DuplicateJobError, InvalidJobError, Job
from copter_papers.hops.workload import MODELS, hops_jobs, iteration_source, iteration_times

KINDS = {"rtx3090-w780": (1, 2), "rtx3090-yk8100": (1, 2), "titanxp": (1, 2)}
NAMES = ("resnet50-cifar10", "gpt2-medium-wikitext")


def queue_of(cluster: Cluster, iterations: int = 50, each: bool = False) -> tuple[ProfilingQueue, ThroughputEstimator]:
    estimator = ThroughputEstimator()
    truth: dict[str, dict[str, IterationTimes]] = {
        name: {kind: iteration_times(model, kind) for kind in cluster.types} for name, model in MODELS.items()
    }
    return ProfilingQueue(HopsPolicy(cluster, estimator), estimator, truth, iterations, each), estimator


def test_a_profiling_run_lasts_as_long_as_its_iterations_on_the_slowest_server() -> None:
    queue, _ = queue_of(Cluster.of(KINDS))
    slow = iteration_times(MODELS["convnext-imagenet"], "rtx3090-w780").seconds(1, 1)
    assert queue.seconds("convnext-imagenet", "rtx3090") == pytest.approx(30.0 + 50 * slow)
    gpt = iteration_times(MODELS["gpt2-medium-wikitext"], "titanxp").seconds(1, 1)
    assert queue.seconds("gpt2-medium-wikitext", "titanxp") == pytest.approx(30.0 + 50 * gpt)


def test_a_job_joins_when_it_has_been_profiled_on_every_gpu_type() -> None:
    queue, estimator = queue_of(Cluster.of(KINDS))
    short, long = (Job(f"j{i}", name, work_samples=1e6) for i, name in enumerate(NAMES))
    queue.add_job(short, [1])
    queue.add_job(long, [1])
    assert estimator.throughput(short, "titanxp", {"x": 1}) == 0.0
    plan = queue.plan(0.0)
    assert plan.allocations == {}
    assert plan.start == ()
    assert queue.probing == [4]  # of two jobs on titanxp and rtx3090, of which there are two kinds of servers
    assert sum(queue.nodes.free(kind) for kind in KINDS) == 2
    assert set(queue.plan(60.0).allocations) == {"j0"}
    # 30 + 50 * 2 s on a titanxp: three rounds; an rtx3090 needs two.
    assert queue.seconds(NAMES[1], "titanxp") > 120.0
    assert set(queue.plan(120.0).allocations) == {"j0"}
    assert set(queue.plan(180.0).allocations) == {"j0", "j1"}
    assert queue.probing == [4, 2, 1, 0]
    assert queue.waiting == 0
    assert estimator.throughput(long, "titanxp", {"x": 1}) > 0.0


def test_jobs_of_an_application_wait_for_its_first_and_later_ones_join_at_once() -> None:
    for each, joined in ((False, {"a", "b", "c"}), (True, {"a", "b"})):
        queue, _ = queue_of(Cluster.of(KINDS), each=each)
        for name in ("a", "b"):
            queue.add_job(Job(name, NAMES[0], work_samples=1e9), [1])
        queue.plan(0.0)
        assert queue.probing == [4 if each else 2]
        queue.add_job(Job("c", NAMES[0], 60.0, work_samples=1e9), [1])
        assert set(queue.plan(60.0).allocations) == joined
        assert queue.waiting == (1 if each else 0)
        assert set(queue.plan(360.0).allocations) == {"a", "b", "c"}


def test_a_probe_takes_the_gpu_of_the_smallest_job_that_may_be_stopped() -> None:
    queue, _ = queue_of(Cluster.of({"titanxp": (2, 2)}))
    queue.add_job(Job("wide", NAMES[0], work_samples=1e9), [2])
    queue.plan(0.0)
    queue.plan(60.0)
    queue.add_job(Job("thin", NAMES[0], work_samples=1e9), [1])
    queue.add_job(Job("thin too", NAMES[0], work_samples=1e9), [1])
    before = queue.plan(120.0).allocations
    assert {job: each.gpus for job, each in before.items()} == {"wide": 2, "thin": 1, "thin too": 1}
    queue.add_job(Job("new", NAMES[1], work_samples=1e9), [1])
    assert queue.probing[-1] == 0
    after = queue.plan(180.0)
    assert queue.probing[-1] == 1
    assert after.allocations["wide"] == before["wide"]
    assert len(after.stop) == 1
    assert set(after.stop) < {"thin", "thin too"}


def test_a_probe_waits_where_all_gpus_are_pinned_and_leaves_with_its_job() -> None:
    queue, _ = queue_of(Cluster.of({"titanxp": (1, 2)}))
    queue.add_job(Job("a", NAMES[0], work_samples=1e9), [2])
    queue.plan(0.0)
    held = queue.plan(60.0).allocations["a"]
    queue.pin("a", held)
    queue.add_job(Job("b", NAMES[1], work_samples=1e9), [1])
    assert queue.plan(120.0).allocations == {"a": held}
    assert queue.probing[-1] == 0
    queue.pin("a", None)
    assert queue.plan(180.0).allocations == {}, "no size of the job fits beside the probe"
    assert queue.probing[-1] == 1
    queue.remove_job("b")
    assert queue.waiting == 0
    assert queue.plan(600.0).allocations == {"a": Allocation("titanxp", 2, (("titanxp-0", 2),))}


def test_all_jobs_of_a_simulation_end_and_wait_for_their_profiles() -> None:
    cluster = Cluster.of({"rtx3090-w780": (2, 4), "rtx3090-yk8100": (2, 4), "titanxp": (4, 4)})
    source = iteration_source(cluster)
    jobs, _ = hops_jobs(12, 120.0, seed=2, scale=0.05)
    queue, estimator = queue_of(cluster)
    result = Simulation(cluster, jobs, queue, source, queue.round_s).run()
    assert result.summary()["jobs_completed"] == len(jobs), result.skipped
    seconds = {
        job.application: max(queue.seconds(job.application, gpu) for gpu in ("rtx3090", "titanxp")) for job in jobs
    }
    waits = dict(zip(result.jobs["id"].tolist(), result.jobs["queue_s"].tolist(), strict=True))
    first = {job.application: job for job in reversed(jobs)}
    assert all(waits[job.id] >= seconds[name] for name, job in first.items())
    applications = {key for key, *_ in estimator.database.all_measured()}
    assert applications <= {job.application for job in jobs}


def test_a_run_without_iterations_is_refused() -> None:
    with pytest.raises(ThroughputError, match="iterations is 0"):
        queue_of(Cluster.of(KINDS), iterations=0)


def test_jobs_that_cannot_be_profiled_or_fit_nowhere_are_refused_when_they_come() -> None:
    queue, _ = queue_of(Cluster.of(KINDS))
    with pytest.raises(InvalidJobError, match="cannot be profiled"):
        queue.add_job(Job("a", "unknown", work_samples=1.0), [1])
    with pytest.raises(InvalidJobError):
        queue.add_job(Job("b", NAMES[0], work_samples=1.0), [7])
    assert queue.waiting == 0
    for name in ("first", "behind it"):
        queue.add_job(Job(name, NAMES[0], work_samples=1e6), [1])
        with pytest.raises(DuplicateJobError):
            queue.add_job(Job(name, NAMES[1], work_samples=1e6), [1])
    queue.plan(0.0)
    queue.plan(60.0)
    assert queue.waiting == 0
    with pytest.raises(DuplicateJobError):
        queue.add_job(Job("first", NAMES[1], work_samples=1e6), [1])
