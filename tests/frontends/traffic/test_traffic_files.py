"""Readers: small files by hand, all that is wrong with a file by name, and the public ones by their counts."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from traffic_cases import DATA, needs_data

from copter_frontends.traffic import DemandError, Network, NetworkError, NetworkFileError, read_matrices, read_network
from copter_frontends.traffic.errors import UnknownPairError
from copter_frontends.traffic.published import TOPOLOGIES, published_network

GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key attr.name="label" for="node" id="d0"/>
<key attr.name="Longitude" for="node" id="d1"/><key attr.name="Latitude" for="node" id="d2"/>
<key attr.name="LinkSpeedRaw" for="edge" id="d3"/><graph edgedefault="undirected">
<node id="0"><data key="d0">Ghent</data><data key="d1">3.7</data><data key="d2">51.0</data></node>
<node id="1"><data key="d0">Liege</data></node><node id="2"/><node id="3"/>
<edge source="0" target="1"><data key="d3">2000000000.0</data></edge><edge source="1" target="0"/>
<edge source="2" target="1"/><edge source="2" target="2"/></graph></graphml>"""
SNDLIB = """<network xmlns="http://sndlib.zib.de/network"><networkStructure><nodes>
<node id="A"><coordinates><x>1.0</x><y>2.0</y></coordinates></node><node id="B"/></nodes><links>
<link id="L1"><source>A</source><target>B</target><preInstalledModule>
<capacity>40.0</capacity></preInstalledModule></link>
</links></networkStructure><demands><demand id="D"><source>A</source><target>B</target><demandValue>7.5</demandValue>
</demand><demand id="E"><source>A</source><target>B</target><demandValue>0.5</demandValue></demand>
</demands></network>"""
DOT = """digraph topology { rankdir=LR; // a comment
 s1 [type=switch, id=1]; s2[type=switch]; s3[type=switch]; h1 [type=host];
 s1 -> s2 [capacity="1Gbps", cost=1]; s2 -> s1 [capacity="500Mbps"];
 s2 -> s3 -> s2 [capacity="10Mbps"]; h1 -> s1 [capacity="9Gbps"]; s1 -> h1 [capacity="9Gbps"]; }"""


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def arcs(network: Network) -> dict[tuple[str, str], float]:
    ends = zip(network.source.tolist(), network.target.tolist(), network.capacity.tolist(), strict=True)
    return {(network.nodes[u], network.nodes[v]): capacity for u, v, capacity in ends}


def test_graphml_by_hand(tmp_path: Path) -> None:
    found = read_network(write(tmp_path, "two.graphml", GRAPHML), 10.0)
    assert found.nodes == ("Ghent", "Liege", "2")  # the fourth node reaches nobody
    assert arcs(found) == {
        ("Ghent", "Liege"): 2000.0, ("Liege", "Ghent"): 2000.0, ("Liege", "2"): 10.0, ("2", "Liege"): 10.0,
    }  # fmt: skip
    assert found.position is not None
    np.testing.assert_array_equal(found.position[0], [3.7, 51.0])


def test_node_link_json_by_hand(tmp_path: Path) -> None:
    data = {"directed": True, "nodes": [{"id": 4}, {"id": 2}], "links": [
        {"source": 4, "target": 2, "capacity": 5}, {"source": 2, "target": 4, "capacity": 7.5}]}  # fmt: skip
    assert arcs(read_network(write(tmp_path, "two.json", json.dumps(data)))) == {("4", "2"): 5.0, ("2", "4"): 7.5}


def test_dot_by_hand(tmp_path: Path) -> None:
    found = arcs(read_network(write(tmp_path, "three.dot", DOT)))
    assert found == {("s1", "s2"): 1000.0, ("s2", "s1"): 500.0, ("s2", "s3"): 10.0, ("s3", "s2"): 10.0}


