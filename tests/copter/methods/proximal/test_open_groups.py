"""The dual over the groups that prices open, against that over all groups (equation A8)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter.methods.proximal.open_groups import OpenGroups
from copter.methods.proximal.project import Dual, Projection, Slacks
from tests.copter.twins import Flat, Floats, Group, flat

INF, ROWS = np.inf, 3


def groups_at_rest(rng: np.random.Generator, count: int) -> list[Group]:
    """Plain groups at zero, with one column at the limit, or between; and held ones."""
    found = []
    for _ in range(count):
        n = int(rng.integers(1, 6))
        usage = rng.integers(-2, 4, (ROWS, n)) * (rng.random((ROWS, n)) < 0.6).astype(float)
        limit = float(rng.choice([0.0, 0.5, 1.0, 3.0]))
        lower, upper, center = np.zeros(n), np.full(n, rng.choice([limit, INF])), np.zeros(n)
        kind = rng.random()
        if kind < 0.6:
            center[rng.integers(n)] = limit
        elif kind < 0.7:
            center[:] = limit / n
        elif kind < 0.8:
            limit = float(rng.choice([10.0, INF]))
            lower = upper = center = rng.integers(-2, 3, n).astype(float)
        found.append(Group(np.round(rng.normal(size=n), 1), lower, upper, limit, usage, center))
    return found


def whole_dual(problem: Flat, slacks: Slacks, sigma: float) -> Dual:
    """The dual that projects every group."""
    n, groups = len(problem.cost), len(problem.limit)
    out = Projection(np.empty(n), np.empty(n, np.uint8), np.zeros(groups), np.empty((1, ROWS)), np.empty(1))
    return Dual(problem.columns, slacks, problem.center, sigma, out, 1)


def slacks_of(rng: np.random.Generator, used: Floats, sigma: float) -> Slacks:
    """Slacks at what a point uses."""
    lower, upper = used - rng.integers(0, 2, ROWS), used + rng.integers(0, 2, ROWS)
    lower[rng.random(ROWS) < 0.4] = -INF
    scale = rng.choice([0.5, 1.0, 2.0], ROWS)
    return Slacks(used, sigma * scale**2, lower, upper, scale)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.05, 1.0, 50.0]), st.booleans())
def test_open_groups_alone_give_the_dual_of_all_groups_at_any_prices(seed: int, sigma: float, all_open: bool) -> None:
    rng = np.random.default_rng(seed)
    made = groups_at_rest(rng, int(rng.integers(1, 12)))
    problem = flat(made)
    used = np.hstack([group.usage for group in made]) @ problem.center
    slacks, y = slacks_of(rng, used, sigma), rng.choice([0.0, 1.0], ROWS) * rng.normal(size=ROWS)
    some, every = OpenGroups(), whole_dual(problem, slacks, sigma)
    for _ in range(2):  # the second time over the same arrays
        some.begin_at(problem.columns, problem.center.copy(), slacks, y, sigma, 0.01, 1, all_open)
        for reach in (0.0, 1e-3, 0.3, 0.01, 30.0, 0.1, 1e4):
            prices = y + reach * rng.normal(size=ROWS)
            slack, residual, other_slack, other = np.empty((4, ROWS))
            value = some.evaluate(prices, slack, residual)
            wanted = every.evaluate(prices, other_slack, other)
            assert value == pytest.approx(wanted, rel=1e-9, abs=1e-9)
            assert slack == pytest.approx(other_slack, rel=1e-12, abs=1e-12)
            assert residual == pytest.approx(other, rel=1e-9, abs=1e-8)
        made = made[::-1]
        problem = flat(made)
        every = whole_dual(problem, slacks, sigma)


def test_a_group_is_projected_from_its_radius_on() -> None:
    """One of two columns at the limit, whose reduced costs are 0.5 apart at a price of -1: the same at one of -1.5."""
    usage = np.array([[1.0, 0.0]])
    group = Group(np.array([-2.0, -0.5]), np.zeros(2), np.ones(2), 1.0, usage, np.array([1.0, 0.0]))
    problem = flat([group])
    slacks = Slacks(np.ones(1), np.ones(1), np.zeros(1), np.ones(1), np.ones(1))
    some, y = OpenGroups(), np.array([-1.0])
    some.begin_at(problem.columns, problem.center, slacks, y, 1.0, 0.01, 1, False)
    slack, residual = np.empty((2, 1))
    for price, kept in ((-1.0, 1.0), (-1.4, 1.0), (-1.6, 0.95), (-2.4, 0.55), (-3.6, 0.0)):
        some.evaluate(np.array([price]), slack, residual)
        assert slack - residual == pytest.approx([kept], abs=1e-12), price
