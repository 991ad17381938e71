"""Hare's history of task times: unknown models, wrong declarations, and jobs of which all is known."""

from __future__ import annotations

import pytest
import test_hare_task_policy as by_tasks

from copter_frontends.goodput import UnknownApplicationError
from copter_frontends.policies.hare.models import MODELS
from copter_frontends.policies.hare.task_policy import HareTaskPolicy
from copter_frontends.policies.hare.task_rates import TaskGoodput
from copter_frontends.policy_kit import SeenTimes
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Cluster, Job, SchedulingPolicy, configurations_of
from copter_frontends.vocabulary.named_clusters import cluster_from
from copter_papers.hare.applications import HARE_APPLICATIONS, as_jobs
from copter_papers.hare.workload import PaperWorkload

CLUSTER = Cluster.of({"k80": (2, 4), "v100": (2, 4)})
TASKS = 4


def policy_of(seen: SeenTimes | None) -> HareTaskPolicy:
    return HareTaskPolicy(CLUSTER, round_s=60.0, seen=seen)


def job_of(name: str, model: str = "new", tasks: int = TASKS) -> Job:
    return Job(name, model, work_samples=4000.0 * tasks / TASKS, requested_gpus=tasks)  # 1,000 rounds


def train(policy: HareTaskPolicy, name: str, round_s: dict[str, float], rounds: int) -> str:
    """Run a job alone for some plans with these times of a round; returns the GPU type of its last plan."""
    done, kind = 0.0, ""
    for k in range(rounds):
        held = policy.plan(60.0 * k).allocations[name]
        assert held.gpus == TASKS
        kind = held.gpu_type
        done += 60.0 / round_s[kind] / 1000.0
        policy.update_job(name, progress=done)
    policy.plan(60.0 * rounds)
    return kind


class TestHareWithAHistoryConforms(by_tasks.TestHareByTasksConforms):
    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HareTaskPolicy(cluster, seen=SeenTimes())


def test_an_unknown_model_is_refused_without_a_history_and_measured_with_one() -> None:
    with pytest.raises(UnknownApplicationError, match="no model is named 'new'"):
        policy_of(None).add_job(job_of("a"))
    policy = policy_of(SeenTimes())
    policy.add_job(job_of("a"))
    assert set(policy.times.of(policy.jobs["a"]).train_s.values()) == {1.0}  # assumed
    kind = train(policy, "a", {"k80": 5.0, "v100": 5.0}, 3)
    assert policy.times.of(policy.jobs["a"]).train_s[kind] == pytest.approx(5.0)
    assert policy.book.times["a"].train_s[kind] == pytest.approx(5.0)
    with pytest.raises(UnknownApplicationError, match="'new'"):
        policy.add_job(Job("no work", "new", requested_gpus=TASKS))
    assert "no work" not in policy.jobs


def test_jobs_that_were_never_measured_run_first_and_those_like_them_in_their_turn() -> None:
    """Short known jobs fill the cluster; a long unknown one comes before them until it was measured."""
    (vgg, *_), seen = MODELS, SeenTimes()
    seen.note(job_of("any", vgg), "v100", TASKS, (MODELS[vgg].train_s("v100") + MODELS[vgg].sync_s()) / TASKS)
    policy = policy_of(seen)
    for number in range(6):
        policy.add_job(Job(f"short-{number}", vgg, work_samples=4000.0, requested_gpus=TASKS))
    policy.add_job(Job("long", "new", work_samples=4e6, requested_gpus=TASKS))
    first = policy.plan(0.0).allocations
    assert first["long"].gpus == TASKS
    assert first["long"].gpu_type == policy.plan(60.0).allocations["long"].gpu_type
    policy.update_job("long", progress=60.0 / 1e6)
    policy.plan(120.0)
    assert policy.history is not None
    assert policy.history.measured(policy.jobs["long"])
    assert "long" not in policy.held, "short jobs come first once its time is known"
    policy.add_job(Job("like it", "new", work_samples=4e6, requested_gpus=TASKS))
    assert "like it" not in policy.plan(180.0).allocations


def test_a_wrong_declaration_is_corrected_for_all_jobs_of_the_model() -> None:
    (vgg, *_) = MODELS
    policy = policy_of(SeenTimes())
    policy.add_job(job_of("a", vgg))
    right = dict(policy.book.times["a"].train_s)
    slow = {kind: 3.0 * (right[kind] + policy.book.times["a"].sync_s[kind]) for kind in CLUSTER.types}
    train(policy, "a", slow, 3)
    policy.add_job(job_of("b", vgg))
    for name in ("a", "b"):
        for kind in CLUSTER.types:  # one was measured, the other has its ratio
            assert policy.book.times[name].train_s[kind] == pytest.approx(3.0 * right[kind])
    policy.add_job(job_of("other size", vgg, 2))
    assert policy.book.times["other size"].train_s["v100"] == right["v100"]


def test_what_is_measured_on_the_simulator_is_what_was_declared() -> None:
    cluster, seen = cluster_from("hare-15"), SeenTimes()
    jobs = as_jobs(PaperWorkload(12).make(3))
    policy = HareTaskPolicy(cluster, round_s=60.0, seen=seen)
    Simulation(cluster, jobs, policy, TaskGoodput(configurations_of(cluster), HARE_APPLICATIONS), 60.0).run()
    declared = HareTaskPolicy(cluster, round_s=60.0).times
    ratios = [
        known * job.work_samples / times.rounds / (times.train_s[kind] + times.sync_s[kind])
        for job in jobs
        for times in [declared.of(job)]
        for kind in cluster.types
        if (known := seen.seconds(job, kind, job.requested_gpus)) is not None and job.work_samples is not None
    ]
    assert ratios
    assert ratios == pytest.approx([1.0] * len(ratios), rel=0.01)
