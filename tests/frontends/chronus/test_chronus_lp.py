"""The lease LP: its forms agree with each other and with HiGHS, bounds hold, plans are whole and within capacity."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from chronus_instances import NO_LIMIT_S, highs_optimum, lease_problem
from hypothesis import given, settings
from hypothesis import strategies as st

import copter
from copter_frontends.policies.chronus.compact import compact_form, per_deadline_form
from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.formulation import (
    ALMOST_ALL,
    FREE_LEAST,
    STAY_SHARE,
    LeaseFormulation,
    _Cycle,
)
from copter_frontends.policies.chronus.free_tail import FreeTail
from copter_frontends.policies.chronus.options import Ints, Options
from copter_frontends.policies.chronus.pricing import LeasePrices
from copter_frontends.policies.chronus.shim import LeaseShim

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
    found = TIGHT.solve(options, capacity, time_limit_s=NO_LIMIT_S)
    assert found.bound == pytest.approx(lp, rel=1e-4)
    assert found.value == pytest.approx(lp, rel=1e-4)
    assert copter.solve(per_deadline_form(options, capacity, whole=False)).objective == pytest.approx(lp, rel=1e-4)


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_the_unit_of_the_rewards_is_of_no_account(unit: float) -> None:
    """Also where jobs of the same names had others before: nothing of those is left in the model."""
    options, capacity = lease_problem(30, 16, 10, 0)
    formulation = LeaseFormulation(gap=1e-6, max_passes=400)
    one = formulation.solve(options, capacity, time_limit_s=NO_LIMIT_S)
    other = formulation.solve(replace(options, value=unit * options.value), capacity, time_limit_s=NO_LIMIT_S)
    assert other.value == pytest.approx(unit * one.value, rel=1e-4)
    assert other.bound == pytest.approx(unit * one.bound, rel=1e-4)
    options, capacity = lease_problem(60, 16, 16, 3)
    lp = highs_optimum(per_deadline_form(options, capacity, whole=False))
    assert lp is not None
    scaled = replace(options, value=unit * options.value)
    found = LeaseFormulation(gap=1e-6, max_passes=400).solve(scaled, capacity, time_limit_s=NO_LIMIT_S)
    assert found.value == pytest.approx(unit * lp, rel=1e-4)


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


@pytest.mark.parametrize(("jobs", "types"), [(0, 1), (1, 2), (60, 3)])
def test_a_row_is_worth_its_value_without_its_cheapest_leases(jobs: int, types: int) -> None:
    options, capacity = lease_problem(jobs, 8, 20, seed=jobs, types=types)
    prices = LeasePrices(np.random.default_rng(jobs).uniform(0.0, 9.0, capacity.shape))
    costs = [
        prices.cheapest(kind, last)[0][need]
        for kind, last, need in zip(options.kind, options.last, options.need, strict=True)
    ]
    assert prices.worth(options).tolist() == (options.value - options.gpus * np.array(costs)).tolist()


@given(st.integers(0, 10**6), st.integers(1, 2))
@settings(max_examples=25, deadline=None)
def test_plans_are_whole_and_within_capacity(seed: int, types: int) -> None:
    options, capacity = lease_problem(25, 10, 8, seed, types)
    solution = LeaseFormulation(max_passes=12).solve(options, capacity, time_limit_s=NO_LIMIT_S)
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
    draft = LeaseShim()(options, capacity, TIGHT.solve(options, capacity, time_limit_s=NO_LIMIT_S))
    must = draft.row >= 0
    promised = Options(**{name: getattr(options, name) for name in Options.__slots__ if name != "must"}, must=must)
    origin, kept = Draft(promised, capacity), np.flatnonzero(must)
    assert origin.put_all(draft.row[kept], draft.taken[kept]).all()
    solution = TIGHT.solve(promised, capacity, origin=origin, time_limit_s=NO_LIMIT_S)
    again = LeaseShim()(promised, capacity, solution, origin)
    assert solution.bound >= solution.value >= origin.reward - 1e-6
    check_draft(again, promised, capacity)
    assert again.broken == 0
    assert again.reward >= draft.reward - 1e-9


@pytest.mark.parametrize("seed", range(2))
def test_whole_plans_are_near_the_bound_at_size(seed: int) -> None:
    options, capacity = lease_problem(1500, 900, 24, seed)
    solution = LeaseFormulation().solve(options, capacity, time_limit_s=NO_LIMIT_S)
    draft = LeaseShim()(options, capacity, solution)
    check_draft(draft, options, capacity)
    assert draft.reward >= 0.98 * solution.bound
    again = LeaseFormulation().solve(options, capacity, solution.prices.price, time_limit_s=NO_LIMIT_S)
    assert again.bound == pytest.approx(solution.bound, rel=3e-3)
    assert again.passes <= solution.passes


# The program, against the page ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_plan_to_begin_with_neither_moves_the_optimum_nor_is_lost(share: float) -> None:
    """Jobs that stay as they are are freed as long as mixture and bound are apart."""
    options, capacity = lease_problem(150, 40, 10, 2)
    lp = highs_optimum(per_deadline_form(options, capacity, whole=False))
    origin, rng = Draft(options, capacity), np.random.default_rng(0)
    for job in rng.permutation(150)[: round(150 * share)].tolist():
        any(origin.place(row) for row in reversed(origin.ranked(job)))
    found = LeaseFormulation(gap=1e-5, max_passes=400).solve(options, capacity, origin=origin, time_limit_s=NO_LIMIT_S)
    assert found.bound == pytest.approx(lp, rel=1e-4)
    assert found.value == pytest.approx(lp, rel=1e-4)
    taken = np.bincount(options.job, found.share, options.jobs)
    assert (taken <= 1.0 + 1e-6).all()
    assert float(found.share @ options.value) == pytest.approx(found.value, rel=1e-4)


def test_a_plan_that_is_the_optimum_stays_without_a_solve() -> None:
    """All jobs fit, each with its best deadline."""
    options, _ = lease_problem(30, 8, 10, 1)
    capacity = np.full((1, 10), 1000, dtype=np.int64)
    origin = Draft(options, capacity)
    for job in range(30):
        assert any(origin.place(row) for row in origin.ranked(job)) or not origin.ranked(job)
    found = LeaseFormulation().solve(options, capacity, origin=origin, time_limit_s=NO_LIMIT_S)
    assert found.passes == 0
    assert found.value == found.bound == pytest.approx(origin.reward)
    np.testing.assert_array_equal(found.row, origin.row)
    np.testing.assert_array_equal(found.leases, origin.taken)
    np.testing.assert_array_equal(np.flatnonzero(found.share), np.sort(origin.row[origin.row >= 0]))
    assert float(found.share @ options.value) == pytest.approx(origin.reward)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_engine_solves_so_often_at_most_and_in_one_thread(most: int) -> None:
    options, capacity = lease_problem(60, 16, 12, 3)
    formulation = LeaseFormulation(gap=0.0, max_passes=most)
    assert formulation.solve(options, capacity, time_limit_s=NO_LIMIT_S).passes == most
    settings = formulation.lease_model.settings
    assert (settings.threads, settings.tolerance) == (1, 1e-7)
    assert LeaseFormulation(gap=1e-3).lease_model.settings.tolerance == pytest.approx(5e-5), "a twentieth of the gap"
    assert LeaseFormulation(gap=1.0).lease_model.settings.tolerance == 1e-2


def test_what_is_dealt_is_a_column_in_its_share() -> None:
    """A job takes an option that the mixture takes, on as many leases as it needs and within its deadline."""
    options, capacity = lease_problem(80, 20, 10, 4)
    found = LeaseFormulation(gap=1e-4, max_passes=100).solve(options, capacity, time_limit_s=NO_LIMIT_S)
    has = np.flatnonzero(found.row >= 0)
    row = found.row[has]
    assert (options.job[row] == has).all()
    assert (found.share[row] > 0.0).all()
    assert (found.leases[has].sum(axis=1) == options.need[row]).all()
    assert not (found.leases[has] & (np.arange(10)[None, :] >= options.last[row][:, None])).any()
    assert not found.leases[found.row < 0].any()
    whole = np.flatnonzero(np.bincount(options.job, found.share, options.jobs) > 1.0 - 1e-6)
    assert np.isin(whole, has).all(), "a job that the mixture takes as a whole gets something"
    assert float(options.value[row].sum()) == pytest.approx(found.value, rel=0.05)


def test_only_jobs_of_large_regret_are_in_the_program() -> None:
    """The last plan is the best of most jobs: nearly all get their best deadline in it."""
    options, capacity = lease_problem(400, 190, 10, 5)
    origin = Draft(options, capacity)
    for job in range(400):
        any(origin.place(row) for row in origin.ranked(job))
    found = LeaseFormulation().solve(options, capacity, origin=origin, time_limit_s=NO_LIMIT_S)
    assert found.passes > 0
    assert 0 < found.edits.requests < 280
    assert found.bound >= found.value >= origin.reward - 1e-6
    assert found.gap <= 5e-3


def test_the_jobs_that_stay_are_together_within_their_share_of_the_gap() -> None:
    """And without the last of those that are freed they would not be."""
    options, capacity = lease_problem(400, 190, 10, 5)
    origin, owner, gap = Draft(options, capacity), LeaseFormulation(), 5e-3
    for job in range(400):
        any(origin.place(row) for row in origin.ranked(job))
    found = owner.solve(options, capacity, origin=origin, time_limit_s=NO_LIMIT_S)
    cycle = _Cycle(owner, options, capacity, FreeTail.of(options, capacity), gap, np.inf)
    price = found.prices.price[:, : cycle.tail.scarce]
    regret = cycle.reduced.best_of_jobs(LeasePrices(price).worth(cycle.reduced), must=True)[1]
    for job in np.flatnonzero(origin.row >= 0).tolist():
        row = origin.row[job]
        paid = options.gpus[row] * (price[options.kind[row]] @ origin.taken[job, : cycle.tail.scarce])
        regret[job] -= options.value[row] - paid
    most = 1.01 * np.sort(regret)[:-100].sum()
    free = cycle.furthest(LeasePrices(price), most / (STAY_SHARE * gap), origin)
    assert FREE_LEAST < free.sum() < ALMOST_ALL * 400
    assert regret[~free].sum() <= most < regret[~free].sum() + regret[free].min()


def test_the_engine_has_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    options, capacity = lease_problem(40, 12, 10, 2)
    formulation, given = LeaseFormulation(), []
    mix = formulation.lease_model.mix
    monkeypatch.setattr(formulation.lease_model, "mix", lambda *what: given.append(what[-1]) or mix(*what))
    formulation.solve(options, capacity, time_limit_s=50.0)
    assert given
    assert all(0.0 < each <= 50.0 for each in given)
