"""Quotas in a tree of cohorts: what may be used, and what cannot be a quota."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from copter_serve.queues import AdmissionModel, Ask, QueueError, Quota, QuotaError, QuotaTree
from copter_serve.queues.quantities import quantity

CPU = ("default", "cpu")


def one_cohort(*quotas: Quota) -> QuotaTree:
    tree = QuotaTree()
    for at, quota in enumerate(quotas):
        tree.add_queue(f"q{at}", {CPU: quota}, "team")
    return tree.settle()


def test_a_queue_borrows_what_others_leave_up_to_its_limit() -> None:
    tree = one_cohort(Quota(4, borrowing=3), Quota(10))
    assert tree.available("q0", CPU) == 7
    tree.use("q1", {CPU: 9})
    assert tree.available("q0", CPU) == 5
    tree.use("q0", {CPU: 5})
    assert tree.available("q1", CPU) == 0
    tree.use("q0", {CPU: 5}, -1)
    assert tree.available("q1", CPU) == 5


def test_what_is_not_lent_stays_with_its_owner() -> None:
    tree = one_cohort(Quota(4), Quota(10, lending=3))
    assert tree.available("q0", CPU) == 7
    tree.use("q0", {CPU: 7})
    assert tree.available("q1", CPU) == 7
    tree.use("q1", {CPU: 7})
    assert tree.available("q1", CPU) == 0


def test_a_cohorts_limits_hold_for_all_below_it() -> None:
    tree = QuotaTree()
    tree.add_cohort("top", {CPU: Quota(10)})
    tree.add_cohort("mid", {CPU: Quota(1, borrowing=2)}, "top")
    tree.add_queue("a", {CPU: Quota(1)}, "mid")
    tree.add_queue("b", {CPU: Quota(0)}, "mid")
    tree.settle()
    assert tree.available("a", CPU) == 4
    tree.use("a", {CPU: 3})
    assert tree.available("b", CPU) == 1


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda tree: tree.add_queue("q", {CPU: Quota(-1)}), "nominal quota is -1"),
        (lambda tree: tree.add_queue("q", {CPU: Quota(math.nan)}), "nominal quota is nan"),
        (lambda tree: tree.add_queue("q", {CPU: Quota(1, borrowing=2)}), "needs a cohort to borrow from"),
        (lambda tree: tree.add_queue("q", {CPU: Quota(1, lending=2)}), "needs a cohort to lend to"),
        (lambda tree: [tree.add_queue("q", {}), tree.add_queue("q", {})], "described twice"),
        (
            lambda tree: [tree.add_cohort("x", parent="y"), tree.add_cohort("y", parent="x"), tree.settle()],
            "in a circle",
        ),
    ],
)
def test_quotas_that_contradict_each_other_are_named(make: object, says: str) -> None:
    with pytest.raises(QuotaError, match=says):
        make(QuotaTree())  # type: ignore[operator]


def random_tree(rng: random.Random) -> QuotaTree:
    tree = QuotaTree()
    tree.add_cohort("top", {CPU: Quota(rng.randint(0, 3))})
    limits = rng.choice([math.inf, 1, 4]), rng.choice([math.inf, 0, 2])
    tree.add_cohort("mid", {CPU: Quota(rng.randint(0, 3), *limits)}, "top")
    for at in range(4):
        limits = rng.choice([math.inf, 0, 3]), rng.choice([math.inf, 0, 2, 4])
        tree.add_queue(f"q{at}", {CPU: Quota(rng.randint(0, 6), *limits)}, rng.choice(["top", "mid"]))
    return tree.settle()


@pytest.mark.parametrize("seed", range(25))
def test_the_bound_holds_for_every_admission_and_the_plan_keeps_to_the_quotas(seed: int) -> None:
    rng = random.Random(seed)
    tree = random_tree(rng)
    for at in range(4):
        use = rng.randint(0, 2)
        if tree.room(f"q{at}", {CPU: 1.0}) >= use:
            tree.use(f"q{at}", {CPU: float(use)})
    before = {name: dict(node.used) for name, node in {**tree.queues, **tree.cohorts}.items()}
    asks = []
    for at in range(6):
        size = float(rng.randint(1, 5))
        asks.append(Ask(at, f"q{rng.randint(0, 3)}", ({CPU: size},), size + 0.1 * rng.random()))
    model = AdmissionModel(tree)
    model.update(asks)
    plan = model.plan()
    after = {name: dict(node.used) for name, node in {**tree.queues, **tree.cohorts}.items()}
    assert all(after[name].get(CPU, 0.0) == pytest.approx(before[name].get(CPU, 0.0)) for name in before)

    best = 0.0
    for picked in itertools.product([False, True], repeat=len(asks)):
        taken = []
        for ask in itertools.compress(asks, picked):
            if tree.room(ask.queue, ask.options[0]) < 1:
                break
            tree.use(ask.queue, ask.options[0])
            taken.append(ask)
        else:
            best = max(best, sum(ask.value for ask in taken))
        for ask in taken:
            tree.use(ask.queue, ask.options[0], -1)
    assert plan.value <= best + 1e-9
    searched = model.plan(searched=True)
    assert max(plan.value, 0.8 * best) - 1e-9 <= searched.value <= best + 1e-9
    assert searched.bound >= best - 1e-6
    assert plan.bound_is_certified
    assert plan.bound >= best - 1e-6
    assert plan.lp_value >= best - 1e-6


def test_the_model_is_edited_not_rebuilt() -> None:
    tree = one_cohort(Quota(4), Quota(4))
    model = AdmissionModel(tree)
    model.update([Ask("a", "q0", ({CPU: 6.0},), 6.0), Ask("b", "q1", ({CPU: 3.0},), 3.0)])
    assert model.plan(searched=True).starts == {"a": [1]}
    tree.use("q0", {CPU: 6.0})
    assert model.update([Ask("b", "q1", ({CPU: 3.0},), 3.0)]) == 1
    assert model.plan().starts == {}
    tree.use("q0", {CPU: 6.0}, -1)
    assert model.update([Ask("b", "q1", ({CPU: 3.0},), 3.0)]) == 0
    assert model.plan().starts == {"b": [1]}


def test_the_preferred_flavor_is_taken_where_both_have_room() -> None:
    tree = QuotaTree()
    spot = ("spot", "cpu")
    tree.add_queue("q", {CPU: Quota(4), spot: Quota(8)})
    model = AdmissionModel(tree.settle())
    model.update([Ask("a", "q", ({CPU: 3.0}, {spot: 3.0}), 3.0, count=3)])
    assert model.plan().starts == {"a": [1, 2]}
    model.update([Ask("a", "q", ({("none", "cpu"): 3.0}, {spot: 3.0}), 3.0)])
    assert model.plan().starts == {"a": [0, 1]}


def test_asks_that_cannot_be_leave_the_model_as_it_was() -> None:
    model = AdmissionModel(one_cohort(Quota(4)))
    good = Ask("a", "q0", ({CPU: 1.0},), 1.0)
    model.update([good])
    for bad, says in (
        (Ask("b", "q9", ({CPU: 1.0},), 1.0), "no queue 'q9'"),
        (Ask("b", "q0", (), 1.0), "no flavor"),
        (good, "given twice"),
    ):
        with pytest.raises(QueueError, match=says):
            model.update([good, bad])
    assert model.plan().starts == {"a": [1]}


def test_quantities() -> None:
    assert [quantity("q", each) for each in ("500m", "16Gi", 8, "1e3", "2k", ".5")] == [
        0.5, 16 * 2**30, 8.0, 1000.0, 2000.0, 0.5
    ]  # fmt: skip
    for bad in ("", "x", "4 GB", True, None, "-1", float("nan"), "1e999"):
        with pytest.raises(QueueError, match="here: "):
            quantity("here", bad)
