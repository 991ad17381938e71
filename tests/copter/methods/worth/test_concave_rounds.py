"""Solves of models with concave worths: known answers, Clarabel's, exact bounds, honest statuses."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter import EditNotAllowedError, InvalidDataError, Model, Session, Status, worth
from copter.problem.worth import Worth
from copter.verify.judge import verify

cp = pytest.importorskip("cvxpy")


def some_worth(rng: np.random.Generator) -> tuple[Worth | None, Any]:
    """A random worth and the same in CVXPY; None for a linear request."""
    weight, kind = float(np.exp(rng.normal())), int(rng.integers(6))
    floor = float(rng.choice([0.0, 0.4]))
    if kind == 0:
        return worth.log(weight, floor), lambda z: weight * cp.log(z + floor)
    if kind == 1:
        alpha = float(rng.choice([0.5, 2.0, 3.0]))
        return worth.power(alpha, weight, floor), lambda z: weight * cp.power(z + floor, 1 - alpha) / (1 - alpha)
    if kind == 2:
        lines = [(float(a), float(b)) for a, b in zip(rng.uniform(-0.5, 3.0, 3), rng.uniform(0.0, 3.0, 3), strict=True)]
        return worth.minimum(lines), lambda z: cp.min(cp.hstack([a * z + b for a, b in lines]))
    if kind == 3:
        slope = float(rng.uniform(0.0, 3.0))
        return worth.quadratic(slope, weight), lambda z: slope * z - weight / 2 * cp.square(z)
    if kind == 4:
        return worth.saturating(weight, 0.7), lambda z: cp.minimum(weight * z, 0.7)
    return None, None


def some_model(seed: int) -> tuple[Model, Any]:
    """A random model and the same in CVXPY."""
    rng = np.random.default_rng(seed)
    model, types, jobs = (
        Model(sense="max", offset=float(rng.normal())),
        int(rng.integers(1, 5)),
        int(rng.integers(1, 12)),
    )
    counts = rng.uniform(0.2, 1.5, types) * jobs / types
    for at, count in enumerate(counts.tolist()):
        model.add_resources(at, count)
    total, rows, used = model.offset, [], [0.0] * types
    for job in range(jobs):
        n = int(rng.integers(1, 5))
        usage = np.round((rng.random((types, n)) < 0.6) * rng.uniform(0.2, 2.0, (types, n)), 3)
        own, formula = some_worth(rng)
        limit, cost = float(rng.choice([1.0, 0.5, 3.0])), rng.normal(size=n) * (rng.random() < 0.4)
        rates, exact = rng.uniform(0.1, 2.0, n), rng.random() < 0.1
        more: dict[str, Any] = {"at_least": limit} if exact else {}
        if own is not None:
            more |= {"worth": own, "rates": rates}
        model.add_request(job, cost, {at: usage[at] for at in range(types)}, limit=limit, **more)
        x = cp.Variable(n, nonneg=True)
        rows.append(cp.sum(x) == limit if exact else cp.sum(x) <= limit)
        total = total + cost @ x + (0.0 if formula is None else formula(rates @ x))
        used = [before + usage[at] @ x for at, before in enumerate(used)]
    rows += [each <= count for each, count in zip(used, counts, strict=True)]
    return model, cp.Problem(cp.Maximize(total), rows)


def test_a_logarithm_shares_by_weight() -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 6.0)
    for job, weight in (("a", 1.0), ("b", 2.0)):
        model.add_request(job, 0.0, {"gpu": [1]}, limit=6.0, worth=worth.log(weight), rates=1.0)
    solution = Session(model).solve()
    assert solution.status is Status.OPTIMAL
    assert solution.method == "worth"
    assert solution.objective == pytest.approx(log(2.0) + 2.0 * log(4.0), abs=1e-5)
    assert solution.bound >= log(2.0) + 2.0 * log(4.0)
    assert solution.gap <= 1e-6


def test_prices_and_reduced_costs_are_those_of_the_slopes() -> None:
    model = Model(sense="max")
    model.add_resources("fast", 1.0)
    model.add_resources("slow", 1.0)
    for job in ("a", "b"):
        rates = [3.0, 1.0] if job == "a" else [2.0, 1.0]
        model.add_request(job, [0.0, 0.0], {"fast": [1, 0], "slow": [0, 1]}, worth=worth.log(), rates=rates)
    solution = Session(model).solve()
    assert solution.status is Status.OPTIMAL
    reduced = solution.reduced_costs
    assert bool((reduced <= 1e-6).all())  # a maximum: no column is worth more than it costs
    assert float(np.abs(reduced[solution.x > 1e-4]).max()) <= 1e-4
    assert bool((solution.limit_duals(["a", "b"]) >= 0.0).all())


def test_a_total_of_many_requests_has_a_worth_of_its_own() -> None:
    """A tenant's total is a resource that its jobs fill and one request of the tenant empties."""
    model = Model(sense="max")
    model.add_resources("gpu", 9.0)
    jobs = {"x": 2, "y": 1}
    for tenant, count in jobs.items():
        model.add_resources(tenant, 0.0)
        model.add_request(tenant, 0.0, {tenant: [1.0]}, limit=100.0, worth=worth.log(), rates=1.0)
        for job in range(count):
            model.add_request((tenant, job), [0.0], {"gpu": [1.0], tenant: [-1.0]}, limit=9.0)
    solution = Session(model).solve()
    assert solution.status is Status.OPTIMAL
    assert solution.of("x") == pytest.approx([4.5], rel=5e-3)  # by tenant, not by job
    assert solution.of("y") == pytest.approx([4.5], rel=5e-3)


