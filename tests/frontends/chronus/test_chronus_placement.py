"""Algorithm 1: speeds by number of nodes and model, more than two placements a job, against trying everything."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.policies.baselines.yarn_quota import YarnQuotaPolicy
from copter_frontends.policies.chronus.local_search import LocalSearch, NodeSpeeds
from copter_frontends.policies.chronus.spread_costs import SPREAD_COST
from copter_frontends.policy_kit import NodeInventory
from copter_frontends.vocabulary import Allocation, Cluster, Job

SPEEDS = NodeSpeeds(SPREAD_COST)


def test_speeds_fall_with_the_logarithm_of_the_nodes() -> None:
    vgg = Job("j", "vgg16")
    two, four = SPEEDS(vgg, 2, 1), SPEEDS(vgg, 4, 1)
    assert two == pytest.approx(1.0 - SPREAD_COST["vgg16"])
    assert 1 / four - 1 == pytest.approx(2 * (1 / two - 1))  # t_n = t_1 + log2(n) (t_2 - t_1)
    assert SPEEDS(vgg, 4, 4) == 1.0
    assert SPEEDS(Job("j", "unknown"), 4, 1) == 1.0
    assert SPEEDS(vgg, 4, 2) == pytest.approx(four / two)


def worth(jobs: list[tuple[Job, int]], placed: dict[str, tuple[tuple[str, int], ...]], size: int) -> float:
    return sum(g * SPEEDS(job, len(placed[job.id]), -(-g // size)) for job, g in jobs if job.id in placed)


def best_of_all(free: dict[str, int], jobs: list[tuple[Job, int]], size: int) -> float:
    """The largest sum of RW over every way to share out the GPUs."""
    if not jobs:
        return 0.0
    (job, gpus), rest = jobs[0], jobs[1:]
    best = best_of_all(free, rest, size)
    for counts in product(*(range(min(left, gpus) + 1) for left in free.values())):
        if sum(counts) == gpus:
            after = {node: left - c for (node, left), c in zip(free.items(), counts, strict=True)}
            own = gpus * SPEEDS(job, sum(c > 0 for c in counts), -(-gpus // size))
            best = max(best, own + best_of_all(after, rest, size))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_search_is_near_the_best_of_all_placements_and_never_behind_quasi_consolidation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cluster = Cluster.of({"v100": (3, 4)})
    nodes = NodeInventory(cluster)
    taken = [(name, int(rng.integers(0, 3))) for name in cluster.nodes]
    for name, count in taken:
        if count:
            nodes.take(Allocation("v100", count, ((name, count),)))
    names = sorted(SPREAD_COST)
    jobs = [(Job(f"j{i}", str(rng.choice(names))), int(rng.integers(1, 5))) for i in range(3)]
    free = nodes.free_by_node("v100")
    found = worth(jobs, LocalSearch(SPEEDS).place(nodes, "v100", jobs), 4)
    quasi = worth(jobs, LocalSearch(SPEEDS, "quasi").place(nodes, "v100", jobs), 4)
    best = best_of_all(dict(free), jobs, 4)
    assert quasi - 1e-9 <= found <= best + 1e-9
    assert found >= 0.75 * best
    assert nodes.free_by_node("v100") == free


def test_a_larger_space_is_no_worse() -> None:
    nodes = NodeInventory(Cluster.of({"v100": (4, 8)}))
    nodes.take(Allocation("v100", 13, (("v100-0", 5), ("v100-1", 3), ("v100-2", 5))))
    jobs = [(Job("a", "vgg16"), 5), (Job("b", "alexnet"), 6), (Job("c", "resnet101"), 7), (Job("d", "vgg16"), 1)]
    values = [worth(jobs, LocalSearch(SPEEDS, space=s).place(nodes, "v100", jobs), 8) for s in (1, 16, 256)]
    assert values == sorted(values)


def test_yarn_keeps_each_class_within_its_quota() -> None:
    cluster = Cluster.of({"v100": (2, 8)})
    policy = YarnQuotaPolicy(cluster, frozenset(f"slo-{i}" for i in range(9)), slo_share=0.75)
    for i in range(9):
        policy.add_job(Job(f"slo-{i}", "vgg16", float(i), requested_gpus=4))
        policy.add_job(Job(f"be-{i}", "vgg16", float(i), requested_gpus=2))
    plan = policy.plan(0.0)
    used = {kind: sum(a.gpus for j, a in plan.allocations.items() if j.startswith(kind)) for kind in ("slo", "be")}
    assert used == {"slo": 12, "be": 4}
    policy.remove_job("slo-0")
    assert "slo-3" in policy.plan(60.0).allocations
    wide = YarnQuotaPolicy(cluster, frozenset(["slo-0"]), slo_share=0.25)
    wide.add_job(Job("slo-0", "vgg16", requested_gpus=16))
    assert "slo-0" in wide.plan(0.0).allocations  # larger than its quota, and nothing else in the queue
    with pytest.raises(SettingsError, match=r"slo_share is 1\.5"):
        YarnQuotaPolicy(cluster, frozenset(), 1.5)
