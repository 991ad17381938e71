"""Starts from the central path by the prices of the coupling rows (docs/method/blocks.md, K10)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq

from copter import Model, Session, Settings, Status, solve
from copter.methods.blocks.block_centre import Centre
from copter.methods.blocks.interior import BlockMethod
from copter.methods.blocks.path import LEVELS, Milestone, PricePath, path_from, path_state, started_from
from copter.methods.blocks.program import BlockProgram, program_of
from copter.methods.blocks.solve import solve_blocks
from copter.runtime.watch import Watch

RNG = np.random.default_rng


def network(seed: int, commodities: int = 150, links: int = 90, paths: int = 4) -> Model:
    """Commodities on paths of three links, links of little capacity."""
    rng, model = RNG(seed), Model(sense="max")
    for link in range(links):
        model.add_resources(link, float(rng.uniform(3.0, 8.0)))
    for commodity in range(commodities):
        chosen = np.sort(rng.choice(links, 3 * paths, replace=False))
        usage = np.zeros((3 * paths, paths))
        for path in range(paths):
            usage[rng.choice(3 * paths, 3, replace=False), path] = 1.0
        model.add_request(
            commodity, rng.uniform(1.0, 2.0, paths), sp.csc_array(usage), resources=chosen.tolist(), limit=1.0
        )
    return model


def program(model: Model) -> BlockProgram:
    slots = np.sort(np.array(list(model.ledger.slot_of.values()), dtype=np.int32))
    return program_of(model.ledger.matrix, slots)


def centred(found: BlockProgram, mu: float, prices: np.ndarray) -> tuple[np.ndarray, ...]:
    n, rows = found.n_columns, len(found.lower) - found.n_columns
    y = np.concatenate((prices, np.zeros(rows - found.n_rows)))
    reduced, x, z, v = np.empty((4, n + rows))
    centre = Centre(found)
    centre.put(mu, y, reduced, x, z, v, 2)
    return x, z, v, y, reduced


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mu", [1e-1, 1e-3, 1e-6])
def test_every_block_is_put_at_its_centre(seed: int, mu: float) -> None:
    found = program(network(seed))
    n, m = found.n_columns, found.n_rows
    prices = -RNG(seed + 10).uniform(0.05, 1.0, m)
    x, z, v, y, reduced = centred(found, mu, prices)
    matrix = np.zeros((len(y), n))
    for g, (first, last) in enumerate(zip(found.column_start[:-1], found.column_start[1:], strict=True)):
        for j in range(first, last):
            at = slice(found.start[j], found.start[j + 1])
            matrix[found.row[at], j] = found.value[at]
            matrix[m + g, j] = 1.0
    assert np.allclose(found.cost - matrix.T @ y, reduced[:n], atol=1e-11)
    assert np.allclose(reduced[:n] - z[:n] + v[:n], 0.0, atol=1e-7)  # dual feasible
    below, above = np.isfinite(found.lower), np.isfinite(found.upper)
    assert ((x > found.lower) & (x < found.upper)).all()
    assert np.allclose((z * (x - np.where(below, found.lower, 0.0)))[below], mu, rtol=1e-9)
    assert np.allclose((v * (np.where(above, found.upper, 0.0) - x))[above], mu, rtol=1e-9)
    private = np.arange(m, len(y))
    assert np.allclose((matrix @ x[:n])[private], x[n + private], rtol=1e-7, atol=1e-9)  # private rows close


def test_the_centre_against_a_root_finder() -> None:
    found = program(network(3, commodities=20))
    mu, n, m = 1e-2, found.n_columns, found.n_rows
    x, _, _, y, _ = centred(found, mu, np.full(m, -0.2))
    for g, (first, last) in enumerate(zip(found.column_start[:-1], found.column_start[1:], strict=True)):
        usage = [found.value[found.start[j] : found.start[j + 1]].sum() for j in range(first, last)]
        cost = found.cost[first:last] + 0.2 * np.array(usage)
        limit = found.upper[n + m + g]

        def left(price: float, cost: np.ndarray = cost, limit: float = limit) -> float:
            return float((mu / (cost - price)).sum() - (limit + mu / price))

        top = min(float(cost.min()), 0.0)
        root = brentq(left, top - 1e4, top - 1e-13, xtol=1e-15)
        assert y[m + g] == pytest.approx(root, rel=1e-6)
        assert x[first:last] == pytest.approx(mu / (cost - root), rel=1e-6)


def test_boxes_equalities_and_free_sums() -> None:
    model = Model(sense="min")
    for row in range(70):
        model.add_resources(row, 10.0)
    model.add_request("boxed", [1.0, -2.0, 0.5], {0: [1, 1, 1]}, lower=[0, 1, 0], upper=[1, 3, 2], limit=4.0)
    model.add_request("least", [1.0, 2.0, 3.0], {1: [1, 2, 1]}, limit=5.0, at_least=2.0)
    model.add_request("one", [1.0, 2.0], {2: [1, 1]})
    found = program(model)
    x, z, v, _y, reduced = centred(found, 1e-3, np.full(70, -1e-3))
    assert ((x > found.lower) & (x < found.upper)).all()
    assert np.allclose(reduced - z + v, 0.0, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_start_from_the_path_takes_fewer_iterations_to_the_same_optimum(seed: int) -> None:
    rng, model = RNG(seed), network(seed, commodities=400, links=80)
    rows = model.ledger.matrix.row_generation[:80]
    path = PricePath(rows.copy())
    settings = Settings(threads=1)
    cold = solve_blocks(program(model), settings, Watch(np.inf), False, path)
    assert cold is not None
    assert set(path.passed) == set(LEVELS)
    model.update_limits(list(range(400)), rng.uniform(0.95, 1.05, 400))
    model.update_costs([7], [[1.7, 1.6, 1.5, 1.4]])
    again = program(model)
    fresh = solve_blocks(again, settings, Watch(np.inf), False)
    warm = solve_blocks(again, settings, Watch(np.inf), False, path.of_rows(rows))
    assert fresh is not None
    assert warm is not None
    assert warm.iterations < fresh.iterations
    assert again.cost @ warm.x == pytest.approx(again.cost @ fresh.x, rel=1e-7)
    assert np.allclose(warm.y, fresh.y, atol=1e-5)


def test_a_start_that_is_far_off_is_refused() -> None:
    found = program(network(0, commodities=300, links=80))
    scaled, scale, factor = found.equilibrated()
    path = PricePath(np.zeros(80, dtype=np.int64))
    path.passed[LEVELS[0]] = Milestone(1e-9, np.full(80, -50.0))
    assert not started_from(BlockMethod(scaled), path, scale, factor, np.arange(80, dtype=np.int32))
    assert not started_from(
        BlockMethod(scaled), PricePath(path.row_generation), scale, factor, np.arange(80, dtype=np.int32)
    )


def test_prices_of_replaced_and_new_rows_are_forgotten() -> None:
    path = PricePath(np.array([1, 1, 2]))
    path.passed[LEVELS[1]] = Milestone(0.5, np.array([1.0, 2.0, 3.0]))
    now = path.of_rows(np.array([1, 4, 2, 1]))
    assert now.passed[LEVELS[1]].prices.tolist() == [1.0, 0.0, 3.0, 0.0]
    assert path.of_rows(np.array([1])).passed[LEVELS[1]].prices.tolist() == [1.0]


def test_a_session_goes_on_from_the_path_as_its_copy_does(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rng, model = RNG(5), network(5, commodities=300, links=80)
    session = Session(model, Settings(threads=1))
    session.solve()
    session._iterate.basis.resting = 30  # so that rounds go by the path
    session.save(tmp_path / "s")
    other = Session.load(tmp_path / "s")
    values = rng.uniform(0.9, 1.1, 300)
    for each in (session, other):
        each.model.update_limits(list(range(300)), values)
    one, two = session.solve(), other.solve()
    assert one.status is Status.OPTIMAL
    assert np.array_equal(one.x, two.x)
    assert np.array_equal(one.y, two.y)
    assert one.objective == pytest.approx(solve(model.to_linear_program()).objective, rel=1e-6)


def test_a_damaged_path_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = PricePath(np.array([1, 1]))
    path.passed[LEVELS[0]] = Milestone(0.5, np.array([1.0, 2.0]))
    state = path_state(path)
    assert state is not None
    again = path_from(state)
    assert again is not None
    assert again.passed[LEVELS[0]].prices.tolist() == [1.0, 2.0]
    sound = ([], [LEVELS[0]], [0.5], np.array([[1.0, 2.0]]))
    wrong = (([2],), ([], [0.5]), ([], [LEVELS[0]], [-1.0]), ([], [LEVELS[0]], [1.0, 2.0]))
    for parts in (*wrong, (*sound[:3], np.full((1, 2), np.nan))):
        with pytest.raises(ValueError, match="damaged"):
            path_from({**state, "paths": [(*parts, *sound[len(parts) :])]})
    assert path_from({"row_generation": [1], "levels": [], "mu": [], "prices": []}) is None  # as 0.1.0 wrote it
    assert path_state(None) is None
    assert path_from(None) is None


def test_a_path_that_was_too_far_is_asked_at_its_coarsest_level_first(monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(network(0, commodities=300, links=80))
    scaled, scale, factor = found.equilibrated()
    path = PricePath(np.zeros(80, dtype=np.int64))
    for level in LEVELS:
        path.passed[level] = Milestone(1e-9, np.full(80, -50.0))
    tried: list[int] = []
    factorise = BlockMethod.factorise
    monkeypatch.setattr(BlockMethod, "factorise", lambda self: (tried.append(1), factorise(self))[1])
    rows = np.arange(80, dtype=np.int32)
    assert not started_from(BlockMethod(scaled), path, scale, factor, rows)
    assert path.missed
    assert len(tried) == len(LEVELS)
    tried.clear()
    restored = path_from(path_state(path))
    assert restored is not None
    assert restored.missed
    assert not started_from(BlockMethod(scaled), restored.of_rows(np.zeros(80, dtype=np.int64)), scale, factor, rows)
    assert len(tried) == 1
