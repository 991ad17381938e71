"""DeDe's ADMM: half steps against a general solver, the optimum in the limit, feasible flows at any number of steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from copter_frontends.traffic import Network, Paths, make_paths
from copter_frontends.traffic.dede import DeDe
from copter_frontends.traffic.dede_kernels import links_step, sources_step
from copter_frontends.traffic.schemes import make_scheme


def ring(nodes: int = 7, seed: int = 0) -> tuple[Paths, np.ndarray]:
    """A ring with some chords, and demands that do not all fit."""
    rng = np.random.default_rng(seed)
    ends = [(i, (i + 1) % nodes) for i in range(nodes)] + [(i, (i + 3) % nodes) for i in range(0, nodes, 2)]
    links = [(u, v, float(rng.uniform(5, 15))) for a, b in dict.fromkeys(ends) for u, v in ((a, b), (b, a))]
    network = Network.from_links([str(node) for node in range(nodes)], links, "ring")
    pairs = np.array([(u, v) for u in range(nodes) for v in range(nodes) if u != v])
    paths = make_paths(network, rng.permutation(pairs))
    return paths, rng.uniform(0.0, 6.0, paths.n_pairs)


def test_a_link_gives_the_projection_that_a_general_solver_finds() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        count, capacity, price = int(rng.integers(1, 6)), float(rng.uniform(0, 4)), float(rng.uniform(0, 2))
        wanted = rng.normal(1.0, 2.0, count)
        found, prices = np.zeros(count), np.array([price])
        links_step(np.array([0, count]), np.arange(count), wanted, np.array([capacity]), prices, found)

        def value(x: np.ndarray) -> float:
            return 0.5 * ((x - wanted) ** 2).sum() + 0.5 * max(x.sum() - capacity + price, 0.0) ** 2  # noqa: B023

        best = minimize(value, np.maximum(wanted, 0.0), bounds=[(0, None)] * count, options={"ftol": 1e-14})
        assert value(found) <= best.fun + 1e-7
        assert prices[0] == pytest.approx(max(found.sum() - capacity + price, 0.0), abs=1e-9)


def test_a_source_chooses_the_flows_that_a_general_solver_finds() -> None:
    paths, demands = ring()
    scheme = DeDe(paths, demands)
    own, rng = scheme.own, np.random.default_rng(3)
    target, price = rng.uniform(0, 3, len(scheme.load)), rng.uniform(0, 1, own.n_pairs)
    flow, load, after = np.zeros(own.n_paths), np.zeros(len(scheme.load)), price.copy()
    ordered = demands[scheme.order]
    sources_step(
        scheme.first_pair, own.first, own.start, scheme.cell, ordered, after, target, 2.0, 1.0, flow, load
    )  # fmt: skip
    table = np.zeros((len(load), own.n_paths))
    np.add.at(table, (scheme.cell, own.path_of_entry), 1.0)
    assert load == pytest.approx(table @ flow)

    def value(f: np.ndarray) -> float:
        over = np.maximum(own.served(f) - ordered + price, 0.0)
        return -2.0 * f.sum() + 0.5 * (over**2).sum() + 0.5 * ((table @ f - target) ** 2).sum()

    best = minimize(value, flow * 0.9, bounds=[(0, None)] * own.n_paths, options={"ftol": 1e-13, "maxiter": 5000})
    assert value(flow) <= best.fun + 1e-4 * abs(best.fun)
    assert after == pytest.approx(np.maximum(own.served(flow) - ordered + price, 0.0), abs=1e-6)


def test_it_comes_to_the_optimum() -> None:
    paths, demands = ring()
    best = make_scheme("copter", paths, demands).plan().total
    found = DeDe(paths, demands, rho=1.0, first_steps=3000).plan()
    assert best * (1 - 2e-3) <= found.total <= best * (1 + 1e-9)


@pytest.mark.parametrize("steps", [1, 3, 30])
def test_flows_fit_after_any_number_of_steps(steps: int) -> None:
    paths, demands = ring(seed=5)
    scheme = DeDe(paths, demands, first_steps=steps, steps=steps)
    for factor in (1.0, 1.3, 0.0, 0.7):
        scheme.set_demands(demands * factor)
        plan = scheme.plan()
        assert (plan.served <= demands * factor).all()
        assert (plan.load <= scheme.capacity).all()


def test_a_link_that_is_out_carries_nothing() -> None:
    paths, demands = ring()
    scheme = DeDe(paths, demands, first_steps=200)
    before = scheme.plan().total
    scheme.set_capacity(np.array([0]), np.array([0.0]))
    plan = scheme.plan()
    assert plan.load[0] == 0.0
    assert 0.0 < plan.total < before


def test_a_deadline_ends_the_steps() -> None:
    paths, demands = ring()
    scheme = DeDe(paths, demands, first_steps=10**9)
    assert scheme.plan(deadline_s=0.05).total > 0.0
