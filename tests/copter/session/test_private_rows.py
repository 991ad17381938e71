"""Solves of models with private rows and least sums: known answers, duals, proofs that name the request, plans."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from judge import assert_optimal, is_improving_ray, is_infeasibility_ray

from copter import (
    CopterError,
    InvalidDataError,
    Model,
    PrivateRows,
    Session,
    Settings,
    Solution,
    StaleSolutionError,
    Status,
    UnknownHandleError,
)
from copter.shims import IntegerPlan
from copter.testing import sia_like_model
from tests.copter.by_highs import highs

INF = np.inf


def duties() -> Model:
    """Two machines of 4 hours; a duty is served where it is cheap; `pair` runs on both for as long."""
    model = Model("min")
    model.add_resources("m1", 4.0)
    model.add_resources("m2", 4.0)
    both = {"m1": [1, 0], "m2": [0, 1]}
    model.add_request("pair", [1.0, 1.0], both, limit=INF, at_least=2.0, private_rows=PrivateRows([[1, -1]], 0.0, 0.0))
    model.add_request("duty", [1.0, 3.0], both, limit=4.0, at_least=4.0)
    return model


def test_a_known_answer_and_its_duals() -> None:
    """m1 has 3 hours left beside the pair's one, so that an hour of the duty goes to m2."""
    model = duties()
    solution = Session(model).solve()
    assert solution.status is Status.OPTIMAL
    np.testing.assert_allclose(solution.x, [1, 1, 3, 1], atol=1e-7)
    assert solution.objective == pytest.approx(8.0)
    assert solution.bound == pytest.approx(8.0)
    assert solution.bound_is_certified
    # An hour more on m1 saves 2, one more of duty costs 3. Of the pair, 1 + 2 - z - v = 0 = 1 - z + v.
    np.testing.assert_allclose(solution.prices(["m2", "m1"]), [0, -2], atol=1e-6)
    np.testing.assert_allclose(solution.limit_duals(["duty", "pair"]), [3, 2], atol=1e-6)
    offsets, duals = solution.private_duals(["duty", "pair"])
    assert offsets.tolist() == [0, 0, 1]
    np.testing.assert_allclose(duals, [1], atol=1e-6)
    np.testing.assert_allclose(solution.y, [-2, 0, 2, 1, 3], atol=1e-6)
    np.testing.assert_allclose(solution.reduced_costs, 0.0, atol=1e-6)
    assert_optimal(model.to_linear_program(), solution.x, solution.y)


def test_results_of_many_requests_are_those_of_each() -> None:
    model = duties()
    model.add_request("idle", [5.0, 5.0, 5.0], {"m1": [1, 1, 1]}, lower=[0, 0.25, 0])
    solution = Session(model).solve()
    offsets, values = solution.values_of(["idle", "pair"])
    assert offsets.tolist() == [0, 3, 5]
    np.testing.assert_array_equal(values, np.concatenate((solution.of("idle"), solution.of("pair"))))
    np.testing.assert_array_equal(values[[1, 3, 4]], [0.25, *solution.x[:2]])
    offsets, reduced = solution.reduced_costs_of(["idle", "pair"])
    assert offsets.tolist() == [0, 3, 5]
    np.testing.assert_array_equal(reduced, solution.reduced_costs[[4, 5, 6, 0, 1]])
    np.testing.assert_array_equal(solution.prices(), [solution.price("m1"), solution.price("m2")])
    assert solution.x is solution.x
    with pytest.raises(UnknownHandleError, match="'nobody'"):
        solution.values_of(["idle", "nobody"])
    with pytest.raises(UnknownHandleError, match="'nothing'"):
        solution.prices(["m1", "nothing"])
    kept = pickle.loads(pickle.dumps(solution))
    model.remove_request("idle")
    np.testing.assert_array_equal(solution.values_of(["pair"])[1], values[3:])
    with pytest.raises(StaleSolutionError, match="'idle'"):
        solution.values_of(["pair", "idle"])
    other = Session(model).solve()
    model.update_limit("duty", 4.0)
    with pytest.raises(StaleSolutionError, match="edited"):
        other.reduced_costs_of(["pair"])
    np.testing.assert_array_equal(solution.reduced_costs, kept.reduced_costs)  # what was asked of it before stays
    for one, two in (
        (kept.values_of(["idle", "pair"]), (offsets, values)),
        (kept.reduced_costs_of(["idle", "pair"]), (offsets, reduced)),
        (kept.private_duals(["pair"]), solution.private_duals(["pair"])),
    ):
        np.testing.assert_array_equal(one[0], two[0])
        np.testing.assert_array_equal(one[1], two[1])


