"""The lease LP: its forms agree with each other and with HiGHS, bounds hold, plans are whole and within capacity."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from chronus_instances import highs_optimum, lease_problem
from hypothesis import given, settings
from hypothesis import strategies as st

import copter
from copter_frontends.chronus.compact import compact_form, per_deadline_form
from copter_frontends.chronus.draft import Draft
from copter_frontends.chronus.formulation import LeaseFormulation
from copter_frontends.chronus.options import Ints, Options
from copter_frontends.chronus.pricing import LeasePrices
from copter_frontends.chronus.shim import LeaseShim

TIGHT = LeaseFormulation(gap=1e-6, max_passes=400)


def check_draft(draft: Draft, options: Options, capacity: Ints) -> None:
    """Whole leases, as many as needed, before the deadline, and never more GPUs than there are."""
    used = np.zeros_like(capacity)
    for job in range(options.jobs):
        row = int(draft.row[job])
        leases = np.flatnonzero(draft.taken[job])
        if row < 0:
            assert len(leases) == 0
            continue
        assert int(options.job[row]) == job
        assert len(leases) == int(options.need[row])
        assert int(leases.max()) < int(options.last[row])
        used[int(options.kind[row]), leases] += int(options.gpus[row])
    assert (used <= capacity).all()
    np.testing.assert_array_equal(draft.free, capacity - used)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("types", [1, 2])
def test_the_compact_form_has_the_optimum_of_the_form_by_deadlines(seed: int, types: int) -> None:
    options, capacity = lease_problem(9, 8, 7, seed, types)
    by_deadline = highs_optimum(per_deadline_form(options, capacity))
    assert by_deadline is not None
    for vub in (False, True):
        assert highs_optimum(compact_form(options, capacity, vub=vub)) == pytest.approx(by_deadline, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_promises_are_rows_of_both_forms(seed: int) -> None:
    options, capacity = lease_problem(8, 10, 7, seed, must=0.5)
    one, two = highs_optimum(compact_form(options, capacity)), highs_optimum(per_deadline_form(options, capacity))
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        assert one == pytest.approx(two, abs=1e-6)
        prices = LeasePrices(np.random.default_rng(seed).uniform(0, 20, capacity.shape))
        assert prices.bound(options, capacity) >= one - 1e-6


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("types", [1, 2])
def test_the_decomposition_reaches_the_lp_of_the_form_by_deadlines(seed: int, types: int) -> None:
    options, capacity = lease_problem(30, 16, 10, seed, types)
    lp = highs_optimum(per_deadline_form(options, capacity, whole=False))
    found = TIGHT.solve(options, capacity)
    assert found.bound == pytest.approx(lp, rel=1e-4)
    assert found.value == pytest.approx(lp, rel=1e-4)
    assert copter.solve(per_deadline_form(options, capacity, whole=False)).objective == pytest.approx(lp, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_nest_as_stated(seed: int) -> None:
    """Whole optimum <= form by deadlines <= compact with variable upper bounds <= compact without."""
    options, capacity = lease_problem(25, 12, 10, seed)
    values = [
        highs_optimum(per_deadline_form(options, capacity)),
        highs_optimum(per_deadline_form(options, capacity, whole=False)),
        highs_optimum(compact_form(options, capacity, whole=False)),
        highs_optimum(compact_form(options, capacity, whole=False, vub=False)),
    ]
    for tighter, looser in pairwise(values):
        assert tighter is not None
        assert looser is not None
        assert tighter <= looser + 1e-6


@given(st.integers(0, 10**6), st.integers(1, 2), st.floats(0.0, 30.0))
@settings(max_examples=30, deadline=None)
def test_any_prices_certify_a_bound(seed: int, types: int, level: float) -> None:
    options, capacity = lease_problem(6, 6, 5, seed, types)
    prices = np.random.default_rng(seed).uniform(0.0, 1.0, capacity.shape) * level
    best = highs_optimum(per_deadline_form(options, capacity))
    assert best is not None
    assert LeasePrices(prices).bound(options, capacity) >= best - 1e-6


@given(st.integers(0, 10**6), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_the_cheapest_leases_are_the_cheapest(seed: int, horizon: int) -> None:
    rng = np.random.default_rng(seed)
    price = np.round(rng.uniform(0, 3, (2, horizon)))
    tables = LeasePrices(price)
    for kind in range(2):
        for last in range(1, horizon + 1):
            for need in range(1, last + 1):
                expected = np.sort(price[kind, :last])[:need].sum()
                chosen = tables.cheapest(kind, last)[1] < need
                assert chosen.sum() == need
                assert not chosen[last:].any()
                assert tables.cheapest(kind, last)[0][need] == pytest.approx(expected)
                assert price[kind][chosen].sum() == pytest.approx(expected)


@given(st.integers(0, 10**6), st.integers(1, 2))
@settings(max_examples=25, deadline=None)
def test_plans_are_whole_and_within_capacity(seed: int, types: int) -> None:
    options, capacity = lease_problem(25, 10, 8, seed, types)
    solution = LeaseFormulation(max_passes=12).solve(options, capacity)
    draft = LeaseShim()(options, capacity, solution)
    check_draft(draft, options, capacity)
    assert draft.reward <= solution.bound + 1e-6


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_making_room_keeps_everyone_else_and_capacity(seed: int) -> None:
    options, capacity = lease_problem(20, 8, 8, seed)
    draft, rng = Draft(options, capacity), np.random.default_rng(seed)
    for row in rng.permutation(len(options.job)).tolist():
        job = int(options.job[row])
        if draft.row[job] >= 0:
            continue
        before, reward = draft.row.copy(), draft.reward
        fitted = draft.squeeze(row)
        before[job] = row if fitted else -1
        np.testing.assert_array_equal(draft.row, before)
        assert draft.reward == pytest.approx(reward + (options.value[row] if fitted else 0.0))
        check_draft(draft, options, capacity)
    draft.shift_left(np.arange(options.jobs))
    check_draft(draft, options, capacity)


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_keeps_the_last_ones_promises(seed: int) -> None:
    options, capacity = lease_problem(40, 16, 10, seed)
    draft = LeaseShim()(options, capacity, TIGHT.solve(options, capacity))
    must = draft.row >= 0
    promised = Options(**{name: getattr(options, name) for name in Options.__slots__ if name != "must"}, must=must)
    origin, kept = Draft(promised, capacity), np.flatnonzero(must)
    assert origin.put_all(draft.row[kept], draft.taken[kept]).all()
    solution = TIGHT.solve(promised, capacity, origin=origin)
    again = LeaseShim()(promised, capacity, solution, origin)
    assert solution.bound >= solution.value >= origin.reward - 1e-6
    check_draft(again, promised, capacity)
    assert again.broken == 0
    assert again.reward >= draft.reward - 1e-9


@pytest.mark.parametrize("seed", range(2))
def test_whole_plans_are_near_the_bound_at_size(seed: int) -> None:
    options, capacity = lease_problem(1500, 900, 24, seed)
    solution = LeaseFormulation().solve(options, capacity)
    draft = LeaseShim()(options, capacity, solution)
    check_draft(draft, options, capacity)
    assert draft.reward >= 0.98 * solution.bound
    again = LeaseFormulation().solve(options, capacity, solution.prices.price)
    assert again.bound == pytest.approx(solution.bound, rel=3e-3)
    assert again.passes <= solution.passes
