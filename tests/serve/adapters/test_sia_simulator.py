"""Sia's simulator with copter's policy: its three arguments, by GPU type, and what its Cluster makes of the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from copter_serve.adapters.sia import SiaSimulatorPolicy

NODES = {"aws": 6, "dgx-ext": 2, "rtx": 3}
GPUS = {"aws": 4, "dgx-ext": 8, "rtx": 8}
KINDS = tuple(NODES)


class Speedup:
    """Sia's SpeedupFunction: a goodput, and a speed-up over one GPU of the same type."""

    def __init__(self, base: float, across: float) -> None:
        self.base, self.across = base, across

    def __call__(self, nodes: int, replicas: int) -> float:
        return self.get_goodput(nodes, replicas) / self.base

    def get_goodput(self, nodes: int, replicas: int) -> float:
        assert 0 < nodes <= replicas
        return self.base * replicas**0.8 * (self.across if nodes > 1 else 1.0)


def job(base: dict[str, float | None], most: int = 16, unit: int = 1, **more: Any) -> SimpleNamespace:
    """The simulator's JobInfo, as its Cluster fills it."""
    functions: dict[str, Callable[..., float] | None] = {
        kind: None if base.get(kind) is None else Speedup(float(base[kind] or 0.0), 0.9) for kind in KINDS
    }
    fields = {
        "resources": {"nvidia.com/gpu": 1}, "speedup_fn": functions, "creation_timestamp": 0.0, "attained_service": 0.0,
        "min_replicas": dict.fromkeys(KINDS, 0), "max_replicas": dict.fromkeys(KINDS, most), "preemptible": True,
        "category": None, "num_restarts": 0, "age": 60.0, "scaling_underway": False,
        "scale_unit": dict.fromkeys(KINDS, unit),
    }  # fmt: skip
    return SimpleNamespace(**{**fields, **more})


def nodes() -> dict[str, dict[int, SimpleNamespace]]:
    """As the Cluster makes them."""
    return {
        kind: {k: SimpleNamespace(resources={"nvidia.com/gpu": GPUS[kind]}, preemptible=False) for k in range(count)}
        for kind, count in NODES.items()
    }


def policy() -> SiaSimulatorPolicy:
    made = SiaSimulatorPolicy()
    made.populate_valid_configs(NODES, GPUS, {"aws": 16, "dgx-ext": 2, "rtx": 3})
    return made


def check(jobs: dict[str, Any], given: dict[Any, Any]) -> None:
    used: Counter[Any] = Counter()
    assert set(given) == set(jobs)
    for name, (kind, placement) in given.items():
        assert (kind is None) == (len(placement) == 0)
        if kind is not None:
            assert len(placement) <= jobs[name].max_replicas[kind] * jobs[name].scale_unit[kind]
            assert len(placement) % jobs[name].scale_unit[kind] == 0
            assert list(placement) == sorted(placement)
            used.update((kind, node) for node in placement)
    assert all(count <= GPUS[kind] for (kind, _), count in used.items())


@pytest.mark.parametrize("count", [1, 8, 40])
def test_rounds_of_sias_simulator(count: int) -> None:
    ours, given = policy(), {}
    base = [{"aws": 1.0, "rtx": 2.0, "dgx-ext": 6.0}, {"aws": 2.0, "rtx": 2.5, "dgx-ext": 3.0}, {"rtx": 1.0}, {}]
    jobs = {f"cifar10-{k}": job(dict(base[k % 4])) for k in range(count)}
    for _ in range(3):
        before, given = given, ours.optimize(jobs, nodes(), given)
        check(jobs, given)
        assert not before or given == before  # nothing has changed
    for name, (kind, placement) in given.items():
        if all(function is None for function in jobs[name].speedup_fn.values()):
            assert len(placement) <= 1  # nothing is known of it yet
        assert count > 8 or kind is not None
    for name in list(jobs)[::3]:
        del jobs[name]
    given = ours.optimize(jobs, nodes(), {name: given[name] for name in jobs})
    check(jobs, given)


def test_units_of_pipelines_and_jobs_in_a_restart() -> None:
    ours = policy()
    jobs = {"gpt": job({"aws": 1.0, "rtx": 2.0, "dgx-ext": 8.0}, most=4, unit=4), "other": job({"dgx-ext": 1.0})}
    given = ours.optimize(jobs, nodes(), {})
    check(jobs, given)
    assert given["gpt"][0] == "dgx-ext"
    assert len(given["gpt"][1]) in (8, 16)
    jobs["gpt"].scaling_underway = True  # Sia leaves a job alone that is being restarted
    jobs |= {f"fast{k}": job({"dgx-ext": 90.0}, most=2) for k in range(8)}
    again = ours.optimize(jobs, nodes(), given)
    assert again["gpt"] == given["gpt"]
    check(jobs, again)


def test_a_cluster_without_nodes() -> None:
    assert policy().optimize({"a": job({})}, {kind: {} for kind in KINDS}, {}) == {"a": (None, ())}