def test_duals_of_limits_of_the_proximal_method_in_bulk() -> None:
    model = sia_like_model(12, 16, 2)
    solution = Session(model).solve()
    requests = list(model.requests)[::-1]
    limit = solution.limit_duals(requests)
    np.testing.assert_array_equal(limit, solution.y[len(model.resources) :][::-1])
    offsets, reduced = solution.reduced_costs_of(requests)
    lp = model.to_linear_program()
    np.testing.assert_allclose(solution.reduced_costs, lp.c - lp.A.T @ solution.y, atol=1e-12)
    np.testing.assert_array_equal(reduced[offsets[-2] :], solution.reduced_costs[: offsets[-1] - offsets[-2]])
    assert solution.private_duals(requests)[1].size == 0


def test_a_session_goes_on_from_edit_to_edit() -> None:
    model = duties()
    session = Session(model)
    first = session.solve()
    again = session.solve()
    assert (again.iterations, again.pricing_passes) == (0, 1)
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.y, again.y)
    model.update_row_bounds(["pair"], lower=-1.0, upper=[-1.0])
    assert session.solve().objective == pytest.approx(2.0 + 3.5 + 1.5)
    model.update_limits(["duty"], [1.0], [0.0])
    assert session.solve().objective == pytest.approx(2.0)
    model.update_costs(["duty", "pair"], [np.array([-1.0, -1.0]), np.array([2.0, 2.0])])
    assert session.solve().objective == pytest.approx(3.0)
    model.update_counts(["m1", "m2"], [INF, 1.5], [1.5, 1.5])
    solution = session.solve()
    assert solution.objective == pytest.approx(3.0)
    assert_optimal(model.to_linear_program(), solution.x, solution.y)
    model.remove_request("pair")
    model.update_limit("duty", 1.0, -INF)  # a plain model again: the proximal method's
    model.update_counts(["m1", "m2"], 4.0, -INF)
    assert model.ledger.matrix.n_with_rows == 0
    assert session.solve().objective == pytest.approx(-1.0)


def test_requests_that_must_be_served_go_on_from_the_last_basis() -> None:
    rng, model = np.random.default_rng(0), Model("min")
    for row in range(8):
        model.set_count(row, 60.0, 5.0)
    for request in range(100):
        usage = sp.csr_array((rng.uniform(0.5, 1.5, 6), (rng.integers(0, 8, 6), [0, 0, 1, 1, 2, 2])), shape=(8, 3))
        cost = rng.uniform(1.0, 2.0, 3)
        model.add_request(request, cost, usage, resources=list(range(8)), limit=2.0, at_least=1.0)
    session = Session(model)
    session.solve()
    for _ in range(5):
        least = rng.uniform(0.8, 1.2, 20)
        model.update_limits(rng.permutation(100)[:20], least + rng.choice([0.0, 1.0], 20), least)
        solution, fresh = session.solve(), Session(model).solve()
        assert solution.status is fresh.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(fresh.objective, rel=1e-8)
        assert_optimal(model.to_linear_program(), solution.x, solution.y)
    offsets, values = solution.values_of(range(100))
    split = np.add.reduceat((values > 1e-9) & (values < 1 - 1e-9), offsets[:-1])
    assert session._iterate.basis is not None
    assert np.count_nonzero(split > 1) <= 8  # a vertex, as the dual simplex method gives it


