"""Who may be stopped for whom, by Kueue's rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from copter_serve.queues import QueueError, Quota, QuotaTree
from copter_serve.queues.fair_preemption import fair_victims
from copter_serve.queues.preemption import Holder, Preemption, victims

GPU = ("a100", "gpu")


def cohort(*nominal: float) -> QuotaTree:
    tree = QuotaTree()
    for at, each in enumerate(nominal):
        tree.add_queue(f"q{at}", {GPU: Quota(each)}, "lab")
    return tree.settle()


def hold(tree: QuotaTree, *told: tuple[str, str, float, int]) -> list[Holder]:
    holders = [Holder(key, queue, {GPU: size}, priority, at) for at, (key, queue, size, priority) in enumerate(told)]
    for each in holders:
        tree.use(each.queue, each.amounts)
    return holders


def names(found: list[Holder] | None) -> list[str] | None:
    return None if found is None else sorted(each.key for each in found)


def test_within_a_queue_lower_priorities_go_and_no_more_than_needed() -> None:
    tree = cohort(8)
    holders = hold(tree, ("low", "q0", 2, 1), ("mid", "q0", 4, 2), ("new", "q0", 2, 5))
    asking = Holder("x", "q0", {GPU: 4.0}, 5, 1.5)
    assert names(victims(tree, Preemption(), asking, holders)) is None
    assert names(victims(tree, Preemption(within="LowerPriority"), asking, holders)) == ["mid"]
    larger = Holder("x", "q0", {GPU: 8.0}, 5, 1.5)
    assert names(victims(tree, Preemption(within="LowerPriority"), larger, holders)) is None
    both = names(victims(tree, Preemption(within="LowerOrNewerEqualPriority"), larger, holders))
    assert both == ["low", "mid", "new"]
    assert tree.queues["q0"].used[GPU] == 8


def test_a_queue_reclaims_what_is_its_own_and_no_more() -> None:
    tree = cohort(4, 4)
    holders = hold(tree, ("b0", "q1", 4, 9), ("b1", "q1", 2, 9), ("b2", "q1", 2, 9))
    asking = Holder("x", "q0", {GPU: 2.0}, 1, 9.0)
    assert names(victims(tree, Preemption(reclaim="LowerPriority"), asking, holders)) is None
    assert names(victims(tree, Preemption(reclaim="Any"), asking, holders)) == ["b2"]
    too_large = Holder("x", "q0", {GPU: 5.0}, 1, 9.0)
    assert names(victims(tree, Preemption(reclaim="Any"), too_large, holders)) is None


def test_a_borrower_stops_lower_ones_up_to_the_threshold() -> None:
    tree = cohort(4, 4)
    holders = hold(tree, ("b0", "q1", 3, 3), ("b1", "q1", 5, 1))
    asking = Holder("x", "q0", {GPU: 5.0}, 5, 9.0)
    assert names(victims(tree, Preemption(reclaim="Any"), asking, holders)) is None
    assert names(victims(tree, Preemption(reclaim="Any", borrow="LowerPriority"), asking, holders)) == ["b1"]
    capped = Preemption(reclaim="Any", borrow="LowerPriority", borrow_most=0)
    assert names(victims(tree, capped, asking, holders)) is None


def test_equal_priorities_of_one_queue_go_by_arrival_and_not_by_start() -> None:
    tree = cohort(4)
    (late,) = hold(tree, ("late", "q0", 4, 5))
    early = Holder("early", "q0", late.amounts, 5, since_s=3.0, came_s=0.5)
    rules = Preemption(within="LowerOrNewerEqualPriority")
    asking = Holder("x", "q0", {GPU: 4.0}, 5, 1.0)
    assert names(victims(tree, rules, asking, [early])) is None  # it started after the asking one, but came before
    assert names(victims(tree, rules, asking, [Holder("new", "q0", late.amounts, 5, 3.0, 2.0)])) == ["new"]


def test_without_borrowing_a_workload_larger_than_the_quota_stops_nobody() -> None:
    tree = cohort(4, 4)
    holders = hold(tree, ("own", "q0", 8, 0))
    asking = Holder("x", "q0", {GPU: 5.0}, 9, 9.0)
    assert names(victims(tree, Preemption(within="LowerPriority"), asking, holders)) is None
    within_quota = Holder("x", "q0", {GPU: 4.0}, 9, 9.0)
    assert names(victims(tree, Preemption(within="LowerPriority"), within_quota, holders)) == ["own"]
    may_borrow = Preemption("LowerPriority", "LowerPriority", "LowerPriority")
    assert names(victims(tree, may_borrow, asking, holders)) == ["own"]


def test_where_others_do_not_free_enough_the_queues_own_are_stopped_and_it_borrows_on() -> None:
    tree = cohort(4, 4)
    holders = hold(tree, ("own", "q0", 3, 0), ("b", "q1", 5, 9))
    asking = Holder("x", "q0", {GPU: 3.0}, 5, 9.0)
    # within its quota by reclaim, q0 has to stop b or its own; b's priority is higher
    assert names(victims(tree, Preemption("LowerPriority", "LowerPriority"), asking, holders)) == ["own"]
    assert names(victims(tree, Preemption("LowerPriority", "Any"), asking, holders)) == ["own"]
    assert names(victims(tree, Preemption("Never", "Any"), asking, holders)) is None


def test_borrowing_while_it_preempts_needs_reclaim() -> None:
    tree = cohort(4, 4)
    holders = hold(tree, ("b", "q1", 8, 1))
    asking = Holder("x", "q0", {GPU: 4.0}, 5, 9.0)
    assert names(victims(tree, Preemption(borrow="LowerPriority"), asking, holders)) is None
    assert names(victims(tree, Preemption(reclaim="LowerPriority"), asking, holders)) == ["b"]


def test_a_workload_that_is_being_stopped_already_makes_room_before_another_is() -> None:
    tree = cohort(4)
    holders = hold(tree, ("low", "q0", 2, 0), ("leaves", "q0", 2, 3))
    leaves = replace(holders[1], evicted=True)
    asking = Holder("x", "q0", {GPU: 2.0}, 5, 9.0)
    rules = Preemption(within="LowerPriority")
    assert names(victims(tree, rules, asking, holders)) == ["low"]
    assert names(victims(tree, rules, asking, [holders[0], leaves])) == ["leaves"]
    tree.fair = True
    assert names(fair_victims(tree, rules, asking, [holders[0], leaves])) == ["leaves"]


def halves(one: float, other: float) -> QuotaTree:
    """Two cohorts with quotas of their own below a common one; q0 and q1 are in the first, q2 and q3 in the second."""
    tree = QuotaTree()
    tree.add_cohort("lab")
    tree.add_cohort("one", {GPU: Quota(one)}, "lab")
    tree.add_cohort("other", {GPU: Quota(other)}, "lab")
    for at, above in enumerate(("one", "one", "other", "other")):
        tree.add_queue(f"q{at}", {GPU: Quota(0.0)}, above)
    return tree.settle()


def test_a_workload_that_fits_its_cohorts_quota_reclaims_it_from_outside_whatever_the_priority() -> None:
    tree = halves(4, 4)
    holders = hold(tree, ("out", "q2", 8, 9))
    asking = Holder("x", "q0", {GPU: 4.0}, 1, 9.0)
    assert names(victims(tree, Preemption(reclaim="Any"), asking, holders)) == ["out"]
    assert names(victims(tree, Preemption(reclaim="LowerPriority"), asking, holders)) is None
    larger = Holder("x", "q0", {GPU: 5.0}, 1, 9.0)  # no quota below the top holds it
    assert names(victims(tree, Preemption(reclaim="Any"), larger, holders)) is None


def test_a_borrower_in_its_own_cohort_has_no_advantage_over_its_sister() -> None:
    tree = halves(4, 4)
    holders = hold(tree, ("sister", "q1", 4, 0), ("out", "q2", 4, 0))
    asking = Holder("x", "q0", {GPU: 4.0}, 9, 9.0)
    assert names(victims(tree, Preemption(reclaim="Any"), asking, holders)) is None
    assert names(victims(tree, Preemption("Never", "Any", "LowerPriority"), asking, holders)) == ["sister"]


def test_a_cohort_within_its_quota_shields_queues_that_borrow_from_it() -> None:
    tree = halves(8, 4)
    holders = hold(tree, ("mine", "q1", 8, 0), ("theirs", "q2", 4, 0))
    asking = Holder("x", "q0", {GPU: 2.0}, 9, 9.0)
    # q2 uses more than its own quota of zero, but no more than its cohort's: nobody outside may stop it
    may_borrow = Preemption("Never", "LowerPriority", "LowerPriority")
    assert names(victims(tree, may_borrow, asking, holders)) == ["mine"]
    assert names(victims(tree, may_borrow, asking, [each for each in holders if each.key == "theirs"])) is None


def test_those_with_the_advantage_go_before_lower_priorities() -> None:
    tree = QuotaTree()
    tree.add_cohort("lab")
    tree.add_cohort("one", {GPU: Quota(6.0)}, "lab")
    tree.add_queue("q0", {GPU: Quota(0.0)}, "one")
    tree.add_queue("q1", {GPU: Quota(0.0)}, "one")
    tree.add_queue("q2", {GPU: Quota(0.0)}, "lab")
    holders = hold(tree.settle(), ("near", "q1", 2, 0), ("far", "q2", 4, 3))
    asking = Holder("x", "q0", {GPU: 2.0}, 5, 9.0)
    assert names(victims(tree, Preemption("Never", "LowerPriority", "LowerPriority"), asking, holders)) == ["far"]


def test_rules_that_there_are_none() -> None:
    with pytest.raises(QueueError, match="reclaim is 'Always'; it must be one of Never"):
        Preemption(reclaim="Always")
