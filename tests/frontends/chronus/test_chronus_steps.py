"""The lease LP's steps: where the descent begins, which prices are tried, when it stops, what it keeps and says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chronus_instances import NO_LIMIT_S, highs_optimum, lease_problem
from test_chronus_columns import by_hand, columns, cycle_of, put

from copter import Settings
from copter_frontends.policies.chronus import formulation
from copter_frontends.policies.chronus.compact import per_deadline_form
from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.formulation import LeaseFormulation, _Cycle
from copter_frontends.policies.chronus.lease_model import Mixture
from copter_frontends.policies.chronus.options import Floats, Ints, Options
from copter_frontends.policies.chronus.pricing import LeasePrices
from copter_frontends.policies.chronus.smoothing import SmoothedDual


def one_gpu(jobs: int = 2) -> tuple[Options, Ints]:
    """Jobs of 5, 6, 7 ... for the only GPU of the only lease."""
    rows = [(job, 0, 0, 1, 1, 1, 0, 5.0 + job) for job in range(jobs)]
    return by_hand(*rows, must=(False,) * jobs), np.array([[1]])


def solved(options: Options, capacity: Ints, *what: Any, owner: LeaseFormulation | None = None, **more: Any) -> Any:
    return (owner or LeaseFormulation()).solve(options, capacity, *what, time_limit_s=NO_LIMIT_S, **more)


# Knobs ----------------------------------------------------------------------------------------------------------------


def test_what_is_not_said_is_as_the_page_has_it() -> None:
    """A gap of 0.5%, 50 evaluations of the dual, four columns dealt; half of the best prices in the next."""
    owner = LeaseFormulation()
    assert (owner.gap, owner.max_passes, owner.evaluations, owner.deals, owner.smoothing) == (0.005, 40, 50, 4, 0.5)
    settings = Settings(tolerance=1e-3, threads=2)
    assert LeaseFormulation(settings=settings).lease_model.settings is settings
    for gap, tolerance in ((1e-3, 5e-5), (1e-5, 5e-7), (0.0, 1e-7), (1e-2, 5e-4)):
        own = LeaseFormulation(gap=gap).lease_model.settings
        assert (own.tolerance, own.absolute_tolerance) == (pytest.approx(tolerance), pytest.approx(tolerance))
        assert own.threads == 1


@pytest.mark.parametrize(("limit_s", "given_s"), [(None, 10.0), (3.0, 3.0)])
def test_a_solve_has_ten_seconds_where_nothing_is_said(
    limit_s: float | None, given_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that stands still; the first lease has the number 0 then, and jobs theirs."""
    monkeypatch.setattr(formulation, "time", SimpleNamespace(perf_counter=lambda: 100.0))
    owner, given = LeaseFormulation(), []
    mix = owner.lease_model.mix
    monkeypatch.setattr(owner.lease_model, "mix", lambda *what: given.append(what[3]) or mix(*what))
    if limit_s is None:
        owner.solve(*one_gpu())
    else:
        owner.solve(*one_gpu(), time_limit_s=limit_s)
    assert given
    assert set(given) == {given_s}
    assert list(owner.lease_model.rows) == [(0, 0, 1)]
    assert (owner._pool.names, owner._pool.first) == ([0, 1], 0)


