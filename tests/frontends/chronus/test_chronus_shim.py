"""The shim of Chronus by hand: whole leases from the LP's choices, promises first, others moved where asked for."""

from __future__ import annotations

import numpy as np
import pytest

from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.formulation import (
    LeaseSolution,
)
from copter_frontends.policies.chronus.options import Ints, OptionRow, Options
from copter_frontends.policies.chronus.pricing import LeasePrices
from copter_frontends.policies.chronus.shim import LeaseShim, improve
from copter_frontends.policy_kit import Edits


def by_hand(*rows: OptionRow, must: tuple[bool, ...]) -> Options:
    """Options (job, mode, kind, gpus, need, last, step, value)."""
    return Options.of(rows, must)


def wishes(row: list[int], leases: list[list[int]], price: list[list[float]] | None = None) -> LeaseSolution:
    """A solution of the LP that wants these options on these leases, at prices of zero."""
    taken = np.array(leases, dtype=bool)
    prices = LeasePrices(np.zeros((2, taken.shape[1])) if price is None else np.array(price))
    return LeaseSolution(0.0, 0.0, prices, np.zeros(0), np.array(row, dtype=np.int64), taken, 0, 0, Edits())


def leases_of(draft: Draft) -> list[list[int]]:
    return [np.flatnonzero(line).tolist() for line in draft.taken]


def test_what_the_lp_chose_is_given_on_the_leases_that_it_chose() -> None:
    options = by_hand((0, 0, 0, 1, 1, 3, 0, 9.0), (1, 0, 0, 1, 1, 3, 0, 9.0), must=(False, False))
    capacity = np.full((2, 3), 2, dtype=np.int64)
    draft = LeaseShim()(options, capacity, wishes([0, 1], [[1, 0, 0], [0, 1, 0]]))
    assert draft.row.tolist() == [0, 1]
    assert leases_of(draft) == [[0], [1]]


def test_of_the_lps_choices_those_of_most_reduced_value_go_first() -> None:
    """All three want the same lease; at its price the second is worth most. The others go where there is room."""
    rows = [(job, 0, 0, 1, 1, 1, 0, value) for job, value in enumerate((5.0, 9.0, 7.0))]
    options, solution = by_hand(*rows, must=(False,) * 3), wishes([0, 1, 2], [[1]] * 3, [[2.0], [0.0]])
    assert LeaseShim()(options, np.array([[1], [0]]), solution).row.tolist() == [-1, 1, -1]
    assert LeaseShim()(options, np.array([[2], [0]]), solution).row.tolist() == [-1, 1, 2]


def test_a_job_goes_first_with_the_option_that_the_lp_chose_for_it() -> None:
    """Its own best option has no room, and is not what it is placed with."""
    rows = [(0, 0, 0, 1, 1, 1, 0, 5.0), (0, 1, 1, 1, 1, 1, 0, 5.5), (1, 0, 0, 1, 1, 1, 0, 4.0)]
    options, solution = by_hand(*rows, must=(False, False)), wishes([0, 2], [[1], [1]])
    assert LeaseShim()(options, np.array([[1], [0]]), solution).row.tolist() == [0, -1]


def test_of_jobs_of_one_worth_the_one_with_least_time_to_spare_goes_first() -> None:
    """The second needs all three leases until its deadline, the first one of two."""
    options = by_hand((0, 0, 0, 1, 1, 2, 0, 9.0), (1, 0, 0, 1, 3, 3, 0, 9.0), must=(False, False))
    draft = LeaseShim()(options, np.array([[1] * 3, [0] * 3]), wishes([0, 1], [[1, 0, 0], [1, 1, 1]]))
    assert draft.row.tolist() == [-1, 1]


@pytest.mark.parametrize("wanted", [True, False])
def test_others_are_moved_for_a_promised_job_however_often_that_has_failed(wanted: bool) -> None:
    """The first job blocks the only lease of the second and can have the other, whether the LP chose it or not."""
    options = by_hand((0, 0, 0, 2, 1, 2, 0, 9.0), (1, 0, 0, 1, 1, 1, 0, 9.0), must=(True, True))
    solution = wishes([0, 1 if wanted else -1], [[1, 0], [1 if wanted else 0, 0]])
    draft = LeaseShim(0)(options, np.array([[2, 2], [0, 0]]), solution)
    assert (draft.row.tolist(), leases_of(draft)) == ([0, 1], [[1], [0]])


