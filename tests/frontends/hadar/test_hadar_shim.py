"""What a draft of a round's plan offers, leads by and takes, each against a slow twin (papers/hadar.md, H11 to H14)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hadar_instances import random_round

from copter_frontends.policies.hadar.formulation import HadarFormulation
from copter_frontends.policies.hadar.shim import Draft, HadarShim

SEEDS = range(12)


def begun(seed: int) -> Draft:
    """A draft of a random round in which some jobs have taken what they have, or nothing is left of a type."""
    made = random_round(seed)
    draft = Draft(made, made.prices(made.solve()))
    rng = np.random.default_rng(seed)
    for row in range(0, len(made.book), 3):
        draft.take(row, made.book.held[row])
    draft.left = np.minimum(draft.left, rng.integers(0, 9, len(draft.left)))
    return draft


def bundles_left(draft: Draft, row: int) -> list[tuple[np.ndarray, float]]:
    """Every bundle for a job from what is left, with its worth."""
    made, gpus, rate = draft.formulation, int(draft.book.gpus[row]), draft.values.rate[row]
    found = []
    for each in product(*(range(min(gpus, int(n)) + 1) for n in draft.left)):
        bundle = np.array(each)
        used = np.flatnonzero(bundle)
        if bundle.sum() != gpus or (rate[used] <= 0).any():
            continue
        slowest = used[np.argmin(rate[used])]
        worth = (draft.values.pure if len(used) == 1 else draft.values.mixed)[row, slowest]
        if np.array_equal(bundle, made.book.held[row]):
            worth = draft.values.own[row]
        found.append((bundle, float(worth)))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_offers_and_best_bundles_are_those_of_enumeration(seed: int) -> None:
    draft = begun(seed)
    rows = np.arange(len(draft.book))
    offer, kind = draft._offers(rows)
    for row in rows.tolist():
        ways = bundles_left(draft, row)
        best = max((worth for _, worth in ways), default=-1.0)
        found = draft._best_bundle(row)
        if best <= 0:
            assert offer[row] <= 0
            assert found is None
            continue
        assert offer[row] == pytest.approx(best)
        assert found is not None
        assert found[1] == pytest.approx(best)
        assert any(np.array_equal(found[0], bundle) for bundle, _ in ways)
        alone = [worth for bundle, worth in ways if (bundle > 0).sum() == 1 and worth == best]
        if kind[row] >= 0:
            assert alone
            assert draft.left[kind[row]] >= draft.book.gpus[row]


@pytest.mark.parametrize("seed", SEEDS)
def test_regret_is_what_the_best_option_leads_the_next_by(seed: int) -> None:
    made = random_round(seed)
    solution = made.solve()
    shares, prices = made.shares(solution), made.prices(solution)
    draft = Draft(made, prices)
    regret = draft.regret(shares, prices)
    split = 0
    for row in range(len(made.book)):
        held = made.book.held[row]
        options = [0.0, *(draft.values.column[row] - made.book.gpus[row] * prices).tolist()]
        if draft.values.own[row] > 0 and not (held == made.book.gpus[row]).any():
            options.append(float(draft.values.own[row] - held @ prices))
        first, second = sorted(options)[-1:-3:-1]
        largest = max(*shares.x[row].tolist(), float(shares.own[row]))
        torn = 1e-6 < largest < 1 - 1e-6
        split += torn
        assert regret[row] == pytest.approx(0.0 if torn else first - second, abs=1e-12 + 1e-9 * abs(first))
    assert split <= len(made.types)


def test_jobs_that_are_split_are_never_far_from_the_core() -> None:
    torn = 0
    for seed in SEEDS:
        made = random_round(seed)
        solution = made.solve()
        shares = made.shares(solution)
        draft = Draft(made, made.prices(solution))
        largest = np.maximum(shares.x.max(axis=1), shares.own)
        rows = np.flatnonzero((largest > 1e-3) & (largest < 1 - 1e-3))
        assert (draft.regret(shares, draft.prices)[rows] == 0).all()
        torn += len(rows)
    assert torn > 3


def in_unit(seed: int, unit: float) -> tuple[HadarFormulation, Draft]:
    """A round's plan with all its values in another unit."""
    made = random_round(seed)
    assert made.values is not None
    for each in (made.values.worth, made.values.pure, made.values.mixed, made.values.own, made.values.column):
        each *= unit
    solution = made.solve()
    bound = made.bound_of(solution) * unit
    prices = made.prices(solution) * unit
    return made, HadarShim(core_gap=0.0)(made, made.shares(solution), prices, bound, 10.0)[0]


@pytest.mark.parametrize("seed", range(1, 12, 2))
def test_plans_do_not_depend_on_the_unit_of_worth(seed: int) -> None:
    _, here = in_unit(seed, 1.0)
    _, there = in_unit(seed, 2.0**-40)
    np.testing.assert_array_equal(here.bundles, there.bundles)
