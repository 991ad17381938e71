"""Proportionally fair flows (TE21): known shares, Clarabel's value, true bounds, edits and cut links."""

from __future__ import annotations

import numpy as np
import pytest
from traffic_cases import needs_data

from copter_frontends.traffic import Network, Paths, TrafficFormulation, make_paths
from copter_frontends.traffic.bounds import mean_share_bound
from copter_frontends.traffic.plan import FLOOR, mean_share
from copter_frontends.traffic.published import instances

cp = pytest.importorskip("cvxpy")


def line() -> Paths:
    """Two links of 4, and a pair that needs both."""
    network = Network.from_links(list("abc"), [(0, 1, 4.0), (1, 2, 4.0)])
    return make_paths(network, [[0, 2], [0, 1], [1, 2]])


def ring(rng: np.random.Generator, nodes: int = 7) -> Paths:
    links = [(at, (at + 1) % nodes, float(rng.uniform(1.0, 4.0))) for at in range(nodes)]
    pairs = [[a, b] for a in range(nodes) for b in range(nodes) if a != b and rng.random() < 0.5]
    return make_paths(Network.from_links([str(at) for at in range(nodes)], links), pairs, "shortest", 2)


def by_clarabel(form: TrafficFormulation) -> float:
    """The mean share of the best flows."""
    paths, live = form.paths, np.flatnonzero((form.demands > 0.0) & ~form.stranded)
    flow = cp.Variable(paths.n_paths, nonneg=True)
    served = [cp.sum(flow[int(paths.first[at]) : int(paths.first[at + 1])]) for at in live.tolist()]
    usage = np.zeros((paths.network.n_arcs, paths.n_paths))
    for path in range(paths.n_paths):
        np.add.at(usage[:, path], paths.arcs_of(path), 1.0)
    rows = [usage @ flow <= form.capacity]
    rows += [each <= form.demands[at] for each, at in zip(served, live.tolist(), strict=True)]
    worth = [d * cp.log(each + FLOOR * d) for d, each in zip(form.demands[live].tolist(), served, strict=True)]
    cp.Problem(cp.Maximize(cp.sum(cp.hstack(worth))), rows).solve(solver="CLARABEL")
    share = np.minimum([float(each.value) for each in served] / form.demands[live], 1.0)
    return mean_share(np.maximum(share, 0.0), form.demands[live])


def test_the_long_pair_has_a_third_of_both_links() -> None:
    """max log f0 + log f1 + log f2, f0 + f1 <= 4, f0 + f2 <= 4: f0 = 4/3 without the floor (Kelly 1998)."""
    plan = TrafficFormulation(line(), [4.0, 4.0, 4.0], "proportional").plan()
    assert plan.status == "optimal"
    np.testing.assert_allclose(plan.served, [4 / 3, 8 / 3, 8 / 3], rtol=2e-3)
    assert plan.objective <= plan.bound
    assert plan.prices[0] == pytest.approx(4.0 / (8 / 3), rel=5e-3)  # the slope of 4 log f at f1


@pytest.mark.parametrize("seed", range(4))
def test_rounds_of_edits_and_cuts_are_as_good_as_clarabels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    paths = ring(rng)
    form = TrafficFormulation(paths, rng.uniform(0.2, 2.0, paths.n_pairs), "proportional")
    for number in range(4):
        if number == 1:
            form.set_demands(form.demands * rng.choice([0.0, 0.5, 1.0, 2.0], paths.n_pairs))
        elif number == 2:
            form.fail_link("1", "2")
        elif number == 3:
            form.repair_link("1", "2")
            form.set_demands(rng.uniform(0.0, 2.0, paths.n_pairs))
        plan, best = form.plan(), by_clarabel(form)
        assert plan.objective == pytest.approx(best, rel=2e-6)
        assert plan.bound >= best * (1.0 - 1e-7)
        assert plan.status == "optimal"
        fresh = TrafficFormulation(paths, form.demands, "proportional")
        fresh.set_capacity(np.arange(len(form.capacity)), form.capacity)
        assert fresh.plan().objective == pytest.approx(plan.objective, rel=2e-6)


def test_any_prices_prove_a_bound() -> None:
    rng = np.random.default_rng(3)
    paths = ring(rng)
    demands = rng.uniform(0.2, 2.0, paths.n_pairs)
    best = TrafficFormulation(paths, demands, "proportional").plan().objective
    for _ in range(20):
        price = rng.exponential(size=paths.network.n_arcs) * (rng.random(paths.network.n_arcs) < 0.7)
        assert mean_share_bound(paths, price, demands, demands, paths.network.capacity) >= best


def test_without_demands_or_with_little_everything_is_served() -> None:
    form = TrafficFormulation(line(), [0.0, 0.0, 0.0], "proportional")
    assert form.plan().objective == 1.0
    form.set_demands([1e-6, 1.0, 1.0])
    plan = form.plan()
    np.testing.assert_allclose(plan.served, [1e-6, 1.0, 1.0], rtol=1e-6)
    assert plan.objective == pytest.approx(1.0)


@needs_data
@pytest.mark.parametrize(("model", "scale"), [("bimodal", 32.0), ("gravity", 64.0)])
def test_a_first_solve_of_a_large_network_does_not_stall(model: str, scale: float) -> None:
    """Prices of a smoothing of zero prove the bound, before rounding hides what less smoothing would gain (W17)."""
    one = next(
        each for each in instances("total") if (each.topology, each.model, each.scale) == ("GtsCe", model, scale)
    )
    paths = make_paths(one.network())
    form = TrafficFormulation(paths, paths.demands_of(one.demands()), "proportional")
    plan = form.plan()
    assert plan.status == "optimal"
    assert form.last_solution is not None
    assert form.last_solution.iterations < 100  # 300 and 381 before
