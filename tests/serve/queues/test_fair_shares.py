"""Kueue's fair sharing: shares, the order of admission, and who may be stopped."""

from __future__ import annotations

import math

import pytest

from copter_serve.queues import AdmissionModel, Ask, QueueError, Quota, QuotaError, QuotaTree
from copter_serve.queues.fair_preemption import FINAL, INITIAL, fair_victims, require_strategies
from copter_serve.queues.fair_shares import FairShares
from copter_serve.queues.preemption import Holder, Preemption
from copter_serve.queues.tournament import Tournament

GPU, CPU = ("a100", "gpu"), ("a100", "cpu")
ANY = Preemption(within="LowerPriority", reclaim="Any")


def lab(weights: dict[str, float], free: float = 12.0) -> QuotaTree:
    """Queues of 4 GPUs and 40 CPUs each, in a cohort that has `free` GPUs of its own to lend."""
    tree = QuotaTree()
    tree.add_cohort("lab", {GPU: Quota(free)})
    for name, weight in weights.items():
        tree.add_queue(name, {GPU: Quota(4.0), CPU: Quota(40.0)}, "lab", weight)
    tree.fair = True
    return tree.settle()


def ask(key: str, queue: str, gpus: float, priority: int = 0, since_s: float = 0.0, count: int = 1) -> Ask:
    return Ask(key, queue, ({GPU: gpus},), gpus, priority, since_s, count)


def test_the_share_is_the_dominant_resource_above_the_quota_by_the_weight() -> None:
    tree = lab({"red": 1.0, "blue": 2.0, "none": 0.0})
    shares = FairShares(tree)
    tree.use("red", {GPU: 4.0, CPU: 40.0})
    assert shares.share(tree.queues["red"]) == 0.0  # all within its quota
    tree.use("red", {GPU: 6.0, CPU: 12.0})
    tree.use("blue", {GPU: 10.0})
    tree.use("none", {GPU: 5.0})
    assert shares.share(tree.queues["red"]) == pytest.approx(max(6.0 / 24.0, 12.0 / 120.0))
    assert shares.share(tree.queues["blue"]) == pytest.approx(6.0 / 24.0 / 2.0)
    assert shares.share(tree.queues["none"]) == math.inf


def test_flavors_of_a_resource_count_together() -> None:
    tree = QuotaTree()
    for name in ("one", "two"):
        tree.add_queue(name, {("a100", "gpu"): Quota(4.0), ("h100", "gpu"): Quota(2.0)}, "lab")
    shares = FairShares(tree.settle())
    tree.use("one", {("a100", "gpu"): 6.0, ("h100", "gpu"): 3.0})
    assert shares.share(tree.queues["one"]) == pytest.approx(3.0 / 12.0)


def test_a_cohorts_share_counts_before_those_of_its_queues() -> None:
    tree = QuotaTree()
    tree.add_cohort("all", {GPU: Quota(8.0)})
    for team in ("left", "right"):
        tree.add_cohort(team, parent="all")
    tree.add_queue("l1", {GPU: Quota(0.0)}, "left")
    tree.add_queue("l2", {GPU: Quota(0.0)}, "left")
    tree.add_queue("r1", {GPU: Quota(0.0)}, "right")
    tree.settle()
    shares = FairShares(tree)
    tree.use("l1", {GPU: 3.0})
    tree.use("r1", {GPU: 2.0})
    assert shares.standing("l2") == (3.0 / 8.0, 0.0)
    order = [each.key for each in Tournament(shares, [ask("l", "l2", 1.0), ask("r", "r1", 1.0)])]
    assert order == ["r", "l"]


@pytest.mark.parametrize(("weights", "expected"), [((1.0, 1.0), (6, 6)), ((2.0, 1.0), (8, 4)), ((1.0, 0.0), (12, 0))])
def test_what_can_be_lent_goes_by_weight_and_not_by_priority(
    weights: tuple[float, float], expected: tuple[int, int]
) -> None:
    tree = lab(dict(zip(("red", "blue"), weights, strict=True)))
    for name in tree.queues:
        tree.use(name, {GPU: 4.0})
    model = AdmissionModel(tree)
    model.update([ask("r", "red", 1.0, count=30), ask("b", "blue", 1.0, priority=9, count=30)])
    plan = model.plan()
    assert tuple(sum(plan.starts.get(key, [0])) for key in ("r", "b")) == expected
    assert plan.value <= plan.bound + 1e-6


