"""Paths against hand, brute force and published digests; demands against published figures."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traffic_cases import drawn, matrix_of, needs_data, small

from copter_frontends.traffic import DemandConstants, DemandError, Network, PathError, demand_matrix, make_paths
from copter_frontends.traffic.demands import MODELS, checked_matrix
from copter_frontends.traffic.errors import UnknownPairError
from copter_frontends.traffic.published import instance, published_network, table
from copter_frontends.traffic.streams import STREAMS, tracking


def test_disjoint_paths_by_hand() -> None:
    paths = make_paths(small(), [[0, 2], [0, 6], [1, 2]])
    assert [paths.nodes_of(path) for path in range(2)] == [[0, 1, 2], [0, 3, 2]]
    assert paths.nodes_of(int(paths.first[1])) in ([0, 1, 4, 5, 6], [0, 1, 2, 5, 6])
    assert np.diff(paths.first).tolist() == [2, 1, 3]
    assert sorted(paths.hops[paths.first[2] :].tolist()) == [1, 3, 3]


def simple_paths(network: Network, s: int, t: int) -> list[list[int]]:
    found, out = [], [network.target[network.source == u].tolist() for u in range(network.n_nodes)]

    def walk(path: list[int]) -> None:
        if path[-1] == t:
            found.append(path)
            return
        for v in out[path[-1]]:
            if v not in path:
                walk([*path, v])

    walk([s])
    return sorted(found, key=len)


@settings(max_examples=10, deadline=None)
@given(st.integers(4, 8), st.integers(0, 10_000), st.integers(1, 6))
def test_shortest_paths_are_those_of_brute_force(nodes: int, seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    links = [(u, v, 1.0) for u, v in itertools.permutations(range(nodes), 2) if rng.random() < 0.4]
    if not links:
        return
    network = Network.from_links([str(node) for node in range(nodes)], links, directed=True)
    paths = make_paths(network, rule="shortest", most=most)
    for at, (s, t) in enumerate(paths.pairs.tolist()):
        own = [paths.nodes_of(path) for path in range(paths.first[at], paths.first[at + 1])]
        every = simple_paths(network, s, t)
        assert [len(path) for path in own] == [len(path) for path in every[:most]]
        assert all(path in every for path in own)
        assert len({tuple(path) for path in own}) == len(own)


@settings(max_examples=10, deadline=None)
@given(st.integers(4, 12), st.integers(0, 10_000))
def test_disjoint_paths_share_no_arc_and_are_as_many_as_the_flow(nodes: int, seed: int) -> None:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    rng = np.random.default_rng(seed)
    links = [(u, v, 1.0) for u, v in itertools.permutations(range(nodes), 2) if rng.random() < 0.3]
    if not links:
        return
    network = Network.from_links([str(node) for node in range(nodes)], links, directed=bool(seed % 2))
    graph = csr_array((np.ones(network.n_arcs, dtype=np.int32), (network.source, network.target)), shape=(nodes, nodes))
    paths = make_paths(network)
    for at, (s, t) in enumerate(paths.pairs.tolist()):
        own = range(paths.first[at], paths.first[at + 1])
        arcs = np.concatenate([paths.arcs_of(path) for path in own]) if len(own) else np.zeros(0)
        assert len(np.unique(arcs)) == len(arcs)
        assert len(own) == min(maximum_flow(graph, s, t).flow_value, 4)
        for path in own:
            assert len(set(paths.nodes_of(path))) == paths.hops[path] + 1


def test_path_sets_are_kept_on_disk(tmp_path: Path) -> None:
    network = drawn(9, 1)
    made, read = (make_paths(network, folder=tmp_path) for _ in range(2))
    assert made.digest() == read.digest()
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(b"not an archive")
    assert make_paths(network, folder=tmp_path).digest() == made.digest()
    make_paths(network, folder=tmp_path, most=2)
    assert len(list(tmp_path.iterdir())) == 2


def test_impossible_pairs_and_paths_are_refused() -> None:
    network = small()
    with pytest.raises(UnknownPairError, match="0 -> 9"):
        make_paths(network, [[0, 9]])
    with pytest.raises(PathError, match="itself"):
        make_paths(network, [[3, 3]])
    with pytest.raises(PathError, match="twice"):
        make_paths(network, [[3, 1], [3, 1]])
    with pytest.raises(PathError, match="no rule 'best'"):
        make_paths(network, rule="best")
    paths = make_paths(network, [[0, 2]])
    for nodes, says in (([0, 2], "needs the link"), ([0, 1], "from the one"), ([0, 1, 0, 1, 2], "twice")):
        with pytest.raises((PathError, UnknownPairError), match=says):
            paths.with_paths(0, [nodes])


def test_a_part_of_a_path_set_is_as_if_made_for_it() -> None:
    network = drawn(10, 3)
    whole, some = make_paths(network), np.array([5, 2, 40])
    part = whole.of_pairs(some)
    assert part.digest() == make_paths(network, whole.pairs[some]).digest()
    assert whole.with_paths(5, [whole.nodes_of(path) for path in range(whole.first[5], whole.first[6])]).digest() == (
        whole.digest()
    )


@needs_data
@pytest.mark.parametrize("topology", ["GtsCe", "UsCarrier", "Cogentco"])
def test_path_sets_have_the_published_digest(topology: str) -> None:
    paths = make_paths(published_network(topology))
    said = next(row for row in table("paths_check.csv") if row["topology"] == topology)
    assert paths.n_paths == int(said["paths"])
    assert paths.hops.sum() == int(said["total_hops"])
    assert paths.digest() == said["path_set_sha256"]


@needs_data
@pytest.mark.long
def test_kdl_has_the_published_digest() -> None:
    paths = make_paths(published_network("Kdl"))
    said = next(row for row in table("paths_check.csv") if row["topology"] == "Kdl")
    assert paths.digest() == said["path_set_sha256"]


@needs_data
def test_demands_are_the_published_ones() -> None:
    rows = table("generator_check.csv")
    assert {row["model"] for row in rows} == set(MODELS)
    for row in rows:
        found = instance(row["topology"], int(row["seed"])).demands()
        assert (found > 0).sum() == int(row["num_commodities"])
        assert found.sum() == pytest.approx(float(row["sum_float64"]), rel=1e-12)
        places = {"d_0_1": (0, 1), "d_1_0": (1, 0), "d_0_last": (0, -1), "d_last_0": (-1, 0)}
        assert all(found[place] == pytest.approx(float(row[name]), rel=1e-12) for name, place in places.items())
        largest = int(row["largest_source"]), int(row["largest_target"])
        assert np.unravel_index(found.argmax(), found.shape) == largest


@needs_data
def test_the_tracking_stream_is_the_published_one() -> None:
    """But for the mean of float32 numbers, in which versions of NumPy differ by a rounding."""
    rows = [row for row in table("stream_check.csv") if row["topology"] == "Cogentco"]
    found = instance("Cogentco", int(rows[0]["seed"]))
    for event, row in zip(tracking(found.network(), found.demands(), 25), rows, strict=True):
        assert event.matrix.sum() == pytest.approx(float(row["total_demand_float64"]), rel=1e-6)
        assert (event.matrix > 0).sum() == int(row["nonzero_demands"])


@pytest.mark.parametrize("model", MODELS)
def test_demands_grow_with_the_scale_and_have_no_diagonal(model: str) -> None:
    network = drawn(8, 0)
    constants = DemandConstants.for_network(network)
    one, two = (demand_matrix(network, constants, model, scale, 5) for scale in (1.0, 2.0))
    np.testing.assert_allclose(two, 2.0 * one, rtol=1e-6)
    assert not np.diag(one).any()
    assert one.sum() > 0.0


def test_wrong_demands_are_refused() -> None:
    network = small()
    for value, says in ((np.nan, "nan"), (-1.0, "-1"), (np.inf, "inf"), (1e30, "1e\\+30")):
        matrix = np.zeros((7, 7))
        matrix[2, 3] = value
        with pytest.raises(DemandError, match=f"'2' -> '3' is {says}"):
            checked_matrix(network, matrix)
    with pytest.raises(DemandError, match="to itself"):
        checked_matrix(network, np.eye(7))
    with pytest.raises(DemandError, match="shape"):
        checked_matrix(network, np.zeros((6, 6)))
    with pytest.raises(DemandError, match="unknown demand model"):
        demand_matrix(network, DemandConstants.for_network(network), "magic", 1.0, 0)
    with pytest.raises(DemandError, match="scale"):
        demand_matrix(network, DemandConstants.for_network(network), "uniform", np.nan, 0)


@pytest.mark.parametrize("name", STREAMS)
def test_streams_are_the_same_every_time_and_put_links_back(name: str) -> None:
    network, matrix = drawn(8, 2), matrix_of(drawn(8, 2), 2)
    rounds = [list(STREAMS[name](network, matrix, 9, 4)) for _ in range(2)]
    capacity = network.capacity.copy()
    for one, other in zip(*rounds, strict=True):
        np.testing.assert_array_equal(one.matrix, other.matrix)
        np.testing.assert_array_equal(one.arcs, other.arcs)
        checked_matrix(network, one.matrix)
        capacity[one.arcs] = one.capacity
    np.testing.assert_array_equal(capacity, network.capacity)
