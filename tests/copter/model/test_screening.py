"""Screened pricing passes give what whole passes give, after any edits and at any prices, and price few columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter import Model, Session
from copter.model.matrix import BlockMatrix, Template

KINDS, SIZES = 3, np.arange(1.0, 101.0)
COLUMNS = KINDS * len(SIZES)


def template_of(matrix: BlockMatrix, rng: np.random.Generator, most: float = 2.0) -> Template:
    """Columns of growing sizes on one row each."""
    start = np.arange(COLUMNS + 1, dtype=np.int32)
    row = np.repeat(np.arange(KINDS, dtype=np.int32), len(SIZES))
    return matrix.add_template(start, row, np.tile(SIZES, KINDS) * rng.uniform(0.5, most))


def costs(rng: np.random.Generator, single: bool) -> np.ndarray:
    """Costs of concave values."""
    values = [rng.uniform(0.5, 2.0) * SIZES ** rng.uniform(0.2, 0.5) for _ in range(KINDS)]
    return (-np.concatenate(values)).astype(np.float32 if single else np.float64)


def matrix_of(rng: np.random.Generator, slabs: int) -> tuple[BlockMatrix, Template]:
    matrix = BlockMatrix()
    for _ in range(KINDS):
        matrix.add_row(-np.inf, 100.0)
    template = template_of(matrix, rng)
    for _ in range(slabs):
        matrix.add_slab(template, costs(rng, rng.random() < 0.3), 1.0, 0.0, 1.0, rng.uniform(0.5, 2.0), 0.1)
    return matrix, template


def require_same(matrix: BlockMatrix, y: np.ndarray, threshold: np.ndarray, threads: int = 1) -> None:
    """A screened pass and a whole one have the same results."""
    smallest, *found = matrix.price(y, threshold, threads, screen=True)
    whole, *others = matrix.price(y, threshold, threads)
    below = ~(whole >= 0.0)
    np.testing.assert_array_equal(smallest[below], whole[below])
    assert np.all(smallest[~below] >= 0.0)
    assert np.all(smallest[~below] <= whole[~below])
    for one, other in zip(found, others, strict=True):
        np.testing.assert_array_equal(one, other)


def edited(matrix: BlockMatrix, template: Template, rng: np.random.Generator) -> None:
    """Some edit of a slab, of all slabs, or of the usage."""
    slots = np.array([slot for slot in range(matrix.n_slots) if matrix.slabs[slot] is not None], dtype=np.int32)
    slot, kind = int(rng.choice(slots)), int(rng.integers(8))
    if kind == 0:
        matrix.remove_slab(slot)
        matrix.add_slab(template, costs(rng, False), 1.0, 0.0, 1.0)
    elif kind == 1:
        matrix.set_cost(slot, costs(rng, rng.random() < 0.5), rng.uniform(0.5, 2.0), 0.0)
    elif kind in (2, 3, 4):
        scale = np.array([matrix.scale_of(each)[0] for each in slots]) * rng.uniform(0.97, 1.03, len(slots))
        column = rng.integers(-1, COLUMNS, len(slots)).astype(np.int32)
        most = rng.uniform(-0.5, 0.5, len(slots)) if kind == 4 else None
        matrix.rescale(
            slots, scale, rng.normal(0.0, 0.05, len(slots)), column, rng.uniform(-3.0, 0.0, len(slots)), most
        )
    elif kind == 5:
        saved = matrix.save_slab(slot)
        matrix.set_cost(slot, costs(rng, False), 1.0, 0.0)
        matrix.price(np.full(KINDS, -0.1), np.zeros(matrix.n_slots), 1, screen=True)
        matrix.restore_slab(saved)
    elif kind == 6:
        matrix.set_fixed(slot, int(rng.integers(-1, COLUMNS)))
    else:
        template.replace(template.column_start, template.row, template.coefficient * rng.uniform(0.5, 1.5))


@given(st.integers(0, 2**32 - 1), st.integers(1, 2))
@settings(max_examples=60, deadline=None)
def test_a_screened_pass_gives_what_a_whole_one_gives(seed: int, threads: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, template = matrix_of(rng, 12)
    y = -rng.uniform(0.05, 0.3, KINDS)
    for _ in range(12):
        if rng.random() < 0.5:
            edited(matrix, template, rng)
        y *= np.exp(rng.normal(0.0, rng.choice([0.0, 0.02, 0.3]), KINDS))
        if rng.random() < 0.1:
            y[rng.integers(KINDS)] *= rng.choice([0.0, -1.0])
        threshold = np.minimum(matrix.price(y, np.full(matrix.n_slots, -np.inf), 1)[0], 0.0)
        require_same(matrix, y, threshold * rng.choice([1.0, 0.9, 1.1, 0.0]), threads)
        y = -np.maximum(np.abs(y), 0.01)


@given(st.integers(0, 2**32 - 1), st.integers(1, 2))
@settings(max_examples=150, deadline=None)
def test_slabs_whose_known_column_is_surely_the_best_are_not_read(seed: int, threads: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, template = matrix_of(rng, 12)
    y = -rng.uniform(0.05, 0.3, KINDS)
    for _ in range(20):
        if rng.random() < 0.5:
            edited(matrix, template, rng)
        y = -np.maximum(np.abs(y * np.exp(rng.normal(0.0, rng.choice([0.0, 0.02, 0.1, 0.3]), KINDS))), 0.01)
        slots = np.arange(matrix.n_slots, dtype=np.int32)
        reduced = matrix.flat_reduced_costs(slots, COLUMNS * len(slots), y).reshape(-1, COLUMNS)
        best = np.argmin(np.where(rng.random(reduced.shape) < rng.choice([0.0, 0.05]), np.inf, reduced), axis=1)
        least = reduced[slots, best]
        best = np.where(rng.random(len(slots)) < 0.1, -1, best).astype(np.int32)
        least[best < 0] = np.inf
        threshold = np.minimum(least, 0.0) - 1e-12
        smallest, *found = matrix.price(y, threshold, threads, screen=True, least=least, best=best)
        whole, *others = matrix.price(y, threshold, threads)
        below = ~(whole >= 0.0)
        np.testing.assert_allclose(smallest[below], whole[below], rtol=1e-12)
        assert np.all(smallest[~below] >= 0.0)
        for one, other in zip(found, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    with pytest.raises(ValueError, match="11 least reduced costs"):
        matrix.price(y, threshold, 1, screen=True, least=least[1:], best=best)


@pytest.mark.parametrize("low", [0.97, 0.8])
def test_known_columns_stay_the_best_while_prices_and_costs_move_little(low: float) -> None:
    rng = np.random.default_rng(1)
    matrix, _ = matrix_of(rng, 50)
    y, slots = -rng.uniform(0.6, 0.9, KINDS), np.arange(50, dtype=np.int32)
    best = np.argmin(matrix.flat_reduced_costs(slots, COLUMNS * 50, y).reshape(-1, COLUMNS), axis=1).astype(np.int32)
    single = matrix.costs_at(slots, best) - 0.5  # staying is worth something
    for number in range(20):
        prices = y * rng.uniform(low, 1.03, KINDS)
        scale = np.array([matrix.scale_of(each)[0] for each in slots]) * 0.999
        matrix.rescale(slots, scale, np.full(50, 0.1), best, single)
        least = matrix.flat_reduced_costs(slots, COLUMNS * 50, prices).reshape(-1, COLUMNS)[slots, best]
        lie = least - (0.01 if number > 1 else 0.0)  # taken as it is where the slab is not read
        smallest = matrix.price(prices, np.minimum(lie, 0.0), 1, screen=True, least=lie, best=best)[0]
        assert number < 2 or np.count_nonzero(smallest == lie) > 40


def test_a_round_prices_few_columns_while_prices_and_costs_move_little() -> None:
    rng = np.random.default_rng(1)
    matrix, _ = matrix_of(rng, 50)
    y, slots = -rng.uniform(0.6, 0.9, KINDS), np.arange(50, dtype=np.int32)
    none = np.full(50, -np.inf)
    matrix.price(y, none, 1, screen=True)
    assert (matrix.columns_priced, matrix.slabs_screened) == (50 * COLUMNS, 0)
    assert matrix.work_of_pass(True) == matrix.work_of_pass(False) == 50 * COLUMNS
    for _ in range(20):
        near = y * rng.uniform(0.9, 1.1, KINDS)
        scale = np.array([matrix.scale_of(each)[0] for each in slots]) * 1.001
        matrix.rescale(slots, scale, np.full(50, 0.1), np.full(50, -1, dtype=np.int32), np.zeros(50))
        matrix.price(near, none, 1, screen=True)
    assert matrix.slabs_screened > 0.9 * 20 * 50
    assert matrix.columns_priced < 3 * 50 * COLUMNS
    assert matrix.work_of_pass(True) < matrix.work_of_pass(False) == 50 * COLUMNS


def test_slabs_without_near_columns_are_seldom_searched() -> None:
    rng = np.random.default_rng(2)
    matrix = BlockMatrix()
    matrix.add_row(-np.inf, 100.0)
    start, row = np.arange(301, dtype=np.int32), np.zeros(300, dtype=np.int32)
    template = matrix.add_template(start, row, np.ones(300))
    for _ in range(20):
        matrix.add_slab(template, np.full(300, -1.0), 1.0, 0.0, 1.0)  # all columns are the best
    for _ in range(50):
        matrix.price(-rng.uniform(0.1, 0.2, 1), np.full(20, -1.0), 1, screen=True)
    assert matrix.slabs_screened == 0
    assert matrix.columns_priced == 50 * 20 * 300


def test_sessions_of_wide_requests_stay_optimal() -> None:
    rng = np.random.default_rng(3)
    model = Model("max")
    for kind in range(KINDS):
        model.add_resources(kind, 150.0)
    of_kind, sizes = np.arange(COLUMNS) // len(SIZES), np.tile(SIZES, KINDS)
    usage = {kind: np.where(of_kind == kind, sizes, 0.0) for kind in range(KINDS)}
    template = model.add_template(usage)
    names = list(range(200))
    for name in names:
        model.add_request(name, -costs(rng, False), template=template)
    session = Session(model)
    for name in range(200, 210):
        model.remove_request(names.pop(0))
        names.append(name)
        model.add_request(name, -costs(rng, False), template=template)
        model.rescale_costs(names, rng.uniform(0.99, 1.01, len(names)), 0.0)
        solution = session.solve()
        other = Session(model).solve()
        assert solution.objective == pytest.approx(other.objective, rel=3e-6)
        assert solution.bound >= solution.objective * (1.0 - 1e-7)
    assert model.ledger.matrix.slabs_screened > 0


def test_a_pass_that_was_cut_short_has_no_dual_value_with_empty_slots_too() -> None:
    rng = np.random.default_rng(4)
    matrix, _ = matrix_of(rng, 8)
    matrix.remove_slab(0)
    y, threshold = -rng.uniform(0.6, 0.9, KINDS), np.full(8, -np.inf)
    smallest = matrix.price(y, threshold, 1, screen=True)[0]
    value, size, error, terms = matrix.dual_value(smallest)
    priced = smallest[1:]
    assert value == pytest.approx(np.minimum(priced, 0.0).sum())
    assert size == pytest.approx(np.abs(np.minimum(priced, 0.0)).sum())
    assert error == pytest.approx(matrix.price_errors()[1:].sum())
    assert terms == 7
    assert matrix.price(y, threshold, 1, seconds=-1.0)[0].tolist() == pytest.approx([np.nan] * 8, nan_ok=True)
    assert np.isnan(matrix.dual_value(np.full(8, np.nan))[0])
