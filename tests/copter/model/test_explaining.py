"""Explanations: prices, losses, turns and effects of capacity, each held against a model that is solved again."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from copter import Explanation, Model, Session, StaleSolutionError, Status, UnknownHandleError


def cluster(seed: int = 0, requests: int = 12, sense: str = "max") -> Model:
    rng = np.random.default_rng(seed)
    model = Model(sense)
    sign = 1.0 if sense == "max" else -1.0
    for resource, count in (("a", 5.3), ("b", 7.1), ("c", 100.0)):
        model.set_count(resource, count)
    for request in range(requests):
        usage = {r: rng.uniform(0.5, 2.0, 4) * (rng.random(4) < 0.6) for r in "abc"}
        model.add_request(request, sign * rng.uniform(1.0, 3.0, 4), usage)
    return model


@pytest.mark.parametrize("sense", ["max", "min"])
@pytest.mark.parametrize("seed", range(4))
def test_losses_are_reduced_costs(seed: int, sense: str) -> None:
    model = cluster(seed, sense=sense)
    solution = Session(model).solve()
    for request in model.requests:
        told = solution.explain(request)
        x, (_, reduced) = solution.of(request), solution.reduced_costs_of([request])
        assert isinstance(told, Explanation)
        assert {option.column: option.value for option in told.options} == dict(enumerate(x.tolist()))
        assert told.objective == pytest.approx(float(model.cost(request) @ x))
        assert told.limit_dual == pytest.approx(float(solution.limit_duals([request])[0]))
        for option in told.options:
            charge = sum(told.prices[name] * units for name, units in option.usage.items())
            assert option.charge == pytest.approx(charge)
            if told.given:
                assert option.loss == pytest.approx(abs(reduced[option.column]), abs=1e-7)
        assert all(option.loss <= 1e-7 for option in told.given)


@pytest.mark.parametrize("seed", range(3))
def test_a_weight_beyond_the_turn_changes_the_best_column(seed: int) -> None:
    """At fixed prices, which a request with nothing to compete for has: it alone, priced by another's reduced costs."""
    model = cluster(seed)
    solution = Session(model).solve()
    for request in model.requests:
        told = solution.explain(request)
        prices = np.array([[told.prices[n] * option.usage.get(n, 0.0) for n in told.prices] for option in told.options])
        gain = np.array([option.cost for option in told.options])
        charge = prices.sum(axis=1)
        best = told.options[0].column if told.given else None
        for turn in (told.weight_up, told.weight_down):
            if turn is None:
                continue
            beyond = turn.at + 1e-4 * np.sign(turn.at - 1.0 if turn.at != 1.0 else 1.0) * max(1.0, turn.at)
            net = np.append(beyond * gain - charge, 0.0)
            first = int(np.argmax(net))
            now = None if first == len(gain) else told.options[first].column
            assert now == turn.column or net[first] == pytest.approx(net.max(), abs=1e-3)
            assert turn.column != best


@pytest.mark.parametrize("seed", range(6))
def test_effects_of_capacity_are_those_of_solving_again(seed: int) -> None:
    model = cluster(seed)
    session = Session(model)
    solution = session.solve()
    told = {request: solution.explain(request) for request in model.requests}
    before = {request: solution.of(request) for request in model.requests}
    seen = 0
    for resource in ("a", "b"):
        effects = {request: each.capacity[resource] for request, each in told.items() if resource in each.capacity}
        if not effects:
            continue
        one = next(iter(effects.values()))
        count = model.count(resource)
        assert all((each.low, each.high) == (one.low, one.high) for each in effects.values())
        step = 0.5 * (min(one.high, count + 1.0) - count)
        if step <= 1e-6:
            continue
        model.set_count(resource, count + step)
        again = session.solve()
        for request, effect in effects.items():
            expected = before[request].copy()
            for column, rate in effect.rates.items():
                expected[column] += rate * step
            np.testing.assert_allclose(again.of(request), expected, atol=1e-5)
            seen += 1
        model.set_count(resource, count)
        session.solve()
    assert seen


def test_what_cannot_be_explained_is_said() -> None:
    model = cluster()
    solution = Session(model).solve()
    with pytest.raises(UnknownHandleError, match="'nobody'"):
        solution.explain("nobody")
    kept = pickle.loads(pickle.dumps(solution))
    with pytest.raises(StaleSolutionError):
        kept.explain(0)
    model.remove_request(3)
    with pytest.raises(StaleSolutionError):
        solution.explain(0)


def test_nothing_is_an_answer_too() -> None:
    model = Model()
    model.set_count("gpu", 1.0)
    model.add_request("rich", [10.0], {"gpu": [1.0]})
    model.add_request("poor", [1.0], {"gpu": [1.0]})
    solution = Session(model).solve()
    assert solution.status is Status.OPTIMAL
    told = solution.explain("poor")
    assert told.given == ()
    assert told.weight_up is not None
    assert told.weight_up.column == 0
    assert told.weight_up.at == pytest.approx(told.prices["gpu"] / 1.0)
    plain = told.as_dict()
    assert plain["request"] == "poor"
    assert plain["prices"] == {"gpu": pytest.approx(solution.price("gpu"))}


def test_an_explanation_is_printed_as_lines() -> None:
    model = Model("max")
    model.add_resources("gpu", 3)
    model.add_request("a", [1.0, 3.0], {"gpu": [1, 2]})
    model.add_request("b", [1.0, 4.0, 0.5], {"gpu": [1, 2, 3]})
    explanation = Session(model).solve().explain("b")
    lines = str(explanation).splitlines()
    assert lines[0] == "b: 2 gpu"
    assert lines[2] == "  prices: gpu 1.5"
    assert lines[3].split() == ["option", "given", "worth", "charge", "loss", "uses"]
    assert lines[4].split()[:3] == ["1", "1", "4"]
    assert "... and 2 more, with losses of" in explanation.as_text(1)


def test_a_count_has_no_effect_where_the_lower_bound_binds() -> None:
    model = Model(sense="max")
    model.set_count("g", 10.0, lower=3.0)
    model.add_resources("h", 5.0)
    model.add_request("a", [-1.0, -2.0], {"g": [1, 1], "h": [1, 0]}, limit=8.0)
    session = Session(model)
    solution = session.solve()
    before, effect = solution.of("a").tolist(), solution.explain("a").capacity["g"]
    assert (dict(effect.rates), effect.low, effect.high) == ({}, 3.0, np.inf)
    for count in (3.0, 9.0, 50.0):
        model.set_count("g", count, lower=3.0)
        assert session.solve().of("a").tolist() == pytest.approx(before)
