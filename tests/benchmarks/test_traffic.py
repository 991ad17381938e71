"""Traffic engineering: rounds on a small network, and a published optimum."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from families.networks import NETWORKS, Network
from families.protocol import SolverOptions
from families.traffic import TrafficRounds
from harness import Options, Run
from judge import judge

from copter_frontends.traffic import Network as Graph
from copter_frontends.traffic.published import instance, published_network

DATA = Path(os.environ.get("COPTER_DATA", "../shared/data")) / "te"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the data folder te is not there (COPTER_DATA)")

# Two squares that share the link 1-2, and a tail: 0-1, 1-2, 2-3, 3-0, 1-4, 4-5, 5-2, 5-6.
LINKS = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 4), (4, 5), (5, 2), (5, 6)]


def small_network(_: str = "") -> Graph:
    return Graph.from_links([str(node) for node in range(7)], [(u, v, 4.0) for u, v in LINKS])


@pytest.mark.parametrize("change", TrafficRounds.changes)
def test_rounds_of_a_small_network_are_judged_optimal(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(0).uniform(0.5, 3.0, (7, 7))
    np.fill_diagonal(matrix, 0.0)
    monkeypatch.setattr("families.traffic.published_network", small_network)
    monkeypatch.setattr("families.traffic.demands", lambda _: matrix)
    monkeypatch.setitem(NETWORKS, "small", Network("small", "uniform", 1, 0))
    family = TrafficRounds("small", change, None, 3)
    solver = family.solver(SolverOptions())
    for _ in range(4):
        family.edit()
        held, said = family.model.to_linear_program(), family.program()
        assert abs(held.A - said.A).max() == 0
        for side in ("c", "row_lower", "row_upper", "col_lower", "col_upper"):
            np.testing.assert_array_equal(getattr(held, side), getattr(said, side))
        outcome = solver.solve()
        assert judge(said, *family.point(outcome)).residual <= 1e-6
        assert family.counts["nonzeros"] == said.A.nnz
        family.prepare()
    if change == "link":
        assert all(len(link) == 2 for link in small_network().links)


@needs_data
def test_highs_finds_the_published_optimum() -> None:
    pytest.importorskip("highspy")
    from copter_frontends.replay.peers.highs import IPM, Mirror, Way

    family, network = TrafficRounds("GtsCe", "limits", None, 0), NETWORKS["GtsCe"]
    peer = Mirror("ipm", Way(IPM | {"run_crossover": "off"}))
    answer = peer.solve(120.0, peer.update(family.program()))
    optimum = instance("GtsCe", network.seed).optimum
    judged = judge(family.program(), answer.x, answer.y)
    assert judged.residual <= 1e-7
    assert judged.objective == pytest.approx(optimum, rel=1e-7)


def test_a_network_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match="unknown network 'Arpanet'"):
        TrafficRounds("Arpanet", "limits", None, 0)


def test_a_missing_folder_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COPTER_DATA", str(tmp_path))
    published_network.cache_clear()
    from families import Instance

    with pytest.raises(ValueError, match="set COPTER_DATA"):
        Run(Options("traffic", Instance(10)))
