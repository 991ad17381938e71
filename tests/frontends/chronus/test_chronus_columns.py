"""The lease LP's columns by hand: which are priced in, which jobs are freed, what the mixture of the freed ones is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from chronus_instances import lease_problem

from copter_frontends.policies.chronus import formulation
from copter_frontends.policies.chronus.column_pool import ColumnPool
from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.formulation import (
    GOLDEN,
    LeaseFormulation,
    LeaseSolution,
    _Cycle,
    _worth_of_a_lease,
)
from copter_frontends.policies.chronus.free_tail import FreeTail
from copter_frontends.policies.chronus.options import Ints, OptionRow, Options
from copter_frontends.policies.chronus.pricing import LeasePrices
from copter_frontends.policy_kit import Edits


def by_hand(*rows: OptionRow, must: Sequence[bool]) -> Options:
    """Options (job, mode, kind, gpus, need, last, step, value)."""
    return Options.of(rows, must)


def cycle_of(options: Options, capacity: Ints, gap: float = 0.0, owner: LeaseFormulation | None = None) -> _Cycle:
    """A solve that is about to begin, in which all leases are scarce and no job has a column."""
    owner = owner or LeaseFormulation()
    owner._pool.move_to(options, list(range(options.jobs)), 0, capacity.shape[1])
    owner.lease_model.begin()
    return _Cycle(owner, options, capacity, FreeTail(options, capacity.shape[1], capacity.shape[1]), gap, np.inf)


def columns(cycle: _Cycle) -> list[tuple[int, list[int]]]:
    """The columns that there are: (option, leases)."""
    pool = cycle.pool
    return sorted(
        (row, np.flatnonzero(line).tolist()) for row, line in zip(pool.row.tolist(), pool.leases, strict=True)
    )


def put(cycle: _Cycle, row: int, *leases: int) -> None:
    """Add a column."""
    line = np.zeros((1, cycle.tail.horizon), dtype=bool)
    line[0, list(leases)] = True
    cycle.pool.add(cycle.options, np.array([row]), line)


# Pricing --------------------------------------------------------------------------------------------------------------


def test_the_best_column_of_a_job_is_priced_in_and_the_bound_is_c7() -> None:
    """At 3, 1 and 2 the first job has the second lease for 1, the second takes both of its leases for 2 GPUs each."""
    options = by_hand((0, 0, 0, 1, 1, 2, 0, 10.0), (1, 0, 0, 2, 2, 2, 0, 9.0), must=(False, False))
    cycle = cycle_of(options, np.array([[2, 3, 4]]))
    prices = LeasePrices(np.array([[3.0, 1.0, 2.0]]))
    assert cycle.price(prices) == 2 * 3.0 + 3 * 1.0 + 4 * 2.0 + (10.0 - 1.0) + (9.0 - 2 * 4.0)
    assert columns(cycle) == [(0, [1]), (1, [0, 1])]
    assert cycle.price(prices) == 27.0
    assert columns(cycle) == [(0, [1]), (1, [0, 1])]


def test_a_promised_job_gets_a_column_that_is_worth_less_than_nothing_and_another_none() -> None:
    """Both would pay 5 for a reward of 3: the bound has the promised one's loss."""
    rows = [(job, 0, 0, 1, 1, 1, 0, 3.0) for job in range(2)]
    cycle = cycle_of(by_hand(*rows, must=(True, False)), np.array([[1]]))
    assert cycle.price(LeasePrices(np.array([[5.0]]))) == 5.0 - 2.0
    assert columns(cycle) == [(0, [0])]


@pytest.mark.parametrize(("gain", "added"), [(0.02, False), (0.04, True), (0.5, True)])
def test_a_column_is_priced_in_from_a_twentieth_of_the_gap_of_its_job_s_best_reward(gain: float, added: bool) -> None:
    """Of a gap of 10% and a reward of 6 that is 0.03, of a job without a column as of one that has a worse one."""
    rows = [(job, 0, 0, 1, 1, 2, 0, 6.0) for job in range(2)]
    cycle = cycle_of(by_hand(*rows, must=(False, False)), np.array([[1, 1]]), gap=0.1)
    put(cycle, 1, 0)
    cycle.price(LeasePrices(np.array([[6.0 - gain, 6.0]])))
    assert columns(cycle) == ([(0, [0]), (1, [0])] if added else [(1, [0])])
    cycle.price(LeasePrices(np.array([[4.0 + gain, 4.0]])))
    assert ((1, [1]) in columns(cycle)) is added


