"""Hare by tasks on the simulator: rounds on any GPUs, plans on arrival and completion, the conformance suite."""

from __future__ import annotations

import random

import numpy as np
import pytest
from conformance import PolicyConformance
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_checks import check_plan

from copter_frontends.policies.hare import HareInstance, HareJob, TimeGrid
from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.models import MODELS
from copter_frontends.policies.hare.shim import schedule_in_order
from copter_frontends.policies.hare.slots import fill_idle, slot_owners
from copter_frontends.policies.hare.task_policy import HareTaskPolicy
from copter_frontends.policies.hare.task_rates import TaskGoodput, round_s
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Allocation, Cluster, InvalidJobError, Job, SchedulingPolicy, configurations_of
from copter_frontends.vocabulary.named_clusters import cluster_from
from copter_papers.hare.applications import HARE_APPLICATIONS, as_jobs
from copter_papers.hare.workload import PaperWorkload

MODEL = MODELS["resnet50"]


class TestHareByTasksConforms(PolicyConformance):
    applications = ("vgg19", "resnet50", "bert_base", "deepspeech", "graphsage")
    examples = 5
    refuses_large_jobs = False

    def cluster(self) -> Cluster:
        return Cluster.of({"t4": (3, 4), "v100": (2, 8), "a100": (2, 8)})  # no model is known to run on an A100

    def job(self, i: int, rng: random.Random) -> Job:
        job = super().job(i, rng)
        return Job(job.id, job.application, job.submit_s, 1e5, job.requested_gpus)

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HareTaskPolicy(cluster)

    def test_a_job_that_fits_nowhere_is_refused(self) -> None:
        policy = HareTaskPolicy(Cluster.of({"a100": (1, 8)}))
        with pytest.raises(InvalidJobError, match="huge"):
            policy.add_job(Job("huge", "vgg19", work_samples=100.0))
        assert not policy.jobs
        policy = self.make(self.cluster())
        policy.add_job(Job("huge", "vgg19", work_samples=1e5, requested_gpus=500))
        assert policy.plan(0.0).allocations["huge"].gpus > 8  # its rounds run in turns


def slowest_round(tasks: int, gpus: dict[str, int]) -> float:
    """The least time of a round, by trying how many tasks each GPU takes."""
    each = [MODEL.train_s(kind) for kind, count in gpus.items() for _ in range(count)]
    free = [0.0] * len(each)
    for _ in range(tasks):
        at = min(range(len(each)), key=lambda m: free[m] + each[m])
        free[at] += each[at]
    return max(free) + MODEL.sync_s()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 5), st.integers(0, 5), st.integers(0, 2))
def test_a_round_runs_on_any_gpus_in_turns(tasks: int, fast: int, middle: int, slow: int) -> None:
    gpus = {"v100": fast, "t4": middle, "k80": slow}
    if fast + middle + slow == 0:
        assert round_s("resnet50", tasks, gpus) == float("inf")
        return
    assert round_s("resnet50", tasks, gpus) == pytest.approx(slowest_round(tasks, gpus), rel=1e-9)


def test_a_slow_gpu_does_no_harm_and_a_fast_one_takes_several_tasks() -> None:
    alone = round_s("resnet50", 4, {"v100": 1})
    assert alone == pytest.approx(4 * MODEL.train_s("v100") + MODEL.sync_s())
    assert round_s("resnet50", 4, {"v100": 1, "k80": 1}) == pytest.approx(alone)  # a K80 takes seven times as long
    assert round_s("resnet50", 4, {"v100": 1, "t4": 1}) < alone


def simulated(policy: HareTaskPolicy, cluster: Cluster, jobs: list[HareJob]) -> dict[str, float]:
    source = TaskGoodput(configurations_of(cluster), HARE_APPLICATIONS)
    result = Simulation(cluster, as_jobs(jobs), policy, source, policy.round_s).run()
    return dict(zip(result.jobs["id"].tolist(), result.jobs["jct_s"].tolist(), strict=True))


def test_a_job_larger_than_the_cluster_runs_its_rounds_in_turns_on_mixed_types() -> None:
    cluster = Cluster.of({"v100": (1, 2), "t4": (1, 1)})
    train = {kind: MODEL.train_s(kind) for kind in ("v100", "t4")}
    job = HareJob("wide", 2000, 8, train, dict.fromkeys(train, MODEL.sync_s()), model="resnet50")
    policy = HareTaskPolicy(cluster, round_s=60.0)
    policy.add_job(as_jobs([job])[0])
    plan = policy.plan(0.0)
    check_plan(plan, cluster)
    assert plan.allocations["wide"].by_type == {"v100": 2, "t4": 1}
    jct_s = simulated(HareTaskPolicy(cluster, round_s=60.0), cluster, [job])
    assert jct_s["wide"] == pytest.approx(2000 * round_s("resnet50", 8, {"v100": 2, "t4": 1}), rel=1e-3)