def test_a_promised_job_whose_leases_are_taken_gets_others_once() -> None:
    """The first has both GPUs of the lease that both were dealt."""
    options = by_hand((0, 0, 0, 2, 1, 1, 0, 9.0), (1, 0, 0, 1, 1, 3, 0, 9.0), must=(True, True))
    draft = LeaseShim()(options, np.array([[2, 2, 2], [0, 0, 0]]), wishes([0, 1], [[1, 0, 0]] * 2))
    assert (draft.row.tolist(), leases_of(draft), draft.free[0].tolist()) == ([0, 1], [[0], [2]], [0, 2, 1])


@pytest.mark.parametrize(("failures", "rows"), [(0, [0, 1, -1]), (1, [0, 1, 2])])
def test_nothing_is_moved_without_failures_left_for_a_job_that_had_room_until_the_one_before_it(
    failures: int, rows: list[int]
) -> None:
    """One GPU of the first lease is free for two jobs; the job that has the other could have the second lease."""
    options = by_hand(
        (0, 0, 0, 1, 1, 2, 0, 1.0), (1, 0, 0, 1, 1, 1, 0, 9.0), (2, 0, 0, 1, 1, 1, 0, 8.0), must=(True, False, False)
    )
    solution = wishes([0, -1, -1], [[1, 0], [0, 0], [0, 0]])
    draft = LeaseShim(failures)(options, np.array([[2, 1], [0, 0]]), solution)
    assert draft.row.tolist() == rows


def test_a_job_that_the_lp_gave_a_later_deadline_gets_its_best_where_there_is_room() -> None:
    options = by_hand((0, 0, 0, 1, 1, 1, 0, 9.0), (0, 0, 0, 1, 1, 2, 1, 4.0), must=(False,))
    for gpus, row in ((1, 0), (0, 1)):
        draft = LeaseShim()(options, np.array([[gpus, 1], [0, 0]]), wishes([1], [[0, 1]]))
        assert draft.row.tolist() == [row]


def test_a_promised_job_takes_its_best_option_where_the_lp_chose_none() -> None:
    """Its first one too, and before others that the LP did not choose either."""
    options = by_hand((0, 0, 0, 1, 1, 1, 0, 9.0), (1, 0, 0, 1, 1, 1, 0, 50.0), must=(True, False))
    assert LeaseShim()(options, np.array([[1], [0]]), wishes([-1, -1], [[0], [0]])).row.tolist() == [0, -1]


def test_making_room_may_fail_eight_times_where_nothing_is_said() -> None:
    """Of jobs that nothing makes room for, by worth, before one that a move makes room for."""
    for hopeless in (7, 8):
        rows: list[OptionRow] = [(0, 0, 0, 1, 1, 2, 0, 1.0)]
        rows += [(job + 1, 0, 0, 2, 1, 1, 0, 20.0 - job) for job in range(hopeless)]
        rows.append((hopeless + 1, 0, 0, 1, 1, 1, 0, 9.0))
        options = by_hand(*rows, must=(True, *[False] * (hopeless + 1)))
        nothing = [[0, 0]] * (hopeless + 1)
        solution = wishes([0, *[-1] * (hopeless + 1)], [[1, 0], *nothing])
        found = LeaseShim()(options, np.array([[1, 1], [0, 0]]), solution)
        assert (found.row[-1] >= 0) is np.bool_(hopeless < 8)


def test_promised_jobs_go_first_and_the_largest_of_them_before_all() -> None:
    rows = [(0, 0, 0, 1, 1, 1, 0, 99.0), (1, 0, 0, 1, 1, 1, 0, 1.0), (2, 0, 0, 2, 1, 1, 0, 1.0)]
    options, solution = by_hand(*rows, must=(False, True, True)), wishes([0, 1, 2], [[1]] * 3)
    for gpus, expected in ((1, [-1, 1, -1]), (2, [-1, -1, 2]), (3, [-1, 1, 2]), (4, [0, 1, 2])):
        draft = Draft(options, np.array([[gpus], [0]]))
        LeaseShim().fill(draft, solution)
        assert draft.row.tolist() == expected
    found = LeaseShim()(options, np.array([[2], [0]]), solution)
    assert found.row.tolist() == [0, 1, -1], "as many promises, and more reward"


