"""Where a cold solve of blocks starts (docs/method/blocks.md, K4)."""

from __future__ import annotations

import numpy as np
import pytest
from test_loose_rows import program

from copter.methods.blocks.interior import BlockMethod
from copter.methods.blocks.start import middle_worth, start


@pytest.mark.parametrize("seed", range(6))
def test_the_start_is_inside_with_products_alike(seed: int) -> None:
    method = BlockMethod(program(seed, 6, 20))
    start(method)
    state, found = method.state, method.program
    low = (state.x - found.lower)[method.bounded_below]
    high = (found.upper - state.x)[method.bounded_above]
    assert (low > 0.0).all()
    assert (high > 0.0).all()
    n, m = found.n_columns, found.n_rows
    expected = np.ones(len(state.x))
    expected[n : n + m] = (n / m) ** 0.5  # a coupling row's, for each of a column
    products = np.concatenate((low * state.z[method.bounded_below], high * state.v[method.bounded_above]))
    shares = np.concatenate((expected[method.bounded_below], expected[method.bounded_above]))
    np.testing.assert_allclose(products / shares, products[0], rtol=1e-12)
    sums = np.add.reduceat(state.x[: found.n_columns], found.column_start[:-1])
    assert (sums < found.upper[found.n_columns + found.n_rows :]).all()


@pytest.mark.parametrize("limited", [0.0, 0.5])
def test_without_limits_the_start_is_the_least_squares_one(limited: float) -> None:
    method = BlockMethod(program(1, 6, 20, limited=limited))
    start(method)
    state, found = method.state, method.program
    assert (state.x > found.lower)[method.bounded_below].all()
    assert (state.x < found.upper)[method.bounded_above].all()
    assert (state.z[method.bounded_below] > 0.0).all()
    assert (state.v[method.bounded_above] > 0.0).all()


def test_demands_far_below_the_capacities_take_few_iterations() -> None:
    """4,000 small requests over links that carry a thousand of them each: no iterations are lost coming back in."""
    rng = np.random.default_rng(0)
    found = program(3, 12, 4000)
    found.upper[found.n_columns + 12 :] = rng.uniform(0.01, 0.04, 4000)
    found.upper[found.n_columns : found.n_columns + 12] = rng.uniform(10.0, 40.0, 12)
    found.upper[: found.n_columns] = np.inf
    method = BlockMethod(found)
    figures, _ = method.run(1e-9, 100, lambda iteration, figures: False)
    assert figures.worst <= 1e-9
    assert method.iterations <= 20


def test_a_few_large_requests_among_many_small_ones_set_the_start() -> None:
    """Limits from 1e-6 to 1e3, of which the largest decide what there is to gain: no stall, few iterations."""
    rng = np.random.default_rng(2)
    found = program(4, 12, 3000)
    n = found.n_columns
    limits = 10.0 ** rng.uniform(-6.0, -2.0, 3000)
    limits[rng.choice(3000, 40, replace=False)] = rng.uniform(100.0, 1500.0, 40)
    found.upper[n + 12 :] = limits
    found.upper[n : n + 12] = 1000.0
    found.upper[:n] = np.inf
    method = BlockMethod(found)
    figures, _ = method.run(1e-9, 100, lambda iteration, figures: False)
    assert figures.worst <= 1e-9
    assert method.iterations <= 25
    assert middle_worth(np.array([1.0, 1.0, 1.0, 10.0])) == 10.0
    assert middle_worth(np.array([3.0, 1.0, 2.0, 1.0])) == 2.0