@pytest.mark.parametrize("seed", range(25))
def test_random_models_are_solved_as_by_clarabel(seed: int) -> None:
    model, problem = some_model(seed)
    solution = Session(model).solve()
    problem.solve(solver="CLARABEL")
    if problem.status == "infeasible":
        assert solution.status is Status.PRIMAL_INFEASIBLE
        assert solution.ray is not None
    else:
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(problem.value, rel=3e-6, abs=3e-6)
        assert solution.bound >= problem.value - 1e-6 * (1 + abs(problem.value))


@given(st.integers(0, 100_000))
@settings(max_examples=8, deadline=None)
def test_an_edited_model_is_solved_as_a_new_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, _ = some_model(seed)
    session = Session(model)
    session.solve()
    for _ in range(3):
        request = model.requests[int(rng.integers(len(model.requests)))]
        if model.worth(request) is not None:
            model.update_worth(request, worth.log(float(rng.uniform(0.5, 2.0)), 0.1))
        elif len(model.requests) > 1:
            model.remove_request(request)
        model.add_resources(model.resources[0], 0.1)
        warm, cold = session.solve(), Session(model).solve()
        assert warm.status is cold.status
        if warm.status is Status.OPTIMAL:
            assert warm.objective == pytest.approx(cold.objective, rel=3e-6, abs=3e-6)


def test_the_verifier_proves_rounds_and_refuses_better_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(6):
        path = tmp_path / f"tape{seed}"
        model, _ = some_model(seed)
        session = Session(model)
        session.record(path)
        session.solve()
        model.add_resources(0, 0.5)
        optimal = session.solve().status is Status.OPTIMAL
        session.record(None)
        judged = list(verify(path))
        assert [faults for _, _, faults in judged] == [[], []]
        assert judged[1][1] == (["point", "bound"] if optimal else ["ray"])
    lying = tmp_path / "lie"
    model, _ = some_model(0)
    session = Session(model)
    session.record(lying)
    recorded = session._recorder._answer  # type: ignore[union-attr]

    def better(*arguments: Any) -> dict[str, Any]:
        answer = recorded(*arguments)
        return {**answer, "bound": answer["bound"] - 5e-6, "objective": answer["objective"] - 5e-6}

    monkeypatch.setattr(session._recorder, "_answer", better)
    session.solve()
    session.record(None)
    assert any("prove" in fault for _, _, faults in verify(lying) for fault in faults)


def test_a_request_that_can_have_nothing_is_named() -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 1.0)
    model.add_request("a", 0.0, {"gpu": [1]}, limit=0.0, worth=worth.log(), rates=1.0)
    with pytest.raises(EditNotAllowedError, match="request 'a' can have nothing"):
        Session(model).solve()


@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_all_units_fail_and_come_back(alpha: float, seed: int, tmp_path: Path) -> None:
    """Powers below one are steeper at nothing than any price, and worth nothing there: the answer is the others'."""
    rng, model, types, jobs = np.random.default_rng(seed), Model(sense="max"), 3, 320  # too many for tangents
    for at in range(types):
        model.add_resource(at, 200.0)
    worths = [worth.power(alpha, float(np.exp(rng.normal()))) for _ in range(jobs)]
    rates = rng.uniform(0.5, 2.0, jobs)
    for job in range(jobs):
        usage = {job % types: [1.0], (job + 1) % types: [float(job == 3)]}
        model.add_request(job, 0.0, usage, worth=worths[job], rates=rates[job])
    session = Session(model)
    session.record(tmp_path / "tape")
    before = session.solve().objective
    model.remove_units(0, 200.0)
    failed = session.solve()
    assert failed.status is Status.OPTIMAL
    assert {failed.of(job)[0] for job in range(0, jobs, types)} == {0.0}
    alone = sum(worths[job](float(rates[job])) for job in range(jobs) if job % types)
    assert failed.objective == pytest.approx(alone, rel=2e-6)
    assert failed.bound >= alone * (1.0 - 1e-12)
    model.add_resource(0, 200.0)
    again = session.solve()
    assert again.objective == pytest.approx(before, rel=2e-6)
    session.record(None)
    assert [faults for _, _, faults in verify(tmp_path / "tape")] == [[], [], []]


