"""AdaptDL's allocator with copter's policy: its own calls, its own invariants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from copter.runtime.errors import InvalidDataError
from copter_serve.adapters.adaptdl import AdaptDLPolicy


@dataclass
class Info:
    """AdaptDL's JobInfo."""

    resources: dict[str, int]
    speedup_fn: Any
    creation_timestamp: float = 0.0
    max_replicas: Any = 8
    min_replicas: Any = 0
    preemptible: bool = True


@dataclass
class NodeInfo:
    """AdaptDL's NodeInfo."""

    resources: dict[str, int]
    preemptible: bool = False


def amdahl(serial: float, across: float = 0.9) -> Callable[[int, int], float]:
    """A speed-up function of (nodes, replicas), as AdaptDL's, relative to one replica."""
    return lambda nodes, replicas: (across if nodes > 1 else 1.0) / (serial + (1.0 - serial) / replicas)


def check(jobs: dict[Any, Info], nodes: dict[Any, NodeInfo], allocations: dict[Any, list[Any]]) -> None:
    """What AdaptDL's own test of its policy asks."""
    used: dict[Any, Counter[str]] = {}
    assert set(allocations) == set(jobs)
    for key, placement in allocations.items():
        assert len(placement) <= jobs[key].max_replicas
        assert not placement or len(placement) >= jobs[key].min_replicas
        for node in placement:
            used.setdefault(node, Counter()).update(jobs[key].resources)
    for node, count in used.items():
        for name, units in count.items():
            assert units <= nodes[node].resources[name]


