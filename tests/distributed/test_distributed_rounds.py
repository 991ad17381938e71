"""The same answer as on one machine, whatever is edited in between."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from both_sides import EXACT, KINDS, Pair, feasible
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import copter
import copter_distributed as distributed
from copter.runtime.errors import DimensionError
from copter.testing import sia_like_model
from copter_distributed.messages.messages import size_of


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sense", ["max", "min"])
def test_every_kind_of_request_is_solved_as_on_one_machine(kind: str, sense: str) -> None:
    pair = Pair(7, (kind,), sense)
    for _ in range(25):
        pair.add()
    pair.agree()
    for _ in range(3):
        for _ in range(4):
            pair.edit()
        pair.agree()


@given(st.integers(0, 2**20), st.sampled_from(["max", "min"]), st.integers(1, 4))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_rounds_of_random_edits_are_solved_as_on_one_machine(seed: int, sense: str, shards: int) -> None:
    pair = Pair(seed, sense=sense, shards=shards)
    for _ in range(12):
        pair.add()
    pair.agree()
    for _ in range(4):
        for _ in range(int(pair.rng.integers(1, 6))):
            pair.edit()
        pair.agree()


def test_a_model_that_is_there_already_is_dealt_out() -> None:
    model = sia_like_model(60, 128, seed=3)
    model.fix("job-4", 2)
    model.update_column_cost("job-5", 3, 0.9)
    model.rescale_costs(["job-6", "job-7"], [0.5, 0.7], 0.1)
    here, there = copter.Session(model, EXACT), distributed.Session(model, EXACT, shards=4)
    one, many = here.solve(), there.solve()
    assert many.objective == pytest.approx(one.objective, rel=1e-9)
    assert there.model.requests == model.requests
    assert there.model.resources == model.resources
    assert there.model.fixed("job-4") == 2
    assert np.array_equal(there.model.cost("job-6"), model.cost("job-6"))
    feasible(model, many)
    assert many.prices().shape == one.prices().shape
    assert (many.prices() >= 0.0).all()


def test_what_is_sent_grows_with_columns_worth_having_and_not_with_columns() -> None:
    columns, per_column = [], []
    for gpus in (128, 1024):
        session = distributed.Session(sia_like_model(40, gpus, seed=1), EXACT, shards=2)
        session.solve()
        traffic = session.last_traffic
        columns.append(session.model.n_columns)
        prices = 3 * 8 * traffic.messages
        per_column.append((traffic.sent + traffic.received - prices) / session._master.n_columns)
    assert columns[1] > 6 * columns[0]
    assert per_column[1] < 1.5 * per_column[0]


def test_a_solve_after_no_edit_is_one_pass() -> None:
    session = distributed.Session(sia_like_model(50, 128), EXACT, shards=3)
    first = session.solve()
    again = session.solve()
    assert again.pricing_passes == 1
    assert again.objective == pytest.approx(first.objective, rel=1e-12)
    assert session.last_traffic.passes == 1


def test_columns_that_stay_idle_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("copter_distributed.coordinator.coordinator.IDLE_LEAST", 0)
    session = distributed.Session(sia_like_model(300, 512, seed=1), EXACT, shards=2)
    session.solve()
    held = session._master.n_columns
    session.solve()
    assert session._master.n_columns < held
    assert session.solve().status is copter.Status.OPTIMAL


def test_an_infeasible_model_is_found_so_by_all_columns() -> None:
    for least, status in ((3.0, copter.Status.OPTIMAL), (30.0, copter.Status.PRIMAL_INFEASIBLE)):
        session = distributed.Session(copter.Model("min"), EXACT, shards=2)
        session.model.set_count("need", np.inf, least)
        for job in range(5):
            session.model.add_request(job, np.arange(1.0, 5.0), {"need": np.array([0.5, 1.0, 2.0, 4.0])})
        assert session.solve().status is status


def test_an_unbounded_model_is_found_so() -> None:
    session = distributed.Session(copter.Model("max"), EXACT, shards=2)
    session.model.add_resources("r", 1.0)
    session.model.add_request("free", [1.0, 1.0], {"r": [1.0, 0.0]}, limit=np.inf)
    assert session.solve().status is copter.Status.DUAL_INFEASIBLE


def test_templates_and_resources_change_for_all() -> None:
    pair = Pair(3, ("template", "plain"))
    for _ in range(20):
        pair.add()
    pair.agree()
    here, there = pair.templates[0]
    usage = {resource: np.linspace(0.1, 1.5, 6) for resource in pair.resources}
    pair.one.model.update_template(here, usage)
    pair.many.model.update_template(there, usage)
    pair.agree()
    pair.both("drop_resource", "r1")
    pair.resources.remove("r1")
    pair.agree()
    pair.both("add_resources", "r9", 3.0)
    pair.resources.append("r9")
    for _ in range(5):
        pair.add("plain")
    pair.agree()


def test_own_requests_in_bulk_are_dealt() -> None:
    rng = np.random.default_rng(5)
    pair = Pair(5, ("plain",))
    sizes = rng.integers(2, 6, 12)
    n = int(sizes.sum())
    usage = {resource: rng.uniform(0.0, 1.0, n) for resource in pair.resources}
    pair.both("add_own_requests", list(range(12)), sizes, rng.uniform(0.0, 1.0, n), usage, limit=rng.uniform(1, 2, 12))
    pair.agree()
    pair.both("update_costs", list(range(12)), rng.uniform(0.0, 1.0, n))
    pair.agree()
    pair.both("update_limits", [1, 5, 7], [0.5, 2.0, 3.0])
    pair.agree()
    pair.both("remove_requests", [0, 3, 11])
    pair.agree()


def test_bytes_of_messages_are_counted() -> None:
    assert size_of(np.zeros(10)) == 80
    assert size_of((True, [1, 2, 3])) == 32
    assert size_of({"a": np.zeros(2)}) == 17


def test_own_requests_bring_bounds_and_are_whole_as_on_one_machine() -> None:
    pair, rng = Pair(4, ("plain",), "max"), np.random.default_rng(4)
    sizes = rng.integers(1, 4, 12)
    n = int(sizes.sum())
    usage = {resource: rng.uniform(0.2, 1.0, n) for resource in pair.resources}
    whole, upper = rng.random(12) < 0.5, rng.uniform(0.3, 1.0, n)
    given = {"limit": 2.0, "lower": np.where(rng.random(n) < 0.3, -0.1, 0.0), "upper": upper, "integer": whole}
    pair.both("add_own_requests", list(range(100, 112)), sizes, rng.uniform(0.0, 1.0, n), usage, **given)
    pair.agree()
    with pytest.raises(DimensionError, match="must have"):
        pair.many.model.add_own_requests([900], [2], [1.0, 1.0], {pair.resources[0]: [1.0, 1.0]}, upper=[1.0])
    pair.agree()


def test_without_ray_the_transport_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "copter_distributed.over_ray", raising=False)
    with pytest.raises(ModuleNotFoundError, match="pip install ray"):
        importlib.import_module("copter_distributed.over_ray")


def test_warm_rounds_begin_at_the_last_prices() -> None:
    session = distributed.Session(sia_like_model(60, 256, seed=2), EXACT, shards=2)
    cold = session.solve()
    assert session.solve().pricing_passes == 1  # nothing has changed
    known = session._master.standing_prices()
    assert known is not None
    assert known == pytest.approx(session._master.prices(session._master.session.solve()), abs=1e-9)
    session.model.add_resources("new", 3.0)
    session.model.add_request("uses it", [0.5, 2.0], {"new": [1.0, 4.0]})
    priced: list[np.ndarray] = []
    price = session._price

    def watched(y: np.ndarray, *arguments: object) -> object:
        priced.append(y)
        return price(y, *arguments)  # type: ignore[arg-type]

    session._price = watched  # type: ignore[method-assign, assignment]
    warm = session.solve()
    assert warm.status is copter.Status.OPTIMAL
    assert warm.pricing_passes == len(priced) >= 2
    np.testing.assert_allclose(priced[0], [*known, 0.0])
    assert warm.objective == pytest.approx(cold.objective + 1.5, rel=1e-9)
    session.reset()
    assert session._master.standing_prices() is None
    assert session.solve().objective == pytest.approx(warm.objective, rel=1e-9)
