"""Shockwave's window on cases worked by hand (docs/papers/baselines.md, B19-B24)."""

from __future__ import annotations

import numpy as np
import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Allocation, Cluster, Job, configurations_of
from copter_frontends.vocabulary.semantics import DEFAULT, SIA_ARTIFACT, Semantics
from copter_papers.opponents.shockwave import ShockwavePolicy, Window, WindowJob, plan_window
from copter_papers.opponents.shockwave.blind import give_blindly
from copter_papers.opponents.shockwave.true_log import dealt, plan_true_log, worth_of
from copter_papers.opponents.shockwave.window import BASES, in_turn, log_lines


def job(rounds_left: float, gpus: int = 1, progress: float = 0.0, most_delay: float = 100.0, weight: float = 1.0):
    return WindowJob(gpus, progress, (1.0 - progress) / rounds_left, rounds_left, most_delay, weight)


def plan(*jobs: WindowJob, gpus: int = 1, rounds: int = 2, k: float = 0.1) -> Window:
    found = plan_window(jobs, gpus, rounds, k, 1e-6, 30.0)
    assert found is not None
    assert (np.array([j.gpus for j in jobs]) @ found.runs <= gpus).all()
    return found


def test_the_lines_meet_the_logarithm_at_the_bases():
    slopes, heights = log_lines()
    lowest = (slopes[:, None] * BASES + heights[:, None]).min(axis=0)
    np.testing.assert_allclose(lowest, np.log(np.maximum(BASES, 1e-6)), atol=1e-9)


def test_equal_jobs_share_the_window():
    assert plan(job(1.0), job(1.0)).runs.sum(axis=1).tolist() == [1, 1]


def test_the_logarithm_prefers_the_job_that_has_had_nothing():
    # One round for either: log .5 - log 1e-6 for the new job, log 1 - log .5 for the other.
    found = plan(job(2.0), job(1.0, progress=0.5), rounds=1, k=0.0)
    assert found.runs.sum(axis=1).tolist() == [1, 0]


def test_the_longest_remaining_time_counts_by_k():
    # Both have progress, so that log utilities differ little: a large k puts both rounds on the longer job.
    found = plan(job(8.0, progress=0.5), job(4.0, progress=0.5), k=100.0)
    assert found.runs.sum(axis=1).tolist() == [2, 0]


def test_a_job_that_may_not_wait_runs_at_once():
    found = plan(job(8.0, progress=0.5), job(2.0, progress=0.9, most_delay=0.0), k=100.0)
    assert found.fair
    assert found.runs.sum(axis=1).tolist() == [0, 2]


def test_where_not_all_can_be_fair_weights_decide():
    found = plan(job(2.0, most_delay=0.0, weight=1.0), job(2.0, most_delay=0.0, weight=1e4), k=0.0, rounds=1)
    assert not found.fair
    assert found.runs.sum(axis=1).tolist() == [0, 1]


def test_weights_multiply_the_utilities_and_not_the_longest_time():
    found = plan(job(2.0, progress=0.2, most_delay=-9.0, weight=100.0), rounds=1, k=1.0)
    assert not found.fair
    assert found.objective == pytest.approx(100.0 * np.log(0.6) - 1.0, abs=1e-3)


def test_rounds_are_put_in_turn_by_weight_over_their_number():
    jobs = [job(2.0, weight=2.0), job(1.0, weight=3.0), job(3.0, weight=9.0)]  # 1, 3 and 3 for each round
    runs = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], dtype=bool)
    found = in_turn(jobs, runs, 1)
    assert found.astype(int).tolist() == [[0, 0, 0, 0, 1, 1], [1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0]]
    np.testing.assert_array_equal(runs.sum(axis=1), [2, 1, 3])  # what was given is as it was


def test_rounds_that_no_longer_fit_are_left_out():
    # Two GPUs in the middle round only are left by the job of one GPU that goes first.
    jobs = [job(2.0, gpus=2, weight=1.0), job(2.0, weight=5.0)]
    runs = np.array([[1, 1, 0], [0, 0, 1]], dtype=bool)
    assert in_turn(jobs, runs, 2).astype(int).tolist() == [[0, 1, 1], [1, 0, 0]]
    assert in_turn(jobs, runs[:, :2] | [[False], [True]], 2).astype(int).tolist() == [[0, 0], [1, 1]]


