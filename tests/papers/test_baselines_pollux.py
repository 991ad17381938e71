"""Pollux's search on cases worked by hand (docs/papers/baselines.md, B25-B28)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job
from copter_papers.opponents.pollux import GeneticSearch, PolluxPolicy, Problem

ROOT = [0.0, 1.0, 2**0.5, 3**0.5, 2.0]  # speedup on 0 to 4 GPUs


def problem(jobs: int, node_gpus: list[int], node_kind: list[int] | None = None, **others: object) -> Problem:
    kinds = np.array(node_kind or [0] * len(node_gpus))
    n = int(kinds.max()) + 1
    values: dict[str, object] = {
        "node_gpus": np.array(node_gpus),
        "node_kind": kinds,
        "speedup": np.tile(np.array(ROOT), (jobs, n, 1)),
        "most": np.full(jobs, 4),
        "kind": np.full(jobs, -1),
        "gpus": np.zeros(jobs, dtype=np.int64),
        "power": -1.0,
    }
    return Problem(**{**values, **others})  # type: ignore[arg-type]


def feasible(p: Problem, crowd: np.ndarray) -> bool:
    kinds_used = (p.by_kind(crowd) > 0).sum(axis=2)
    split = ((crowd > 0) & ((crowd > 0).sum(axis=2) > 1)[:, :, None]).sum(axis=1)
    sums = crowd.sum(axis=1)
    return bool(
        (sums <= p.node_gpus).all() and (kinds_used <= 1).all() and (split <= 1).all()
        and (crowd.sum(axis=2) <= p.most).all()
    )  # fmt: skip


def test_fitness_is_the_power_mean_of_the_speedups():
    p = problem(2, [4])
    one = np.array([[[4], [0]], [[2], [2]]])
    expected = [2 / (1 / 2.0 + 1 / 0.01), 2 / (2 / 2**0.5)]
    np.testing.assert_allclose(p.fitness(one), expected)


def test_a_change_costs_a_tenth_of_a_running_jobs_speedup():
    p = problem(2, [4], kind=np.array([0, -1]), gpus=np.array([1, 0]), power=1.0)
    np.testing.assert_allclose(p.fitness(np.array([[[1], [1]], [[4], [1]]])), [1.0, (0.9 * 2 + 1) / 2])


def test_repair_makes_every_individual_feasible():
    rng = np.random.default_rng(0)
    p = problem(6, [4, 4, 8, 8], [0, 0, 1, 1])
    crowd = p.repair(rng.integers(0, 9, size=(200, 6, 4)), rng)
    assert feasible(p, crowd)
    assert (crowd.sum(axis=(1, 2)) > 0).all()


def test_repair_keeps_what_is_feasible():
    p = problem(3, [4, 4])
    crowd = np.array([[[4, 0], [0, 3], [0, 1]]])
    np.testing.assert_array_equal(p.repair(crowd, np.random.default_rng(0)), crowd)


@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_the_optimum_of_a_small_problem(seed: int):
    rng = np.random.default_rng(seed)
    speedup = np.cumsum(np.concatenate([np.zeros((3, 1, 1)), rng.uniform(0.1, 1, (3, 1, 4))], axis=2), axis=2)
    p = problem(3, [4, 2], speedup=speedup)
    cells = list(itertools.product(range(5), range(3)))
    every = np.array(list(itertools.product(cells, repeat=3)))
    every = every[[feasible(p, each[None]) for each in every]]
    best, value = GeneticSearch(60, 80, 80).run(p, np.zeros((3, 2), dtype=np.int64), rng, 60.0)
    assert value == pytest.approx(p.fitness(every).max(), rel=0.02)
    assert feasible(p, best[None])
    assert p.fitness(best[None])[0] == pytest.approx(value)


def test_the_search_is_never_worse_than_where_it_starts():
    rng = np.random.default_rng(1)
    p = problem(3, [4])
    first = np.array([[2], [1], [1]])
    _, value = GeneticSearch(4, 1, 1).run(p, first, rng, 60.0)
    assert value >= p.fitness(first[None])[0]


def rows(**names: float) -> ThroughputTable:
    return ThroughputTable({name: {"a": {g: g**power for g in range(1, 9)}} for name, power in names.items()})


def test_a_job_at_most_doubles():
    policy = PolluxPolicy(Cluster.of({"a": (1, 8)}), rows(x=0.9))
    policy.add_job(Job("j", "x"))
    found = [policy.plan(60.0 * i).allocations["j"].gpus for i in range(5)]
    assert found == [1, 2, 4, 8, 8]


def test_a_rigid_job_has_its_gpus_from_the_first_round():
    policy = PolluxPolicy(Cluster.of({"a": (1, 8)}), rows(x=0.9))
    policy.add_job(Job("j", "x", gpus=4))
    assert [policy.plan(60.0 * i).allocations["j"].gpus for i in range(3)] == [4, 4, 4]


def test_gpus_go_to_the_job_that_scales():
    policy = PolluxPolicy(Cluster.of({"a": (1, 8)}), rows(good=0.95, bad=0.1))
    policy.add_job(Job("g", "good"))
    policy.add_job(Job("b", "bad"))
    for i in range(6):
        plan = policy.plan(60.0 * i)
    assert plan.allocations["g"].gpus > 2 * plan.allocations["b"].gpus


def test_a_power_of_zero_is_refused():
    with pytest.raises(SettingsError, match="power"):
        PolluxPolicy(Cluster.of({"a": (1, 8)}), rows(x=1.0), power=0.0)
