"""Named clusters, scaled clusters, and YAML files."""

from __future__ import annotations

import pytest

from copter_frontends.vocabulary import InvalidClusterError
from copter_frontends.vocabulary.named_clusters import (
    NAMED_CLUSTERS,
    cluster_from,
    named_cluster,
    read_cluster,
    scaled_cluster,
)

GPUS = {
    "sia-het": 64,
    "sia-hom": 64,
    "sia-physical": 44,
    "hadar-60": 60,
    "hops-64": 64,
    "hops-512": 512,
    "chronus-96x8": 768,
    "chronus-120x8": 960,
    "hare-15": 15,
}


@pytest.mark.parametrize("name", NAMED_CLUSTERS)
def test_named_clusters_have_the_papers_sizes(name):
    assert named_cluster(name).gpus == GPUS[name]


def test_sia_het_is_the_papers():
    cluster = cluster_from("sia-het")
    assert [(k.name, k.gpus_per_node, len(cluster.nodes_of(k.name))) for k in cluster.types.values()] == [
        ("t4", 4, 6),
        ("rtx", 8, 3),
        ("a100", 8, 2),
    ]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InvalidClusterError, match=r"'sia'; did you mean sia-[a-z]+\? there are sia-het, .*\.yaml"):
        named_cluster("sia")


def test_ten_thousand_gpus_are_dealt_evenly():
    cluster = scaled_cluster(10_000)
    assert [len(cluster.nodes_of(name)) for name in cluster.types] == [179, 179, 179, 179, 178, 178, 178]
    assert (cluster.gpus, list(cluster.types)) == (10_000, ["t4", "rtx", "quad", "v100", "a100", "p100", "k80"])


@pytest.mark.parametrize(
    ("gpus", "nodes", "types"), [(8, 1, 1), (11, 1, 1), (12, 2, 2), (55, 7, 7), (56, 7, 7), (25_000, 3125, 7)]
)
def test_scaled_clusters_round_to_whole_nodes(gpus, nodes, types):
    cluster = scaled_cluster(gpus)
    assert (len(cluster.nodes), len(cluster.types)) == (nodes, types)


@pytest.mark.parametrize("gpus", [-5, 0, 7])
def test_less_than_a_node_is_an_error(gpus):
    with pytest.raises(InvalidClusterError, match=f"{gpus} GPUs is smaller than one node"):
        scaled_cluster(gpus)


def test_a_yaml_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "types:\n  - {name: a100, gpus_per_node: 8, nodes: 2}\n  - {name: t4, gpus_per_node: 4, nodes: 1}\n"
    )
    cluster = cluster_from(str(path))
    assert (cluster.capacity("a100"), cluster.capacity("t4")) == (16, 4)


BAD_FILES = {
    "not valid YAML": "types: [",
    "one list named 'types'": "kinds: []",
    "'types' must be a list": "types: 3",
    "at least one GPU type": "types: []",
    r"types\[0\]: must be a mapping": "types: [a100]",
    r"types\[0\]: lacks nodes": "types: [{name: a, gpus_per_node: 8}]",
    r"types\[0\]: has the unknown field colour": "types: [{name: a, gpus_per_node: 8, nodes: 1, colour: red}]",
    r"types\[0\].gpus_per_node: must be a whole number of 1 or more": "types: [{name: a, gpus_per_node: 0, nodes: 1}]",
    r"types\[0\].nodes: must be a whole number .* not 'two'": "types: [{name: a, gpus_per_node: 1, nodes: two}]",
    r"types\[0\].nodes: .* not True": "types: [{name: a, gpus_per_node: 1, nodes: true}]",
    r"types\[0\].name: must be a word, not 7": "types: [{name: 7, gpus_per_node: 1, nodes: 1}]",
    r"types\[1\].name: 'a' is there twice": (
        "types: [{name: a, gpus_per_node: 1, nodes: 1}, {name: a, gpus_per_node: 1, nodes: 1}]"
    ),
    "no type has a node": "types: [{name: a, gpus_per_node: 1, nodes: 0}]",
}


@pytest.mark.parametrize("complaint", BAD_FILES)
def test_a_bad_file_is_named_with_its_field(tmp_path, complaint):
    path = tmp_path / "bad.yaml"
    path.write_text(BAD_FILES[complaint])
    with pytest.raises(InvalidClusterError, match=rf"bad\.yaml: .*{complaint}"):
        read_cluster(path)


def test_a_missing_or_binary_file_is_named(tmp_path):
    with pytest.raises(InvalidClusterError, match=r"none\.yaml: cannot be read"):
        read_cluster(tmp_path / "none.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00types")
    with pytest.raises(InvalidClusterError, match=r"b\.yaml: not valid YAML"):
        read_cluster(tmp_path / "b.yaml")