def crossed() -> tuple[Options, Ints, LeaseSolution, Draft]:
    """The LP wants job 0 on the type that job 1 needs, so that job 1's promise breaks; the last plan keeps both.

    Job 2 has no promise. There is room for it wherever job 0 is, and the LP chose it.
    """
    options = by_hand(
        (0, 0, 1, 1, 1, 2, 0, 10.0),
        (0, 1, 0, 1, 1, 1, 0, 10.0),
        (1, 0, 0, 1, 1, 1, 0, 10.0),
        (2, 0, 1, 1, 1, 1, 0, 30.0),
        must=(True, True, False),
    )
    capacity = np.array([[1, 0], [2, 2]], dtype=np.int64)
    origin = Draft(options, capacity)
    assert origin.put(0, np.array([0]))
    assert origin.put(2, np.array([0]))
    return options, capacity, wishes([1, 2, 3], [[1, 0]] * 3), origin


def test_where_the_rounded_lp_breaks_a_promise_the_last_plans_stand_and_the_rest_is_the_lps() -> None:
    options, capacity, solution, origin = crossed()
    rounded = Draft(options, capacity)
    LeaseShim().fill(rounded, solution)
    assert rounded.broken == 1
    assert LeaseShim()(options, capacity, solution).broken == 0, "an exchange keeps both"
    found = LeaseShim()(options, capacity, solution, origin)
    assert (found.row.tolist(), found.broken, found.reward) == ([0, 2, 3], 0, 50.0)
    assert leases_of(found) == [[0]] * 3, "what is kept stays where it was"
    assert origin.row.tolist() == [0, 2, -1], "the last plan itself does not change"
    full = Draft(options, capacity)
    for row in (0, 2, 3):
        assert full.put(row, np.array([0]))
    assert LeaseShim()(options, capacity, wishes([-1] * 3, [[0, 0]] * 3), full).reward == 50.0


def test_of_the_last_plan_only_promises_stand_where_the_rounded_lp_breaks_one() -> None:
    """Job 3 was given, without a promise, what the LP gives to job 2, which is worth more."""
    options = by_hand(
        (0, 0, 1, 1, 1, 1, 0, 10.0),
        (0, 1, 0, 1, 1, 1, 0, 10.0),
        (1, 0, 0, 1, 1, 1, 0, 10.0),
        (2, 0, 1, 1, 1, 1, 0, 30.0),
        (3, 0, 1, 1, 1, 1, 0, 5.0),
        must=(True, True, False, False),
    )
    capacity = np.array([[1], [2]], dtype=np.int64)
    origin = Draft(options, capacity)
    for row in (0, 2, 4):
        assert origin.put(row, np.array([0]))
    found = LeaseShim()(options, capacity, wishes([1, 2, 3, -1], [[1], [1], [1], [0]]), origin)
    assert (found.row.tolist(), found.broken, found.reward) == ([0, 2, 3, -1], 0, 50.0)


def test_the_last_plan_stays_where_it_is_worth_more() -> None:
    """The LP wants the lesser of two jobs that do not fit together."""
    options = by_hand((0, 0, 0, 1, 1, 1, 0, 10.0), (1, 0, 0, 1, 1, 1, 0, 30.0), must=(False, False))
    capacity, solution = np.array([[1], [0]], dtype=np.int64), wishes([0, -1], [[1], [0]])
    assert LeaseShim()(options, capacity, solution).row.tolist() == [0, -1]
    origin = Draft(options, capacity)
    assert origin.put(1, np.array([0]))
    assert LeaseShim()(options, capacity, solution, origin) is origin


