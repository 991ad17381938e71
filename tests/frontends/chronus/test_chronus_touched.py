"""A round of Chronus follows what changes: the records of jobs that only wait are not looked at one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.vocabulary import Cluster, Job

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


def made(waiting: int) -> ChronusPolicy:
    """A full cluster and jobs that wait behind those that run."""
    cluster = Cluster.of({"t4": (GPUS // 4, 4)})
    policy = ChronusPolicy(cluster)
    first = [Job(f"first-{n}", "cifar10", 0.0, 1e9, 4) for n in range(GPUS // 4)]
    later = [Job(f"later-{n}", "cifar10", 1.0 + n, 1e12, 4) for n in range(waiting)]
    for job in (*first, *later):
        policy.add_job(job)
    policy.plan(0.0)
    policy.plan(policy.round_s)
    return policy


@settings(max_examples=10, deadline=None)
@given(waiting=st.integers(20, 400))
def test_a_round_without_news_touches_no_record_of_a_job_that_waits(waiting: int) -> None:
    policy = made(waiting)
    touched = Counter[str]()
    counted(policy, set(policy.jobs), touched, set())
    assert isinstance(policy.service, Counted)
    for number in range(2, 2 + ROUNDS):
        policy.plan(number * policy.round_s)
    ran = set(dict.keys(policy.held))
    assert len(ran) == GPUS // 4
    assert touched.keys() & ran
    assert sum(touched[name] for name in touched.keys() - ran) <= ROUNDS  # at most one a round, to see that some waits