def test_of_equal_shares_the_higher_priority_then_the_older_goes_first() -> None:
    tree = lab({"red": 1.0, "blue": 1.0, "green": 1.0})
    asks = [
        ask("low", "red", 1.0),
        ask("young", "blue", 1.0, priority=1, since_s=5.0),
        ask("old", "green", 1.0, priority=1),
        ask("last", "green", 1.0, since_s=1.0),
    ]
    assert [each.key for each in Tournament(FairShares(tree), asks)] == ["old", "young", "low", "last"]


def test_a_cohort_nominates_its_member_with_the_lowest_share_and_not_its_smallest_workload() -> None:
    tree = QuotaTree()
    tree.add_cohort("lab", {GPU: Quota(20.0)})
    tree.add_cohort("team", parent="lab")
    for name, above in (("rich", "team"), ("poor", "team"), ("other", "lab")):
        tree.add_queue(name, {GPU: Quota(0.0)}, above)
    tree.settle().use("rich", {GPU: 3.0})
    asks = [ask("small", "rich", 1.0), ask("large", "poor", 2.0), ask("middle", "other", 4.5)]
    # with "large" the team would use 5, more than the 4.5 of "middle"; with "small" 4, but "rich" is richer
    assert [each.key for each in Tournament(FairShares(tree), asks)] == ["middle", "large", "small"]


def test_who_borrows_nothing_of_what_he_asks_for_goes_first_whatever_his_share() -> None:
    tree = lab({"red": 1.0, "blue": 1.0, "alone": 1.0})
    tree.use("blue", {CPU: 60.0})
    tree.use("red", {GPU: 4.0})
    shares = FairShares(tree)
    assert shares.standing("blue") > shares.standing("red", {GPU: 1.0})
    asks = [ask("borrows", "red", 1.0, priority=9), ask("within", "blue", 4.0), ask("then", "blue", 1.0)]
    order = []
    for each in Tournament(shares, asks):
        order.append(each.key)
        tree.use(each.queue, each.options[0])
    assert order == ["within", "borrows", "then"]


def test_queues_without_a_cohort_take_their_own_order() -> None:
    tree = QuotaTree()
    for name in ("one", "two"):
        tree.add_queue(name, {GPU: Quota(4.0)})
    tree.add_queue("member", {GPU: Quota(4.0)}, "one")  # a cohort of the same name
    asks = [ask("low", "one", 1.0, count=2), ask("high", "one", 1.0, priority=1), ask("other", "two", 1.0)]
    asks += [ask("shares", "member", 1.0)]
    found = [str(each.key) for each in Tournament(FairShares(tree.settle()), asks)]
    assert [key for key in found if key not in ("other", "shares")] == ["high", "low", "low"]
    assert sorted(found) == ["high", "low", "low", "other", "shares"]


def hold(tree: QuotaTree, *told: tuple[str, str, float, int]) -> list[Holder]:
    holders = [Holder(key, queue, {GPU: size}, priority, at) for at, (key, queue, size, priority) in enumerate(told)]
    for each in holders:
        tree.use(each.queue, each.amounts)
    return holders


def stopped(
    tree: QuotaTree, queue: str, size: float, holders: list[Holder], rules: Preemption = ANY,
    strategies: tuple[str, ...] = (FINAL, INITIAL),
) -> list[str] | None:  # fmt: skip
    used = {name: dict(node.used) for name, node in tree.queues.items()}
    found = fair_victims(tree, rules, Holder("x", queue, {GPU: size}, 0, 9.0), holders, strategies)
    assert {name: node.used for name, node in tree.queues.items()} == {
        name: {**used[name], GPU: used[name].get(GPU, 0.0)} for name in used
    }
    return None if found is None else sorted(each.key for each in found)


def test_a_borrower_may_stop_who_borrows_more_and_only_down_to_equal_shares() -> None:
    tree = lab({"red": 1.0, "blue": 1.0}, free=8.0)
    holders = hold(tree, *((f"r{at}", "red", 2.0, 5) for at in range(6)), ("b", "blue", 4.0, 0))
    assert stopped(tree, "blue", 2.0, holders) == ["r5"]  # the newest; its higher priority does not matter
    assert stopped(tree, "blue", 4.0, holders) == ["r4", "r5"]
    assert stopped(tree, "blue", 6.0, holders) is None  # then blue would borrow 6, and red 2
    assert stopped(tree, "blue", 2.0, holders, Preemption(reclaim="LowerPriority")) is None
    assert stopped(tree, "red", 2.0, holders) is None