def test_a_job_that_is_late_goes_before_one_that_is_not_where_not_all_can_be_fair():
    policy = ShockwavePolicy(Cluster.of({"a": (1, 1)}), ThroughputTable({"x": {"a": 1.0}}), rounds=4, round_s=60.0)
    for name in ("first", "late"):
        policy.add_job(Job(name, "x", work_samples=120.0))
    policy.plan(0.0)
    policy.add_job(Job("new", "x", submit_s=600.0, work_samples=60.0))
    for name in ("first", "late"):
        policy.update_job(name, progress=0.5)
    assert list(policy.plan(1200.0).allocations) != ["new"]
    assert policy.rho(policy.jobs["late"], 1200.0) > 1.0


def test_weights_of_any_power_are_finite():
    policy = ShockwavePolicy(
        Cluster.of({"a": (1, 1)}), ThroughputTable({"x": {"a": 1.0}}), rounds=2, round_s=60.0, fairness_power=1e4
    )
    for i in range(3):
        policy.add_job(Job(f"j{i}", "x", work_samples=60.0))
    assert len(policy.plan(1e5).allocations) == 1


def test_a_job_gets_no_more_rounds_than_it_needs_and_they_come_early():
    found = plan(job(1.5), rounds=5)
    assert found.runs.tolist() == [[True, True, False, False, False]]


def test_the_objective_is_the_mean_log_utility_less_the_longest_time():
    found = plan(job(2.0, progress=0.2), rounds=1, k=1.0)  # progress 0.6 after it, half of the time is left
    assert found.objective == pytest.approx(np.log(0.6) - 1.0, abs=1e-5)
    assert found.bound >= found.objective


def test_a_window_is_followed_until_the_jobs_change():
    table = ThroughputTable({"x": {"a": 1.0}})
    policy = ShockwavePolicy(Cluster.of({"a": (1, 1)}), table, rounds=4, round_s=60.0)
    policy.add_job(Job("j", "x", work_samples=120.0))
    policy.add_job(Job("k", "x", work_samples=120.0))
    first = [next(iter(policy.plan(60.0 * i).allocations)) for i in range(4)]
    assert sorted(first) == ["j", "j", "k", "k"]
    objective = policy.plan(180.0).objective
    assert policy.plan(180.0).objective == objective
    policy.remove_job(first[0])
    assert list(policy.plan(240.0).allocations) == [({"j", "k"} - {first[0]}).pop()]


def test_blind_to_types_a_job_runs_where_most_of_its_gpus_would_be():
    gpus = {"big": 6, "mid": 4, "small": 2, "more": 5}
    room = {"a": 8, "b": 4}

    def everywhere(job_id: str, kind: str) -> bool:
        return True

    # In line: big on a, a, a, a, a, a; mid on a, a, b, b, so on a, which has 2 left: nothing; small on b.
    given = give_blindly(["small", "mid", "big", "more"], gpus, room, {}, everywhere)
    assert given == {"big": ("a", 6), "small": ("b", 2)}
    # What a job has it keeps; a type that could never run a job is not considered.
    held = {"mid": Allocation("b", 4, (("b-0", 4),))}
    given = give_blindly(["small", "mid", "big"], gpus, room, held, everywhere)
    assert given == {"mid": ("b", 4), "big": ("a", 6), "small": ("a", 2)}
    given = give_blindly(["small"], gpus, room, {}, lambda job_id, kind: kind == "b")
    assert given == {"small": ("b", 2)}


def test_blind_to_types_it_reckons_with_the_mean_time():
    cluster = Cluster.of({"a": (1, 2), "b": (1, 2), "c": (1, 1)})
    policy = ShockwavePolicy(cluster, ThroughputTable({"x": {"a": 1.0, "b": 4.0, "c": 9.0}}), type_blind=True)
    policy.add_job(Job("j", "x", work_samples=100.0, requested_gpus=2))
    assert policy.best_rate(policy.jobs["j"]) == pytest.approx(1 / ((1 / 1 + 1 / 4) / 2))  # c has too few
    policy.remove_resources("b", 2)
    assert policy.best_rate(policy.jobs["j"]) == pytest.approx(1.0)
    assert policy.plan(0.0).allocations["j"].gpus == 2
    policy.remove_resources("a", 2)
    assert policy.best_rate(policy.jobs["j"]) == 0.0
    assert policy.plan(360.0).allocations == {}


def test_with_the_public_simulators_semantics_it_is_blind_to_types():
    cluster = Cluster.of({"t4": (1, 4), "rtx": (1, 8)})
    model = GoodputModel(configurations_of(cluster))
    made = {s.name: POLICIES["shockwave"].build(cluster, model, semantics=s) for s in (DEFAULT, SIA_ARTIFACT)}
    assert {name: policy.type_blind for name, policy in made.items()} == {"default": False, "sia-artifact": True}