def test_all_is_planned_again_on_arrival_and_completion_only() -> None:
    cluster = cluster_from("hare-15")
    jobs = PaperWorkload(12).make(3)
    weights = {job.id: job.weight for job in jobs}
    policy = HareTaskPolicy(cluster, round_s=60.0, weights=weights, relaxation="always")
    planned: list[tuple[int, frozenset[str]]] = []
    whole = policy.choose

    def watched(now_s: float, deadline_s: float):  # type: ignore[no-untyped-def]
        result = whole(now_s, deadline_s)
        planned.append((policy.replans, frozenset(policy.jobs)))
        return result

    policy.choose = watched  # type: ignore[method-assign]
    jct_s = simulated(policy, cluster, jobs)
    assert set(jct_s) == {job.id for job in jobs}
    solves = [0, *(count for count, _ in planned)]
    known = [frozenset(), *(names for _, names in planned)]
    for before, after, had, has in zip(solves[:-1], solves[1:], known[:-1], known[1:], strict=True):
        assert after - before == int(has != had and bool(has))
    assert policy.replans < len(planned)
    assert policy.edit_log.solves == policy.replans
    # jobs come and go once each; all else that happens to them changes bounds
    assert policy.edit_log.added <= 2 * len(jobs)
    assert policy.edit_log.removed <= policy.edit_log.added
    assert policy.edit_log.changed >= 2 * policy.edit_log.added


def test_the_order_is_that_of_the_weights() -> None:
    cluster = Cluster.of({"v100": (1, 1)})
    train = {"v100": MODEL.train_s("v100")}
    jobs = [HareJob(f"j{n}", 5000, 1, train, weight=1.0 + 9 * (n == 2), model="resnet50") for n in range(3)]
    policy = HareTaskPolicy(cluster, round_s=60.0, weights={job.id: job.weight for job in jobs})
    jct_s = simulated(policy, cluster, jobs)
    assert jct_s["j2"] < min(jct_s["j0"], jct_s["j1"])


def test_a_gpu_type_that_goes_away_under_running_tasks_leaves_the_others_planned() -> None:
    cluster = Cluster.of({"v100": (1, 2), "t4": (1, 2)})
    policy = HareTaskPolicy(cluster, round_s=60.0)
    for job in as_jobs(PaperWorkload(4, arrival_window_s=0.0).make(1)):
        policy.add_job(job)
    policy.plan(0.0)
    policy.remove_resources("v100", 2)
    plan = policy.plan(60.0)
    assert plan.allocations
    assert all(set(given.by_type) == {"t4"} for given in plan.allocations.values())
    policy.add_resources("v100", 2)
    assert any("v100" in given.by_type for given in policy.plan(120.0).allocations.values())


def test_the_rest_of_a_job_does_not_wait_for_a_longer_one() -> None:
    """One job has a quarter of a slot left, the other the rest of it and more, on the only GPU."""
    jobs = [HareJob("nearly done", 1, 1, {"g": 1.0}), HareJob("long", 9, 1, {"g": 1.0})]
    instance = HareInstance.of(jobs, {"g": 1})
    schedule = schedule_in_order(instance, Chunks.cut(instance, np.array([1, 1])), np.arange(10))
    assert slot_owners(schedule, 0.0, 4.0).tolist() == [0]
    assert slot_owners(schedule, 0.0, 0.5).tolist() == [0]
    assert slot_owners(schedule, 1.0, 5.0).tolist() == [1]


def test_pins_hold_mixed_gpus() -> None:
    cluster = Cluster.of({"v100": (1, 2), "t4": (1, 2)})
    policy = HareTaskPolicy(cluster, round_s=60.0)
    for job in as_jobs(PaperWorkload(3, arrival_window_s=0.0).make(2)):
        policy.add_job(job)
    held = Allocation("t4", 2, (("t4-0", 1), ("v100-0", 1)), (("t4", 1), ("v100", 1)))
    policy.pin("job-0", held)
    plan = policy.plan(0.0)
    check_plan(plan, cluster)
    assert plan.allocations["job-0"] == held


def test_a_gpu_works_for_the_job_it_has_most_tasks_of() -> None:
    jobs = [HareJob("a", 4, 1, {"g": 1.0}), HareJob("b", 2, 3, {"g": 1.0})]
    instance = HareInstance.of(jobs, {"g": 2})
    chunks = Chunks.cut(instance, np.array([1, 1]))
    schedule = schedule_in_order(instance, chunks, np.arange(6))
    assert sorted(slot_owners(schedule, 0.0, 4.0).tolist()) == [0, 1]
    assert slot_owners(schedule, 100.0, 104.0).tolist() == [-1, -1]
    assert fill_idle(schedule, np.array([0, -1]), np.array([0, 1])).tolist() == [0, 1]
    assert fill_idle(schedule, np.array([-1, -1]), np.array([0, 1])).tolist() == [0, 1]


def test_time_that_goes_backwards_is_planned_from() -> None:
    cluster = cluster_from("hare-15")
    policy = HareTaskPolicy(cluster, round_s=60.0)
    jobs = as_jobs(PaperWorkload(3, arrival_window_s=0.0).make(2))
    policy.add_job(jobs[0])
    policy.plan(600.0)
    policy.add_job(jobs[1])
    check_plan(policy.plan(60.0), cluster)
    assert isinstance(policy.grid, TimeGrid)
    assert policy.grid.edges[0] == 0.0  # times from now on