def test_a_column_that_is_worth_as_much_as_the_job_s_own_is_not_priced_in() -> None:
    """Also where columns need be worth no more than rounding: an unlikely change would be one without end."""
    cycle = cycle_of(by_hand((0, 0, 0, 1, 1, 2, 0, 6.0), must=(False,)), np.array([[1, 1]]))
    put(cycle, 0, 0)
    cycle.price(LeasePrices(np.array([[1.0, 1.0]])))
    assert columns(cycle) == [(0, [0])]


def test_of_a_job_s_own_columns_the_best_counts_at_what_its_gpus_cost() -> None:
    """Leases of the first type cost 1 and 2, of the second 3 and 4: 2 GPUs of the second for one lease are worth 4."""
    options = by_hand((0, 0, 0, 3, 1, 2, 0, 6.5), (0, 1, 1, 2, 1, 2, 0, 10.0), must=(False,))
    cycle, prices = cycle_of(options, np.array([[3, 3], [2, 2]])), LeasePrices(np.array([[1.0, 2.0], [3.0, 4.0]]))
    for row, lease in ((0, 0), (1, 1), (0, 1)):
        put(cycle, row, lease)
    assert cycle.cost_of(prices).tolist() == [1.0, 4.0, 2.0]
    cycle.price(prices)
    assert columns(cycle) == [(0, [0]), (0, [1]), (1, [0]), (1, [1])], "4 is more than 3.5, 2 and 0.5"
    cycle.price(LeasePrices(np.array([[0.5, 2.0], [3.0, 4.0]])))
    assert len(cycle.pool) == 4, "the first has 5 now, and has the column"


def test_nothing_is_priced_in_for_jobs_that_stay() -> None:
    rows = [(job, 0, 0, 1, 1, 1, 0, 6.0) for job in range(2)]
    cycle = cycle_of(by_hand(*rows, must=(False, False)), np.array([[1]]))
    cycle.free[0] = False
    assert cycle.price(LeasePrices(np.array([[1.0]]))) == 11.0
    assert columns(cycle) == [(1, [0])]


def test_columns_at_rest_go_when_their_job_has_a_new_one() -> None:
    """The first job's, not those that have a share, nor those of the second, which keeps what it has."""
    rows = [(job, 0, 0, 1, 1, 3, 0, 6.0) for job in range(2)]
    cycle = cycle_of(by_hand(*rows, must=(False, False)), np.array([[1, 1, 1]]))
    for row, lease in ((0, 0), (0, 1), (1, 0), (1, 2)):
        put(cycle, row, lease)
    cycle.pool.resting = np.array([True, False, True, False])
    cycle.price(LeasePrices(np.array([[5.0, 4.0, 3.0]])))
    assert columns(cycle) == [(0, [1]), (0, [2]), (1, [0]), (1, [2])]


# Freed jobs -----------------------------------------------------------------------------------------------------------


def with_regrets() -> tuple[Options, Draft, LeasePrices]:
    """Ten jobs at prices of 4 and 1, whose regrets are 3, 5, 2 and seven times 0."""
    rows: list[OptionRow] = [(0, 0, 0, 1, 1, 2, 0, 9.0), (1, 0, 0, 1, 1, 2, 0, 6.0), (2, 0, 0, 2, 2, 2, 0, 9.0)]
    rows += [(2, 0, 0, 1, 1, 2, 1, 2.0), (3, 0, 0, 1, 2, 2, 0, 2.0)]
    rows += [(job, 0, 0, 1, 1, 2, 0, 3.0) for job in range(4, 10)]
    options = by_hand(*rows, must=[job == 3 for job in range(10)])
    origin = Draft(options, np.full((1, 2), 20))
    assert origin.put(0, np.array([0]))  # pays 4 where it could pay 1
    assert origin.put(2, np.array([0, 1]))  # 9 - 10, where it could have 2 - 1
    assert origin.put(4, np.array([0, 1]))  # worth -3, and promised
    for job in range(4, 10):
        assert origin.put(job + 1, np.array([1]))
    return options, origin, LeasePrices(np.array([[4.0, 1.0]]))