def test_no_pass_begins_after_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes 4 of 10 seconds: the third ends after it."""
    clock = [100.0]
    monkeypatch.setattr(formulation, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    owner = LeaseFormulation(gap=0.0)
    mix, given = owner.lease_model.mix, list[float]()

    def slow(*what: Any) -> Any:
        given.append(what[3])
        clock[0] += 4.0
        return mix(*what)

    monkeypatch.setattr(owner.lease_model, "mix", slow)
    options, capacity = lease_problem(60, 16, 12, 3)
    assert owner.solve(options, capacity).passes == 3
    assert given == [10.0, 6.0, 2.0]


def test_the_gap_that_is_asked_for_goes_before_the_formulation_s_own() -> None:
    options, capacity = lease_problem(60, 16, 12, 3)
    owner = LeaseFormulation(gap=1e-5, max_passes=100)
    near = solved(options, capacity, owner=LeaseFormulation(gap=1e-5, max_passes=100))
    far = solved(options, capacity, owner=owner, gap=0.2)
    assert near.gap <= 1e-5
    assert far.gap <= 0.2
    assert far.passes < near.passes


def test_resources_and_requests_have_the_numbers_and_names_that_are_given() -> None:
    owner = LeaseFormulation()
    solved(*one_gpu(), owner=owner, names=["a", "b"], first=7)
    assert list(owner.lease_model.rows) == [(0, 7, 8)]
    assert (owner._pool.names, owner._pool.first) == (["a", "b"], 7)


# Descent --------------------------------------------------------------------------------------------------------------


class NotedDual(SmoothedDual):
    """The smoothed dual, with a note of how it is used."""

    notes: list[tuple[Any, ...]] = []  # noqa: RUF012

    def __init__(self, options: Options, capacity: Ints, soft_price: float, soft_worth: float) -> None:
        self.notes.append(("soft", soft_price, soft_worth))
        super().__init__(options, capacity, soft_price, soft_worth)

    def descend(self, start: Floats, evaluations: int) -> Floats:
        result = super().descend(start, evaluations)
        self.notes.append(("from", start.tolist(), evaluations, result.tolist()))
        return result

    def deal(self, mixed: Any, order: Ints, offset: float) -> Any:
        self.notes.append(("deal", order.tolist(), offset))
        return super().deal(mixed, order, offset)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    monkeypatch.setattr(NotedDual, "notes", [])
    monkeypatch.setattr(formulation, "SmoothedDual", NotedDual)
    return NotedDual.notes


def three_jobs() -> tuple[Options, Ints]:
    """Best rewards of 12, 4 and 4: 20 in all, so that each of 4 GPU-leases is worth 5 on average.

    Of a GPU and a lease they are worth 6, 2 and 2, and the third is larger than the second.
    """
    options = by_hand(
        (0, 0, 0, 1, 2, 2, 0, 12.0),
        (0, 0, 0, 1, 2, 2, 1, 3.0),
        (1, 0, 0, 1, 2, 2, 0, 4.0),
        (2, 0, 0, 2, 1, 2, 0, 4.0),
        must=(False,) * 3,
    )
    return options, np.array([[2, 2]])


def test_a_cold_cycle_descends_twice_and_deals_four_columns_a_job(notes: list[tuple[Any, ...]]) -> None:
    """It is soft by 10%, then 2%, of a GPU-lease's worth, and 3% of the best reward; it begins at half that worth."""
    solved(*three_jobs())
    soft = [note[1:] for note in notes if note[0] == "soft"]
    assert soft == [pytest.approx((0.5, 0.36)), pytest.approx((0.1, 0.36))]
    first, second = (note[1:] for note in notes if note[0] == "from")
    assert first[:2] == ([[2.5, 2.5]], 50)
    assert second[:2] == (first[2], 50), "from where the first has ended"
    assert [note[1:] for note in notes if note[0] == "deal"] == [([2, 1, 0], at / 4) for at in range(4)]


def test_with_the_last_prices_and_no_columns_it_descends_once_from_there(notes: list[tuple[Any, ...]]) -> None:
    options, capacity = three_jobs()
    solved(options, capacity, np.array([[2.5, 1.5]]))
    assert [note for note in notes if note[0] == "soft"] == [("soft", pytest.approx(0.1), pytest.approx(0.36))]
    assert [note[1:3] for note in notes if note[0] == "from"] == [([[2.5, 1.5]], 50)]


def test_it_descends_again_without_the_last_prices_and_not_with_prices_and_columns(
    notes: list[tuple[Any, ...]],
) -> None:
    owner = LeaseFormulation(evaluations=20, deals=2)
    for start, descents in ((None, 2), (np.array([[2.5, 1.5]]), 0), (None, 2)):
        notes.clear()
        solved(*three_jobs(), start, owner=owner)
        assert [note[2] for note in notes if note[0] == "from"] == [20] * descents
        assert [note[2] for note in notes if note[0] == "deal"] == [0.0, 0.5][:descents]


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_gpu_lease_s_worth_is_of_one_where_there_are_none(gpus: int, notes: list[tuple[Any, ...]]) -> None:
    options, _ = three_jobs()
    solved(options, np.array([[gpus, 0]]))
    assert notes[1][1] == [[10.0, 10.0]]