def blocked() -> Draft:
    """A job on the first of two leases of one GPU, that could have the second; another that needs the first."""
    options = by_hand(
        (0, 0, 0, 1, 1, 2, 0, 1.0),
        (1, 0, 0, 2, 1, 1, 0, 9.0),
        (1, 0, 0, 1, 1, 1, 1, 5.0),
        (1, 0, 0, 1, 1, 1, 2, 3.0),
        must=(False, False),
    )
    draft = Draft(options, np.array([[1, 1]], dtype=np.int64))
    assert draft.put(0, np.array([0]))
    return draft


def test_a_job_that_the_lp_did_not_choose_gets_what_is_left() -> None:
    """The first of them too."""
    options = by_hand((0, 0, 0, 1, 1, 1, 0, 3.0), (1, 0, 0, 1, 1, 1, 0, 9.0), must=(False, False))
    found = LeaseShim()(options, np.array([[2], [0]]), wishes([-1, 1], [[0], [1]]))
    assert found.row.tolist() == [0, 1]


def test_others_are_moved_only_where_that_is_asked_for() -> None:
    draft = blocked()
    assert not LeaseShim._any(draft, 1, squeeze=False)
    assert (draft.row.tolist(), leases_of(draft)) == ([0, -1], [[0], []])
    assert LeaseShim._any(draft, 1, squeeze=True)
    assert (draft.row.tolist(), leases_of(draft)) == ([0, 2], [[1], [0]])
    assert (draft.free == 0).all()
    draft.remove(1)
    draft.free[0, 0] = 0
    assert not LeaseShim._any(draft, 1, squeeze=True)
    assert (draft.row.tolist(), leases_of(draft)) == ([0, -1], [[1], []])


def test_the_best_option_that_fits_is_given_once() -> None:
    options = by_hand((0, 0, 0, 1, 1, 1, 0, 9.0), (0, 0, 0, 1, 2, 3, 1, 5.0), must=(False,))
    draft = Draft(options, np.full((1, 3), 4, dtype=np.int64))
    assert LeaseShim._any(draft, 0, squeeze=True)
    assert (draft.row.tolist(), leases_of(draft), draft.free.tolist()) == ([0], [[0]], [[3, 4, 4]])


@pytest.mark.parametrize("failures", [0, 1, 2, 3])
def test_making_room_may_fail_so_often_and_then_jobs_get_what_is_free(failures: int) -> None:
    """Two jobs that nothing makes room for, by reduced value, before one that a move makes room for."""
    options = by_hand(
        (0, 0, 0, 1, 1, 2, 0, 1.0),
        (1, 0, 0, 2, 1, 1, 0, 9.0),
        (2, 0, 0, 2, 1, 1, 0, 8.0),
        (3, 0, 0, 1, 1, 1, 0, 7.0),
        must=(True, False, False, False),
    )
    solution = wishes([0, -1, -1, -1], [[1, 0], [0, 0], [0, 0], [0, 0]])
    draft = LeaseShim(failures)(options, np.array([[1, 1], [0, 0]], dtype=np.int64), solution)
    assert draft.row.tolist() == [0, -1, -1, 3 if failures > 2 else -1]
    assert leases_of(draft)[0] == [1 if failures > 2 else 0]


def behind(*later: int) -> Draft:
    """Jobs of one GPU and one lease: 9 for one lease from now, 4 for two, which these jobs have."""
    rows = [(job, 0, 0, 1, 1, 2 - at, at, (4.0, 9.0)[at]) for job in range(3) for at in range(2)]
    draft = Draft(by_hand(*rows, must=(False,) * 3), np.array([[1, 3]], dtype=np.int64))
    for job in later:
        assert draft.put(2 * job, np.array([1]))
    return draft


@pytest.mark.parametrize("job", range(3))
def test_a_job_that_was_given_a_later_deadline_gets_an_earlier_one_where_there_is_room(job: int) -> None:
    draft = behind(job)
    improve(draft, 0)
    assert draft.row[job] == 2 * job + 1
    assert leases_of(draft)[job] == [0]
    assert draft.free.tolist() == [[0, 3]]


def test_only_as_many_get_better_as_there_is_room_for_and_the_others_keep_what_they_have() -> None:
    for failures in range(4):
        draft = behind(0, 1, 2)
        improve(draft, failures)
        assert draft.row.tolist() == [1, 2, 4]
        assert leases_of(draft) == [[0], [1], [1]]
        assert draft.free.tolist() == [[0, 1]]


