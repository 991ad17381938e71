"""Networks drawn by a seed: connected, of the size and the degrees that their name says, the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from copter_frontends.traffic.errors import DemandError
from copter_frontends.traffic.generated import AS_LINKS, AS_NODES, generated_network
from copter_frontends.traffic.network import Network


def made(name: str, seed: int = 0) -> Network:
    found = generated_network(name, seed, 1000.0)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["random-3", "random-30", "asn-3", "asn-12", "asn-300"])
def test_every_node_is_reached(name: str) -> None:
    network = made(name)
    reached, before = np.zeros(network.n_nodes, dtype=bool), -1
    reached[0] = True
    while before < reached.sum():
        before = int(reached.sum())
        reached[network.target[reached[network.source]]] = True
    assert reached.all()
    assert (made(name).source == network.source).all()


def test_an_as_level_network_has_its_links_and_degrees() -> None:
    network = made(f"asn-{AS_NODES}")
    assert (network.n_nodes, network.n_arcs) == (AS_NODES, 2 * AS_LINKS)
    degree = np.sort(np.bincount(network.source, minlength=AS_NODES))[::-1]
    assert degree[0] > 100
    assert (degree <= 3).mean() > 0.5
    rank = np.arange(1, AS_NODES + 1)
    some = slice(2, 200)
    slope = np.polyfit(np.log(rank[some]), np.log(degree[some]), 1)[0]
    assert slope == pytest.approx(-0.81, abs=0.1)
    assert (made("asn-300", 1).source != made("asn-300", 2).source).any()


def test_other_names_are_not_generated_and_two_nodes_are_no_network() -> None:
    assert generated_network("GtsCe", 0, 1.0) is None
    assert generated_network("asn-x", 0, 1.0) is None
    with pytest.raises(DemandError, match="asn-2: give at least 3 nodes"):
        generated_network("asn-2", 0, 1.0)
