"""Policies that place jobs themselves: many jobs added, removed or updated in one call are as one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.policies.chronus.mode_times import ModeTimes
from copter_frontends.policies.hare.courses import Courses
from copter_frontends.policies.hare.task_policy import HareTaskPolicy
from copter_frontends.policy_kit import RoundPolicy, share_of_time
from copter_frontends.policy_kit.ageing import Ageing
from copter_frontends.policy_kit.deadlines import StepReward
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import (
    Cluster,
    DuplicateJobError,
    InvalidJobError,
    Job,
    JoinedAtOnce,
    UnknownJobError,
    configurations_of,
)

shares = st.floats(0.0, 1.0)


@st.composite
def courses(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    inside = st.lists(st.floats(0.01, 0.99), max_size=4, unique=True)
    work = sorted(draw(inside))
    time = sorted(draw(st.lists(st.floats(0.01, 0.99), min_size=len(work), max_size=len(work))))
    return [0.0, *work, 1.0], [0.0, *time, 1.0]


@given(st.lists(st.tuples(st.one_of(st.none(), courses()), shares), min_size=1, max_size=6))
def test_courses_give_the_same_shares_as_one_job_at_a_time(jobs):
    table = Courses()
    number = np.array([table.number(course) for course, _ in jobs])
    found = table.shares(number, np.array([progress for _, progress in jobs]))
    expected = [progress if course is None else share_of_time(course, progress) for course, progress in jobs]
    assert found.tolist() == expected


@given(st.lists(courses(), min_size=1, max_size=3), st.lists(shares, min_size=1, max_size=5))
def test_mode_times_give_the_same_shares_as_one_job_at_a_time(modes, progress):
    times = ModeTimes.of(modes)
    expected = [times.done(each).tolist() for each in progress]
    assert times.done_of(np.array(progress)).tolist() == expected


def hare() -> HareTaskPolicy:
    return HareTaskPolicy(cluster())


def chronus() -> ChronusPolicy:
    policy = ChronusPolicy(cluster())
    for n in range(0, 6, 2):
        policy.set_reward(f"j{n}", StepReward.strict(40_000.0))
    return policy


def cluster() -> Cluster:
    return Cluster.of({"v100": (4, 4), "k80": (4, 4)})


def jobs(number: int, application: str) -> list[Job]:
    return [Job(f"j{n}", application, 0.0, 2e6, 1 + n % 3) for n in range(number)]


def state(policy: RoundPolicy) -> object:
    """What later plans depend on."""
    policy.plan(600.0)
    held = {name: (each.gpu_type, each.gpus, each.nodes) for name, each in policy.held.items()}
    return held, {name: each.progress for name, each in policy.service.items()}


@pytest.mark.parametrize(("make", "application"), [(hare, "resnet50"), (chronus, "cifar10")])
@settings(max_examples=8, deadline=None)
@given(progress=st.lists(shares, min_size=6, max_size=6))
def test_many_updates_are_as_one_after_the_other(make, application, progress):
    together, alone = make(), make()
    together.add_jobs(jobs(6, application))
    for job in jobs(6, application):
        alone.add_job(job)
    for policy in (together, alone):
        policy.plan(0.0)
        policy.remove_jobs(["j5"])
    told = {f"j{n}": {"progress": progress[n]} for n in range(5)}
    together.update_jobs(told)
    for name, facts in told.items():
        alone.update_job(name, **facts)
    assert state(together) == state(alone)


@pytest.mark.parametrize(("make", "application"), [(hare, "resnet50"), (chronus, "cifar10")])
def test_a_refused_call_changes_nothing(make, application):
    policy = make()
    assert isinstance(policy, JoinedAtOnce)
    policy.add_jobs(jobs(2, application))
    with pytest.raises(DuplicateJobError):
        policy.add_jobs([Job("new", application, 0.0, 2e5), jobs(1, application)[0]])
    with pytest.raises(InvalidJobError):
        policy.add_jobs([Job("new", application, 0.0, 2e5), Job("odd", "no such model", 0.0, 1.0)])
    with pytest.raises(UnknownJobError):
        policy.remove_jobs(["j0", "nobody"])
    for wrong, error in (({"nobody": {}}, UnknownJobError), ({"j1": {"progress": 2.0}}, InvalidDataError)):
        with pytest.raises(error):
            policy.update_jobs({"j0": {"progress": 0.5}, **wrong})
    assert list(policy.jobs) == ["j0", "j1"]
    assert policy.service["j0"].progress == 0.0


class Passed:
    """A policy that passes on what it does not know, as a user's may."""

    def __init__(self, policy: RoundPolicy) -> None:
        self.policy, self.seen = policy, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def add_job(self, job: Job) -> None:
        self.seen.append(job.id)
        self.policy.add_job(job)


