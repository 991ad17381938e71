"""Steps of Hadar's shim from shares to a whole plan, each against a slow twin (docs/papers/hadar.md, H11 to H14)."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hadar_instances import by_highs, random_round, threshold_form

from copter_frontends.policies.hadar.formulation import HadarFormulation, Shares
from copter_frontends.policies.hadar.job_book import Floats, Ints
from copter_frontends.policies.hadar.shim import Draft, HadarShim

SEEDS = range(1, 24, 2)  # in odd seeds some jobs have GPUs


def scarce(seed: int) -> tuple[HadarFormulation, Draft]:
    """A round in which a third of the jobs that have GPUs are pinned, and an empty draft with less than all GPUs."""
    made = random_round(seed)
    rng = np.random.default_rng(seed)
    for row in np.flatnonzero(made.book.held.any(axis=1))[::3].tolist():
        made.book.pinned[row] = True
    draft = Draft(made, rng.uniform(0.0, 1e-3, len(made.types)))
    draft.left = np.maximum(
        draft.left - rng.integers(0, 5, len(draft.left)), made.book.held[made.book.pinned].sum(axis=0)
    )
    return made, draft


def any_shares(made: HadarFormulation, seed: int) -> Shares:
    """Shares of every kind: none, a whole type, what a job has, and splits of several; no two totals are alike."""
    rng, book = np.random.default_rng(seed + 100), made.book
    x, own = np.zeros((len(book), len(made.types))), np.zeros(len(book))
    for row in range(len(book)):
        kinds = np.flatnonzero(book.rates[row] > 0)
        way = int(rng.integers(0, 5))
        if way == 1:
            x[row, rng.choice(kinds)] = 1.0
        elif way == 2 and book.held[row].any():
            own[row] = 1.0
        elif way >= 3:
            x[row, kinds] = rng.dirichlet(np.ones(len(kinds) + 1))[:-1] * rng.uniform(0.3, 0.9)
            own[row] = rng.uniform(0.0, 0.1) if book.held[row].any() else 0.0
    return Shares(x, own)


def best_of(draft: Draft, shares: Shares, row: int) -> float:
    """The most that a type of which a job was given a share is worth to it."""
    return max((float(draft.values.column[row, kind]) for kind in np.flatnonzero(shares.x[row])), default=0.0)


def rounded(draft: Draft, shares: Shares) -> int:
    """Twin of the rounding: pinned jobs, whole shares in turn, the rest by total, then by worth, the larger first."""
    book = draft.book
    for row in range(len(book)):
        if book.pinned[row]:
            draft.take(row, book.held[row])
    for row in range(len(book)):
        if not book.pinned[row] and shares.own[row] > 0.99:
            draft.take(row, book.held[row])
    for row in range(len(book)):
        for kind in range(len(draft.left)):
            if draft.idle[row] and not book.pinned[row] and shares.x[row, kind] > 0.99:
                draft.take(row, np.where(np.arange(len(draft.left)) == kind, book.gpus[row], 0))
    split = [
        (-float(shares.x[row].sum() + shares.own[row]), -best_of(draft, shares, row), row)
        for row in range(len(book))
        if draft.idle[row] and not book.pinned[row] and shares.x[row].sum() + shares.own[row] > 0
    ]
    for _, _, row in sorted(split):
        found = draft._best_bundle(row)
        if found is not None:
            draft.take(row, found[0])
    return len(split)


@pytest.mark.parametrize("seed", SEEDS)
def test_rounding_takes_pinned_jobs_then_whole_shares_then_split_ones_by_total(seed: int) -> None:
    made, draft = scarce(seed)
    _, slow = scarce(seed)
    shares = any_shares(made, seed)
    assert draft.round(shares) == rounded(slow, shares)
    np.testing.assert_array_equal(draft.bundles, slow.bundles)
    np.testing.assert_array_equal(draft.left, slow.left)
    np.testing.assert_array_equal(draft.idle, ~draft.bundles.any(axis=1))
    assert (draft.left >= 0).all()


def test_of_split_jobs_with_equal_totals_the_one_worth_more_on_what_it_was_given_goes_first() -> None:
    made = random_round(2)
    draft = Draft(made, np.zeros(len(made.types)))
    kind = int(made.capacity.argmax())
    rows = [row for row in range(len(made.book)) if draft.values.column[row, kind] > 0][:3]
    x = np.zeros((len(made.book), len(made.types)))
    x[rows, kind] = 0.5
    draft.left[:] = 0
    draft.left[kind] = made.book.gpus[rows].max()
    draft.round(Shares(x, np.zeros(len(made.book))))
    first = max(rows, key=lambda row: draft.values.column[row, kind])
    assert len({float(draft.values.column[row, kind]) for row in rows}) == 3
    assert draft.bundles[first, kind] == made.book.gpus[first]


def test_only_the_rows_that_are_named_are_rounded_and_pinned_ones() -> None:
    made, draft = scarce(3)
    shares = any_shares(made, 3)
    some = np.flatnonzero(np.arange(len(made.book)) % 2)
    draft.round(shares, some)
    given = np.flatnonzero(~draft.idle)
    assert len(given)
    assert all(row % 2 or made.book.pinned[row] for row in given.tolist())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("room", [0, 100])
def test_what_jobs_have_is_kept_as_far_as_it_is_there_and_worth_anything(seed: int, room: int) -> None:
    made, draft = scarce(seed)
    held = np.flatnonzero(made.book.held.any(axis=1))
    draft.values.own[held[:1]] = 0.0  # worth nothing any more
    draft.left += room
    left: Ints = draft.left.copy()
    expected = np.zeros_like(draft.bundles)
    for pinned in (True, False):
        for row in held.tolist():
            wants = made.book.pinned[row] == pinned and (pinned or draft.values.own[row] > 0)
            if wants and (made.book.held[row] <= left).all():
                expected[row] = made.book.held[row]
                left -= made.book.held[row]
    draft.keep()
    np.testing.assert_array_equal(draft.bundles, expected)
    np.testing.assert_array_equal(draft.left, left)
    np.testing.assert_array_equal(draft.idle, ~expected.any(axis=1))


def filled(draft: Draft) -> None:
    """Twin of the filling: passes over the idle jobs, most worth per GPU first; one whose offer has gone waits."""
    book = draft.book
    while True:
        offers: list[tuple[float, int, float, int]] = []
        for row in range(len(book)):
            if draft.idle[row] and not book.pinned[row]:
                (offer,), (kind,) = draft._offers(np.array([row]))
                if offer > 0:
                    offers.append((-offer / float(book.gpus[row]), row, offer, int(kind)))
        progress = False
        for _, row, worth, kind in sorted(offers):
            if kind >= 0 and draft.left[kind] < book.gpus[row]:
                continue  # its type has gone
            found = draft._best_bundle(row)
            if found is not None and not (progress and found[1] < worth * (1 - 1e-9)):
                progress |= draft.take(row, found[0])
        if not progress:
            return


@pytest.mark.parametrize("seed", SEEDS)
def test_idle_jobs_are_filled_in_by_worth_per_gpu(seed: int) -> None:
    made, draft = scarce(seed)
    _, slow = scarce(seed)
    for each in (draft, slow):
        for row in np.flatnonzero(made.book.pinned)[:1].tolist():
            each.take(row, made.book.held[row])
    draft.fill()
    filled(slow)
    np.testing.assert_array_equal(draft.bundles, slow.bundles)
    assert not draft.bundles[np.flatnonzero(made.book.pinned)[1:]].any()
    assert all(draft._best_bundle(row) is None for row in np.flatnonzero(draft.idle & ~made.book.pinned).tolist())


def test_what_was_given_back_is_not_offered_again_and_is_left_for_others() -> None:
    made = random_round(4)
    draft = Draft(made, np.zeros(len(made.types)))
    offered = []
    while (found := draft._best_bundle(0)) is not None:
        offered.append(found)
        assert draft.take(0, found[0])
        assert not draft.idle[0]
        draft.give_back(0)
        assert draft.idle[0]
        np.testing.assert_array_equal(draft.left, made.capacity)
    assert len(offered) > 1
    assert len({bundle.tobytes() for bundle, _ in offered}) == len(offered)
    worths = [worth for _, worth in offered]
    assert worths == sorted(worths, reverse=True)
    assert not draft.take(0, made.capacity + 1)
    assert not draft.take(0, np.zeros(len(made.types), dtype=np.int64))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plan_is_the_better_of_the_rounded_and_the_kept_one(seed: int) -> None:
    """With an LP solution that is not one: nothing for anyone, then what every job likes best."""
    made = random_round(seed)
    prices: Floats = np.zeros(len(made.types))
    none = Shares(np.zeros((len(made.book), len(made.types))), np.zeros(len(made.book)))
    favourite = Shares(np.zeros_like(none.x), none.own)
    favourite.x[np.arange(len(made.book)), made.values.column.argmax(axis=1)] = 1.0  # type: ignore[union-attr]
    for shares in (none, favourite):
        here, kept = Draft(made, prices), Draft(made, prices)
        rest = here.round(shares)
        here.fill()
        kept.keep()
        expected = here.value()
        if kept.value() > expected:
            kept.fill()
            expected = kept.value()
        found, split = HadarShim(core_gap=np.inf)(made, shares, prices, 1e9 * expected, 10.0)
        assert found.value() == expected
        assert split == rest
        better, _ = HadarShim()(made, shares, prices, 2.0 * expected, 10.0)
        assert better.value() >= expected


def test_with_enough_jobs_and_nodes_the_core_is_exact() -> None:
    """H13, against HiGHS on the whole program."""
    better = 0
    for seed in range(14):
        made = random_round(seed)
        form, solution = threshold_form(made), made.solve()
        if form.whole == 0:
            continue
        terms = made.shares(solution), made.prices(solution), made.bound_of(solution), 10.0
        plain, _ = HadarShim(core_gap=np.inf)(made, *terms)
        exact, _ = HadarShim(core_gap=0.0, core_nodes=5000, core_gap_goal=1e-7)(made, *terms)
        best = by_highs(form.linear_program(), whole=True).fun
        assert exact.value() == pytest.approx(best, rel=1e-6)
        better += plain.value() < best * (1 - 1e-6)
    assert better >= 2


def test_the_knobs_are_those_of_the_page() -> None:
    """H13: 0.4% below the bound, up to 96 jobs, mixtures for all where they are at most 24."""
    knobs = {each.name: each.default for each in fields(HadarShim)}
    assert (knobs["core_gap"], knobs["core_jobs"], knobs["mixing_jobs"]) == (0.004, 96, 24)
    assert (knobs["core_nodes"], knobs["core_gap_goal"]) == (64, 1e-4)
