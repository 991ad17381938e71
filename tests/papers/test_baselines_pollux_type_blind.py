"""Pollux as Sia's public simulator runs it, on cases worked by hand (docs/papers/baselines.md, B29-B32)."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.goodput.job_agent import FitCache, JobAgent
from copter_frontends.goodput.profiled import fitted_profiles
from copter_frontends.goodput.throughput import ThroughputParameters, step_time_s
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policy_kit import NodeInventory
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.saved_run import load_run, save_run
from copter_frontends.vocabulary import Allocation, Cluster, InvalidJobError, Job, configurations_of
from copter_frontends.vocabulary.named_clusters import cluster_from
from copter_frontends.vocabulary.semantics import DEFAULT, SIA_ARTIFACT
from copter_papers.opponents.entries import pollux_of_the_artifact
from copter_papers.opponents.pollux import (
    LearnedSpeedups,
    ParetoSearch,
    TypeBlindPollux,
    TypeBlindProblem,
    VirtualNodes,
)
from copter_papers.opponents.pollux.pareto_kernels import draw, repair, survivors

FITTED = fitted_profiles()
HET = Cluster.of({"t4": (1, 4), "rtx": (1, 8), "a100": (1, 8)})  # virtual nodes: t4, rtx, rtx, a100, a100


def problem(jobs: int, **others: object) -> TypeBlindProblem:
    nodes = VirtualNodes(NodeInventory(HET))
    linear = np.tile(np.arange(17.0), (jobs, 3, 1))
    linear[:, 0] = 0
    values: dict[str, object] = {
        "room": np.full(5, 4),
        "size": 4,
        "kind": nodes.kind,
        "rank": nodes.rank,
        "runs": np.ones((jobs, 3), dtype=bool),
        "speedup": linear,
        "least": np.ones(jobs, dtype=np.int64),
        "most": np.full(jobs, 16),
        "base": np.zeros((jobs, 5), dtype=np.int64),
        "factor": np.ones(jobs),
        "power": -1.0,
    }
    return TypeBlindProblem(**{**values, **others})  # type: ignore[arg-type]


def repaired(p: TypeBlindProblem, state: list[list[int]], seed: int = 1) -> np.ndarray:
    found = np.array(state)
    repair(found, p.room, p.least, p.most, np.array([seed], dtype=np.uint64))
    return found


# Virtual nodes and the repair by type (B29)


def test_larger_nodes_are_several_virtual_ones():
    nodes = VirtualNodes(NodeInventory(HET))
    assert nodes.size == 4
    assert nodes.names == [("t4-0", 0), ("rtx-0", 0), ("rtx-0", 1), ("a100-0", 0), ("a100-0", 1)]
    assert [nodes.types[k] for k in nodes.kind] == ["t4", "rtx", "rtx", "a100", "a100"]


def test_virtual_nodes_of_one_node_are_put_together_again():
    nodes = VirtualNodes(NodeInventory(HET))
    row = np.array([0, 2, 3, 0, 0])
    allocation = nodes.allocation(row)
    assert allocation == Allocation("rtx", 5, (("rtx-0", 5),))
    np.testing.assert_array_equal(nodes.row(allocation, nodes.named(row)), row)
    np.testing.assert_array_equal(nodes.row(allocation, {}), [0, 4, 1, 0, 0])
    assert nodes.allocation(np.zeros(5, dtype=np.int64)) is None


@pytest.mark.parametrize(
    ("mixed", "kept"),
    [
        ([3, 2, 0, 0, 0], [3, 0, 0, 0, 0]),  # the type with most GPUs, not the more powerful one
        ([3, 2, 2, 0, 3], [0, 2, 2, 0, 0]),  # over all of its nodes
        ([4, 4, 0, 0, 0], [0, 4, 0, 0, 0]),  # ties: rtx before t4,
        ([0, 1, 2, 3, 0], [0, 0, 0, 3, 0]),  # a100 before rtx,
        ([2, 2, 0, 1, 1], [0, 0, 0, 1, 1]),  # a100 before all
        ([0, 0, 0, 0, 0], [0, 0, 0, 0, 0]),
    ],
)
def test_a_mixed_job_keeps_one_type(mixed: list[int], kept: list[int]):
    np.testing.assert_array_equal(problem(1).one_type(np.array([mixed])), [kept])


def test_a_type_that_does_not_run_the_job_is_not_kept():
    runs = np.array([[True, False, True]])
    found = problem(1, runs=runs).one_type(np.array([[1, 4, 4, 0, 0]]))
    np.testing.assert_array_equal(found, [[1, 0, 0, 0, 0]])


def test_a_job_left_with_too_few_has_none():
    found = problem(1, least=np.array([3])).one_type(np.array([[2, 0, 1, 0, 0]]))
    assert found.sum() == 0


# The search (B30, B31)


def test_values_are_the_mean_over_a_nodes_gpus_and_the_speedup_of_the_active_gpus():
    p = problem(2)
    state = np.array([[4, 0, 0, 0, 0], [0, 2, 0, 0, 0]])
    mean, use = p.values(state)
    assert mean == pytest.approx(2 / (1 / (4 / 4 + 1e-3) + 1 / (2 / 4 + 1e-3)))
    assert use == pytest.approx((4 + 2) / 8)


def test_a_change_costs_the_factor_and_staying_does_not():
    base = np.array([[4, 0, 0, 0, 0]])
    p = problem(1, base=base, factor=np.array([0.5]), power=1.0)
    assert p.values(base)[0] == pytest.approx(1 + 1e-3)
    assert p.values(np.array([[0, 4, 0, 0, 0]]))[0] == pytest.approx(0.5 + 1e-3)  # other nodes are a change too


def test_from_the_second_split_job_of_a_node_on_jobs_lose_what_they_have_there():
    found = repaired(problem(3), [[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 0, 0]])
    np.testing.assert_array_equal(found, [[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]])


def test_earlier_jobs_keep_a_nodes_gpus():
    found = repaired(problem(3), [[3, 0, 0, 0, 0], [3, 0, 0, 0, 0], [2, 0, 0, 0, 0]])
    np.testing.assert_array_equal(found[:, 0], [3, 1, 0])


@pytest.mark.parametrize("seed", range(1, 20))
def test_no_job_has_more_than_its_most(seed: int):
    found = repaired(problem(1, most=np.array([6])), [[4, 4, 4, 4, 4]], seed)
    assert found.sum() == 6
    assert (found <= 4).all()


def test_survivors_are_the_first_fronts_and_the_lonely_of_the_last():
    values = np.array([[1.0, 1], [3, 1], [1, 3], [2, 2], [2.1, 1.9], [0, 0]])
    kept, front, spread = survivors(values, 3)
    assert set(kept.tolist()) == {1, 2, 3}  # the ends of the first front, and the one with more room around it
    assert (front == 0).all()
    np.testing.assert_allclose(sorted(spread), [2.2 / 2 / 2, np.inf, np.inf])
    kept, front, _ = survivors(values, 6)
    assert dict(zip(kept.tolist(), front.tolist(), strict=True)) == {1: 0, 2: 0, 3: 0, 4: 0, 0: 1, 5: 2}


def test_numbers_drawn_are_even():
    dice = np.array([7], dtype=np.uint64)
    numbers = np.array([draw(dice) for _ in range(4000)])
    assert numbers.min() >= 0
    assert numbers.max() < 1
    np.testing.assert_allclose(np.histogram(numbers, 4, (0, 1))[0] / 1000, 1, atol=0.15)


@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_the_optimum_of_a_small_problem(seed: int):
    rng = np.random.default_rng(seed)
    speedup = np.zeros((2, 3, 17))
    speedup[:, 1:, 1:] = np.cumsum(rng.uniform(0.1, 1, (2, 1, 16)), axis=2) * np.array([1, 0.7])[:, None]
    p = problem(2, room=np.array([4, 4]), kind=np.array([0, 1]), base=np.zeros((2, 2), dtype=np.int64), speedup=speedup)
    every = np.array(list(itertools.product(range(5), repeat=4))).reshape(-1, 2, 2)
    every = every[[bool((each == repaired(p, each.tolist())).all()) for each in every]]
    states, values = ParetoSearch(50, 50).run(p, np.zeros((1, 2, 2), dtype=np.int64), rng, 60.0)
    assert values[0, 0] == pytest.approx(max(p.values(each)[0] for each in every))
    assert values[0] == pytest.approx(p.values(states[0]))
    assert len(np.unique(states, axis=0)) == len(states)


def test_without_mixing_every_individual_is_on_one_type():
    rng = np.random.default_rng(0)
    states, _ = ParetoSearch(20, 20).run(problem(3, mixing=False), np.zeros((1, 3, 5), dtype=np.int64), rng, 60.0)
    for state in states:
        np.testing.assert_array_equal(problem(3).one_type(state), state)


# What jobs learn of themselves (B32)


def test_without_hints_speedup_is_the_share_of_the_fair_one():
    table = LearnedSpeedups(FITTED).table(Job("j", "cifar10"), None, 4, 8)
    np.testing.assert_allclose(table, [[0] * 5, np.arange(5) / 8, np.arange(5) / 8])


def test_learned_speedups_are_over_the_fair_share_on_one_node():
    one = ThroughputParameters(0.1, 0.01, 0.2, 0.02, 0.05, 0.01, 1.5)
    hints = TrainingHints({"t4": one, "a100": one}, {"t4": 4, "a100": 4}, 1000.0)
    speedups, job = LearnedSpeedups(FITTED, ("t4",)), Job("j", "cifar10")
    table = speedups.table(job, hints, 8, 3)
    assert table[1, 3] == pytest.approx(1)
    assert (table[2, 2:] < table[1, 2:]).all()  # several nodes are slower
    assert (table[0] == 0).all()
    assert speedups.most(job, hints) == 8
    assert speedups.most(job, None) == 1


def test_a_type_blind_agent_has_one_model_and_keeps_the_first_of_two_equal_steps():
    agent = JobAgent(FITTED["cifar10"], FitCache(), 4096, type_blind=True)
    steps = FITTED["cifar10"].steps
    agent.tune("t4", (1,))
    agent.observe("t4", (1,), *steps["t4"].step((1,), agent.local), 1000.0)
    before = agent.hints()
    agent.observe("a100", (1,), *steps["a100"].step((1,), agent.local), 2000.0)
    after = agent.hints()
    assert before is not None
    assert after is not None
    assert set(after.parameters) == set(steps)
    assert len(set(after.parameters.values())) == 1
    assert after.parameters == before.parameters
    assert (before.noise_scale, after.noise_scale) == (1000.0, 2000.0)
    parameters = after.parameters["a100"]
    assert float(step_time_s(parameters, 1, 1, agent.local)) == pytest.approx(
        steps["t4"].step((1,), agent.local)[0], rel=0.02
    )


# The policy


def policy(**others: object) -> TypeBlindPollux:
    return TypeBlindPollux(HET, LearnedSpeedups(FITTED), **others)  # type: ignore[arg-type]


def test_a_job_begins_with_one_gpu_and_grows_with_what_it_has_run_on():
    found = policy()
    found.add_job(Job("j", "cifar10"))
    assert found.plan(0.0).allocations["j"].gpus == 1
    assert found.plan(60.0).allocations["j"].gpus == 1
    one = ThroughputParameters(0.1, 0.01, 0.01, 0.0, 0.01, 0.0, 1.5)
    found.update_job("j", hints=TrainingHints({"t4": one}, {"t4": 1}, 1e6), restarts=0)
    assert found.plan(6000.0).allocations["j"].gpus == 2


def test_a_rigid_job_has_its_gpus_or_none():
    found = policy(mixing=False)
    for i in range(3):
        found.add_job(Job(f"j{i}", "cifar10", gpus=6, batch_size=512, submit_s=float(i)))
    plans = [found.plan(60.0 * round_number).allocations for round_number in range(6)]
    assert {given.gpus for plan in plans for given in plan.values()} == {6}


def test_a_job_has_no_more_gpus_than_the_smallest_type():
    cluster = cluster_from("sia-het")
    assert pollux_of_the_artifact(cluster, SIA_ARTIFACT, FITTED).most_gpus == 16
    assert pollux_of_the_artifact(cluster_from("sia-hom"), SIA_ARTIFACT, FITTED).most_gpus == 64


def test_what_is_chosen_is_what_jobs_get():
    blind = policy()
    for i in range(6):
        blind.add_job(Job(f"j{i}", "cifar10", submit_s=float(i)))
    plan = blind.plan(60.0)
    assert {job_id: found.gpus for job_id, found in plan.allocations.items()} == {f"j{i}": 1 for i in range(6)}
    again = blind.plan(120.0)
    assert set(again.allocations) == set(plan.allocations)


def test_the_restart_factor_grows_with_age_and_falls_with_restarts():
    found = policy()
    job = Job("j", "cifar10", submit_s=100.0)
    found.add_job(job)
    assert found._factor(job, 190.0) == pytest.approx(90 / 120)
    found.update_job("j", restarts=2)
    assert found._factor(job, 190.0) == pytest.approx(30 / 120)
    assert policy(restart_factor=0.9)._factor(job, 190.0) == 0.9


def test_a_saved_run_goes_on_as_it_would_have(tmp_path: Path):
    cluster, entry = cluster_from("sia-het"), POLICIES["pollux"]
    model, semantics = GoodputModel(configurations_of(cluster)), entry.under(SIA_ARTIFACT)
    blind = entry.build(cluster, model, semantics=semantics)
    jobs = [Job(f"j{i}", "bert", 50.0 * i) for i in range(4)]
    whole = Simulation(cluster, jobs, blind, model, deadline_s=1e6, semantics=semantics)
    for _ in range(6):
        whole.step()
    save_run(whole, tmp_path / "run")
    again = load_run(tmp_path / "run")
    for _ in range(4):
        one, two = whole.step(), again.step()
        assert one.gpus_used == two.gpus_used
        assert one.objective == two.objective
    assert max(whole.result().jobs["gpu_seconds"]) > 0


@pytest.mark.parametrize(("name", "value"), [("power", 0.0), ("restart_factor", 1.5)])
def test_impossible_settings_are_refused(name: str, value: float):
    with pytest.raises(SettingsError, match=name):
        policy(**{name: value})


def test_the_registry_has_it_under_the_public_simulators_semantics():
    cluster = cluster_from("sia-het")
    entry = POLICIES["pollux"]
    semantics = entry.under(SIA_ARTIFACT)
    assert (semantics.type_blind, semantics.charge, semantics.pin_restoring) == (True, "type_and_shape", False)
    assert entry.under(DEFAULT) is DEFAULT
    assert POLICIES["sia"].under(SIA_ARTIFACT) is SIA_ARTIFACT
    assert isinstance(entry.build(cluster, None, semantics=semantics), TypeBlindPollux)  # type: ignore[arg-type]


def test_a_type_blind_job_needs_an_agent():
    with pytest.raises(SettingsError, match="type_blind"):
        type(DEFAULT)(type_blind=True)


def test_a_job_without_a_profile_is_refused_by_name() -> None:
    policy = pollux_of_the_artifact(HET, SIA_ARTIFACT)
    with pytest.raises(InvalidJobError, match=r"'x': no profile of 'lunch'; there are bert"):
        policy.add_job(Job("x", "lunch", 0.0))
    assert policy.jobs == {}