@pytest.mark.parametrize("num_nodes", [1, 2, 4, 8, 16])
def test_the_example_of_adaptdl(num_nodes: int) -> None:
    """16 devices on so many nodes, 16 jobs, three calls one after the other."""
    resources = {"nvidia.com/gpu": 16 // num_nodes, "pods": 32}
    jobs = {k: Info({"nvidia.com/gpu": 1, "pods": 1}, amdahl(0.05 + 0.02 * k), float(k)) for k in range(16)}
    nodes = {k: NodeInfo(resources) for k in range(num_nodes)}
    policy, held = AdaptDLPolicy(), {}
    for _ in range(3):
        allocations, desired = policy.optimize(jobs, nodes, held, NodeInfo(resources, True))
        check(jobs, nodes, allocations)
        assert sum(map(len, allocations.values())) == 16
        assert desired >= 1
        if held:
            assert allocations == held
        held = allocations


def test_jobs_and_nodes_come_and_go() -> None:
    policy = AdaptDLPolicy()
    nodes = {f"n{k}": NodeInfo({"nvidia.com/gpu": 4, "pods": 3}) for k in range(2)}
    jobs: dict[Any, Info] = {("ns", k): Info({"nvidia.com/gpu": 1, "pods": 1}, amdahl(0.1)) for k in range(4)}
    held: dict[Any, list[Any]] = {}
    for step in range(8):
        held, desired = policy.optimize(jobs, nodes, held, NodeInfo({"nvidia.com/gpu": 4}, True))
        check(jobs, nodes, held)
        assert desired >= 1
        if step == 1:
            nodes["big"] = NodeInfo({"nvidia.com/gpu": 8, "pods": 20})
        if step == 3:
            del nodes["n0"]
        if step == 4:
            del jobs["ns", 0]
        if step == 5:
            jobs["ns", 9] = Info({"nvidia.com/gpu": 2, "pods": 1}, amdahl(0.0), min_replicas=2)
        if step == 6:
            nodes.clear()
    assert held == {key: [] for key in jobs}


def test_what_is_not_preemptible_stays_where_it_is() -> None:
    nodes = {k: NodeInfo({"nvidia.com/gpu": 4}) for k in range(2)}
    jobs = {"fixed": Info({"nvidia.com/gpu": 1}, amdahl(0.9), preemptible=False)}
    base = {"fixed": [0, 0, 1]}  # three replicas on two nodes: no size that the policy would give
    jobs |= {f"j{k}": Info({"nvidia.com/gpu": 1}, amdahl(0.0)) for k in range(3)}
    allocations, _ = AdaptDLPolicy().optimize(jobs, nodes, base, NodeInfo({"nvidia.com/gpu": 4}))
    assert sorted(allocations["fixed"]) == [0, 0, 1]
    check(jobs, nodes, allocations)


def test_sias_jobs_have_a_function_for_each_type() -> None:
    nodes = {"a0": NodeInfo({"nvidia.com/gpu": 4}), "t0": NodeInfo({"nvidia.com/gpu": 4})}
    fast = {"a": lambda nodes, replicas: 4.0 * replicas, "t": lambda nodes, replicas: 1.0 * replicas}
    slow = {"a": lambda nodes, replicas: 1.5 * replicas, "t": lambda nodes, replicas: 1.0 * replicas}
    only = {"t": lambda nodes, replicas: 1.0 * replicas}
    jobs = {
        "fast": Info({"nvidia.com/gpu": 1}, fast, max_replicas=4),
        "slow": Info({"nvidia.com/gpu": 1}, slow, max_replicas=2),
        "only": Info({"nvidia.com/gpu": 1}, only, max_replicas=2),
    }
    policy = AdaptDLPolicy(type_of=lambda key, node: str(key)[0])
    allocations, _ = policy.optimize(jobs, nodes, {}, NodeInfo({"nvidia.com/gpu": 4}))
    assert allocations == {"fast": ["a0"] * 4, "slow": ["t0"] * 2, "only": ["t0"] * 2}


def test_sias_functions_are_asked_for_goodputs() -> None:
    """Called, they give a speed-up over one GPU of the same type, by which no type is the faster one."""

    class Function:
        def __init__(self, goodput: float) -> None:
            self.goodput = goodput

        def __call__(self, nodes: int, replicas: int) -> float:
            return float(replicas)

        def get_goodput(self, nodes: int, replicas: int) -> float:
            return self.goodput * replicas

    nodes = {"a0": NodeInfo({"nvidia.com/gpu": 4}), "t0": NodeInfo({"nvidia.com/gpu": 4})}
    functions = {"first": {"a": 9.0, "t": 1.0}, "second": {"a": 1.0, "t": 9.0}}
    jobs = {
        name: Info({"nvidia.com/gpu": 1}, {k: Function(v) for k, v in each.items()}, 0.0, {"a": 4, "t": 3}, {"a": 0})
        for name, each in functions.items()
    }
    policy = AdaptDLPolicy(type_of=lambda key, node: str(key)[0])
    allocations, _ = policy.optimize(jobs, nodes, {}, NodeInfo({"nvidia.com/gpu": 4}))
    assert allocations == {"first": ["a0"] * 4, "second": ["t0"] * 2}  # three are no power of two


def test_more_nodes_are_desired_while_jobs_wait() -> None:
    nodes = {0: NodeInfo({"nvidia.com/gpu": 2})}
    jobs = {k: Info({"nvidia.com/gpu": 2}, amdahl(0.0), min_replicas=1, max_replicas=1) for k in range(4)}
    allocations, desired = AdaptDLPolicy().optimize(jobs, nodes, {}, NodeInfo({"nvidia.com/gpu": 2}))
    assert sum(map(bool, allocations.values())) == 1
    assert desired == 4
    for key in (1, 2, 3):
        del jobs[key]
    nodes[1] = nodes[2] = nodes[0]
    _, desired = AdaptDLPolicy().optimize(jobs, nodes, {}, NodeInfo({"nvidia.com/gpu": 2}))
    assert desired == 1  # the other two can go


def test_a_node_that_lacks_something_else_does_not_count() -> None:
    """AdaptDL's own case: one of three nodes has too little memory for any job, so a fourth is asked for."""
    nodes = {k: NodeInfo({"gpu": 1, "cpu": 500 if k == 0 else 8000, "pods": 32}) for k in range(3)}
    jobs = {k: Info({"gpu": 1, "cpu": 1000, "pods": 1}, amdahl(0.1), max_replicas=1) for k in range(3)}
    allocations, desired = AdaptDLPolicy(gpu="gpu").optimize(jobs, nodes, {}, NodeInfo({"gpu": 1, "cpu": 8000}, True))
    assert sorted(map(len, allocations.values())) == [0, 1, 1]
    assert desired > 3


def test_one_job_is_put_on_the_first_node_with_room() -> None:
    nodes = {
        "b": NodeInfo({"nvidia.com/gpu": 4}),
        "a": NodeInfo({"nvidia.com/gpu": 1}),
        "0": NodeInfo({"nvidia.com/gpu": 9}, True),
    }
    policy, job = AdaptDLPolicy(), Info({"nvidia.com/gpu": 1}, amdahl(0.1), min_replicas=2)
    assert policy.allocate_job(job, nodes) == ["b", "b"]
    job.min_replicas = 20
    assert policy.allocate_job(job, nodes) == []


def test_a_job_without_gpus_is_refused() -> None:
    jobs = {0: Info({"cpu": 1}, amdahl(0.1))}
    with pytest.raises(InvalidDataError, match="must be 1 or more"):
        AdaptDLPolicy().optimize(jobs, {0: NodeInfo({"nvidia.com/gpu": 4})}, {}, NodeInfo({"nvidia.com/gpu": 4}))
