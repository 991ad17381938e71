"""Who may be stopped for whom, by Kueue's rules."""

from __future__ import annotations

import itertools
import random

import pytest

from copter_frontends.queues import AdmissionModel, Ask, QueueError, Quota, QuotaTree
from copter_frontends.queues.preemption import Holder, Preemption, victims
from copter_frontends.queues.preemption_rows import PreemptionRows

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


@pytest.mark.parametrize("seed", range(30))
def test_no_decision_is_against_the_quotas_or_the_rules(seed: int) -> None:
    rng = random.Random(seed)
    tree = cohort(*(rng.randint(0, 6) for _ in range(3)))
    holders = []
    for at in range(8):
        told = (f"h{at}", f"q{rng.randint(0, 2)}", float(rng.randint(1, 3)), rng.randint(0, 3))
        if tree.room(told[1], {GPU: told[2]}):
            holders += hold(tree, told)
    before = {name: node.used.get(GPU, 0.0) for name, node in tree.queues.items()}
    rules = Preemption(rng.choice(["Never", "LowerPriority"]), rng.choice(["Never", "LowerPriority", "Any"]))
    asking = Holder("x", f"q{rng.randint(0, 2)}", {GPU: float(rng.randint(1, 4))}, rng.randint(0, 4), 99.0)
    found = victims(tree, rules, asking, holders)
    assert {name: node.used.get(GPU, 0.0) for name, node in tree.queues.items()} == pytest.approx(before)
    if found is None:
        return
    for each in found:
        if each.queue == asking.queue:
            assert rules.within == "LowerPriority"
            assert each.priority < asking.priority
        else:
            assert rules.reclaim == "Any" or (rules.reclaim == "LowerPriority" and each.priority < asking.priority)
            assert before[each.queue] > tree.queues[each.queue].quotas[GPU].nominal
        tree.use(each.queue, each.amounts, -1.0)
    assert tree.room(asking.queue, asking.amounts)
    if any(each.queue != asking.queue for each in found):
        own = tree.queues[asking.queue]
        assert own.used.get(GPU, 0.0) + asking.amounts[GPU] <= own.quotas[GPU].nominal
    for each in found:  # none of them could stay
        tree.use(each.queue, each.amounts)
        assert not tree.room(asking.queue, asking.amounts)
        tree.use(each.queue, each.amounts, -1.0)


@pytest.mark.parametrize("seed", range(30))
def test_the_programs_bound_holds_for_what_the_rules_let_happen(seed: int) -> None:
    rng = random.Random(seed)
    tree = cohort(*(rng.randint(0, 6) for _ in range(3)))
    holders = []
    for at in range(8):
        told = (f"h{at}", f"q{rng.randint(0, 2)}", float(rng.randint(1, 3)), rng.randint(0, 3))
        if tree.room(told[1], {GPU: told[2]}):
            holders += hold(tree, told)
    kinds = [("Never", "LowerPriority"), ("Never", "LowerPriority", "Any"), ("Never", "LowerPriority")]
    rules = {f"q{at}": Preemption(*(rng.choice(each) for each in kinds)) for at in range(3)}
    waiting = [
        Holder(f"x{at}", f"q{rng.randint(0, 2)}", {GPU: float(rng.randint(1, 4))}, rng.randint(1, 4), 50.0 + at)
        for at in range(3)
    ]
    asks = [
        Ask(each.key, each.queue, (each.amounts,), each.amounts[GPU] * 10 * each.priority, each.priority, each.since_s)
        for each in waiting
    ]
    model = AdmissionModel(tree)
    rows = PreemptionRows(model, rules, "gpu", holders)
    model.update(asks)
    rows.update(asks)
    bound = model.plan().bound
    for order in itertools.permutations(waiting):
        left, value, done = list(holders), 0.0, []
        for each in order:
            if tree.room(each.queue, each.amounts):
                gone: list[Holder] | None = []
            else:
                gone = victims(tree, rules[each.queue], each, left)
            if gone is None:
                continue
            for other in gone:
                tree.use(other.queue, other.amounts, -1.0)
                done.append((other, 1.0))
                left.remove(other)
                value -= other.amounts[GPU]
            tree.use(each.queue, each.amounts)
            done.append((each, -1.0))
            value += each.amounts[GPU] * 10 * each.priority
        for other, sign in done:
            tree.use(other.queue, other.amounts, sign)
        assert value <= bound + 1e-6


def test_rules_that_there_are_none() -> None:
    with pytest.raises(QueueError, match="reclaim is 'Always'; it must be one of Never"):
        Preemption(reclaim="Always")
