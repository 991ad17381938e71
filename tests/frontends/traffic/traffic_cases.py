"""Networks of the tests, and an exact judge that knows nothing of copter."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from copter_frontends.traffic import Network, Paths, make_paths

DATA = Path(os.environ.get("COPTER_DATA", "../shared/data"))
needs_data = pytest.mark.skipif(not (DATA / "te").is_dir(), reason="the public data are not there (COPTER_DATA)")

# Two squares that share the link 1-2, and a tail: 0-1, 1-2, 2-3, 3-0, 1-4, 4-5, 5-2, 5-6.
LINKS = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 4), (4, 5), (5, 2), (5, 6)]


def small(capacity: float = 4.0) -> Network:
    return Network.from_links([str(node) for node in range(7)], [(u, v, capacity) for u, v in LINKS], "small")


def drawn(nodes: int, seed: int) -> Network:
    rng = np.random.default_rng(seed)
    links = [(u, (u + 1) % nodes, float(rng.integers(1, 9))) for u in range(nodes)]
    links += [(*rng.choice(nodes, 2, replace=False).tolist(), float(rng.integers(1, 9))) for _ in range(nodes)]
    return Network.from_links([f"n{node}" for node in range(nodes)], links, f"drawn-{nodes}")


def matrix_of(network: Network, seed: int, most: float = 3.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = rng.uniform(0.0, most, (network.n_nodes, network.n_nodes))
    found[rng.random(found.shape) < 0.2] = 0.0
    np.fill_diagonal(found, 0.0)
    return found


def drawn_case(nodes: int, seed: int) -> tuple[Paths, np.ndarray]:
    network = drawn(nodes, seed)
    paths = make_paths(network)
    return paths, paths.demands_of(matrix_of(network, seed))


def judge_exactly(paths: Paths, flows: np.ndarray, demands: np.ndarray, capacity: np.ndarray) -> None:
    """No link, no demand exceeded and no flow negative, in rational numbers; every path leads where it should."""
    network = paths.network
    load = [Fraction(0)] * network.n_arcs
    served = [Fraction(0)] * paths.n_pairs
    for path in np.flatnonzero(flows).tolist():
        assert flows[path] > 0.0
        own = paths.arcs_of(path).tolist()
        pair = int(paths.pair_of[path])
        ends = [int(network.source[own[0]]), *(int(network.target[arc]) for arc in own)]
        assert (ends[0], ends[-1]) == tuple(paths.pairs[pair].tolist())
        assert all(int(network.source[arc]) == node for arc, node in zip(own, ends, strict=False))
        served[pair] += Fraction(float(flows[path]))
        for arc in own:
            load[arc] += Fraction(float(flows[path]))
    assert all(own <= Fraction(float(most)) for own, most in zip(load, capacity, strict=True))
    assert all(own <= Fraction(float(most)) for own, most in zip(served, demands, strict=True))


def optimum_by_scipy(paths: Paths, demands: np.ndarray, capacity: np.ndarray, objective: str) -> float:
    """The optimum of the program written out in the plainest way."""
    from scipy.optimize import linprog

    n, m, k = paths.n_paths, paths.network.n_arcs, paths.n_pairs
    over, of = np.zeros((m, n)), np.zeros((k, n))
    np.add.at(over, (paths.arc, paths.path_of_entry), 1.0)
    of[paths.pair_of, np.arange(n)] = 1.0
    if objective == "total":
        found = linprog(-np.ones(n), np.vstack((over, of)), np.concatenate((capacity, demands)))
        return -float(found.fun)
    if objective == "utilisation":
        left = np.hstack((over, -capacity[:, None]))
        found = linprog(np.eye(n + 1)[n], left, np.zeros(m), np.hstack((of, np.zeros((k, 1)))), demands)
        return float(found.fun)
    left = np.vstack((
        np.hstack((over, np.zeros((m, 1)))),
        np.hstack((of, np.zeros((k, 1)))),
        np.hstack((-of, demands[:, None])),
    ))  # fmt: skip
    right = np.concatenate((capacity, demands, np.zeros(k)))
    found = linprog(-np.eye(n + 1)[n], left, right, bounds=[(0, None)] * n + [(0, 1)])
    return -float(found.fun)