def test_compacting_copying_and_forking_keep_the_duals() -> None:
    model = duties()
    model.add_request("gone", [1.0], {"m1": [1]})
    model.remove_request("pair")
    model.add_request("late", [1.0], {"m1": [1]}, limit=INF, private_rows=PrivateRows([[2.0]], 1.0))
    model.remove_request("gone")
    session = Session(model)
    before = session.solve()
    session.compact()
    for each in (session, copy.copy(session), copy.deepcopy(session), pickle.loads(pickle.dumps(session))):
        solution = each.solve()
        assert solution.iterations == 0
        np.testing.assert_array_equal(solution.x, before.x)
        np.testing.assert_array_equal(solution.y, before.y)
    twin = copy.copy(session)
    twin.model.update_row_bounds(["late"], lower=3.0)
    assert session.model.private_rows("late").lower.tolist() == [1.0]  # type: ignore[union-attr]


def test_a_snapshot_s_bounds_must_fit_the_rows(tmp_path: Path) -> None:
    session = Session(duties())
    first = session.solve()
    session.save(tmp_path / "s")
    again = Session.load(tmp_path / "s")
    np.testing.assert_array_equal(again.solve().x, first.x)
    assert again.model.at_least("pair") == 2.0


# What has no optimum -----------------------------------------------------------------------------------------------


def infeasible(model: Model) -> Solution:
    """The solution, which must be proven infeasible."""
    solution = Session(model).solve()
    assert solution.status is Status.PRIMAL_INFEASIBLE
    assert solution.ray is not None
    assert is_infeasibility_ray(model.to_linear_program(), solution.ray)
    assert "Infeasible" in str(highs(model.to_linear_program())[0])
    return solution


def test_a_row_that_contradicts_its_columns_bounds_is_named() -> None:
    model = duties()
    model.add_request("bad", [1, 1], {"m1": [1, 1]}, limit=INF, upper=1.0, private_rows=PrivateRows([[1, 2]], 3.5))
    assert infeasible(model).conflict == ((), ("bad",))


def test_an_equation_that_no_column_can_meet_is_named() -> None:
    model = duties()
    model.add_request("bad", [1, 1], {"m1": [1, 1]}, private_rows=PrivateRows([[0, 0]], 1.0, 1.0))
    assert infeasible(model).conflict == ((), ("bad",))


def test_rows_of_one_request_that_contradict_each_other_are_named() -> None:
    model = duties()
    for number in range(20):
        model.add_request(number, [1.0, 1.0], {"m2": [0.1, 0.1]}, private_rows=PrivateRows([[1, 1]], upper=3.0))
    model.add_request(
        "bad", [1, 1], {"m1": [1, 1]}, limit=INF, private_rows=PrivateRows([[1, 1], [1, 1]], [3, -INF], [INF, 2])
    )
    assert infeasible(model).conflict == ((), ("bad",))


def test_a_least_that_upper_bounds_keep_it_from_is_named() -> None:
    model = duties()
    model.add_request("bad", [1, 1], {"m1": [0, 0]}, limit=5.0, at_least=3.0, upper=1.0)
    assert infeasible(model).conflict == ((), ("bad",))


def test_a_resource_s_lower_bound_that_cannot_be_met_is_named() -> None:
    model = duties()
    model.set_count("m3", INF, 1.0)
    assert infeasible(model).conflict == (("m3",), ())
    model = Model()
    model.set_count("only", 9.0, 2.0)
    model.add_request("r", [1.0], {"only": [1.0]})
    assert infeasible(model).conflict == (("only",), ("r",))  # its limit of one is all that there would be


