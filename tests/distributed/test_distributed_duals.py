"""Duals, reduced costs, proofs and explanations over shards are those of the same program on one machine."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from both_sides import EXACT, Pair
from judge import is_infeasibility_ray

import copter
import copter_distributed as distributed
from copter.runtime.errors import StaleSolutionError, UnknownHandleError
from copter_distributed.shards import shard as shards

NEAR = 1e-6


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sense", ["max", "min"])
def test_duals_satisfy_the_conditions_of_an_optimum(seed: int, sense: str) -> None:
    pair = Pair(seed, sense=sense)
    for _ in range(12):
        pair.add()
    for _ in range(3):
        solution = pair.agree()
        lp = pair.one.model.to_linear_program()
        x, y, reduced = solution.x, solution.y, solution.reduced_costs
        np.testing.assert_allclose(reduced, lp.c - lp.A.T @ y, atol=1e-9)
        activity, worse, price = lp.A @ x, -pair.sign * reduced, -pair.sign * y
        assert not ((worse < -NEAR) & (x < lp.col_upper - NEAR)).any()
        assert not ((worse > NEAR) & (x > lp.col_lower + NEAR)).any()
        assert not ((price < -NEAR) & (activity < lp.row_upper - 1e-5)).any()
        assert not ((price > NEAR) & (activity > lp.row_lower + 1e-5)).any()
        for _ in range(4):
            pair.edit()


def test_duals_of_some_requests_are_parts_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "COLUMNS_AT_A_TIME", 7)
    pair = Pair(7)
    for _ in range(20):
        pair.add()
    solution = pair.agree()
    requests = list(pair.many.model.requests)
    some = requests[::-3]
    offsets, reduced = solution.reduced_costs_of(some)
    every = np.split(solution.reduced_costs, np.cumsum([len(solution.of(each)) for each in requests])[:-1])
    for at, request in enumerate(some):
        np.testing.assert_allclose(reduced[offsets[at] : offsets[at + 1]], every[requests.index(request)], atol=1e-12)
    rows = pair.one.model.to_linear_program().A.shape[0]
    sums, private = solution.limit_duals(requests), solution.private_duals(requests)[1]
    own = solution.y[len(pair.resources) :]
    assert len(solution.y) == rows
    assert sums.sum() + private.sum() == pytest.approx(own.sum())
    np.testing.assert_array_equal(solution.y[: len(pair.resources)], solution.prices())


@pytest.mark.parametrize("seed", range(4))
def test_explanations_are_those_of_one_machine(seed: int) -> None:
    """Where both sides found the same vertex and prices, all is the same; requests without columns held too."""
    pair, same = Pair(seed, ("plain", "template", "bounded", "integer")), 0
    for _ in range(15):
        pair.add()
    for _ in range(3):
        many = pair.agree()
        one = pair.one.solve()
        if np.allclose(one.x, many.x, atol=1e-9) and np.allclose(one.y, many.y, atol=1e-9):
            same += 1
            for request in pair.one.model.requests:
                here, there = one.explain(request), many.explain(request)
                for a, b in zip(here.options, there.options, strict=True):
                    assert a.usage == b.usage
                    assert (a.value, a.cost, a.charge, a.loss) == pytest.approx(
                        (b.value, b.cost, b.charge, b.loss), abs=1e-8
                    )
                assert here.limit_dual == pytest.approx(there.limit_dual, abs=1e-8)
                assert here.capacity.keys() == there.capacity.keys()
                for resource, effect in here.capacity.items():
                    other = there.capacity[resource]
                    assert (effect.low, effect.high) == pytest.approx((other.low, other.high), abs=1e-5)
                    assert effect.rates == pytest.approx(other.rates, abs=1e-6)
        for _ in range(4):
            pair.edit()
    assert same


def test_what_is_asked_too_late_or_of_nobody_is_refused() -> None:
    pair = Pair(3, ("plain",))
    for _ in range(6):
        pair.add()
    solution = pair.agree()
    pickled = pickle.loads(pickle.dumps(solution))
    y, request = solution.y, pair.many.model.requests[0]
    with pytest.raises(UnknownHandleError):
        solution.explain("nobody")
    with pytest.raises(UnknownHandleError):
        solution.reduced_costs_of(["nobody"])
    fresh = pair.many.solve()
    pair.add()
    for ask in (
        lambda: fresh.explain(request),
        lambda: fresh.reduced_costs_of([request]),
        lambda: fresh.y,
        lambda: fresh.limit_duals([request]),
    ):
        with pytest.raises(StaleSolutionError):
            ask()
    np.testing.assert_array_equal(pickled.y, y)
    assert len(pickled.reduced_costs_of([request])[1]) == len(pickled.of(request))


def test_a_proof_of_infeasibility_is_the_whole_programs() -> None:
    one, many = copter.Session(copter.Model("max")), distributed.Session(copter.Model("max"), EXACT, shards=3)
    for model in (one.model, many.model):
        model.add_resources("r", 3.0)
        model.add_resources("other", 3.0)
        for job in range(4):
            model.add_request(job, [1.0, 2.0], {"r": [1.0, 2.0], "other": [0.1, 0.0]}, at_least=1.0)
        for job in range(4, 9):
            model.add_request(job, [1.0, 1.5], {"r": [1.0, 0.5], "other": [0.2, 0.1]})
    here, there = one.solve(), many.solve()
    assert here.status is there.status is copter.Status.PRIMAL_INFEASIBLE
    assert there.ray is not None
    assert is_infeasibility_ray(one.model.to_linear_program(), there.ray)
    resources, requests = there.conflict
    assert resources == ("r",)
    assert set(requests) >= {0, 1, 2, 3}
