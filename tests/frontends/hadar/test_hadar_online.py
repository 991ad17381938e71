"""The paper's online algorithm with its errors mended (H17 to H19), and posted prices in the LP (H10)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.policies.hadar import HadarPolicy, OnlineRule, PriceFunction
from copter_frontends.policies.hadar.find_alloc import Offer, Wish, find_alloc
from copter_frontends.policies.hadar.round_values import NO_VALUE, RoundValues
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job

KIND = np.array([0, 0, 1])  # servers 0 and 1 of a fast type, 2 of a slow one
SIZE = np.array([4, 4, 4])


def wish(gpus: int, fast: float, slow: float, apart: float = 0.9, held: Offer | None = None) -> Wish:
    worth = np.array([fast, slow])
    return Wish(gpus, worth.copy(), worth, worth * apart, apart, held)


def many(count: int, mode: str = "lp", **options: object) -> HadarPolicy:
    rng = np.random.default_rng(count)
    rows = {f"j{i}": {"v100": 4 * rng.uniform(1, 2), "k80": rng.uniform(0.5, 2)} for i in range(count)}
    table = ThroughputTable(rows, {name: float(rng.uniform(1e3, 1e5)) for name in rows})
    policy = HadarPolicy(Cluster.of({"v100": (2, 4), "k80": (2, 4)}), table, mode=mode, **options)  # type: ignore[arg-type]
    for name in rows:
        policy.add_job(Job(name, "any", requested_gpus=int(rng.choice([1, 2, 3, 4]))))
    return policy


# Prices ---------------------------------------------------------------------------------------------------------------


def test_the_price_is_lowest_when_all_is_free_and_highest_when_nothing_is() -> None:
    function = PriceFunction(0.01, np.array([1.0, 0.5]))
    kinds = np.array([0, 0, 1, 1])
    assert function.price(kinds, np.array([0.0, 1.0, 0.0, 1.0])) == pytest.approx([0.01, 1.0, 0.01, 0.5])
    rising = function.price(np.zeros(9, dtype=np.int64), np.linspace(0, 1, 9))
    assert (np.diff(rising) > 0).all()
    assert function.alpha == pytest.approx(np.log(100))


def test_the_bounds_of_the_price_are_utilities_per_gpu_and_the_dual_starts_below_half_the_optimum() -> None:
    policy = many(10)
    policy.plan(0.0)
    values, book, capacity = policy.formulation.values, policy.book, policy.formulation.capacity
    assert values is not None
    function = PriceFunction.of(values, book.gpus, capacity)
    per_gpu = values.worth / book.gpus[:, None]
    assert function.highest == pytest.approx(per_gpu.max(axis=0))
    best_single = values.worth.max()  # the optimum serves at least one job
    assert function.lowest * capacity.sum() <= best_single / 2


def test_a_full_server_is_too_dear_for_every_job() -> None:
    policy = many(6)
    policy.plan(0.0)
    values, book = policy.formulation.values, policy.book
    assert values is not None
    function = PriceFunction.of(values, book.gpus, policy.formulation.capacity)
    full = function.price(np.array([0, 1]), np.ones(2))
    assert (values.worth <= book.gpus[:, None] * full + 1e-12).all()


def test_a_job_that_is_worth_nothing_does_not_set_the_least_price() -> None:
    worth = np.array([[4.0, 2.0], [0.0, 0.0], [NO_VALUE, 1.0]])
    values = RoundValues(np.ones((3, 2)), worth, worth, worth, worth, np.zeros(3), {})
    function = PriceFunction.of(values, np.array([2, 1, 4]), np.array([8, 8]))
    assert function.highest == pytest.approx([2.0, 1.0])
    assert function.lowest == pytest.approx(0.25 / (4 * 8))  # eta: 16 GPUs over the 2 of the smallest job that counts
    assert PriceFunction.of(values, np.array([2, 1, 64]), np.array([8, 8])).lowest == pytest.approx(1 / 64 / (4 * 8))
    alone = PriceFunction.of(values, np.array([64, 1, 64]), np.array([8, 8]))
    assert alone.lowest == pytest.approx(1 / 64 / 4), "eta is 1 at least"


def test_without_jobs_prices_are_zero() -> None:
    policy = many(0, compare_prices=True)
    plan = policy.plan(0.0)
    assert not plan.allocations
    assert policy.last_online is not None
    assert set(policy.last_online.prices.values()) == {0.0}


# FIND_ALLOC -----------------------------------------------------------------------------------------------------------


def test_tasks_are_kept_together_where_they_fit() -> None:
    found = find_alloc(wish(3, 8.0, 2.0), KIND, SIZE, np.array([2, 4, 4]), np.array([0.1, 0.1, 0.1]))
    assert found is not None
    assert (found.servers.tolist(), found.gpus.tolist(), found.worth) == ([1], [3], 8.0)


def test_tasks_are_spread_at_a_cost_where_they_do_not() -> None:
    found = find_alloc(wish(4, 8.0, 2.0), KIND, SIZE, np.array([2, 2, 0]), np.array([0.1, 0.1, 0.1]))
    assert found is not None
    assert sorted(found.servers.tolist()) == [0, 1]
    assert found.worth == pytest.approx(0.9 * 8.0)
    assert found.cost == pytest.approx(0.4)


def test_the_best_payoff_is_taken_and_not_the_least_cost() -> None:
    prices = np.array([0.5, 0.5, 0.1])
    found = find_alloc(wish(2, 8.0, 2.0), KIND, SIZE, SIZE, prices)
    assert found is not None
    assert KIND[found.servers].tolist() == [0], "the paper's line 28 would take the slow, cheap server"
    cheap = find_alloc(wish(2, 2.2, 2.0), KIND, SIZE, SIZE, prices)
    assert cheap is not None
    assert KIND[cheap.servers].tolist() == [1]


def test_no_allocation_without_a_positive_payoff() -> None:
    assert find_alloc(wish(2, 8.0, 2.0), KIND, SIZE, SIZE, np.full(3, 4.0)) is None
    assert find_alloc(wish(2, 8.0, 2.0), KIND, SIZE, np.array([1, 0, 0]), np.zeros(3)) is None


def test_mixed_types_run_at_the_slowest() -> None:
    found = find_alloc(wish(6, 8.0, 6.0), KIND, SIZE, np.array([4, 0, 4]), np.full(3, 0.1))
    assert found is not None
    assert int(found.gpus.sum()) == 6
    assert found.worth == pytest.approx(0.9 * 6.0)


# The search -----------------------------------------------------------------------------------------------------------


def test_a_job_that_cannot_be_placed_is_passed_over() -> None:
    rows = {"big": {"v100": 100.0}, "small": {"v100": 20.0}, "stuck": {"v100": 50.0}}
    policy = HadarPolicy(Cluster.of({"v100": (1, 4)}), ThroughputTable(rows, dict.fromkeys(rows, 1e5)), mode="online")
    for name, gpus in (("big", 3), ("stuck", 2), ("small", 1)):
        policy.add_job(Job(name, "any", requested_gpus=gpus))
    assert set(policy.plan(0.0).allocations) == {"big", "small"}, "the paper's lines 7-9 would stop at 'stuck'"


@pytest.mark.parametrize("count", [3, 4, 5, 6])
def test_a_wide_search_finds_the_best_of_all_subsets(count: int) -> None:
    policy = many(count, "online", rule=OnlineRule(width=10**6), spread_cost=0.0)
    policy.plan(0.0)
    assert policy.last_online is not None
    narrow = many(count, "online", rule=OnlineRule(width=1), spread_cost=0.0)
    narrow.plan(0.0)
    assert narrow.last_online is not None
    assert policy.last_online.payoff >= narrow.last_online.payoff - 1e-12
    assert policy.last_online.payoff == pytest.approx(_best_subset(policy), rel=1e-9)


def _best_subset(policy: HadarPolicy) -> float:
    """Largest payoff over all ways to take or pass jobs over, in the queue's order."""
    values, book, servers = policy.formulation.values, policy.book, policy.servers
    assert values is not None
    nodes = [(q, node) for q, name in enumerate(servers.types) for node in servers.nodes.node_ids(name)]
    kind = np.array([q for q, _ in nodes])
    size = np.full(len(nodes), 4)
    function = PriceFunction.of(values, book.gpus, policy.formulation.capacity)
    moving = 1.0 - policy.restart_s / policy.round_s
    order = np.argsort(-(values.worth.max(axis=1) / book.gpus), kind="stable")
    best = 0.0
    for taken in product([False, True], repeat=len(book)):
        free, payoff = size.copy(), 0.0
        for row, take in zip(order.tolist(), taken, strict=True):
            if not take:
                continue
            worth = values.worth[row] * moving
            price = function.price(kind, (size - free) / size)
            offer = find_alloc(
                Wish(int(book.gpus[row]), values.rate[row], worth, worth, 1.0, None), kind, size, free, price
            )
            if offer is None:
                break
            free[offer.servers] -= offer.gpus
            payoff += offer.payoff
        else:
            best = max(best, payoff)
    return best