class Watched(ChronusPolicy):
    """A policy with its own way to add a job."""

    def __init__(self) -> None:
        super().__init__(cluster())
        self.seen = list[str]()

    def add_job(self, job: Job) -> None:
        self.seen.append(job.id)
        super().add_job(job)


@pytest.mark.parametrize("make", [lambda: Passed(chronus()), Watched])
@pytest.mark.parametrize("aged", [False, True])
def test_a_policy_with_its_own_way_to_add_a_job_sees_every_job(make, aged):
    policy = made = make()
    if aged:
        policy = Ageing(made, cluster(), 1e6)
    Simulation(cluster(), jobs(4, "cifar10"), policy, GoodputModel(configurations_of(cluster()))).run(rounds=2)
    assert made.seen == ["j0", "j1", "j2", "j3"]


def test_ageing_adds_all_jobs_or_none():
    policy = Ageing(Passed(hare()), cluster(), 600.0)
    with pytest.raises(InvalidJobError):
        policy.add_jobs([*jobs(2, "resnet50"), Job("odd", "no such model", 0.0, 1.0)])
    assert list(policy.policy.jobs) == []
    policy.add_jobs(jobs(2, "resnet50"))
    policy.update_jobs({"j0": {"progress": 0.5}})
    with pytest.raises(UnknownJobError):
        policy.remove_jobs(["j0", "nobody"])
    assert list(policy.policy.jobs) == ["j0", "j1"]
    assert policy.policy.service["j0"].progress == 0.5
    policy.remove_jobs(["j0", "j1"])
    assert list(policy.policy.jobs) == []


class Counted(dict):
    """A dict that counts the entries looked up or passed over."""

    touched = 0

    def __getitem__(self, key):
        self.touched += 1
        return super().__getitem__(key)

    def values(self):
        self.touched += len(self)
        return super().values()

    def items(self):
        self.touched += len(self)
        return super().items()

    def __iter__(self):
        self.touched += len(self)
        return super().__iter__()


def touched_by_a_round(make, application: str, waiting: int) -> tuple[int, int]:
    """Services and notes of waiting that a later round touches: one job ends, one comes, those that ran progressed."""
    inner = make()
    policy = Ageing(inner, cluster(), 1e9)
    policy.add_jobs(jobs(waiting, application))
    held = policy.plan(0.0).allocations
    policy.plan(300.0)
    inner.service, policy._since = Counted(inner.service), Counted(policy._since)
    gone, *stay = held
    policy.remove_jobs([gone])
    policy.add_jobs([Job("new", application, 300.0, 2e6)])
    policy.update_jobs({name: {"progress": 0.25} for name in stay})
    policy.plan(600.0)
    return inner.service.touched, policy._since.touched


@pytest.mark.parametrize(("make", "application"), [(hare, "resnet50"), (chronus, "cifar10")])
def test_a_round_does_not_touch_the_services_of_waiting_jobs(make, application):
    few, many = (touched_by_a_round(make, application, waiting) for waiting in (60, 600))
    assert max(few) <= 200
    assert max(many) <= max(few) + 32  # of the 32 GPUs others may have more or fewer jobs; 540 more wait
