"""Whole plans of Chronus made anew: leases by deadline, chains of moves, jobs exchanged (papers/chronus.md, C16)."""

from __future__ import annotations

import numpy as np
import pytest
from chronus_instances import NO_LIMIT_S, lease_problem

from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.exchange import exchange
from copter_frontends.policies.chronus.formulation import LeaseFormulation
from copter_frontends.policies.chronus.options import Options
from copter_frontends.policies.chronus.repacking import repacked
from copter_frontends.policies.chronus.shim import LeaseShim


def options_of(*jobs: tuple[int, int, int], must: tuple[bool, ...], value: float = 99.0) -> Options:
    """One option for each job: (GPUs, leases, leases to the deadline), on one GPU type."""
    return Options.of([(k, 0, 0, g, need, last, 0, value) for k, (g, need, last) in enumerate(jobs)], must)


def check(draft: Draft, capacity: np.ndarray) -> None:
    """Every job has what its option needs in time, and the GPUs free are those that nobody has."""
    options, free = draft.options, capacity.copy()
    for job, row in enumerate(draft.row.tolist()):
        leases = np.flatnonzero(draft.taken[job])
        if row < 0:
            assert not len(leases)
            continue
        assert len(leases) == options.need[row]
        assert leases[-1] < options.last[row]
        free[options.kind[row], leases] -= options.gpus[row]
    np.testing.assert_array_equal(draft.free, free)
    assert (free >= 0).all()


def test_the_leases_of_settled_options_are_given_by_deadline() -> None:
    """In the order of the jobs the first takes what the second cannot do without."""
    options = options_of((1, 2, 4), (1, 2, 2), must=(False, False))
    capacity = np.ones((1, 4), dtype=np.int64)
    draft = repacked(options, capacity, np.array([0, 1]), np.ones(2))
    check(draft, capacity)
    assert [np.flatnonzero(line).tolist() for line in draft.taken] == [[2, 3], [0, 1]]


def test_who_finds_no_room_comes_first_in_the_next_order() -> None:
    """By deadline the small job breaks up the node that the large ones need in every lease but two."""
    options = options_of((1, 1, 3), (2, 3, 4), (2, 2, 5), must=(False, False, False))
    capacity = np.array([[2, 2, 2, 2, 2]], dtype=np.int64)
    draft = repacked(options, capacity, np.array([0, 1, 2]), np.ones(3))
    check(draft, capacity)
    assert (draft.row >= 0).sum() >= 2


def test_unpromised_jobs_are_left_out_for_a_promised_one() -> None:
    """Three that are due at once leave it no room in any order but the one in which it is first."""
    options = options_of((2, 3, 3), (1, 1, 1), (1, 2, 2), (1, 3, 3), must=(True, False, False, False))
    capacity = np.array([[2, 2, 2]], dtype=np.int64)
    draft = repacked(options, capacity, np.arange(4), np.array([0.0, 1.0, 2.0, 3.0]))
    check(draft, capacity)
    assert draft.row.tolist() == [0, -1, -1, -1]


def test_a_chain_of_moves_makes_room() -> None:
    """The lease that is wanted can be freed only by a job whose own way out another has to free."""
    options = options_of((1, 1, 1), (1, 1, 2), (1, 1, 3), must=(False, True, True))
    draft = Draft(options, np.ones((1, 3), dtype=np.int64))
    assert draft.put(1, np.array([0]))
    assert draft.put(2, np.array([1]))
    assert draft.squeeze(0)
    check(draft, np.ones((1, 3), dtype=np.int64))
    assert [np.flatnonzero(line).tolist() for line in draft.taken] == [[0], [1], [2]]
    assert draft.moved == {1, 2}


def test_a_chain_that_ends_nowhere_changes_nothing() -> None:
    options = options_of((1, 2, 2), (1, 1, 2), (1, 1, 2), must=(False, True, True))
    draft = Draft(options, np.ones((1, 2), dtype=np.int64))
    assert draft.put(1, np.array([0]))
    assert draft.put(2, np.array([1]))
    before = draft.row.tolist(), draft.taken.tolist(), draft.free.tolist()
    assert not draft.squeeze(0)
    assert (draft.row.tolist(), draft.taken.tolist(), draft.free.tolist()) == before


@pytest.mark.parametrize("seed", range(6))
def test_squeezed_plans_hold(seed: int) -> None:
    options, capacity = lease_problem(60, 12, 24, seed, types=2, must=0.3)
    draft = Draft(options, capacity)
    for job in range(options.jobs):
        any(draft.squeeze(row) for row in draft.ranked(job))
    check(draft, capacity)


def test_exchange_keeps_a_promise_that_was_broken() -> None:
    """Job 0 has the only type on which job 1 ends in time, and could be on the other."""
    rows = [(0, 0, 0, 1, 2, 2, 0, 99.0), (0, 1, 1, 1, 2, 2, 0, 99.0), (1, 0, 0, 1, 2, 2, 0, 99.0)]
    options, capacity = Options.of(rows, (True, True)), np.ones((2, 2), dtype=np.int64)
    draft = Draft(options, capacity)
    assert draft.place(0)
    exchange(draft, options.value, np.inf)
    check(draft, capacity)
    assert draft.row.tolist() == [1, 2]


@pytest.mark.parametrize("seed", range(6))
def test_exchange_never_loses_and_says_the_same_again(seed: int) -> None:
    options, capacity = lease_problem(60, 10, 24, seed, types=2, must=0.2)
    plans = []
    for _ in range(2):
        draft = Draft(options, capacity)
        for job in range(options.jobs):
            any(draft.place(row) for row in draft.ranked(job))
        before = draft.broken, -draft.reward
        exchange(draft, options.value, np.inf)
        assert (draft.broken, -draft.reward) <= before
        check(draft, capacity)
        plans.append(draft)
    np.testing.assert_array_equal(plans[0].taken, plans[1].taken)


@pytest.mark.parametrize("seed", range(4))
def test_plans_in_overload_are_near_the_bound(seed: int) -> None:
    """Long promised jobs fill a cluster; the leases that they can do without are those that short ones need."""
    rng, rows = np.random.default_rng(seed), []
    for job in range(40):
        slack, size = int(rng.integers(4, 20)), int(rng.choice([2, 4, 8]))
        need = int(rng.integers(40, 120))
        rows.append((job, 0, 0, size, need, need + slack, 0, 99.0))
    for job in range(40, 100):
        need = int(rng.integers(1, 4))
        rows.append((job, 0, 0, 1, need, need + int(rng.integers(0, 3)), 0, 99.0))
    size = sum(row[3] * row[4] / row[5] for row in rows[:40])
    capacity = np.full((1, 140), int(1.02 * size) // 8 * 8, dtype=np.int64)
    origin = Draft(Options.of(rows, [False] * 100), capacity)
    for row in range(40):
        origin.place(row)
    options = Options.of(rows, [row >= 0 for row in origin.row.tolist()])
    origin = Draft(options, capacity)
    for row in np.flatnonzero(options.must).tolist():
        assert origin.place(row)
    solution = LeaseFormulation().solve(options, capacity, None, origin, NO_LIMIT_S)
    draft = LeaseShim()(options, capacity, solution, origin)
    check(draft, capacity)
    assert draft.broken == 0
    assert draft.reward >= 0.97 * solution.bound