@pytest.mark.parametrize(("most", "freed"), [(10.5, [1]), (5.5, [1]), (2.5, [0, 1]), (1.5, [0, 1, 2])])
def test_jobs_are_freed_until_the_others_regret_less_than_a_fourth_of_the_gap(
    most: float, freed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of largest regret: 5, 3 and 2 leave 5, 2 and nothing. The second job has nothing and is worth 5."""
    monkeypatch.setattr(formulation, "FREE_LEAST", 1)
    options, origin, prices = with_regrets()
    cycle = cycle_of(options, np.full((1, 2), 20), gap=0.1)
    assert np.flatnonzero(cycle.furthest(prices, most / (0.25 * 0.1), origin)).tolist() == freed


def test_so_many_jobs_are_freed_at_least_and_all_where_it_would_be_most_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options, origin, prices = with_regrets()
    cycle = cycle_of(options, np.full((1, 2), 20), gap=0.1)
    for least, freed in ((3, 3), (6, 6), (7, 10), (8, 10)):
        monkeypatch.setattr(formulation, "FREE_LEAST", least)
        free = cycle.furthest(prices, 1e6, origin)
        assert free.sum() == freed
        assert free[:3].all()


@pytest.mark.parametrize(("jobs", "freed"), [(91, 91), (92, 64), (200, 64)])
def test_64_jobs_are_freed_at_least_and_all_from_seven_tenths_on(jobs: int, freed: int) -> None:
    """Nobody regrets anything."""
    options = by_hand(*[(job, 0, 0, 1, 1, 1, 0, 3.0) for job in range(jobs)], must=(False,) * jobs)
    capacity = np.full((1, 1), jobs)
    origin = Draft(options, capacity)
    assert all(origin.place(row) for row in range(jobs))
    assert cycle_of(options, capacity).furthest(LeasePrices(np.zeros((1, 1))), 100.0, origin).sum() == freed


# The mixture ----------------------------------------------------------------------------------------------------------


def crossed() -> tuple[_Cycle, Draft, Ints]:
    """Two jobs, of one type each, that stay on leases that the third and fourth would have as well."""
    options = by_hand(
        (0, 0, 0, 2, 2, 2, 0, 7.0),
        (1, 0, 1, 1, 1, 2, 0, 5.0),
        (2, 0, 0, 1, 1, 1, 0, 4.0),
        (2, 1, 1, 1, 1, 1, 0, 6.0),
        (3, 0, 0, 1, 1, 1, 0, 3.0),
        must=(False,) * 4,
    )
    capacity = np.array([[3, 3], [1, 1]])
    origin = Draft(options, capacity)
    for row, leases in ((0, [0, 1]), (1, [0]), (2, [0])):
        assert origin.put(row, np.array(leases))
    cycle = cycle_of(options, capacity)
    put(cycle, 3, 0)
    put(cycle, 4, 0)
    return cycle, origin, capacity


def test_the_freed_jobs_have_the_room_that_the_others_leave_and_the_value_is_of_all() -> None:
    """One GPU of the first type for the third's 4 or the fourth's 3, none of the second for the third's 6."""
    cycle, origin, capacity = crossed()
    cycle.free[:2] = False
    found = cycle.mix(origin)
    assert found is not None
    assert found.value == pytest.approx(7.0 + 5.0 + 4.0, abs=1e-3)
    assert columns(cycle) == [(2, [0]), (3, [0]), (4, [0])], "what the third has there is a column of it"
    assert dict(zip(cycle.pool.row.tolist(), found.share, strict=True)) == pytest.approx({2: 1, 3: 0, 4: 0}, abs=1e-3)
    assert 3.0 - 1e-3 <= found.price[0, 0] <= 4.0 + 1e-3
    assert capacity.tolist() == cycle.scarce.tolist() == [[3, 3], [1, 1]]


def test_where_all_are_freed_all_have_their_leases_of_the_last_plan_as_columns() -> None:
    """The second goes without, for the 6 that the third has in its place."""
    cycle, origin, _ = crossed()
    found = cycle.mix(origin)
    assert found is not None
    assert found.value == pytest.approx(7.0 + 6.0 + 3.0, abs=1e-3)
    assert columns(cycle) == [(0, [0, 1]), (1, [0]), (2, [0]), (3, [0]), (4, [0])]


def test_the_engine_s_time_that_is_up_is_no_answer() -> None:
    cycle, origin, _ = crossed()
    cycle.model.mix = lambda *_: None  # type: ignore[method-assign]
    assert cycle.mix(origin) is None


def test_a_share_that_ends_at_the_job_s_place_does_not_reach_it() -> None:
    """C14: the place of the only job is half the golden ratio; its column is taken where the share is more."""
    for share, row in ((0.5 * GOLDEN, -1), (0.5 * GOLDEN + 1e-6, 0), (1.0, 0), (0.0, -1)):
        cycle = cycle_of(by_hand((0, 0, 0, 1, 1, 1, 0, 3.0), must=(False,)), np.array([[1]]))
        put(cycle, 0, 0)
        assert cycle.deal(np.array([share]), Draft(cycle.options, cycle.scarce))[0].tolist() == [row]


@pytest.mark.parametrize("seed", range(3))
def test_jobs_take_places_in_the_columns_shares_that_multiples_of_the_golden_ratio_spread(seed: int) -> None:
    """C14: jobs by reward of a GPU-lease, then by size; a job whose shares are less than one may get nothing."""
    options, capacity = lease_problem(40, 16, 8, seed)
    options = replace(options, must=np.arange(40) % 5 == 0)
    rng, cycle = np.random.default_rng(seed), object.__new__(_Cycle)
    cycle.options, cycle.pool, cycle.free = options, ColumnPool(), np.arange(40) % 7 != 3
    cycle.pool.move_to(options, list(range(40)), 0, 8)
    rows = np.repeat(np.arange(len(options.job)), 2)
    leases = np.zeros((len(rows), 8), dtype=bool)
    for line, row in zip(leases, rows.tolist(), strict=True):
        line[rng.permutation(int(options.last[row]))[: int(options.need[row])]] = True
    cycle.pool.add(options, rows, leases)
    pool = cycle.pool
    share = np.where(rng.random(len(pool)) < 0.5, rng.random(len(pool)), 0.0)
    origin = Draft(options, capacity)
    for job in (3, 10):
        any(origin.place(row) for row in origin.ranked(job))
    own = [np.flatnonzero(pool.job == job) for job in range(40)]
    for mine in own:
        share[mine] *= rng.choice([0.7, 1.0]) / max(share[mine].sum(), 1e-9)
    found, given = cycle.deal(share, origin)
    first = options.rows_of()
    worth = [
        float(options.value[a] / (options.gpus[a] * options.need[a])) if b > a else 0.0 for a, b in pairwise(first)
    ]
    for place, job in enumerate(sorted(range(40), key=lambda job: (worth[job], -options.size[job], job))):
        at, mine = ((place + 0.5) * GOLDEN) % 1.0, own[job]
        total = float(share[mine].sum())
        at *= total if options.must[job] else 1.0
        sums = np.cumsum(share[mine])
        if not cycle.free[job]:
            assert found[job] == origin.row[job]
            assert (given[job] == origin.taken[job]).all()
        elif at >= total:
            assert found[job] == -1
            assert not given[job].any()
        else:
            column = mine[np.flatnonzero(sums > at)[0]]
            assert found[job] == pool.row[column]
            assert (given[job] == pool.leases[column]).all()


def test_the_worth_of_a_lease_is_the_first_option_s_per_gpu_and_lease() -> None:
    """One that needs no scarce lease counts as one that needs one; a job without options is worth nothing."""
    options = by_hand(
        (0, 0, 0, 2, 3, 4, 0, 12.0),
        (0, 0, 0, 1, 1, 4, 1, 9.0),
        (1, 0, 0, 2, 1, 1, 0, 12.0),
        (3, 0, 0, 4, 0, 1, 0, 8.0),
        must=(False,) * 5,
    )
    assert _worth_of_a_lease(options).tolist() == [2.0, 6.0, 0.0, 2.0, 0.0]


@pytest.mark.parametrize(
    ("value", "bound", "gap"), [(9.0, 10.0, 0.1), (0.25, 0.5, 0.5), (0.0, 0.0, 0.0), (-12.0, -10.0, 0.2)]
)
def test_the_gap_is_relative_to_the_bound(value: float, bound: float, gap: float) -> None:
    nothing: Any = np.zeros(0)
    prices = LeasePrices(np.zeros((1, 1)))
    found = LeaseSolution(value, bound, prices, nothing, nothing, nothing, 0, 0, Edits())
    assert found.gap == pytest.approx(gap)