def test_what_is_dealt_are_columns_that_the_engine_has_at_once() -> None:
    """One pass does: each of two jobs has the lease that the other does not need."""
    options = by_hand((0, 0, 0, 1, 1, 1, 0, 9.0), (1, 0, 0, 1, 1, 1, 0, 8.0), must=(False, False))
    cycle = cycle_of(options, np.array([[1]]), gap=0.005)
    best, bound = cycle.descend(LeasePrices(np.zeros((1, 1))), 17.0, cold=True)
    assert columns(cycle)[0] == (0, [0])
    assert 8.0 <= best.price[0, 0] <= 9.0
    assert bound == pytest.approx(9.0)


def test_prices_to_begin_with_that_are_better_than_where_the_descent_ends_stay() -> None:
    """Of two jobs of 6 for one GPU the bound is 12 - p up to a price p of 6, and p from there on."""
    options, capacity = by_hand(*[(job, 0, 0, 1, 1, 1, 0, 6.0) for job in range(2)], must=(False,) * 2), np.array([[1]])
    found = solved(options, capacity, np.array([[6.0]]))
    assert (found.bound, found.prices.price.tolist()) == (6.0, [[6.0]])
    assert found.value == pytest.approx(6.0, abs=1e-3)
    far = cycle_of(options, capacity).descend(LeasePrices(np.array([[100.0]])), 100.0, cold=False)
    assert far[1] == LeasePrices(far[0].price).bound(options, capacity) < 8.0, "and worse ones go"


# Passes ---------------------------------------------------------------------------------------------------------------


class Told(_Cycle):
    """A cycle that is told the mixtures of its passes and the bounds at the prices that it tries."""

    def tell(self, mixtures: list[tuple[float, float]], bounds: list[float], freed: list[list[bool]]) -> None:
        self.mixtures, self.bounds, self.freed = iter(mixtures), iter(bounds), iter(freed)
        self.tried: list[float] = []
        self.asked: list[float] = []
        self.frees: list[list[bool]] = []

    def price(self, prices: LeasePrices) -> float:
        self.tried.append(float(prices.price[0, 0]))
        return next(self.bounds)

    def mix(self, origin: Draft) -> Mixture:
        self.frees.append(self.free.tolist())
        value, price = next(self.mixtures)
        return Mixture(value, np.array([[price]]), np.zeros(0))

    def furthest(self, prices: LeasePrices, bound: float, origin: Draft) -> Any:
        self.asked.append(float(prices.price[0, 0]))
        return np.array(next(self.freed))


def told(
    mixtures: list[tuple[float, float]],
    bounds: list[float],
    freed: list[list[bool]],
    gap: float = 0.01,
    had: float = 0.0,
    **knobs: Any,
) -> tuple[Told, Any]:
    """As many jobs as freed; `had` is the reward of the plan at the origin, and 8 the best price so far, at 100."""
    rows = [(job, 0, 0, 1, 1, 1, 0, had) for job in range(len(freed[0]))]
    options, capacity = by_hand(*rows, must=(False,) * len(freed[0])), np.array([[1]])
    cycle = cycle_of(options, capacity, gap, LeaseFormulation(**knobs))
    cycle.__class__ = Told
    assert isinstance(cycle, Told)
    cycle.tell(mixtures, bounds, freed)
    origin = Draft(options, capacity)
    assert not had or origin.put(0, np.array([0]))
    return cycle, cycle.passes(LeasePrices(np.array([[8.0]])), 100.0, origin)


def test_the_best_prices_are_mixed_into_the_next_but_every_second_time_where_the_last_were_no_better() -> None:
    """A fourth of 8, then of 2, where the bound was lower. The last mixture is as near the bound as it need be."""
    mixtures = [(10.0, 2.0), (20.0, 4.0), (30.0, 0.0), (40.0, 6.0), (50.0, 1.0), (60.0, 3.0), (89.5, 9.0)]
    bounds = [100.0, 120.0, 110.0, 90.0, 95.0, 94.0, 93.0]
    cycle, found = told(mixtures, bounds, [[True]], smoothing=0.25)
    assert cycle.tried == [8.0, 3.5, 4.0, 2.0, 5.0, 1.25, 3.0]
    assert (found.value, found.bound, found.passes) == (89.5, 90.0, 7)
    assert found.prices.price.tolist() == [[2.0]]