def test_more_than_there_is_names_resource_and_requests() -> None:
    model = duties()
    model.update_counts(["m1", "m2"], 2.0)
    resources, requests = infeasible(model).conflict
    assert set(resources) == {"m1", "m2"}
    assert "duty" in requests


def test_a_cost_without_an_end() -> None:
    model = duties()
    model.add_request("free", [-1.0, 0.0], {"m1": [0, 0]}, limit=INF, private_rows=PrivateRows([[1, -1]], upper=0.0))
    solution = Session(model).solve()
    assert solution.status is Status.DUAL_INFEASIBLE
    assert is_improving_ray(model.to_linear_program(), solution.ray)
    assert solution.conflict == ((), ())


def test_the_clock_and_the_callback_end_a_solve() -> None:
    model = duties()
    assert Session(model, Settings(time_limit_s=1e-9)).solve().status is Status.TIME_LIMIT
    asked = []
    assert Session(model).solve(callback=lambda *figures: asked.append(figures)).status is Status.OPTIMAL
    assert len(asked) == 1


# Random programs ----------------------------------------------------------------------------------------------------


def random_model(seed: int) -> Model:
    """Degenerate data, dependent private rows, empty ones, free columns, tiny and huge coefficients, few resources."""
    rng = np.random.default_rng(seed)
    model = Model("min" if seed % 2 else "max")
    m = int(rng.integers(1, 6))
    for row in range(m):
        high = float(rng.choice([0.0, 2.0, 5.0, 20.0]))
        model.set_count(row, high, float(rng.choice([-INF, -INF, high, high - 2.0])))
    for g in range(int(rng.integers(1, 9))):
        n = int(rng.integers(1, 6))
        usage = sp.csr_array(np.where(rng.random((m, n)) < 0.5, rng.integers(-1, 4, (m, n)), 0).astype(float))
        rows = int(rng.integers(0, 5))
        matrix = np.where(rng.random((rows, n)) < 0.6, rng.integers(-2, 3, (rows, n)), 0).astype(float)
        if rows > 1 and rng.random() < 0.3:
            matrix[1] = matrix[0]
        if rows and rng.random() < 0.2:
            matrix[0] *= float(rng.choice([1e-4, 1e4]))
        at = matrix @ rng.integers(0, 2, n)
        low = np.where(rng.random(rows) < 0.5, at - rng.integers(0, 2, rows), -INF)
        high = np.where(rng.random(rows) < 0.6, at + rng.integers(0, 2, rows), INF)
        limit = float(rng.choice([INF, 1.0, 3.0]))
        finite = np.isfinite(limit)
        lower = 0.0 if finite or rng.random() < 0.8 else np.where(rng.random(n) < 0.5, -INF, 0.0)
        model.add_request(
            g, rng.integers(-3, 6, n).astype(float), usage, resources=list(range(m)), limit=limit, lower=lower,
            at_least=float(rng.choice([-INF, 0.0, 1.0])), upper=float(rng.choice([INF, 1.0, 4.0])),
            private_rows=PrivateRows(matrix, low, high),
        )  # fmt: skip
    return model


def require_right(seed: int) -> Status:
    """The status is HiGHS's, the optimum too, proofs hold; or the status says honestly that there is none."""
    model = random_model(seed)
    program, solution = model.to_linear_program(), Session(model).solve()
    status, best, _, _ = highs(program)
    if solution.status is Status.OPTIMAL:
        assert "Optimal" in str(status)
        assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
        assert_optimal(program, solution.x, solution.y)
    elif solution.status is Status.PRIMAL_INFEASIBLE:
        assert is_infeasibility_ray(program, solution.ray)
    elif solution.status is Status.DUAL_INFEASIBLE:
        assert is_improving_ray(program, solution.ray)
    return solution.status


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_programs(first: int) -> None:
    found = [require_right(seed) for seed in range(first, first + 50)]
    assert set(found) <= {Status.OPTIMAL, Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE}
    assert found.count(Status.OPTIMAL) >= 10