@pytest.mark.parametrize("semantics", [DEFAULT, SIA_ARTIFACT])
def test_the_names_tell_lines_from_the_logarithm_itself(semantics: Semantics):
    cluster = Cluster.of({"t4": (1, 4), "rtx": (1, 8)})
    model = GoodputModel(configurations_of(cluster))
    made = {name: POLICIES[name].build(cluster, model, semantics=semantics) for name in ("shockwave", "shockwave-log")}
    assert {name: policy.true_log for name, policy in made.items()} == {"shockwave": False, "shockwave-log": True}
    assert len({policy.type_blind for policy in made.values()}) == 1
    assert POLICIES["shockwave-log"].rigid


def test_parameters_are_checked():
    with pytest.raises(SettingsError, match="rounds"):
        ShockwavePolicy(Cluster.of({"a": (1, 1)}), ThroughputTable({}), rounds=0)


def some_jobs(n: int, seed: int, late: bool) -> list[WindowJob]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        left, progress = float(rng.uniform(1.0, 12.0)), float(rng.choice([0.0, rng.uniform(0.0, 0.95)]))
        delay = float(rng.uniform(-5.0, 2.0) if late else rng.uniform(20.0, 80.0))
        gpus, weight = int(rng.choice([1, 2, 4])), float(rng.uniform(1.0, 100.0))
        found.append(WindowJob(gpus, progress, (1.0 - progress) / left, left, delay, weight))
    return found


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_logarithm_itself_is_as_good_as_lines_at_all_counts_and_above_the_published_ones(seed: int, late: bool):
    jobs = some_jobs(6, seed, late)
    true = plan_true_log(jobs, 4, 6, 0.1, 1e-7, 60.0)
    lines, published = (plan_window(jobs, 4, 6, 0.1, 1e-7, 60.0, whole) for whole in (True, False))
    assert true is not None
    assert lines is not None
    assert published is not None
    assert true.fair is lines.fair is published.fair
    assert (np.array([each.gpus for each in jobs]) @ true.runs <= 4).all()
    assert true.objective == pytest.approx(worth_of(jobs, true.runs, 0.1, true.fair), rel=1e-9, abs=1e-9)
    best = max(worth_of(jobs, each.runs, 0.1, true.fair) for each in (lines, published))
    assert true.objective >= best - 1e-6 * (1.0 + abs(best))
    assert true.bound >= best - 1e-9
    if true.fair:  # a window without fairness rows loses rounds when these are put in turn (B22)
        assert true.objective == pytest.approx(worth_of(jobs, lines.runs, 0.1, True), rel=1e-6, abs=1e-6)


def test_a_window_in_which_all_end_has_no_gap():
    """Its worth is zero, of which any rounding of the bound is an infinite share."""
    found = plan_true_log([WindowJob(1, 0.0, 0.2575600267509787, 3.8825900610999997, 0.0, 1.0)], 64, 20, 0.1, 1e-3, 9.0)
    assert found is not None
    assert (found.objective, found.bound) == (0.0, 0.0)


def test_rounds_that_cannot_be_dealt_are_planned_with_lines():
    """Of three jobs of two GPUs, one runs in a round of three GPUs: the four rounds of nine GPUs are not to be had."""
    jobs = [job(3.0, gpus=2), job(3.0, gpus=2), job(3.0, gpus=2)]
    assert dealt(jobs, np.array([2, 1, 1]), 3, 3).sum() == 3
    found = plan_true_log(jobs, 3, 3, 0.1, 1e-6, 30.0)
    assert found is not None
    assert found.runs.sum(axis=1).tolist() == [1, 1, 1]
    assert found.objective == pytest.approx(np.log(1 / 3) / 3 - 0.1 * 2 / 3, rel=1e-6)


def test_the_policy_plans_with_the_logarithm():
    cluster, table = Cluster.of({"a": (1, 2)}), ThroughputTable({"x": {"a": 1.0}})
    policy = ShockwavePolicy(cluster, table, rounds=4, round_s=60.0, true_log=True)
    for name in ("j", "k", "m"):
        policy.add_job(Job(name, "x", work_samples=240.0))
    assert len(policy.plan(0.0).allocations) == 2
    assert policy.plan(60.0).objective == pytest.approx(policy.plan(60.0).bound, rel=1e-3)