def test_what_a_job_that_got_better_leaves_is_room_for_another() -> None:
    """The first job needs both GPUs of the second lease, of which the second job has one until it gets better."""
    options = by_hand(
        (0, 0, 0, 2, 1, 2, 0, 9.0),
        (0, 0, 0, 2, 1, 3, 1, 4.0),
        (1, 0, 0, 1, 1, 1, 0, 9.0),
        (1, 0, 0, 1, 1, 2, 1, 4.0),
        must=(False, False),
    )
    draft = Draft(options, np.array([[1, 2, 2]], dtype=np.int64))
    assert draft.put(1, np.array([2]))
    assert draft.put(3, np.array([1]))
    improve(draft, 0)
    assert (draft.row.tolist(), leases_of(draft)) == ([0, 2], [[1], [0]])
    for must in ((), (False, False)):
        nobody = Draft(by_hand(must=must), np.array([[1]], dtype=np.int64))
        improve(nobody, 3)
        assert nobody.free.tolist() == [[1]]


def test_others_are_moved_for_a_better_deadline_while_failures_are_left() -> None:
    """The first job blocks the first lease and can have the second as well."""
    options = by_hand(
        (0, 0, 0, 1, 1, 2, 0, 9.0),
        (1, 0, 0, 1, 1, 1, 0, 9.0),
        (1, 0, 0, 1, 1, 2, 1, 4.0),
        must=(False, False),
    )
    for failures in (0, 1):
        draft = Draft(options, np.array([[1, 2]], dtype=np.int64))
        assert draft.put(0, np.array([0]))
        assert draft.put(2, np.array([1]))
        improve(draft, failures)
        assert draft.row.tolist() == [0, 1 if failures else 2]
        assert leases_of(draft) == ([[1], [0]] if failures else [[0], [1]])


def test_a_job_that_cannot_get_better_is_given_back_what_it_had_and_the_next_is_tried() -> None:
    """Making room for the first job fails; with one failure left none is made for the second, with two it is."""
    options = by_hand(
        (0, 0, 0, 2, 1, 1, 0, 9.0),
        (0, 0, 0, 1, 1, 3, 1, 4.0),
        (1, 0, 0, 1, 1, 1, 0, 9.0),
        (1, 0, 0, 1, 1, 3, 1, 4.0),
        (2, 0, 0, 1, 1, 2, 0, 9.0),
        must=(False,) * 3,
    )
    for failures, last in ((0, 3), (1, 3), (2, 2)):
        draft = Draft(options, np.array([[1, 1, 2]], dtype=np.int64))
        for row, lease in ((1, 2), (3, 2), (4, 0)):
            assert draft.put(row, np.array([lease]))
        improve(draft, failures)
        assert draft.row.tolist() == [1, last, 4]
        assert leases_of(draft)[0] == [2]


def test_a_job_s_own_gpus_count_as_room_for_its_better_deadline() -> None:
    options = by_hand((0, 0, 0, 2, 1, 1, 0, 9.0), (0, 1, 0, 1, 1, 2, 1, 4.0), must=(False,))
    draft = Draft(options, np.array([[2, 0]], dtype=np.int64))
    assert draft.put(1, np.array([0]))
    improve(draft, 0)
    assert (draft.row.tolist(), draft.free.tolist()) == ([0], [[0, 0]])


class NotedDraft(Draft):
    """A draft that notes the jobs whose leases were taken back, and those that were asked for their options."""

    def __init__(self, options: Options, capacity: Ints) -> None:
        super().__init__(options, capacity)
        self.tried: list[int] = []
        self.asked: list[int] = []

    def remove(self, job: int) -> Ints:
        self.tried.append(job)
        return super().remove(job)

    def ranked(self, job: int) -> list[int]:
        self.asked.append(job)
        return super().ranked(job)