@pytest.mark.parametrize(("value", "passes"), [(98.99, 2), (99.0, 1), (99.01, 1), (101.0, 1)])
def test_nothing_is_priced_once_the_mixture_is_within_the_gap_of_the_bound(value: float, passes: int) -> None:
    """And no more is claimed than the bound."""
    cycle, found = told([(value, 2.0), (100.0, 2.0)], [100.0] * 2, [[True]])
    assert (found.passes, len(cycle.tried)) == (passes, passes)
    assert found.value == min(value, 100.0) if passes == 1 else 100.0


@pytest.mark.parametrize(("had", "passes"), [(98.0, 1), (99.0, 0), (100.0, 0)])
def test_nothing_is_solved_where_the_last_plan_is_within_the_gap_already(had: float, passes: int) -> None:
    _, found = told([(100.0, 2.0)], [100.0], [[True]], had=had)
    assert (found.passes, found.value) == (passes, 100.0 if passes else had)
    assert (found.row.tolist(), found.leases.tolist()) == (([-1], [[False]]) if passes else ([0], [[True]]))


def test_what_prices_say_to_begin_with_is_no_new_bound() -> None:
    """One pass at most: the prices that are tried first are those of the bound."""
    cycle, found = told([(10.0, 2.0)], [100.0], [[True]], max_passes=1)
    assert (cycle.tried, found.bound, found.passes) == ([8.0], 100.0, 1)


def test_jobs_that_are_freed_stay_so_and_all_are_in_the_end() -> None:
    """More are asked for at the prices that are tried next; where all are free nobody is asked for."""
    freed = [[True, False, False], [False, True, False], [True, False, True]]
    cycle, found = told([(10.0, 2.0), (20.0, 4.0), (30.0, 6.0), (99.5, 0.0)], [100.0] * 4, freed, smoothing=0.0)
    assert cycle.frees == [[True, False, False], [True, True, False], [True] * 3, [True] * 3]
    assert cycle.asked == [8.0, 2.0, 4.0]
    assert found.passes == 4


@pytest.mark.parametrize(("bound", "passes"), [(100.0, 2), (50.0, 1)])
def test_jobs_that_are_freed_after_the_last_mixture_are_in_it_as_the_last_plan_has_them(
    bound: float, passes: int
) -> None:
    """The first job stays in the first mixture, and is freed at the prices that say that it is near enough."""
    cycle, found = told([(50.0, 2.0), (99.5, 4.0)], [100.0, bound], [[False, True], [True, False]], had=30.0)
    assert (cycle.frees[-1], found.passes) == ([passes > 1, True], passes)
    assert found.row.tolist() == [-1 if passes > 1 else 0, -1]
    assert found.share.tolist() == [0.0 if passes > 1 else 1.0, 0.0]


def test_columns_rest_where_some_jobs_are_freed_and_stay_as_they_are_without_a_mixture() -> None:
    for free, resting in (([True, False], [True, False]), ([False, False], [False, True])):
        cycle = cycle_of(*one_gpu(), gap=0.01)
        put(cycle, 0, 0)
        put(cycle, 1, 0)
        cycle.__class__ = Told
        assert isinstance(cycle, Told)
        cycle.tell([(99.5, 2.0)], [100.0], [free])
        cycle.pool.resting = np.array([False, True])
        cycle.mix = lambda *_: Mixture(99.5, np.array([[2.0]]), np.array([0.0, 1.0]))  # type: ignore[method-assign]
        cycle.passes(LeasePrices(np.array([[8.0]])), 100.0, Draft(cycle.options, cycle.scarce))
        assert cycle.pool.resting.tolist() == resting


def test_a_job_that_stays_has_the_whole_of_its_option() -> None:
    """The first job stays with the first option; the second has none and is not freed."""
    rows = [(0, 0, 0, 1, 1, 1, 0, 9.0), (1, 0, 0, 1, 1, 1, 0, 8.0), (2, 0, 0, 1, 1, 1, 0, 7.0)]
    options, capacity = by_hand(*rows, must=(False,) * 3), np.array([[2]])
    cycle = cycle_of(options, capacity)
    cycle.furthest = lambda *_: np.array([False, False, True])  # type: ignore[method-assign]
    cycle.owner.max_passes = 1
    origin = Draft(options, capacity)
    assert origin.put(0, np.array([0]))
    found = cycle.passes(LeasePrices(np.array([[1.0]])), 100.0, origin)
    np.testing.assert_allclose(found.share, [1.0, 0.0, 1.0], atol=1e-3)
    assert found.value == pytest.approx(16.0, abs=1e-3)
    assert found.row.tolist() == [0, -1, 2]


