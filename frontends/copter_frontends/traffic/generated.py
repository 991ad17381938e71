"""Networks drawn by a seed: a ring with chords, and one with the degrees of the Internet's autonomous systems."""

from __future__ import annotations

import re

import numpy as np

from copter_frontends.traffic.errors import DemandError
from copter_frontends.traffic.network import Network

CAPACITY = 1000.0  # capacity of a link of a generated network
LINKS_OF_A_NODE = 4  # mean number of links per node of a random network
RANK_EXPONENT = -0.81
"""Degree of an autonomous system against its rank (Faloutsos, Faloutsos and Faloutsos, SIGCOMM 1999, November 1997)."""
AS_NODES, AS_LINKS = 1739, 4279
"""Of the AS-level network in the thesis and in Teal."""
_NAME = re.compile(r"^(random|asn)-(\d+)$")


def generated_network(name: str, seed: int, capacity: float) -> Network | None:
    """Return the network ``random-N`` or ``asn-N``; None for another name."""
    match = _NAME.match(name)
    if match is None:
        return None
    nodes = int(match.group(2))
    if nodes < 3:
        raise DemandError(f"{name}: give at least 3 nodes")
    return (random_network if match.group(1) == "random" else as_network)(nodes, seed, capacity)


def random_network(nodes: int, seed: int = 0, capacity: float = CAPACITY) -> Network:
    """Return a ring with random chords, about four links per node, drawn on a circle."""
    rng, ring = np.random.default_rng(seed), np.arange(nodes)
    chords = rng.integers(0, nodes, (nodes * (LINKS_OF_A_NODE // 2 - 1), 2))
    links = [(u, (u + 1) % nodes, capacity) for u in ring.tolist()] + [(u, v, capacity) for u, v in chords.tolist()]
    angle = 2.0 * np.pi * ring / nodes
    position = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    return Network.from_links([f"n{u}" for u in ring.tolist()], links, f"random-{nodes}", position=position)


def as_network(nodes: int, seed: int, capacity: float) -> Network:
    """Return a connected network whose degrees fall with the rank as those of autonomous systems do.

    Every node is linked to one of lower rank, drawn by degree; the other links join two nodes drawn by degree.
    """
    rng = np.random.default_rng(seed)
    weight = np.arange(1, nodes + 1) ** RANK_EXPONENT
    total = np.cumsum(weight)
    count = min(round(nodes * AS_LINKS / AS_NODES), nodes * (nodes - 1) // 2)
    links = {(int(np.searchsorted(total, rng.uniform(0.0, total[u - 1]))), u) for u in range(1, nodes)}
    while len(links) < count:  # ends: a pair of any two nodes has a positive chance
        ends = np.sort(np.searchsorted(total, rng.uniform(0.0, total[-1], (count, 2))), axis=1)
        for u, v in ends.tolist():
            if u != v and len(links) < count:
                links.add((u, v))
    return Network.from_links(
        [f"as{u}" for u in range(nodes)], [(u, v, capacity) for u, v in sorted(links)], f"asn-{nodes}"
    )
