"""The rules of preemption on random trees: what is stopped keeps to them, and the program's bound holds for it."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from copter_serve.queues import AdmissionModel, Ask, Quota, QuotaTree
from copter_serve.queues.fair_preemption import STRATEGIES, fair_victims
from copter_serve.queues.preemption import ALLOWED, Holder, Preemption, victims
from copter_serve.queues.preemption_rows import PreemptionRows
from copter_serve.queues.quota_tree import Share

GPU, CPU = ("a100", "gpu"), ("a100", "cpu")
Choose = Callable[[QuotaTree, Preemption, Holder, list[Holder]], "list[Holder] | None"]


class Lab:
    """Four queues with running and waiting workloads."""

    def __init__(self, seed: int, shares: tuple[Share, ...], nested: bool, fair: bool) -> None:
        self.rng = rng = random.Random(seed)
        self.tree, self.names = QuotaTree(), [f"q{at}" for at in range(4)]
        self.tree.fair = fair
        if nested:
            self.tree.add_cohort("lab", {share: Quota(rng.randint(0, 6)) for share in shares})
            for name in ("one", "other"):
                self.tree.add_cohort(name, {share: self.quota() for share in shares}, "lab", rng.choice([1, 2, 0]))
        for at, name in enumerate(self.names):
            above = ("one", "other")[at % 2] if nested and at < 3 else "lab"
            self.tree.add_queue(name, {share: self.quota() for share in shares}, above, rng.choice([1, 1, 2, 0]))
        self.tree.settle()
        self.holders: list[Holder] = []
        for at in range(10):
            amounts = {share: float(rng.randint(1, 3)) for share in shares}
            each = Holder(f"h{at}", rng.choice(self.names), amounts, rng.randint(0, 3), float(at), rng.uniform(0, 99))
            if self.tree.room(each.queue, amounts):
                self.holders.append(each)
                self.tree.use(each.queue, amounts)
        self.rules = {
            name: Preemption(*(rng.choice(each) for each in ALLOWED.values()), rng.choice([math.inf, 1.0]))
            for name in self.names
        }
        waiting = [
            Holder(f"x{at}", rng.choice(self.names), {share: float(rng.randint(0, 4)) for share in shares},
                   rng.randint(0, 4), 50.0 + at)
            for at in range(4)
        ]  # fmt: skip
        self.waiting = [each for each in waiting if any(each.amounts.values())]
        strategies = rng.choice(STRATEGIES)
        self.choose: Choose = victims
        if fair:
            self.choose = lambda tree, rules, asking, left: fair_victims(tree, rules, asking, left, strategies)

    def quota(self) -> Quota:
        limits = [self.rng.choice([math.inf, math.inf, 2.0, 0.0]) for _ in range(2)]
        return Quota(self.rng.randint(0, 6), *limits)

    def usage(self) -> dict[str, dict[Share, float]]:
        return {name: dict(node.used) for name, node in {**self.tree.queues, **self.tree.cohorts}.items()}


def value(each: Holder) -> float:
    return max(each.amounts[GPU], 1e-6) * 10 * (each.priority + 1)


def bound_of(lab: Lab) -> float:
    asks = [
        Ask(each.key, each.queue, (each.amounts,), value(each), each.priority, each.since_s) for each in lab.waiting
    ]
    model = AdmissionModel(lab.tree)
    rows = PreemptionRows(model, lab.rules, "gpu", lab.holders)
    model.update(asks)
    rows.update(asks)
    return model.plan().bound


CASES = [
    pytest.param(seed, shares, nested, fair, id=f"{seed}-{len(shares)}-{'nested' if nested else 'flat'}-{fair}")
    for shares in ((GPU,), (GPU, CPU))
    for nested in (False, True)
    for fair in (False, True)
    for seed in range(12)
]


@pytest.mark.parametrize(("seed", "shares", "nested", "fair"), CASES)
def test_the_bound_holds_for_what_the_rules_let_happen(
    seed: int, shares: tuple[Share, ...], nested: bool, fair: bool
) -> None:
    lab = Lab(seed, shares, nested, fair)
    tree, bound, before = lab.tree, bound_of(lab), lab.usage()
    for order in itertools.permutations(lab.waiting):
        left, reached, done = list(lab.holders), 0.0, []
        for each in order:
            gone = lab.choose(tree, lab.rules[each.queue], each, left)
            if gone is None:
                continue
            for other in gone:
                tree.use(other.queue, other.amounts, -1.0)
                done.append((other, 1.0))
                left.remove(other)
                reached -= other.amounts[GPU]
            assert tree.room(each.queue, each.amounts)
            tree.use(each.queue, each.amounts)
            done.append((each, -1.0))
            reached += value(each)
            assert reached <= bound + 1e-6
        for other, sign in done:
            tree.use(other.queue, other.amounts, sign)
    for name, used in lab.usage().items():
        assert used == pytest.approx(dict.fromkeys(used, 0.0) | before[name])


@pytest.mark.parametrize("seed", range(60))
def test_nobody_is_stopped_against_the_rules(seed: int) -> None:
    lab = Lab(seed, (GPU,), seed % 2 == 0, False)
    tree = lab.tree
    for asking in lab.waiting:
        rules, own = lab.rules[asking.queue], tree.queues[asking.queue]
        found = victims(tree, rules, asking, lab.holders) or []
        before = lab.usage()
        for each in found:
            node = tree.queues[each.queue]
            if each.queue == asking.queue:
                assert rules.within != "Never"
                assert each.priority <= asking.priority
            else:
                assert rules.reclaim == "Any" or (rules.reclaim == "LowerPriority" and each.priority < asking.priority)
                assert before[each.queue][GPU] > node.subtree[GPU]
            tree.use(each.queue, each.amounts, -1.0)
        if found:
            assert tree.room(asking.queue, asking.amounts)
            flat = own.parent is not None and tree.cohorts[own.parent].parent is None
            if flat and rules.borrow == "Never" and any(each.queue != asking.queue for each in found):
                assert own.used.get(GPU, 0.0) + asking.amounts[GPU] <= own.subtree[GPU]
        for each in found:
            tree.use(each.queue, each.amounts)


def test_what_a_stop_frees_below_a_borrowing_limit_counts_for_the_others_of_that_queue() -> None:
    tree = QuotaTree()
    tree.add_queue("q0", {GPU: Quota(4.0)}, "lab")
    tree.add_queue("q1", {GPU: Quota(2.0, borrowing=2.0)}, "lab")
    tree.settle()
    holders = [Holder(f"h{size}", "q1", {GPU: size}, 0, 0.0) for size in (3.0, 1.0)]
    for each in holders:
        tree.use(each.queue, each.amounts)
    asks = [Ask("x", "q0", ({GPU: 4.0},), 40.0, 5, 1.0), Ask("y", "q1", ({GPU: 1.0},), 10.0, 1, 2.0)]
    model = AdmissionModel(tree)
    rules = {name: Preemption("Never", "Any") for name in ("q0", "q1")}
    rows = PreemptionRows(model, rules, "gpu", holders)
    model.update(asks)
    rows.update(asks)
    # x stops the workload of 3, one more than it needs, for which y may start
    asking = Holder("x", "q0", {GPU: 4.0}, 5, 1.0)
    assert victims(tree, rules["q0"], asking, holders[:1]) == holders[:1]
    assert model.plan().bound >= 40.0 - 3.0 + 10.0 - 1e-6


def test_a_workload_of_two_resources_may_free_much_of_the_other_one() -> None:
    tree = QuotaTree()
    tree.add_queue("q0", {GPU: Quota(4.0), CPU: Quota(40.0)}, "lab")
    tree.add_queue("q1", {GPU: Quota(1.0, lending=0.0), CPU: Quota(0.0)}, "lab")
    tree.settle()
    holders = [Holder(f"h{at}", "q0", {GPU: 1.0, CPU: 10.0}, 0, 0.0) for at in range(4)]
    for each in holders:
        tree.use(each.queue, each.amounts)
    asks = [
        Ask("x", "q0", ({GPU: 4.0, CPU: 1.0},), 40.0, 5, 1.0),
        Ask("y", "q1", ({GPU: 1.0, CPU: 39.0},), 100.0, 0, 2.0),
    ]
    model = AdmissionModel(tree)
    rows = PreemptionRows(model, {"q0": Preemption("LowerPriority")}, "gpu", holders)
    model.update(asks)
    rows.update(asks)
    found = victims(tree, Preemption("LowerPriority"), Holder("x", "q0", {GPU: 4.0, CPU: 1.0}, 5, 1.0), holders)
    assert found is not None
    assert len(found) == 4
    assert model.plan().bound >= 40.0 - 4.0 + 100.0 - 1e-6
