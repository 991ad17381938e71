"""Gavel's rules on cases worked by hand (docs/papers/baselines.md, B4-B11)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from copter.runtime.errors import SettingsError
from copter_frontends.policies.baselines.gavel import (
    GavelObjective,
    GavelPolicy,
    GavelPrograms,
    JobFacts,
    LevelProgram,
    Request,
    RoundMechanism,
    SumProgram,
)
from copter_frontends.policies.baselines.gavel.objectives import isolated_rate
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job

ONE_EACH = {"a": 1, "b": 1}


def facts(*rate: float, **others: float) -> JobFacts:
    return JobFacts(np.array(rate), int(others.pop("gpus", 1)), **others)


def solve(objective: GavelObjective, capacity: dict[str, int], **jobs: JobFacts):
    return GavelPrograms(objective, capacity).solve(capacity, jobs)


def test_max_sum_throughput_gives_each_type_to_whom_it_adds_most():
    found = solve(GavelObjective.MAX_SUM_THROUGHPUT, ONE_EACH, j=facts(4.0, 1.0), k=facts(3.0, 2.0))
    assert found.objective == pytest.approx(6.0)
    np.testing.assert_allclose(found.x["j"], [1, 0], atol=1e-6)
    np.testing.assert_allclose(found.x["k"], [0, 1], atol=1e-6)


def test_max_sum_throughput_counts_the_gpus_of_a_gang():
    found = solve(GavelObjective.MAX_SUM_THROUGHPUT, {"a": 2}, j=facts(3.0, gpus=2), k=facts(2.0), m=facts(2.0))
    assert found.objective == pytest.approx(4.0)  # two small jobs are worth more than the gang
    assert found.x["j"][0] == pytest.approx(0.0, abs=1e-6)


def test_proportional_fairness_is_that_of_a_cone_program():
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(4)
    capacity = {"a": 5, "b": 8, "c": 3}
    jobs = {
        f"j{k}": facts(*rng.uniform(0.5, 4.0, 3), gpus=int(rng.integers(1, 4)), weight=float(rng.uniform(0.5, 2.0)))
        for k in range(12)
    }
    programs = GavelPrograms(GavelObjective.PROPORTIONAL_FAIRNESS, capacity)
    for _ in range(2):
        found = programs.solve(capacity, jobs)
        x = cp.Variable((len(jobs), 3), nonneg=True)
        rates, gpus = np.array([each.rate for each in jobs.values()]), np.array([each.gpus for each in jobs.values()])
        weights = np.array([each.weight for each in jobs.values()])
        worth = cp.sum(cp.multiply(weights, cp.log(cp.sum(cp.multiply(rates, x), axis=1))))
        rows = [cp.sum(x, axis=1) <= 1, gpus @ x <= np.array(list(capacity.values()))]
        value = cp.Problem(cp.Maximize(worth), rows).solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_gap_abs=1e-9)
        assert found.objective == pytest.approx(value, rel=2e-6, abs=2e-6)
        assert found.bound >= value - 1e-7 * (1 + abs(value))
        used = sum(gpus[k] * found.x[job] for k, job in enumerate(jobs))
        assert bool((used <= np.array(list(capacity.values())) * (1 + 1e-9)).all())
        jobs.pop("j3", None)
        jobs["new"] = facts(1.0, 2.0, 3.0, gpus=2)


def test_proportional_fairness_gives_a_contested_type_in_equal_parts():
    found = solve(GavelObjective.PROPORTIONAL_FAIRNESS, {"a": 1}, j=facts(4.0), k=facts(1.0))
    assert found.x["j"][0] == pytest.approx(0.5, rel=1e-3)
    assert found.objective == pytest.approx(np.log(2.0) + np.log(0.5), abs=1e-5)


def test_max_min_fairness_is_relative_to_the_proportional_share():
    # T_prop is 1.5 for both; together they have a rate of 3, so each reaches its proportional share: a level of 1.
    found = solve(GavelObjective.MAX_MIN_FAIRNESS, ONE_EACH, j=facts(2.0, 1.0), k=facts(2.0, 1.0))
    assert found.objective == pytest.approx(1.0)
    assert found.bound == pytest.approx(1.0, rel=1e-5)


def test_max_min_fairness_weighs_by_gpus_over_weight():
    # One type: the value of a unit of time is gpus / weight; j needs 2 GPUs of 2, k one. 2 x_j = x_k, 2 x_j + x_k = 2.
    found = solve(GavelObjective.MAX_MIN_FAIRNESS, {"a": 2}, j=facts(5.0, gpus=2), k=facts(7.0))
    assert found.x["j"][0] == pytest.approx(0.5)
    assert found.objective == pytest.approx(1.0)


def test_what_fairness_leaves_over_is_given_away():
    # T_prop is 0.8 and 0.2: j cannot pass a level of 1.25, for which k needs a quarter of b; it gets the rest as well.
    found = solve(GavelObjective.MAX_MIN_FAIRNESS, {"a": 4, "b": 1}, j=facts(1.0, 0.0), k=facts(0.0, 1.0))
    assert found.objective == pytest.approx(1.25)
    assert found.x["k"].sum() == pytest.approx(1.0)


def test_makespan_is_the_reciprocal_of_the_level():
    found = solve(GavelObjective.MAKESPAN, {"a": 1}, j=facts(1.0, work_left=10.0), k=facts(1.0, work_left=20.0))
    assert 1.0 / found.objective == pytest.approx(30.0, rel=1e-5)
    assert found.x["j"][0] == pytest.approx(1 / 3, rel=1e-4)


def test_finish_time_fairness_of_equals_is_one():
    found = solve(
        GavelObjective.FINISH_TIME_FAIRNESS, {"a": 1}, j=facts(1.0, work_left=10.0), k=facts(1.0, work_left=10.0)
    )
    assert -found.objective == pytest.approx(1.0, rel=1e-6)


def test_finish_time_fairness_favours_the_job_that_has_waited():
    # (10 + 10/r) / 20 = (10 / (1 - r)) / 20 at r = (sqrt(5) - 1) / 2.
    jobs = {"j": facts(1.0, work_left=10.0, age_s=10.0), "k": facts(1.0, work_left=10.0)}
    found = solve(GavelObjective.FINISH_TIME_FAIRNESS, {"a": 1}, **jobs)
    golden = (5**0.5 - 1) / 2
    assert -found.objective == pytest.approx((10 + 10 / golden) / 20, rel=1e-6)
    assert found.bound >= found.objective
    assert found.x["j"][0] == pytest.approx(golden, abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_finish_time_fairness_is_the_least_that_feasible_shares_reach(seed: int):
    """No bisection: the largest ratio is within 1e-5 of its bound, and a program by HiGHS has no shares for less."""
    rng = np.random.default_rng(seed)
    capacity = {"a": 3, "b": 5, "c": 2}
    jobs = {
        f"j{k}": facts(
            *rng.uniform(0.5, 4.0, 3), gpus=int(rng.integers(1, 3)), work_left=float(rng.uniform(1.0, 50.0)),
            age_s=float(rng.uniform(0.0, 20.0)), isolated_s=float(rng.uniform(0.0, 10.0)),
        )
        for k in range(10)
    }  # fmt: skip
    found = solve(GavelObjective.FINISH_TIME_FAIRNESS, capacity, **jobs)
    rho, bound = -found.objective, -found.bound
    assert bound <= rho <= bound * (1.0 + 1e-5)
    counts = np.array(list(capacity.values()), dtype=float)
    ideal = {j: f.isolated_s + f.work_left / isolated_rate(f, counts, len(jobs)) for j, f in jobs.items()}
    for factor, reaches in ((1.0 - 1e-4, False), (1.0 + 1e-4, True)):
        need = {j: f.work_left / (factor * rho * ideal[j] - f.age_s) for j, f in jobs.items()}
        values = {j: Request(f.rate / need[j], f.gpus) for j, f in jobs.items()}
        assert (_by_highs(capacity, values)[1] >= 1.0) is reaches


def test_jobs_that_are_alike_have_equal_shares():
    jobs = {name: facts(20.0, 7.0, gpus=16) for name in "jk"} | {"m": facts(18.0, 7.0, gpus=6)}
    found = solve(GavelObjective.MAX_SUM_THROUGHPUT, {"a": 16, "b": 16}, **jobs)
    np.testing.assert_array_equal(found.x["j"], found.x["k"])
    np.testing.assert_allclose(found.x["j"], [0.3125, 0.5], atol=1e-6)  # m has 6 of a, the two share the rest and b


@pytest.mark.parametrize("seed", range(6))
def test_the_programmes_agree_with_highs_after_edits(seed: int):
    rng = np.random.default_rng(seed)
    capacity = {"a": 8, "b": 4, "c": 12}
    sums, levels = SumProgram(capacity), LevelProgram(capacity)
    alive: dict[str, Request] = {}
    for step in range(6):
        for i in range(int(rng.integers(1, 6))):
            value = rng.uniform(0.2, 3.0, 3) * (rng.random(3) < 0.8)
            value[int(rng.integers(3))] = 1.0
            alive[f"{step}-{i}"] = Request(value, int(rng.choice([1, 2, 4])))
        for gone in rng.permutation(list(alive))[: len(alive) // 3]:
            del alive[str(gone)]
        capacity["b"] = int(rng.integers(4, 9))
        for program in (sums, levels):
            program.edit(capacity, alive)
        one, two = sums.solve(), levels.solve()
        expected_sum, expected_level = _by_highs(capacity, alive)
        assert one.objective == pytest.approx(expected_sum, rel=1e-5)
        assert two.objective == pytest.approx(expected_level, rel=1e-6)
        assert two.bound >= expected_level * (1 - 1e-6)
        for shares in (one, two):
            for k, gpus in enumerate(capacity.values()):
                assert sum(r.gpus * shares.x[j][k] for j, r in alive.items()) <= gpus * (1 + 1e-6)
            assert all(x.sum() <= 1 + 1e-6 and x.min() >= -1e-9 for x in shares.x.values())


def _by_highs(capacity: dict[str, int], requests: dict[str, Request]) -> tuple[float, float]:
    n, k = len(requests), len(capacity)
    value = np.array([r.value for r in requests.values()])
    rows = np.zeros((k + n, n * k + 1))
    for m, request in enumerate(requests.values()):
        for j in range(k):
            rows[j, m * k + j] = request.gpus
        rows[k + m, m * k : (m + 1) * k] = 1.0
    right = [*capacity.values(), *([1.0] * n)]
    bounds = [(0, 1 if v > 0 else 0) for v in value.ravel()]
    total = linprog(-np.append(value.ravel(), 0.0), A_ub=rows, b_ub=right, bounds=[*bounds, (0, 0)])
    levels = np.zeros((n, n * k + 1))
    for m in range(n):
        levels[m, m * k : (m + 1) * k] = -value[m]
        levels[m, -1] = 1.0
    cost = np.zeros(n * k + 1)
    cost[-1] = -1.0
    fair = linprog(cost, A_ub=np.vstack([rows, levels]), b_ub=[*right, *([0.0] * n)], bounds=[*bounds, (0, None)])
    return -float(total.fun), -float(fair.fun)


def mechanism(**shares: list[float]) -> RoundMechanism:
    made = RoundMechanism(["a", "b"][: len(next(iter(shares.values())))], 360.0)
    for job_id in shares:
        made.add(job_id)
    made.set_shares({j: np.array(x) for j, x in shares.items()})
    return made


def test_priority_is_the_share_over_the_part_of_the_types_time():
    made = mechanism(j=[0.5], k=[0.5])
    made.pass_time(360.0, {"j": "a"})  # clocks 540 and 180 of 720
    found = made.priorities()
    assert found["j"][0] == pytest.approx(0.5 / 0.75)
    assert found["k"][0] == pytest.approx(0.5 / 0.25)


def test_two_jobs_with_half_a_gpu_each_take_turns():
    made, order = mechanism(j=[0.5], k=[0.5]), []
    for _ in range(4):
        chosen = made.select({"a": 1}, {"j": 1, "k": 1}, {"j": np.ones(1), "k": np.ones(1)})
        order += list(chosen)
        made.pass_time(360.0, {job_id: kind for job_id, (kind, _) in chosen.items()})
    assert order == ["j", "k", "j", "k"]


def test_types_are_filled_in_order_and_a_job_is_taken_once():
    made = mechanism(j=[0.1, 0.9], k=[0.05, 0.0])
    runs = {"j": np.ones(2), "k": np.ones(2)}
    gpus = {"j": 1, "k": 1}
    assert made.select({"a": 1, "b": 1}, gpus, runs) == {"j": ("a", 1), "k": ("b", 1)}
    assert made.select({"a": 1, "b": 1}, gpus, runs, one_queue=True) == {"j": ("b", 1), "k": ("a", 1)}


def test_a_job_that_does_not_fit_is_passed_over_and_one_that_cannot_run_is_left_out():
    made = mechanism(big=[1.0], small=[0.1], never=[0.0])
    runs = {"big": np.ones(1), "small": np.ones(1), "never": np.zeros(1)}
    assert made.select({"a": 3}, {"big": 4, "small": 2, "never": 1}, runs) == {"small": ("a", 2)}


def test_a_reset_turns_what_was_not_received_into_a_deficit():
    made = mechanism(j=[0.75], k=[0.25])
    for _ in range(4):
        made.pass_time(360.0, {"j": "a"})
    made.reset()
    assert made.deficit_s["j"][0] == pytest.approx(0.75 * 1440 - 1440)
    assert made.deficit_s["k"][0] == pytest.approx(0.25 * 1440)
    assert made.time_s["j"][0] == 180.0
    made.set_shares({"j": np.array([0.5]), "k": np.array([0.5])})
    assert list(made.select({"a": 1}, {"j": 1, "k": 1}, {"j": np.ones(1), "k": np.ones(1)})) == ["k"]


def policy(reset_s: float | None = 1920.0) -> GavelPolicy:
    table = ThroughputTable({"slow": {"a": 1.0}, "fast": {"a": 2.0}})
    return GavelPolicy(Cluster.of({"a": (1, 1)}), table, reset_s=reset_s)


def test_a_new_job_has_no_share_until_the_clocks_are_reset():
    made = policy()
    made.add_job(Job("j", "slow"))
    assert set(made.plan(0.0).allocations) == {"j"}
    made.add_job(Job("k", "fast", submit_s=100.0))
    for now_s in (360.0, 720.0, 1800.0):
        assert set(made.plan(now_s).allocations) == {"j"}
    assert set(made.plan(2160.0).allocations) == {"k"}


def test_without_resets_a_new_job_goes_first_because_the_clocks_are_not_even():
    made = policy(reset_s=None)
    made.add_job(Job("j", "slow"))
    made.plan(0.0)
    made.add_job(Job("k", "fast", submit_s=100.0))
    assert set(made.plan(360.0).allocations) == {"k"}


def test_a_job_keeps_its_nodes_while_it_keeps_its_type():
    table = ThroughputTable({"j": {"a": 1.0}})
    made = GavelPolicy(Cluster.of({"a": (2, 4)}), table, reset_s=0.0)
    for i in range(3):
        made.add_job(Job(f"{i}", "j", requested_gpus=2))
    before = made.plan(0.0).allocations
    made.remove_job("0")
    plan = made.plan(360.0)
    assert plan.allocations == {j: before[j] for j in ("1", "2")}
    assert plan.move == ()


def test_an_unknown_objective_names_the_known_ones():
    with pytest.raises(SettingsError, match="max_min_fairness"):
        GavelPolicy(Cluster.of({"a": (1, 1)}), ThroughputTable({}), "lunch")