def test_a_weight_lets_a_queue_take_more() -> None:
    tree = lab({"red": 1.0, "blue": 3.0}, free=8.0)
    holders = hold(tree, *((f"r{at}", "red", 2.0, 5) for at in range(6)), ("b", "blue", 4.0, 0))
    assert stopped(tree, "blue", 6.0, holders) == ["r3", "r4", "r5"]


def test_a_large_workload_gives_way_if_its_queue_has_the_larger_share() -> None:
    tree = lab({"red": 1.0, "blue": 1.0}, free=8.0)
    holders = hold(tree, ("huge", "red", 12.0, 5), ("b", "blue", 4.0, 0))
    assert stopped(tree, "blue", 2.0, holders) == ["huge"]  # without it red would be below blue, with it above


def test_a_queue_within_its_quota_reclaims_it() -> None:
    tree = lab({"red": 1.0, "blue": 1.0}, free=0.0)
    holders = hold(tree, ("r0", "red", 4.0, 5), ("r1", "red", 4.0, 5))
    assert stopped(tree, "blue", 4.0, holders) == ["r1"]
    assert stopped(tree, "blue", 8.0, holders) is None


def test_each_strategy_compares_the_shares_in_its_own_way() -> None:
    tree = lab({"red": 1.0, "blue": 1.0}, free=8.0)
    holders = hold(tree, ("large", "red", 8.0, 0), ("small", "red", 4.0, 5), ("b", "blue", 4.0, 0))
    assert stopped(tree, "blue", 2.0, holders, strategies=(FINAL,)) == ["small"]  # red keeps the larger share
    assert stopped(tree, "blue", 2.0, holders, strategies=(INITIAL,)) == ["large"]  # the lowest priority
    assert stopped(tree, "blue", 2.0, holders) == ["small"]
    only_large = [each for each in holders if each.key != "small"]
    assert stopped(tree, "blue", 2.0, only_large, strategies=(FINAL,)) is None
    assert stopped(tree, "blue", 2.0, only_large) == ["large"]


def test_a_queue_within_its_quota_of_what_lacks_reclaims_it_though_it_borrows_something_else() -> None:
    tree = lab({"red": 1.0, "blue": 1.0}, free=0.0)
    holders = hold(tree, ("r0", "red", 4.0, 5), ("r1", "red", 2.0, 5))
    tree.use("blue", {CPU: 60.0})  # a share of a quarter, as large as red's
    assert stopped(tree, "blue", 4.0, holders) == ["r1"]


def test_in_a_tree_the_cohort_with_the_largest_share_gives_and_in_it_its_largest_borrower() -> None:
    tree = QuotaTree()
    tree.add_cohort("lab", {GPU: Quota(12.0)})
    for name in ("one", "two"):
        tree.add_cohort(name, None, "lab")
    for name, above in (("a", "one"), ("b", "one"), ("c", "two"), ("d", "lab")):
        tree.add_queue(name, {GPU: Quota(1.0)}, above)
    tree.fair = True
    told = [("a0", "a", 2.0, 0), ("b0", "b", 2.0, 9), ("b1", "b", 2.0, 9), ("b2", "b", 2.0, 9)]
    holders = hold(tree.settle(), *told, *((f"c{at}", "c", 1.0, 0) for at in range(6)), ("d0", "d", 2.0, 0))
    assert tree.available("d", GPU) == 0.0
    # cohort one borrows 6 of 16, two 5; c borrows more than any other queue, b more than a
    assert stopped(tree, "d", 1.0, holders) == ["b2"]


def test_only_the_lists_of_strategies_that_kueue_accepts() -> None:
    assert require_strategies([INITIAL]) == (INITIAL,)
    with pytest.raises(QueueError, match="strategies are LessThanInitialShare, LessThanOrEqualToFinalShare; Kueue acc"):
        require_strategies([INITIAL, FINAL])
    with pytest.raises(QueueError, match="strategies are none"):
        require_strategies([])


@pytest.mark.parametrize("weight", [-1.0, 1e-10, math.inf, math.nan])
def test_a_weight_that_is_none(weight: float) -> None:
    with pytest.raises(QuotaError, match=r"queue 'q' has the weight .*: it must be 0 or above 1e-09"):
        QuotaTree().add_queue("q", {}, None, weight)
