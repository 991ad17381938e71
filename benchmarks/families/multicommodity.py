"""Traffic engineering by path flows: commodities share the links of a random network."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from families.blocks import BlockFamily, Blocks
from families.protocol import Floats, Ints

PATHS = 4
LINKS_OF_A_NODE = 4
LOAD = 1.5  # capacity is cut so that shortest paths alone would be over-used by this factor


class MulticommodityRounds(BlockFamily):
    """Request = commodity with up to four paths, limit = demand; rows = links; as much flow as fits, short paths first.

    Nodes lie on a ring with random chords, about four links each way a node, as many nodes as it takes for every
    ordered pair to be a commodity at most once.

    Parameters
    ----------
    requests : int
        Commodities.
    change : str
    amount : float, optional
        As for :class:`BlockFamily`; commodities come and go in `churn`.
    seed : int
    """

    changes: ClassVar[tuple[str, ...]] = ("limits", "some-limits", "link", "costs", "churn")

    def __init__(self, requests: int, change: str, amount: float | None, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes = max(8, int(np.ceil(np.sqrt(requests))) + 1)
        self.tail, self.head = links(self.nodes, self.rng)
        self.routes = Routes(self.nodes, self.tail, self.head, self.rng)
        pairs = self.rng.choice(self.nodes * (self.nodes - 1), requests, replace=False)
        blocks = self.between(pairs)
        weight = blocks.coefficient[:, 0] * blocks.limit[:, None]
        load = np.bincount(blocks.row[:, 0].ravel(), weights=weight.ravel(), minlength=len(self.tail))
        super().__init__(blocks, np.maximum(load, np.median(load)) / LOAD, change, amount, self.rng)

    def between(self, pairs: Ints) -> Blocks:
        """Commodities between ordered pairs of nodes, by number."""
        source, target = pairs // (self.nodes - 1), pairs % (self.nodes - 1)
        target += target >= source
        row, coefficient = self.routes.of(source, target)
        return Blocks(1.0 - 0.01 * coefficient.sum(axis=2), row, coefficient, self.rng.pareto(2.0, len(pairs)) + 0.1)

    def draw(self, count: int) -> Blocks:
        """Commodities between random pairs."""
        return self.between(self.rng.integers(0, self.nodes * (self.nodes - 1), count))


def links(nodes: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """(tails, heads) of a ring with random chords, both ways."""
    ring = np.arange(nodes)
    chords = rng.integers(0, nodes, (nodes * (LINKS_OF_A_NODE // 2 - 1), 2))
    ends = np.concatenate((np.stack((ring, (ring + 1) % nodes), axis=1), chords))
    ends = ends[ends[:, 0] != ends[:, 1]]
    both = np.unique(np.concatenate((ends, ends[:, ::-1])), axis=0)
    return both[:, 0], both[:, 1]


class Routes:
    """Shortest paths for lengths drawn at random, PATHS of them for every pair of nodes; the first has fewest links."""

    def __init__(self, nodes: int, tail: Ints, head: Ints, rng: np.random.Generator) -> None:
        self.number = np.full((nodes, nodes), -1)
        self.number[tail, head] = np.arange(len(tail))
        lengths = [np.ones(len(tail)), *(rng.uniform(0.5, 2.0, len(tail)) for _ in range(PATHS - 1))]
        graphs = [sp.csr_array((length, (tail, head)), shape=(nodes, nodes)) for length in lengths]
        self.before = [dijkstra(graph, return_predecessors=True)[1] for graph in graphs]
        self.longest = max(most_links(before) for before in self.before)

    def of(self, source: Ints, target: Ints) -> tuple[Ints, Floats]:
        """(links, ones), each (commodities, PATHS, longest) padded with zeros."""
        link = np.full((len(source), PATHS, self.longest), -1)
        for path, before in enumerate(self.before):
            at, hop = target.copy(), 0
            while np.any(at != source):
                last = np.where(at != source, before[source, at], at)
                link[:, path, hop] = np.where(at != source, self.number[last, at], -1)
                at, hop = last, hop + 1
        return np.maximum(link, 0), (link >= 0).astype(np.float64)


def most_links(before: Ints) -> int:
    """Links of the longest of all shortest paths, from the predecessors."""
    n = len(before)
    source, at = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
    hops = 0
    while np.any(at != source):
        at = np.where(at != source, before[source, at], at)
        hops += 1
    return hops