# What is kept ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("promised", [0, 1])
def test_a_promise_that_the_last_plan_keeps_is_kept_in_the_mixture_and_another_is_not(promised: int) -> None:
    """Of two jobs for one GPU-lease the promised one has it, whatever the other is worth."""
    rows = [(0, 0, 0, 1, 1, 1, 0, 5.0), (1, 0, 0, 1, 1, 1, 0, 6.0)]
    options, capacity = by_hand(*rows, must=[job == promised for job in range(2)]), np.array([[1]])
    origin = Draft(options, capacity)
    assert origin.put(promised, np.array([0]))
    found = solved(options, capacity, origin=origin)
    np.testing.assert_allclose(found.share, np.arange(2) == promised, atol=1e-3)
    assert found.value == pytest.approx(5.0 + promised, abs=1e-2)
    both = by_hand(*rows, must=(True, True))
    assert solved(both, capacity, origin=Draft(both, capacity)).value == pytest.approx(6.0, abs=1e-2)


def test_a_second_solve_of_the_same_changes_nothing_in_the_model() -> None:
    """Edits are counted from its beginning."""
    options, capacity = lease_problem(30, 16, 10, 0)
    owner = LeaseFormulation(gap=0.01)
    first = solved(options, capacity, owner=owner)
    assert first.edits.added > 0
    again = solved(options, capacity, first.prices.price, owner=owner)
    assert (again.passes, again.edits.added, again.edits.removed, again.edits.resources) == (1, 0, 0, 0)
    assert again.edits.requests == first.edits.requests


def test_columns_without_a_share_in_the_last_answer_are_at_rest() -> None:
    options, capacity = lease_problem(60, 16, 12, 3)
    owner = LeaseFormulation(gap=1e-4, max_passes=100)
    found = solved(options, capacity, owner=owner)
    pool = owner._pool
    assert 0 < pool.resting.sum() < len(pool)
    np.testing.assert_array_equal(np.bincount(pool.row[~pool.resting], minlength=len(options.job)) > 0, found.share > 0)
    mixed = np.zeros(len(options.job))
    np.add.at(mixed, pool.row[~pool.resting], 1.0)
    assert (found.share <= mixed + 1e-6).all()


def test_without_jobs_or_options_there_is_nothing_to_solve() -> None:
    """Whatever prices there were; the bound is what they say."""
    for must in ((), (False, False)):
        nobody, capacity = by_hand(must=must), np.array([[3, 3]])
        found = solved(nobody, capacity)
        assert (found.value, found.bound, found.columns) == (0.0, 0.0, 0)
        assert found.row.tolist() == [-1] * len(must)
        assert not found.leases.any()
    found = solved(by_hand(must=()), np.array([[3, 3]]), np.array([[2.0, 1.0]]))
    assert (found.value, found.bound, found.passes) == (0.0, 6.0, 0)


def test_all_that_a_job_pays_is_seen_where_leases_are_free_late() -> None:
    """The optimum of a program with leases that nobody fills is HiGHS', and late leases have no price."""
    options, capacity = lease_problem(12, 20, 14, 5)
    found = solved(options, capacity, owner=LeaseFormulation(gap=1e-6, max_passes=200))
    lp = highs_optimum(per_deadline_form(options, capacity, whole=False))
    assert found.value == pytest.approx(lp, rel=1e-4)
    assert found.bound == pytest.approx(lp, rel=1e-4)
    assert found.prices.price.shape == capacity.shape


def test_where_the_engine_has_no_answer_the_last_plan_s_reward_and_the_bound_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options, capacity = lease_problem(40, 12, 10, 2)
    origin, formulation = Draft(options, capacity), LeaseFormulation()
    for job in range(40):
        any(origin.place(row) for row in reversed(origin.ranked(job)))
    monkeypatch.setattr(formulation.lease_model, "mix", lambda *_: None)
    found = formulation.solve(options, capacity, origin=origin)
    assert (found.value, found.passes) == (pytest.approx(origin.reward), 1)
    np.testing.assert_array_equal(found.row, origin.row)
    np.testing.assert_array_equal(found.leases, origin.taken)
    assert float(found.share @ options.value) == pytest.approx(origin.reward)
    assert found.bound >= highs_optimum(per_deadline_form(options, capacity)) - 1e-6  # type: ignore[operator]
