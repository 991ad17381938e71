"""Rounds follow what changes: the records of jobs that only wait are not looked at one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.policies.hare.task_policy import HareTaskPolicy
from copter_frontends.policies.hops import HopsPolicy
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.vocabulary import Cluster, Job, SchedulingPolicy

GPUS, ROUNDS = 16, 3


class Counted(dict[str, Any]):
    """A dict that counts how often each of its records is read by itself or with all others."""

    def __init__(self, records: dict[str, Any], touched: Counter[str]) -> None:
        super().__init__(records)
        self.touched = touched

    def __getitem__(self, key: str) -> Any:
        self.touched[key] += 1
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.touched[key] += 1
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            self.touched[key] += 1
            yield key

    def _all(self) -> None:
        self.touched.update(super().keys())

    def keys(self) -> Any:
        self._all()
        return super().keys()

    def values(self) -> Any:
        self._all()
        return super().values()

    def items(self) -> Any:
        self._all()
        return super().items()


def counted(owner: object, known: set[str], touched: Counter[str], seen: set[int]) -> None:
    """Replace the dicts by job that an object of copter's frontends has, and that its own objects have."""
    if id(owner) in seen or not type(owner).__module__.startswith("copter_frontends"):
        return
    seen.add(id(owner))
    names = {name for kind in type(owner).__mro__ for name in getattr(kind, "__slots__", ())}
    for name in (*vars(owner), *names) if hasattr(owner, "__dict__") else names:
        value = getattr(owner, name, None)
        if type(value) is dict and value.keys() and value.keys() <= known:
            object.__setattr__(owner, name, Counted(value, touched))
        else:
            counted(value, known, touched, seen)


POLICIES: dict[str, Callable[[Cluster], SchedulingPolicy]] = {
    "sia": SiaPolicy,
    "hadar": HadarPolicy,
    "hops": HopsPolicy,
    "chronus": ChronusPolicy,
    "hare": HareTaskPolicy,
}
USUAL, WAITING = ("cifar10", 1e12), {"hare": ("resnet50", 1e7)}  # application and work of jobs that wait, by policy
A_JOB = {"hops": 6}
"""Records that a round reads of each job that waits, where it reads any: priorities of Hops grow with time."""
A_JOB_WITH_NEWS = {"hops": 10, "chronus": 2, "hare": 2}
"""The same where GPUs became idle: Hops orders its whole queue by these priorities; Chronus and Hare look at each job
that waits once, when one has come."""


def made(name: str, waiting: int) -> SchedulingPolicy:
    """A full cluster and jobs that wait behind those that run."""
    cluster = Cluster.of({"t4": (GPUS // 4, 4)})
    policy = POLICIES[name](cluster)
    application, work = WAITING.get(name, USUAL)
    begun = 1e6 if name == "hare" else 1e9
    first = [Job(f"first-{n}", application, 0.0, begun, 4, min_gpus=4, max_gpus=4) for n in range(GPUS // 4)]
    later = [Job(f"later-{n}", application, 1.0 + n, work, 4, min_gpus=4, max_gpus=4) for n in range(waiting)]
    for job in (*first, *later):
        policy.add_job(job)
    policy.plan(0.0)
    policy.plan(policy.round_s)
    return policy


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=5, deadline=None)
@given(waiting=st.integers(20, 200))
def test_a_round_without_news_reads_no_record_of_a_job_that_waits(name: str, waiting: int) -> None:
    policy: Any = made(name, waiting)
    jobs = {"sia": lambda: policy.formulation.jobs, "hadar": lambda: policy.book.ids}.get(name, lambda: policy.jobs)()
    touched, known = Counter[str](), set(jobs)
    counted(policy, known, touched, set())
    ran = set[str]()
    for number in range(2, 2 + ROUNDS):
        ran |= policy.plan(number * policy.round_s).allocations.keys()
    assert len(known) == waiting + GPUS // 4
    assert touched.keys() & ran
    most = ROUNDS * (1 + A_JOB.get(name, 0) * waiting)  # one a round, to see that some wait
    assert sum(touched[job] for job in touched.keys() - ran) <= most


def jobs_of(policy: Any, name: str) -> set[str]:
    """The ids of all jobs that a policy knows."""
    return set(policy.formulation.jobs if name == "sia" else policy.book.ids if name == "hadar" else policy.jobs)


def touched_by_news(name: str, waiting: int) -> int:
    """Records of waiting jobs that rounds read in which one job ends, one comes, one is pinned, others progress."""
    policy: Any = made(name, waiting)
    held, touched, ran, came = policy.plan(2 * policy.round_s).allocations, Counter[str](), set[str](), set[str]()
    for number in range(3, 3 + ROUNDS):
        counted(policy, jobs_of(policy, name), touched, set())
        gone, *stay = held
        ran |= held.keys()
        policy.remove_jobs([gone])
        application, work = WAITING.get(name, USUAL)
        new = Job(f"new-{number}", application, number * policy.round_s, work, 4, min_gpus=4, max_gpus=4)
        policy.add_jobs([new])
        came.add(new.id)
        policy.update_progress(dict.fromkeys(stay, number / 100))
        policy.update_jobs({stay[0]: {"restarts": 1}})
        for pin in (held[stay[-1]], None):
            policy.pin(stay[-1], pin)
        held = policy.plan(number * policy.round_s).allocations
        assert held.keys() - stay, "another job has the GPUs"
        ran |= held.keys()
    assert touched.keys() & ran
    return sum(touched[job] for job in touched.keys() - ran - came)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=5, deadline=None)
@given(waiting=st.integers(20, 200))
def test_a_round_with_news_reads_records_in_proportion_to_the_news(name: str, waiting: int) -> None:
    assert touched_by_news(name, waiting) <= ROUNDS * A_JOB_WITH_NEWS.get(name, 0) * waiting