@pytest.mark.long
def test_three_thousand_random_programs() -> None:
    found = [require_right(seed) for seed in range(1000, 4000)]
    assert len([status for status in found if status is Status.NUMERICAL_ERROR]) <= 10


# Plans --------------------------------------------------------------------------------------------------------------


def test_plans_are_read_as_arrays() -> None:
    model = sia_like_model(12, 16, 2)
    for request in model.requests[:9]:
        model.update_integrality(request, True)
    plan = Session(model).solve_integer()
    requests = list(model.requests)[::-1]
    offsets, columns, values = plan.shares_of(requests)
    for at, request in enumerate(requests):
        piece = slice(offsets[at], offsets[at + 1])
        given = dict(zip(columns[piece].tolist(), values[piece].tolist(), strict=True))
        assert {column: value for column, value in given.items() if value} == plan.shares(request)
    whole = [request for request in requests if model.is_integer(request)]
    taken = [plan.column(request) for request in whole]
    assert plan.columns_of(whole).tolist() == [-1 if column is None else column for column in taken]
    with pytest.raises(UnknownHandleError, match="'nobody'"):
        plan.columns_of(["nobody"])


def test_a_plan_of_continuous_requests_with_private_rows_is_the_optimum() -> None:
    model = duties()
    plan = Session(model).solve_integer()
    assert plan.objective == pytest.approx(8.0)
    assert plan.shares("pair") == pytest.approx({0: 1.0, 1: 1.0})


def test_a_caller_s_own_plan_is_checked_against_private_rows() -> None:
    model = Model()
    model.set_count("a", 5.0, 1.0)
    rows = PrivateRows([[1, 1]], 0.0, 1.0)
    model.add_request("r", [1.0, 2.0], {"a": [1, 0]}, limit=INF, integer=True, private_rows=rows)
    session = Session(model)

    def plan(column: int, more: tuple[float, ...] = ()) -> IntegerPlan:
        matrix = model.ledger.matrix
        key = np.arange(len(more), dtype=np.int64)
        columns = np.array([column], dtype=np.int32)
        return IntegerPlan(
            1.0,
            2.0,
            0.1,
            0,
            False,
            columns,
            matrix.generation[:1].copy(),
            {"r": 0},
            share_key=key,
            share=np.array(more),
        )

    assert session.solve_integer(lambda *_: plan(0)).column("r") == 0
    with pytest.raises(InvalidDataError, match="less of resource 'a'"):
        session.solve_integer(lambda *_: plan(1))
    with pytest.raises(InvalidDataError, match="private row of request 'r'"):
        session.solve_integer(lambda *_: plan(-1, (1.0, 1.0)))


def test_the_highs_mirror_says_that_it_knows_limits_only() -> None:
    highs_module = pytest.importorskip("copter.highs.mirror")
    with pytest.raises(CopterError, match="limits only"):
        highs_module.HighsMirror(duties()).update()


# Shared variables ---------------------------------------------------------------------------------------------------


def test_the_largest_load_is_minimised() -> None:
    """docs/method/formulation.md, F3: one variable t for all machines, load_r - t <= 0."""
    hours = {"long": 3.0, "short": 1.0, "other": 2.0}
    model = Model("min")
    for machine in range(2):
        model.set_count(("load", machine), 0.0)
    for job, time in hours.items():
        usage = {("load", 0): [time, 0], ("load", 1): [0, time]}
        model.add_request(job, [0.0, 0.0], usage, limit=1.0, at_least=1.0)
    model.add_request("t", [1.0], {("load", 0): [-1], ("load", 1): [-1]}, limit=INF)
    solution = Session(model).solve()
    assert solution.objective == pytest.approx(3.0)
    assert solution.of("t")[0] == pytest.approx(3.0)
    np.testing.assert_allclose(solution.prices(), [-0.5, -0.5], atol=1e-6)