def test_other_requests_must_have_a_limit_alone() -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 1.0)
    model.add_request("a", 0.0, {"gpu": [1]}, worth=worth.log(), rates=1.0)
    model.add_request("b", [1.0], {"gpu": [1]}, limit=np.inf, upper=2.0)
    with pytest.raises(EditNotAllowedError, match="request 'b': its limit is infinite"):
        Session(model).solve()


def test_rows_that_contradict_each_other_have_a_ray() -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 1.0)
    for job in ("a", "b"):
        model.add_request(job, 0.0, {"gpu": [1]}, at_least=1.0, worth=worth.log(), rates=1.0)
    solution = Session(model).solve()
    assert solution.status is Status.PRIMAL_INFEASIBLE
    assert solution.conflict == (("gpu",), ("a", "b"))


def test_a_time_limit_leaves_a_true_bound() -> None:
    model, problem = some_model(1)
    solution = Session(model).solve(deadline_s=1e-9)
    problem.solve(solver="CLARABEL")
    assert solution.status is Status.TIME_LIMIT
    assert solution.bound >= problem.value - 1e-6


def test_a_fixed_request_counts_with_its_worth() -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 3.0)
    for job in ("a", "b"):
        model.add_request(job, [0.0, 0.0], {"gpu": [1, 2]}, worth=worth.log(), rates=[1.0, 2.0])
    model.fix("a", 0)
    solution = Session(model).solve()
    assert solution.of("a").tolist() == [1.0, 0.0]
    assert solution.objective == pytest.approx(log(2.0), abs=1e-5)


def test_plans_have_their_true_worth_and_a_proven_bound() -> None:
    rng = np.random.default_rng(3)
    model, rates = Model(sense="max"), rng.uniform(0.5, 4.0, (5, 3))
    model.add_resources("gpu", 7.0)
    for job in range(5):
        model.add_request(job, 0.0, {"gpu": [1, 2, 4]}, integer=True, worth=worth.log(1.0 + job, 0.1), rates=rates[job])
    session = Session(model)
    best = -np.inf
    for choice in np.ndindex(*[4] * 5):
        gpus = sum((0, 1, 2, 4)[each] for each in choice)
        if gpus <= 7:
            totals = [0.0 if each == 0 else rates[job, each - 1] for job, each in enumerate(choice)]
            best = max(best, sum((1.0 + job) * log(total + 0.1) for job, total in enumerate(totals)))
    plan = session.solve_integer(gap=1e-9, deadline_s=5.0)
    assert plan.objective == pytest.approx(best, abs=1e-9)
    assert plan.bound >= best - 1e-9
    model.update_worth(4, worth.log(0.01, 0.1))
    again = session.solve_integer()
    totals = [0.0 if again.column(job) is None else rates[job, again.column(job)] for job in range(5)]
    weights = [1.0, 2.0, 3.0, 4.0, 0.01]
    assert again.objective == pytest.approx(sum(w * log(t + 0.1) for w, t in zip(weights, totals, strict=True)))
    assert again.bound >= again.objective


def test_plans_ask_for_whole_requests_and_a_floor() -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 1.0)
    model.add_request("a", 0.0, {"gpu": [1]}, worth=worth.log(), rates=1.0)
    with pytest.raises(EditNotAllowedError, match="one whole column or none"):
        Session(model).solve_integer()
    model.update_integrality("a", True)
    with pytest.raises(InvalidDataError, match="give it a floor"):
        Session(model).solve_integer()


@pytest.mark.parametrize("own", [worth.log(), worth.power(2.0)])
def test_nothing_left_and_no_floor_is_an_error_that_names_the_request_and_the_model_goes_on(own: Worth) -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 0.0)
    model.add_resources("cpu", 1.0)
    model.add_request("fed", [0.0, 0.0], {"gpu": [1.0, 0.0], "cpu": [0.0, 1.0]}, worth=own, rates=[1.0, 1.0])
    session = Session(model)
    assert session.solve().objective == pytest.approx(own(1.0), abs=1e-5)  # by the column that uses no GPU
    model.add_request("starved", [0.0], {"gpu": [1.0]}, worth=own, rates=[1.0])
    with pytest.raises(EditNotAllowedError, match=r"'starved' can have nothing.*floor"):
        session.solve()
    model.add_resources("gpu", 1.0)
    assert session.solve().objective == pytest.approx(2.0 * own(1.0), abs=1e-5)
