"""Hadar's program and what is read from it, each against a slow twin, through edits (papers/hadar.md, H4 to H10)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hadar_instances import random_round
from scipy.optimize import linprog

from copter import Model, Settings
from copter.runtime.errors import InternalError
from copter_frontends.policies.hadar.formulation import HadarFormulation, bundle_values
from copter_frontends.policies.hadar.job_book import Floats, Ints
from copter_frontends.policies.hadar.round_values import RoundTerms
from copter_frontends.policies.hadar.shim import Draft
from copter_frontends.policies.hadar.utility import AverageJct
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Job

SEEDS = range(1, 24, 2)  # in odd seeds some jobs have GPUs


def terms_of(made: HadarFormulation, now_s: float = 3600.0) -> RoundTerms:
    return RoundTerms(now_s, 360.0, 10.0, 0.05, made.capacity)


def edited(seed: int) -> HadarFormulation:
    """A round after edits of every kind: jobs end, come, are pinned and let go, change their GPUs; capacity moves."""
    made = random_round(seed)
    rng = np.random.default_rng(seed)
    table = {f"new{i}": dict(zip(made.types, rng.uniform(1, 9, len(made.types)), strict=True)) for i in range(3)}
    for name in table:
        made.add_jobs([Job(name, "any", requested_gpus=1)], ThroughputTable(table, dict.fromkeys(table, 1e4)))
    for number, job in enumerate(list(made.book.jobs)):
        held = made.book.held[made.book.row(job.id)].copy()
        way = int(rng.integers(0, 5))
        if way == 0 and number % 2:
            made.remove_jobs([job.id])
        elif way == 1 and held.any():
            made.hold(job.id, np.zeros_like(held))
        elif way == 2 and held.any():
            made.pin(job.id, True)
        elif way == 3 and held.any():
            made.pin(job.id, True)
            made.refresh(terms_of(made))
            made.pin(job.id, False)
    made.change_capacity(made.types[0], 3)
    made.change_capacity(made.types[0], -1)
    made.refresh(terms_of(made, 3960.0))
    return made


def own_apart(made: HadarFormulation, row: int) -> bool:
    """Whether what a job has is none of the columns of its size."""
    held = made.book.held[row]
    return bool(held.any()) and not (held == made.book.gpus[row]).any()


def optimum(made: HadarFormulation, posted: Floats | None = None) -> float:
    """H7 written down job by job, solved by HiGHS; with GPUs that are held back at posted prices (H10)."""
    values, book, kinds = made.values, made.book, len(made.types)
    assert values is not None
    columns: list[tuple[float, Floats, int, float]] = []  # worth, GPUs, job, most
    for row in range(len(book)):
        held, pinned = book.held[row], bool(book.pinned[row])
        for q in range(kinds):
            use = np.where(np.arange(kinds) == q, float(book.gpus[row]), 0.0)
            kept = bool((use == held).all())
            columns.append((float(values.column[row, q]), use, row, 1.0 if kept or not pinned else 0.0))
        if own_apart(made, row):
            columns.append((max(float(values.own[row]), 0.0), held.astype(float), row, 1.0))
    n, least = len(book), np.zeros(len(book))
    least[book.pinned] = 1.0
    if posted is not None:
        for q, prices in enumerate(posted):
            width = made.capacity[q] / len(prices)
            columns += [(float(p) * width, np.where(np.arange(kinds) == q, width, 0.0), -1, 1.0) for p in prices]
    use = np.array([each[1] for each in columns]).T
    once = np.array([[float(each[2] == row) for each in columns] for row in range(n)])
    found = linprog(
        [-each[0] for each in columns],
        A_ub=np.vstack([use, once, -once]),
        b_ub=np.concatenate([made.capacity.astype(float), np.ones(n), -least]),
        bounds=[(0.0, each[3]) for each in columns],
    )
    assert found.status == 0
    return float(-found.fun)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_program_after_edits_is_that_of_the_page(seed: int) -> None:
    made = edited(seed)
    best = optimum(made)
    solution = made.solve()
    assert solution.objective / made.scale == pytest.approx(best, rel=2e-6, abs=1e-9)
    assert made.bound_of(solution) == pytest.approx(best, rel=4e-6, abs=1e-9)
    assert sorted(map(str, made.model.requests)) == sorted(job.id for job in made.book.jobs)
    for row, job in enumerate(made.book.jobs):
        expected = (made.values.column[row] * made.scale).tolist()  # type: ignore[union-attr]
        if own_apart(made, row):
            expected.append(max(float(made.values.own[row]) * made.scale, 0.0))  # type: ignore[union-attr]
        assert made.model.cost(job.id).tolist() == expected
        kept = len(made.types) if own_apart(made, row) else int(made.book.held[row].argmax())
        assert made.model.fixed(job.id) == (kept if made.book.pinned[row] else None)
    assert made.model.to_linear_program().integrality.all()
    assert (made.prices(solution) >= 0).all()
    np.testing.assert_allclose(
        made.prices(solution) @ made.capacity, best - surplus(made, solution), rtol=1e-4, atol=1e-7
    )


def surplus(made: HadarFormulation, solution: Any) -> float:
    """What jobs are worth beyond their GPUs at the LP's prices: the rest of the dual's value."""
    bound, _ = made.dual_value(made.prices(solution))
    return bound - float(made.prices(solution) @ made.capacity)


@pytest.mark.parametrize("seed", [0, 1, 4, 5])
@pytest.mark.parametrize("segments", [1, 3])
def test_gpus_are_held_back_at_posted_prices(seed: int, segments: int) -> None:
    made = edited(seed)
    rng = np.random.default_rng(seed)
    before = optimum(made)
    dear = float(made.values.column.max()) / 4.0  # type: ignore[union-attr]
    posted = np.sort(rng.uniform(0.0, dear, (len(made.types), segments)))[:, ::-1].copy()
    made.post_prices(posted)
    solution = made.solve()
    assert solution.objective / made.scale == pytest.approx(optimum(made, posted), rel=2e-6, abs=1e-9)
    assert made.bound_of(solution) < before
    used: Ints = made.capacity // 2
    assert made.bound_of(solution) == pytest.approx(solution.bound / made.scale - cost_of(made, posted, made.capacity))
    assert made.posted_cost(used) == pytest.approx(cost_of(made, posted, used))
    made.post_prices(None)
    assert made.solve().objective / made.scale == pytest.approx(before, rel=2e-6, abs=1e-9)
    assert made.posted_cost(used) == 0.0
    assert all(isinstance(request, str) for request in made.model.requests)


def cost_of(made: HadarFormulation, posted: Floats, used: Ints) -> float:
    """Posted cost in steps of which a GPU has 3,000."""
    total = 0.0
    for q, prices in enumerate(posted):
        if made.capacity[q] == 0:
            continue
        middles = (np.arange(3000 * int(used[q])) + 0.5) / 3000.0
        segment = np.minimum((middles / (made.capacity[q] / len(prices))).astype(int), len(prices) - 1)
        total += float(prices[segment].sum()) / 3000.0
    return total


@pytest.mark.parametrize("seed", SEEDS)
def test_any_prices_bound_the_plans_worth(seed: int) -> None:
    made = edited(seed)
    values, book, kinds = made.values, made.book, len(made.types)
    assert values is not None
    best = optimum(made)
    rng = np.random.default_rng(seed)
    for prices in (np.zeros(kinds), rng.uniform(0.0, float(values.column.max()) / 8.0, kinds)):
        bound, wanted = made.dual_value(prices)
        expected, gpus = float(made.capacity @ prices), np.zeros(kinds)
        for row in range(len(book)):
            ways = [(float(values.column[row, q] - book.gpus[row] * prices[q]), q) for q in range(kinds)]
            if book.held[row].any():
                own = (float(values.own[row] - book.held[row] @ prices), kinds)
                ways = [own] if book.pinned[row] else [*ways, own]
            gain, q = max(ways, key=lambda way: way[0])
            if gain > 0 or book.pinned[row]:
                expected += gain
                gpus += book.held[row] if q == kinds else np.where(np.arange(kinds) == q, book.gpus[row], 0)
        assert bound == pytest.approx(expected)
        assert bound >= best * (1 - 1e-9)
        if len(set(values.column.ravel().tolist())) == values.column.size:
            np.testing.assert_allclose(wanted, gpus)
    assert (
        best * (1 - 1e-6) <= made.least_dual_value(rng.uniform(0.0, 1e-2, kinds)) <= made.dual_value(np.zeros(kinds))[0]
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_bound_is_sought_by_making_dearer_what_is_wanted_too_much(seed: int) -> None:
    made = random_round(seed)
    start = np.random.default_rng(seed).uniform(-1e-3, 1e-2, len(made.types))
    prices, found = np.maximum(start, 0.0), []
    for step in range(5):
        bound, wanted = made.dual_value(prices)
        found.append(bound)
        over = np.array([w / c - 1.0 if c else w - 1.0 for w, c in zip(wanted, made.capacity, strict=True)])
        prices = prices * np.exp(np.minimum(np.maximum(over, -1.0), 1.0) * 4.0 / (4.0 + step))
    found.append(made.dual_value(np.zeros(len(prices)))[0])
    assert made.least_dual_value(start, 5) == pytest.approx(min(found))
    assert made.least_dual_value(start) <= min(found) * (1 + 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_bundles_are_worth_what_their_slowest_type_makes_of_them(seed: int) -> None:
    made = random_round(seed)
    values, book, kinds = made.values, made.book, len(made.types)
    assert values is not None
    rng = np.random.default_rng(seed)
    bundles = np.zeros((len(book), kinds), dtype=np.int64)
    expected = np.zeros(len(book))
    for row in range(len(book)):
        way = int(rng.integers(0, 4))
        if way == 1:
            bundles[row, rng.integers(0, kinds)] = book.gpus[row]
        elif way == 2:
            bundles[row] = book.held[row]
        elif way == 3:
            bundles[row] = rng.multinomial(int(book.gpus[row]), np.full(kinds, 1 / kinds))
        used = np.flatnonzero(bundles[row])
        if len(used) == 0:
            continue
        if (bundles[row] == book.held[row]).all():
            expected[row] = values.own[row]
            continue
        slowest = min(used.tolist(), key=lambda q: values.rate[row, q])
        expected[row] = max(float((values.pure if len(used) == 1 else values.mixed)[row, slowest]), -1.0)
    np.testing.assert_array_equal(bundle_values(book, values, bundles), expected)
    assert not bundle_values(book, values, np.zeros_like(bundles)).any()


def test_many_jobs_are_told_their_gpus_as_each_by_itself() -> None:
    one, many = random_round(5), random_round(5)
    rng = np.random.default_rng(5)
    rows = np.arange(0, len(one.book), 2)
    held = np.zeros((len(rows), len(one.types)), dtype=np.int64)
    held[:, 0] = np.where(rng.random(len(rows)) < 0.5, one.book.gpus[rows], 0)
    spread = rng.random(len(rows)) < 0.5
    many.hold_many(rows, held, spread)
    for row, bundle, wide in zip(rows.tolist(), held, spread.tolist(), strict=True):
        one.hold(one.book.jobs[row].id, bundle, wide)
    assert one._changed == many._changed
    for each in (one, many):
        each.refresh(terms_of(each))
        assert not each._changed
    np.testing.assert_array_equal(one.book.held, many.book.held)
    np.testing.assert_array_equal(one.book.spread, many.book.spread)
    assert one.solve().objective == pytest.approx(many.solve().objective, rel=2e-6)


def test_only_what_changed_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    made, sent = random_round(0), []
    update_costs = Model.update_costs

    def noted(model: Model, requests: Any, costs: Any) -> None:
        sent.extend(requests)
        update_costs(model, requests, costs)

    monkeypatch.setattr(Model, "update_costs", noted)
    made.refresh(terms_of(made))
    sent.clear()
    made.hold("j0", made.book.held[0].copy())
    made.refresh(terms_of(made))
    assert sent == []
    made.update_job("j2", progress=0.5)
    made.refresh(terms_of(made))
    assert sent == ["j2"]
    made.refresh(terms_of(made, 3960.0))
    assert len(sent) > 2


def test_a_job_with_a_mixture_may_end_and_come_again() -> None:
    made = random_round(1)
    row = next(row for row in range(len(made.book)) if own_apart(made, row))
    job, gpus, rates = made.book.jobs[row], int(made.book.gpus[row]), made.book.rates[row].copy()
    bundle = made.book.held[row].copy()
    made.hold(job.id, bundle * 0)
    made.remove_jobs([job.id])
    made.refresh(terms_of(made))
    assert job.id not in made.model.requests
    made.book.add(job, gpus, 1e4, rates)
    made.refresh(terms_of(made))
    assert len(made.model.cost(job.id)) == len(made.types)
    made.hold(job.id, bundle)
    made.refresh(terms_of(made))
    assert len(made.model.cost(job.id)) == len(made.types) + 1
    other = np.roll(bundle, 1)
    made.hold(job.id, other)
    made.refresh(terms_of(made))
    assert made.solve().objective / made.scale == pytest.approx(optimum(made), rel=2e-6)


def test_values_are_scaled_by_a_power_of_two_and_only_where_they_have_moved_far() -> None:
    unit = [1.0]
    made = HadarFormulation(("a",), np.array([8]), lambda t, jobs: unit[0] / t, Settings(threads=1))  # type: ignore[arg-type]
    table = ThroughputTable({"j": {"a": 5.0}}, {"j": 1e4})
    made.add_jobs([Job("j", "any", requested_gpus=2)], table)
    for factor, moves in ((1.0, True), (8.0, False), (64.0, True), (8.0, False), (2.0, True), (1e-9, True)):
        unit[0], before = factor, made.scale
        largest = float(made.refresh(terms_of(made)).column.max())
        assert (made.scale != before) == moves
        assert np.log2(made.scale) == round(np.log2(made.scale))
        assert 1 / 16 <= largest * made.scale <= 16
        if moves:
            assert 0.7 < largest * made.scale < 1.42
        assert made.model.cost("j").tolist() == [largest * made.scale]


def test_nothing_is_valued_before_the_first_round() -> None:
    made = HadarFormulation(("a",), np.array([8]), AverageJct(), Settings(threads=1))
    with pytest.raises(InternalError):
        made.dual_value(np.zeros(1))
    with pytest.raises(RuntimeError):
        Draft(made, np.zeros(1))
    made.refresh(terms_of(made))
    shares = made.shares(made.solve())
    assert (shares.x.shape, shares.own.shape) == ((0, 1), (0,))
