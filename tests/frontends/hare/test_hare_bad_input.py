"""Bad input: one clear error, and nothing changes."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from copter.runtime.errors import InvalidDataError, SettingsError
from copter_frontends.goodput import UnknownApplicationError
from copter_frontends.policies.hare import HareInstance, HareJob, HareScheduler, Relaxation, RelaxationSolver, TimeGrid
from copter_frontends.policies.hare.online import OnlineHare
from copter_frontends.policies.hare.policy import HarePolicy
from copter_frontends.vocabulary import (
    Cluster,
    DuplicateJobError,
    InvalidClusterError,
    InvalidJobError,
    Job,
    SchedulingPolicy,
    UnknownGpuTypeError,
)
from copter_papers.hare.opponent_policy import OpponentPolicy
from copter_papers.hare.opponents import RULES

IMPOSSIBLE = {
    "rounds is 0, must be >= 1": {"rounds": 0},
    "rounds is -2, must be >= 1": {"rounds": -2},
    "tasks is 0, must be >= 1": {"tasks": 0},
    "train_s['v100'] is -1.0, must be finite and > 0": {"train_s": {"v100": -1.0}},
    "sync_s['v100'] is -0.5, must be finite and >= 0": {"sync_s": {"v100": -0.5}},
    "arrival_s is -1.0, must be finite and >= 0": {"arrival_s": -1.0},
    "arrival_s is inf, must be finite and >= 0": {"arrival_s": math.inf},
}
POLICIES: dict[str, Callable[..., SchedulingPolicy]] = {
    "hare": lambda cluster, **named: HarePolicy(cluster, **named),
    **{scheme: lambda cluster, s=scheme, **named: OpponentPolicy(cluster, s, **named) for scheme in RULES},
}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"rounds": 0}, "rounds is 0"),
        ({"tasks": 0}, "tasks is 0"),
        ({"train_s": {}}, "names no GPU type"),
        ({"train_s": {"v100": -1.0}}, "train_s\\['v100'\\] is -1"),
        ({"train_s": {"v100": 0.0}}, "train_s\\['v100'\\] is 0"),
        ({"train_s": {"v100": float("nan")}}, "train_s\\['v100'\\] is nan"),
        ({"sync_s": {"v100": -0.5}}, "sync_s\\['v100'\\] is -0.5"),
        ({"weight": 0.0}, "weight is 0"),
        ({"arrival_s": -1.0}, "arrival_s is -1"),
        ({"id": ""}, "the id is empty"),
    ],
)
def test_impossible_jobs(fields, words):
    good = {"id": "j", "rounds": 1, "tasks": 1, "train_s": {"v100": 1.0}}
    HareJob(**good)
    with pytest.raises(InvalidJobError, match=words):
        HareJob(**(good | fields))


def test_a_job_that_no_gpu_can_run():
    job = HareJob("lost", 1, 1, {"tpu": 1.0})
    with pytest.raises(InvalidJobError, match=r"'lost': no GPU can run it.*tpu.*v100"):
        HareInstance.of([job], {"v100": 2, "tpu": 0})


def test_an_arrival_after_the_horizon():
    job = HareJob("late", 1, 1, {"v100": 1.0}, arrival_s=100.0)
    with pytest.raises(InvalidJobError, match="'late': it arrives at 100 s, after the horizon of 50 s"):
        HareInstance.of([job], {"v100": 1}, horizon_s=50.0)
    instance = HareInstance.of([job], {"v100": 1})
    solver = RelaxationSolver()
    early = HareInstance.of([HareJob("early", 1, 1, {"v100": 1.0})], {"v100": 1})
    grid = TimeGrid.geometric(0.0, 50.0)
    solver.solve(early, grid)
    with pytest.raises(InvalidJobError, match="after the horizon"):
        solver.solve(instance, grid)
    assert solver.solve(early, grid).warm
    with pytest.raises(InvalidJobError, match="after the horizon"):
        Relaxation.of(instance, grid)


def test_clusters_and_ids():
    job = HareJob("j", 1, 1, {"v100": 1.0})
    with pytest.raises(InvalidClusterError, match="no GPUs"):
        HareInstance.of([job], {"v100": 0})
    with pytest.raises(InvalidClusterError, match="'v100': the number of GPUs is -1"):
        HareInstance.of([job], {"v100": -1})
    with pytest.raises(DuplicateJobError, match="'j' is there twice"):
        HareInstance.of([job, job], {"v100": 1})


def test_settings():
    with pytest.raises(SettingsError, match="tolerance"):
        RelaxationSolver(tolerance=0.0)
    with pytest.raises(SettingsError, match="threads"):
        RelaxationSolver(threads=-1)
    with pytest.raises(InvalidClusterError, match="growth"):
        TimeGrid.geometric(0.0, 10.0, growth=1.0)
    with pytest.raises(InvalidClusterError, match="not after the start"):
        TimeGrid.geometric(10.0, 10.0)


def test_no_jobs_is_an_empty_schedule():
    found = HareScheduler().schedule(HareInstance.of([], {"v100": 2}))
    assert found.schedule.objective == 0.0
    assert found.ratio == 1.0


@pytest.mark.parametrize("complaint", IMPOSSIBLE)
def test_a_job_cannot_be_changed_to_an_impossible_one(complaint: str) -> None:
    """What there is stays: the job, and what is planned of it."""
    jobs = [HareJob("a", 3, 2, {"v100": 1.0}, {"v100": 0.1}, arrival_s=2.0), HareJob("b", 2, 1, {"v100": 2.0})]
    kept, planner = [dataclasses.asdict(job) for job in jobs], HareScheduler()
    before = planner.schedule(HareInstance.of(jobs, {"v100": 2})).schedule
    with pytest.raises(InvalidJobError) as error:
        dataclasses.replace(jobs[0], **IMPOSSIBLE[complaint])
    assert str(error.value).startswith(f"job 'a': {complaint}")
    assert [dataclasses.asdict(job) for job in jobs] == kept
    after = planner.schedule(HareInstance.of(jobs, {"v100": 2})).schedule
    np.testing.assert_array_equal(after.start_s, before.start_s)


def test_online_planning_refuses_all_jobs_or_none() -> None:
    good = [HareJob("a", 3, 2, {"v100": 1.0}), HareJob("b", 2, 1, {"v100": 2.0}, arrival_s=1.0)]
    online = OnlineHare({"v100": 2})
    before, events = online.run(good), list(online.events)
    with pytest.raises(InvalidJobError, match=r"'lost': no GPU can run it.*tpu.*v100.*profile it"):
        online.run([*good, HareJob("lost", 1, 1, {"tpu": 1.0})])
    assert online.events == events
    np.testing.assert_array_equal(online.run(good).completion_s, before.completion_s)


def test_an_instance_that_cannot_be_made_leaves_its_jobs_alone() -> None:
    jobs = [HareJob("a", 1, 1, {"v100": 1.0}), HareJob("late", 1, 1, {"v100": 1.0}, arrival_s=50.0)]
    gpus = {"v100": 1}
    with pytest.raises(InvalidJobError, match="'late': it arrives at 50 s, after the horizon of 50 s; leave it out or"):
        HareInstance.of(jobs, gpus, horizon_s=50.0)
    assert ([job.id for job in jobs], gpus) == (["a", "late"], {"v100": 1})
    assert HareInstance.of(jobs, gpus, horizon_s=50.1).n_jobs == 2


def _with_a_job(name: str) -> SchedulingPolicy:
    policy = POLICIES[name](Cluster.of({"t4": (2, 4)}))
    policy.add_job(Job("here", "cifar10", requested_gpus=2, work_samples=1e6))
    return policy


def _changes_nothing(name: str, act: Callable[[SchedulingPolicy], object], kind: type[Exception], words: str) -> None:
    policy, twin = _with_a_job(name), _with_a_job(name)
    for now_s in (0.0, 300.0):
        with pytest.raises(kind, match=words):
            act(policy)
        plan, expected = policy.plan(now_s), twin.plan(now_s)
        assert dict(plan.allocations) == dict(expected.allocations)
        assert plan.objective == expected.objective
        assert list(plan.allocations) == ["here"]


@pytest.mark.parametrize("name", POLICIES)
def test_policies_refuse_jobs_that_nothing_can_run(name: str) -> None:
    large, unknown = Job("lost", "cifar10", requested_gpus=9), Job("lost", "no-such-model")
    words = r"job 'lost': its 9 GPUs fit on no GPU type that can run it \(t4: 8\)"
    _changes_nothing(name, lambda policy: policy.add_job(large), InvalidJobError, words)
    _changes_nothing(name, lambda policy: policy.add_job(unknown), UnknownApplicationError, "no-such-model")


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("progress", [-0.1, 1.5, math.nan])
def test_policies_refuse_progress_that_is_none(name: str, progress: float) -> None:
    words = f"job 'here': progress is {progress}, must be a fraction from 0 to 1"
    _changes_nothing(name, lambda policy: policy.update_job("here", progress=progress), InvalidDataError, words)


@pytest.mark.parametrize("name", POLICIES)
def test_policies_refuse_impossible_jobs_before_they_see_them(name: str) -> None:
    fields = {"submit_s is -1.0": {"submit_s": -1.0}, "work_samples is -5.0": {"work_samples": -5.0}}
    for words, wrong in {**fields, "requested_gpus is 0": {"requested_gpus": 0}}.items():
        act = lambda policy, wrong=wrong: policy.add_job(Job("new", "cifar10", **wrong))  # noqa: E731
        _changes_nothing(name, act, InvalidJobError, f"job 'new': {words}")


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_policies_refuse_weights_that_are_none(name: str, weight: float) -> None:
    weights = {"j": weight}
    with pytest.raises(InvalidDataError, match=f"job 'j': its weight is {weight}, must be finite and > 0"):
        POLICIES[name](Cluster.of({"t4": (2, 4)}), weights=weights)
    assert list(weights) == ["j"]


def test_a_type_that_no_job_was_profiled_on_is_said() -> None:
    with pytest.raises(UnknownGpuTypeError, match=r"no application has a model of GPU type 'tpu'"):
        HarePolicy(Cluster.of({"tpu": (1, 4)})).add_job(Job("j", "cifar10"))


def test_a_synchronisation_longer_than_the_intervals_is_planned_within_the_bound() -> None:
    jobs = [HareJob(f"job-{n}", 3, 2, {"g": 1.0}, {"g": 500.0}) for n in range(3)]
    found = HareScheduler().schedule(HareInstance.of(jobs, {"g": 2}))
    assert found.relaxation.bound <= found.schedule.objective * (1 + 1e-9)
    assert (found.schedule.completion_s >= 3 * 501.0 - 1e-6).all()