@pytest.mark.parametrize("settings", [{"width": 0}, {"segments": 0}])
def test_impossible_widths_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(SettingsError):
        OnlineRule(**settings)


# Both in one run ------------------------------------------------------------------------------------------------------


def test_lp_prices_and_posted_prices_stand_side_by_side() -> None:
    policy = many(20, compare_prices=True)
    for k in range(3):
        plan = policy.plan(360.0 * k)
        online = policy.last_online
        assert online is not None
        assert set(online.prices) == set(plan.prices)
        assert online.worth <= plan.bound * (1 + 1e-9)
        assert min(online.prices.values()) > 0


def test_lp_prices_admit_a_job_if_and_only_if_its_payoff_is_positive() -> None:
    policy = many(25, restart_s=0.0, spread_cost=0.0)
    policy.plan(0.0)
    formulation, solution = policy.formulation, policy.last_solution
    values = formulation.values
    assert solution is not None
    assert values is not None
    payoff = (values.column - policy.book.gpus[:, None] * formulation.prices(solution)).max(axis=1)
    given = np.array([solution.of(job.id).sum() for job in policy.book.jobs])
    assert (given[payoff > 1e-5 * values.column.max()] >= 1 - 1e-4).all()
    assert (given[payoff < -1e-5 * values.column.max()] <= 1e-4).all()


def test_posted_prices_in_the_lp_are_its_piecewise_linear_costs() -> None:
    policy = many(20, "lp_posted", restart_s=0.0, spread_cost=0.0)
    plan = policy.plan(0.0)
    formulation = policy.formulation
    values = formulation.values
    assert values is not None
    posted = formulation.posted
    assert posted is not None
    assert (np.diff(posted, axis=1) > 0).all(), "prices rise, so that the costs are convex"
    used = np.array([sum(a.by_type.get(name, 0) for a in plan.allocations.values()) for name in policy.servers.types])
    kinds = {name: q for q, name in enumerate(policy.servers.types)}
    worth = sum(values.worth[policy.book.row(job), kinds[a.gpu_type]] for job, a in plan.allocations.items())
    cost = 0.0
    for q, name in enumerate(policy.servers.types):
        width = formulation.capacity[q] / posted.shape[1]
        for k in range(posted.shape[1]):
            cost += float(np.clip(used[q] - k * width, 0, width)) * posted[q, k]
        assert formulation.model.count(name) == formulation.capacity[q]
    assert plan.objective == pytest.approx(worth - cost, rel=1e-6, abs=1e-9)
    assert plan.bound >= plan.objective