@pytest.mark.parametrize(("gpus", "tried"), [(0, []), (1, [0, 1, 2]), (2, [0, 1, 2])])
def test_only_jobs_that_have_room_are_tried_where_no_failures_are_left(gpus: int, tried: list[int]) -> None:
    """All three have room for their best before the first gets it; after that none has, and nobody is tried again."""
    rows = [(job, 0, 0, 1, 1, 2 - at, at, (4.0, 9.0)[at]) for job in range(3) for at in range(2)]
    draft = NotedDraft(by_hand(*rows, must=(False,) * 3), np.array([[gpus, 3]], dtype=np.int64))
    for job in range(3):
        assert draft.put(2 * job, np.array([1]))
    improve(draft, 0)
    assert draft.tried == tried
    assert draft.row.tolist() == [2 * job + (job < gpus) for job in range(3)]


@pytest.mark.parametrize(("gpus", "row"), [(1, 2), (2, 1), (3, 0)])
def test_of_the_better_deadlines_a_job_gets_the_best_that_has_room_and_only_that(gpus: int, row: int) -> None:
    """It takes three GPUs, two or one, and has one of the second lease."""
    options = by_hand(
        (0, 0, 0, 3, 1, 1, 0, 9.0), (0, 1, 0, 2, 1, 1, 1, 7.0), (0, 2, 0, 1, 1, 1, 2, 5.0), (0, 2, 0, 1, 1, 2, 3, 2.0),
        must=(False,),
    )  # fmt: skip
    draft = Draft(options, np.array([[gpus, 1]], dtype=np.int64))
    assert draft.put(3, np.array([1]))
    improve(draft, 0)
    assert (draft.row.tolist(), leases_of(draft)) == ([row], [[0]])
    assert draft.free.tolist() == [[gpus - int(options.gpus[row]), 1]]


@pytest.mark.parametrize(("gpus", "row"), [(1, 2), (2, 1)])
def test_others_are_moved_for_the_best_of_the_better_deadlines_that_they_make_room_for(gpus: int, row: int) -> None:
    """A job of so many GPUs has all of the first lease and could have the second."""
    options = by_hand(
        (0, 0, 0, gpus, 1, 2, 0, 9.0),
        (1, 0, 0, 2, 1, 1, 0, 9.0), (1, 1, 0, 1, 1, 1, 1, 7.0), (1, 1, 0, 1, 1, 2, 2, 2.0),
        must=(False, False),
    )  # fmt: skip
    draft = Draft(options, np.array([[gpus, 3]], dtype=np.int64))
    assert draft.put(0, np.array([0]))
    assert draft.put(3, np.array([1]))
    improve(draft, 1)
    assert (draft.row.tolist(), leases_of(draft)) == ([0, row], [[1], [0]])
    assert draft.free.tolist() == [[gpus - int(options.gpus[row]), 3 - gpus]]


@pytest.mark.parametrize("failures", [0, 1])
def test_nothing_is_moved_without_failures_left_for_a_better_deadline_that_had_room(failures: int) -> None:
    """One GPU of the first lease is free for two jobs; the job that has the other could have the second lease."""
    rows = [(job, 0, 0, 1, 1, 2 - at, at, (4.0, 9.0)[at]) for job in range(2) for at in range(2)]
    draft = Draft(by_hand(*rows, (2, 0, 0, 1, 1, 2, 0, 9.0), must=(False,) * 3), np.array([[2, 3]], dtype=np.int64))
    for row, lease in ((0, 1), (2, 1), (4, 0)):
        assert draft.put(row, np.array([lease]))
    improve(draft, failures)
    assert draft.row.tolist() == [1, 2 + failures, 4]
    assert leases_of(draft)[2] == [failures]


@pytest.mark.parametrize("failures", [0, 1])
def test_a_job_that_has_no_room_is_not_tried_where_no_failures_are_left(failures: int) -> None:
    """The second has; the LP chose neither."""
    options = by_hand((0, 0, 0, 2, 1, 1, 0, 9.0), (1, 0, 0, 1, 1, 1, 0, 8.0), must=(False, False))
    draft = NotedDraft(options, np.array([[1], [0]], dtype=np.int64))
    LeaseShim(failures).fill(draft, wishes([-1, -1], [[0], [0]]))
    assert draft.asked == ([0, 1] if failures else [1])
    assert draft.row.tolist() == [-1, 1]
