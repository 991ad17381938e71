"""Traffic engineering: the path rule against its published digests, demands, and rounds on a small network."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from families.networks import NETWORKS, Network, arcs, demands, table
from families.protocol import SolverOptions
from families.traffic import PATHS, Paths, TrafficRounds, both_ways, published
from harness import Options, Run
from judge import judge

DATA = Path(os.environ.get("COPTER_DATA", "../shared/data")) / "te"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the data folder te is not there (COPTER_DATA)")

# Two squares that share the link 1-2, and a tail: 0-1, 1-2, 2-3, 3-0, 1-4, 4-5, 5-2, 5-6.
LINKS = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 4), (4, 5), (5, 2), (5, 6)]


def small_arcs(_: str = "") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    both = np.array([pair for u, v in LINKS for pair in ((u, v), (v, u))])
    return both[:, 0], both[:, 1], np.full(len(both), 4.0)


def nodes(paths: Paths, source: np.ndarray, target: np.ndarray, at: int) -> list[list[int]]:
    found = []
    for path in range(paths.first[at], paths.first[at + 1]):
        own = paths.arc[paths.start[path] : paths.start[path + 1]]
        assert (source[own[1:]] == target[own[:-1]]).all()
        found.append([int(source[own[0]]), *target[own].tolist()])
    return found


def test_paths_of_a_small_network_are_those_by_hand() -> None:
    source, target, _ = small_arcs()
    pairs = np.array([[0, 2], [0, 6], [1, 2]])
    paths = Paths.between(source, target, pairs)
    assert nodes(paths, source, target, 0) == [[0, 1, 2], [0, 3, 2]]
    assert nodes(paths, source, target, 1) == [[0, 1, 4, 5, 6]] or nodes(paths, source, target, 1) == [[0, 1, 2, 5, 6]]
    assert sorted(map(len, nodes(paths, source, target, 2))) == [2, 4, 4]
    matrix, rows = paths.usage(0)
    assert matrix.shape == (4, 2)
    np.testing.assert_array_equal(np.sort(rows), np.sort(paths.arc[paths.start[0] : paths.start[2]]))


@pytest.mark.parametrize("change", TrafficRounds.changes)
def test_rounds_of_a_small_network_are_judged_optimal(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(0).uniform(0.5, 3.0, (7, 7))
    np.fill_diagonal(matrix, 0.0)
    monkeypatch.setattr("families.traffic.arcs", small_arcs)
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
        assert all(len(link) == 2 for link in both_ways(*small_arcs()[:2]))


@needs_data
@pytest.mark.parametrize("topology", ["GtsCe", "Cogentco"])
def test_the_paths_have_the_published_digest(topology: str) -> None:
    source, target, _ = arcs(topology)
    n = int(source.max()) + 1
    pairs = np.argwhere(~np.eye(n, dtype=bool))
    paths, said = Paths.between(source, target, pairs), published(topology)
    assert len(paths.hops) == int(said["paths"])
    assert np.diff(paths.first).max() == PATHS
    assert paths.digest(source, target, pairs) == said["path_set_sha256"]


@needs_data
def test_demands_are_the_published_ones() -> None:
    known = [row for row in table("generator_check.csv") if row["model"] in ("gravity", "uniform", "bimodal")]
    assert len(known) >= 6
    for row in known:
        if row["topology"] == "Kdl":
            continue
        matrix = demands(Network(row["topology"], row["model"], float(row["scale"]), int(row["seed"])))
        assert (matrix > 0).sum() == int(row["num_commodities"])
        assert matrix.sum() == pytest.approx(float(row["sum_float64"]), rel=1e-7)
        assert matrix[0, 1] == pytest.approx(float(row["d_0_1"]), rel=1e-6)
        assert np.unravel_index(matrix.argmax(), matrix.shape) == (
            int(row["largest_source"]),
            int(row["largest_target"]),
        )


@needs_data
def test_highs_finds_the_published_optimum() -> None:
    pytest.importorskip("highspy")
    from peers.highs import IPM, Mirror, Way

    family, network = TrafficRounds("GtsCe", "limits", None, 0), NETWORKS["GtsCe"]
    peer = Mirror("ipm", Way(IPM | {"run_crossover": "off"}))
    answer = peer.solve(120.0, peer.update(family.program()))
    optimum = [
        float(row["objective_value"])
        for row in table("results_total_flow.csv")
        if row["topology"] == "GtsCe" and row["model"] == "gravity" and int(row["seed"]) == network.seed
    ]
    judged = judge(family.program(), answer.x, answer.y)
    assert judged.residual <= 1e-7
    assert [judged.objective] == pytest.approx(optimum, rel=1e-7)


def test_a_network_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match="unknown network 'Arpanet'"):
        TrafficRounds("Arpanet", "limits", None, 0)


def test_a_missing_folder_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COPTER_DATA", str(tmp_path))
    from families import Instance

    with pytest.raises(ValueError, match="set COPTER_DATA"):
        Run(Options("traffic", Instance(10)))