def test_sndlib_by_hand(tmp_path: Path) -> None:
    path = write(tmp_path, "two.xml", SNDLIB)
    network = read_network(path)
    assert arcs(network) == {("A", "B"): 40.0, ("B", "A"): 40.0}
    np.testing.assert_array_equal(read_matrices(path, network)[0], [[0.0, 8.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.graphml", "<graphml", "not a network"),
        ("a.graphml", "<graphml/>", "no <graph>"),
        ("a.graphml", GRAPHML, "link 1 - 0 has no capacity|link 2 - 1 has no capacity"),
        ("a.json", "{", "not a network"),
        ("a.json", "[]", "no object with nodes"),
        ("a.json", '{"nodes": [{"id": 0}], "links": [{"source": 0, "target": 9, "capacity": 1}]}', "no node '9'"),
        ("a.json", '{"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1, "capacity": -3}]}', "-3"),
        ("a.json", '{"nodes": [{"id": 0}, {"id": 1}], "links": []}', "at least one arc"),
        ("a.dot", "graph { a -- b [capacity=1 }", "not closed"),
        ("a.dot", "a -> b", "no graph"),
        ("a.dot", 'graph { a -- b [capacity="3 parsecs"] }', "3 parsecs"),
        ("a.dot", "graph { a -- b }", "link a - b has no capacity"),
        ("a.xml", "<network><link id='L'><source>A</source></link></network>", "'L' has no <target>"),
        ("a.csv", "from,to\n1,2\n", "no table"),
        ("a.csv", "source,target,capacity\n0,1,nan\n1,0,5\n", "not a number|has capacity"),
        ("a.txt", "", "unknown kind of file"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_error_that_names_it(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(NetworkFileError, match=says) as caught:
        read_network(write(tmp_path, name, text))
    assert name in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NetworkFileError, match=r"none\.json: No such file"):
        read_network(tmp_path / "none.json")


def test_impossible_networks_are_refused() -> None:
    one = np.array([0]), np.array([1])
    with pytest.raises(NetworkError, match="'b' has capacity nan"):
        Network(("a", "b"), *one, np.array([np.nan]))
    with pytest.raises(NetworkError, match="to itself"):
        Network(("a", "b"), np.array([0]), np.array([0]), np.array([1.0]))
    with pytest.raises(NetworkError, match="named twice"):
        Network(("a", "a"), *one, np.array([1.0]))
    with pytest.raises(NetworkError, match="there twice"):
        Network(("a", "b"), np.array([0, 0]), np.array([1, 1]), np.ones(2))
    with pytest.raises(UnknownPairError, match="no node 'x'"):
        Network(("a", "b"), *one, np.array([1.0])).node("x")


@pytest.mark.parametrize(
    ("text", "says"), [("1 2 3", "no square"), ("0 -1 2 0", "-1"), ("0 nan 2 0", "nan"), ("0 x", "not a file"),
                       ("0 1 2 0 1 2 0 1 2", "2 nodes")],
)  # fmt: skip
def test_wrong_matrices_are_refused(tmp_path: Path, text: str, says: str) -> None:
    network = Network(("a", "b"), np.array([0, 1]), np.array([1, 0]), np.ones(2))
    with pytest.raises((NetworkFileError, DemandError), match=says):
        read_matrices(write(tmp_path, "m.txt", text), network)


@needs_data
def test_public_topologies_have_their_counts() -> None:
    with open(DATA / "topologies" / "topology_stats.csv", newline="") as file:
        rows = {(row["folder"], row["file"]): row for row in csv.DictReader(file)}
    for path in sorted((DATA / "topologies").glob("*/*.*")):
        row = rows.get((path.parent.name, path.name))
        if row is None or path.suffix not in (".graphml", ".json"):
            continue
        whole = read_network(path, 1000.0, strongest=False)
        assert [whole.n_nodes, whole.n_arcs] == [int(row["nodes"]), int(row["directed_edges"])]
        assert whole.largest_component().n_arcs == int(row["largest_scc_directed_edges"])


@needs_data
def test_graphml_gives_the_published_order_of_arcs() -> None:
    for topology in TOPOLOGIES:
        path, said = DATA / "topologies" / "topology-zoo" / f"{topology}.graphml", published_network(topology)
        found = read_network(path, 1000.0)
        np.testing.assert_array_equal(found.source, said.source)
        np.testing.assert_array_equal(found.target, said.target)


@needs_data
def test_measured_matrices_are_sequences() -> None:
    abilene = read_network(DATA / "topologies/yates/abilene.dot")
    hosts = [f"s{node}" for node in range(1, 13)]
    found = read_matrices(DATA / "topologies/yates/abilene_demands.txt", abilene, 1e-6, hosts)
    assert len(found) == 36
    assert found[0][0, 1] == pytest.approx(0.977151333333)
    b4 = read_network(DATA / "topologies/teal/B4.json")
    real = read_matrices(DATA / "topologies/teal/B4_real_tms.npz", b4, 1.0, sorted(b4.nodes, key=int))
    assert len(real) == 36
    with np.load(DATA / "topologies/teal/B4_real_tms.npz") as file:
        assert real[3][b4.node("10"), b4.node("4")] == file["tms"][3, 10, 4]
