"""Requests that keep their columns while prices move little respond as fresh ones do; tangents find the same."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter import Model, Session, Status, worth
from copter.methods.solve import solve
from copter.methods.worth.program import WorthProgram
from copter.methods.worth.solve import FIRST_MU, Answer, Newton
from copter.methods.worth.tangents import MOST_REQUESTS, by_tangents
from copter.problem.worth import Worth
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

WORTHS = (worth.log(2.0), worth.log(1.0, 0.3), worth.power(2.0), worth.power(0.5, 1.0, 0.1), worth.quadratic(3.0, 0.7))


def model_of(rng: np.random.Generator, jobs: int, types: int) -> Model:
    model = Model(sense="max")
    for at in range(types):
        model.add_resource(at, 0.4 * jobs / types * float(rng.uniform(0.5, 1.5)))
    for job in range(jobs):
        add(model, job, rng)
    return model


def add(model: Model, job: int, rng: np.random.Generator) -> None:
    types = len(model.resources)
    own: Worth | None = None if rng.random() < 0.2 else WORTHS[int(rng.integers(len(WORTHS)))]
    usage = {at: np.eye(types)[at] * rng.uniform(0.5, 2.0) for at in range(types)}
    rates, cost = rng.uniform(0.5, 4.0, types), rng.normal(size=types) * (own is None)
    if own is None:
        model.add_request(job, cost, usage)
    else:
        model.add_request(job, cost, usage, worth=own, rates=rates)


@pytest.mark.parametrize("seed", range(4))
def test_responses_over_moving_prices_are_those_of_a_fresh_pass(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, mu, types = model_of(rng, 60, 4), 0.003, 4
    kept = WorthProgram(model.ledger)
    y = rng.uniform(0.5, 2.0, types)
    closed = 0
    for step in range(40):
        if step % 8 == 7:  # edits between: one request leaves, another comes
            model.remove_request(model.requests[int(rng.integers(len(model.requests)))])
            add(model, 100 + step, rng)
            kept.follow(model.ledger)
        y = y * np.exp(rng.normal(size=types) * (0.3 if step % 10 == 9 else 3e-3))
        if step == 20:
            mu *= 0.3
        hessian, expected = np.zeros((2, types, types))
        kept.passes.respond(y, mu, hessian)
        fresh = WorthProgram(model.ledger)
        fresh.passes.respond(y, mu, expected)
        np.testing.assert_allclose(kept.passes.used, fresh.passes.used, rtol=2e-6, atol=1e-7)
        np.testing.assert_allclose(hessian, expected, rtol=5e-3, atol=1e-3 * np.abs(expected).max())
        mine, other = (dict(zip(*map(np.ndarray.tolist, each.keys()), strict=True)) for each in settled(kept, fresh))
        apart = [abs(mine.get(key, 0.0) - other.get(key, 0.0)) for key in {*mine, *other}]
        assert max(apart) < 1e-4
        closed += kept.passes.opened < len(model.requests)
    assert closed > 20


@pytest.mark.parametrize("seed", range(4))
def test_a_round_at_the_last_prices_looks_at_what_changed_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, mu, types = model_of(rng, 80, 4), 0.003, 4
    kept, y = WorthProgram(model.ledger), rng.uniform(0.5, 2.0, types)
    for step in range(12):
        for _ in range(3):
            model.remove_request(model.requests[int(rng.integers(len(model.requests)))])
        for at in range(3):
            add(model, 1000 + 3 * step + at, rng)
        kept.follow(model.ledger)
        fresh = WorthProgram(model.ledger)
        for _ in range(2):  # the prices have moved; then they are those of the last response
            hessian, expected = np.zeros((2, types, types))
            kept.passes.respond(y, mu, hessian)
            fresh.passes.respond(y, mu, expected)
            np.testing.assert_allclose(kept.passes.used, fresh.passes.used, rtol=2e-6, atol=1e-7)
            np.testing.assert_allclose(hessian, expected, rtol=5e-3, atol=1e-3 * np.abs(expected).max())
        (bound, margin), (other, its) = kept.passes.bound(y), fresh.passes.bound(y)
        assert bound + margin >= other - its
        assert bound == pytest.approx(other, rel=1e-6)
        factor = rng.uniform(0.9, 1.0, types)
        assert kept.passes.settle(factor)[0] == pytest.approx(fresh.passes.settle(factor)[0], rel=1e-6)
        np.testing.assert_allclose(kept.passes.filled, fresh.passes.filled, rtol=2e-6, atol=1e-7)
        assert kept.keys()[0].tolist() == fresh.keys()[0].tolist()
        if step % 3 == 2:
            y = y * np.exp(rng.normal(size=types) * 1e-2)
    assert kept.passes.opened < 40


def settled(*programs: WorthProgram) -> tuple[WorthProgram, ...]:
    for each in programs:
        each.passes.settle()
    return programs


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_tangents_alone_find_what_newtons_method_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    types = int(rng.integers(1, 5))
    model = model_of(rng, int(rng.integers(1, 25)), types)
    found = Session(model).solve()
    assert found.status is Status.OPTIMAL
    program, matrix = WorthProgram(model.ledger), model.ledger.matrix
    with Watch(inf) as watch:
        sides = matrix.row_lower[:types].copy(), matrix.row_upper[:types].copy()
        newton = Newton(program, sides, (1e-6, 1e-6), 0.0, watch)
        y = newton.first_prices()
        newton.respond(y, FIRST_MU)
        answer = by_tangents(newton, newton.judged(y, FIRST_MU), Settings(), solve)
    assert answer.ended == "optimal"
    assert answer.gap <= 1e-6
    assert answer.objective == pytest.approx(found.objective, rel=5e-6, abs=5e-6)
    assert answer.bound + answer.margin >= found.objective - 1e-9 * abs(found.objective)


def test_sizes_that_newtons_method_stalls_on_have_an_optimum() -> None:
    """A weight of 1e-6 beside one of 1e6, limits of 0.25 and 5,000, on the same row."""
    model = Model(sense="max")
    model.add_resource("gpu", 100.0)
    model.add_request("large", 0.0, {"gpu": [1.0]}, limit=5000.0, worth=worth.log(1e6), rates=1e-4)
    model.add_request("small", 0.0, {"gpu": [1.0]}, limit=0.25, worth=worth.log(1e-6), rates=1e3)
    model.add_request("steep", 0.0, {"gpu": [1.0]}, limit=50.0, worth=worth.power(4.0, 1e-3), rates=0.1)
    solution = Session(model).solve()
    assert solution.status is Status.OPTIMAL
    assert solution.gap <= 1e-6
    assert solution.bound >= solution.objective


def test_reduced_costs_of_many_requests_are_read_at_once() -> None:
    rng = np.random.default_rng(0)
    model = model_of(rng, 300, 3)
    solution = Session(model).solve()
    reduced = solution.reduced_costs
    assert len(reduced) == 900
    assert reduced.max() <= 1e-5 * max(1.0, np.abs(solution.y).max())


def test_many_requests_that_newtons_method_leaves_are_an_honest_numerical_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stalled(self: Newton, y: np.ndarray, mu: float) -> Answer:
        self.respond(y, mu)
        return self.closed(self.judged(y, mu), "stalled")

    monkeypatch.setattr(Newton, "run", stalled)
    few, many = (model_of(np.random.default_rng(1), jobs, 3) for jobs in (40, MOST_REQUESTS + 1))
    assert Session(few).solve().status is Status.OPTIMAL
    solution = Session(many).solve()
    assert solution.status is Status.NUMERICAL_ERROR
    assert solution.bound >= solution.objective
