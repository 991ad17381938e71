"""Traffic engineering by path flows: commodities share links, and every demand drifts every round."""

from __future__ import annotations

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
    churn : float
        Every demand is drawn anew within this share of its mean, every round.
    seed : int
    """

    def __init__(self, requests: int, churn: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        nodes = max(8, int(np.ceil(np.sqrt(requests))) + 1)
        tail, head = links(nodes, rng)
        pairs = rng.choice(nodes * (nodes - 1), requests, replace=False)
        source = pairs // (nodes - 1)
        target = pairs % (nodes - 1)
        target += target >= source
        row, coefficient = paths(nodes, tail, head, source, target, rng)
        self.mean = rng.pareto(2.0, requests) + 0.1
        weight = coefficient[:, 0] * self.mean[:, None]
        load = np.bincount(row[:, 0].ravel(), weights=weight.ravel(), minlength=len(tail))
        cost = 1.0 - 0.01 * coefficient.sum(axis=2)
        blocks = Blocks(cost, row, coefficient, self.mean.copy())
        super().__init__(blocks, np.maximum(load, np.median(load)) / LOAD, churn, rng)
        self.usages = list(self.waiting)
        self.waiting = []

    def prepare(self) -> None:
        """Draw every demand anew."""
        self.limits = self.mean * self.rng.uniform(1.0 - self.churn, 1.0 + self.churn, len(self.mean))
        self.departed, self.arrived = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def edit(self) -> None:
        """Hand the demands over; a request whose limit changes leaves and comes back."""
        for request, cost, limit, (matrix, rows) in zip(
            self.requests.tolist(), self.cost, self.limits.tolist(), self.usages, strict=True
        ):
            if request in self.model:
                self.model.remove_request(request)
            self.model.add_request(request, cost, matrix, resources=rows, limit=limit, upper=limit)


def links(nodes: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """(tails, heads) of a ring with random chords, both ways."""
    ring = np.arange(nodes)
    chords = rng.integers(0, nodes, (nodes * (LINKS_OF_A_NODE // 2 - 1), 2))
    ends = np.concatenate((np.stack((ring, (ring + 1) % nodes), axis=1), chords))
    ends = ends[ends[:, 0] != ends[:, 1]]
    both = np.unique(np.concatenate((ends, ends[:, ::-1])), axis=0)
    return both[:, 0], both[:, 1]


def paths(
    nodes: int, tail: Ints, head: Ints, source: Ints, target: Ints, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """(links, ones), each (commodities, PATHS, hops) padded with zeros: shortest paths for weights drawn at random."""
    number = sp.csr_array((np.arange(1, len(tail) + 1), (tail, head)), shape=(nodes, nodes))
    found = []
    for attempt in range(PATHS):
        weight = np.ones(len(tail)) if attempt == 0 else rng.uniform(0.5, 2.0, len(tail))
        _, before = dijkstra(sp.csr_array((weight, (tail, head)), shape=(nodes, nodes)), return_predecessors=True)
        at, hops = target.copy(), []
        while np.any(at != source):
            last = np.where(at != source, before[source, at], at)
            hops.append(np.where(at != source, np.asarray(number[last, at]).ravel(), 0))
            at = last
        found.append(np.stack(hops, axis=1))
    longest = max(f.shape[1] for f in found)
    link = np.stack([np.pad(f, ((0, 0), (0, longest - f.shape[1]))) for f in found], axis=1).astype(np.int64)
    return np.maximum(link - 1, 0), (link > 0).astype(np.float64)
