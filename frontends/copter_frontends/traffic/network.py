"""A network: nodes, and arcs with capacities; path rules depend on the arcs' order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from copter_frontends.traffic.errors import NetworkError, UnknownPairError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ArcOf = dict[tuple[int, int], int]

MOST_CAPACITY = 1e15
"""Larger capacities are refused, because sums of flows would lose precision."""


def summed(places: Ints, values: Floats, count: int) -> Floats:
    """Return float sums of values by index; zeros for indices without values."""
    return np.bincount(places, values, count).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Network:
    """A directed network without duplicate arcs or self-loops.

    Parameters
    ----------
    nodes : tuple of str
        Names of the nodes, all different.
    source, target : ndarray (arcs,) of int64
        Indices in `nodes` of each arc's ends. The order of the arcs matters: the arc-disjoint rule for paths visits
        neighbours in the order in which their links first appear.
    capacity : ndarray (arcs,)
        Capacities, at least zero, all in the same unit (Mbit/s in the published instances).
    name : str
    position : ndarray (nodes, 2), optional
        Longitude and latitude, or other coordinates for drawing; NaN if unknown.

    Raises
    ------
    NetworkError
    """

    nodes: tuple[str, ...]
    source: Ints
    target: Ints
    capacity: Floats
    name: str = "network"
    position: Floats | None = None

    def __post_init__(self) -> None:
        n, m = len(self.nodes), len(self.source)
        if len(set(self.nodes)) < n:
            twice = next(node for node in self.nodes if self.nodes.count(node) > 1)
            raise NetworkError(f"{self.name}: node {twice!r} is named twice")
        if m == 0 or len(self.target) != m or len(self.capacity) != m:
            raise NetworkError(f"{self.name}: give at least one arc, and a source, a target and a capacity for each")
        if min(self.source.min(), self.target.min()) < 0 or max(self.source.max(), self.target.max()) >= n:
            raise NetworkError(f"{self.name}: an arc ends at a node that is not among the {n} nodes")
        for at in np.flatnonzero(self.source == self.target)[:1].tolist():
            raise NetworkError(f"{self.name}: arc {at} leads from {self.nodes[self.source[at]]!r} to itself")
        if len(self.arc_of) < m:
            raise NetworkError(f"{self.name}: an arc is there twice; merge parallel links (Network.from_links does)")
        self.require_capacities(np.arange(m), self.capacity)

    @classmethod
    def from_links(
        cls,
        nodes: Sequence[str],
        links: Sequence[tuple[int, int, float]],
        name: str = "network",
        directed: bool = False,
        position: Floats | None = None,
    ) -> Network:
        """Make a network of (source, target, capacity); self-loops are dropped, parallel links merged.

        An undirected link becomes two arcs. Arcs are ordered by source, then by first appearance of the neighbour. Of
        parallel links only the first one's capacity counts, as in the published instances.
        """
        out: list[dict[int, float]] = [{} for _ in nodes]
        for u, v, capacity in links:
            if u == v:
                continue
            out[u].setdefault(v, capacity)
            if not directed:
                out[v].setdefault(u, capacity)
        arcs = [(u, v, capacity) for u, own in enumerate(out) for v, capacity in own.items()]
        source, target = (np.array([arc[end] for arc in arcs], dtype=np.int64) for end in (0, 1))
        return cls(tuple(nodes), source, target, np.array([arc[2] for arc in arcs], dtype=np.float64), name, position)

    @cached_property
    def arc_of(self) -> ArcOf:
        """Return the number of every arc by its ends."""
        return {ends: arc for arc, ends in enumerate(zip(self.source.tolist(), self.target.tolist(), strict=True))}

    @cached_property
    def node_of(self) -> dict[str, int]:
        """Return the number of every node by its name."""
        return {name: at for at, name in enumerate(self.nodes)}

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return len(self.source)

    @cached_property
    def links(self) -> list[Ints]:
        """Return the arcs of every link, in both directions."""
        found: dict[tuple[int, int], list[int]] = {}
        for (u, v), arc in self.arc_of.items():
            found.setdefault((min(u, v), max(u, v)), []).append(arc)
        return [np.array(own, dtype=np.int64) for own in found.values()]

    def node(self, node: int | str) -> int:
        """Return the number of a node given by number or name; raises UnknownPairError."""
        if isinstance(node, str):
            if node not in self.node_of:
                raise UnknownPairError(f"{self.name} has no node {node!r}")
            return self.node_of[node]
        if not 0 <= node < self.n_nodes:
            raise UnknownPairError(f"{self.name} has no node {node}: nodes are 0 to {self.n_nodes - 1}")
        return int(node)

    def link(self, u: int | str, v: int | str) -> Ints:
        """Return the arcs between two nodes in both directions; raises UnknownPairError if there are none."""
        a, b = self.node(u), self.node(v)
        found = [self.arc_of[ends] for ends in ((a, b), (b, a)) if ends in self.arc_of]
        if not found:
            raise UnknownPairError(f"{self.name} has no link between {self.nodes[a]!r} and {self.nodes[b]!r}")
        return np.array(found, dtype=np.int64)

    def require_capacities(self, arcs: Ints, capacity: Floats) -> None:
        """Raise NetworkError, naming the arc, for a capacity that is NaN, negative or infinite."""
        bad = ~(np.isfinite(capacity) & (capacity >= 0.0) & (capacity <= MOST_CAPACITY))
        for at in np.flatnonzero(bad)[:1].tolist():
            arc = int(arcs[at])
            ends = f"{self.nodes[self.source[arc]]!r} -> {self.nodes[self.target[arc]]!r}"
            raise NetworkError(
                f"{self.name}: arc {ends} has capacity {capacity[at]}: give a number from 0 to {MOST_CAPACITY:g}"
            )

    def with_capacity(self, capacity: float | Floats) -> Network:
        """Return the network with other capacities."""
        return replace(self, capacity=np.broadcast_to(np.asarray(capacity, dtype=np.float64), self.n_arcs).copy())

    def largest_component(self) -> Network:
        """Return the largest strongly connected component, in the original order."""
        graph = sp.csr_array((np.ones(self.n_arcs), (self.source, self.target)), shape=(self.n_nodes,) * 2)
        _, label = connected_components(graph, directed=True, connection="strong")
        kept = label == np.argmax(np.bincount(label))
        if kept.all():
            return self
        place = np.cumsum(kept) - 1
        arcs = kept[self.source] & kept[self.target]
        return Network(
            tuple(name for name, stays in zip(self.nodes, kept.tolist(), strict=True) if stays),
            place[self.source[arcs]],
            place[self.target[arcs]],
            self.capacity[arcs],
            self.name,
            None if self.position is None else self.position[kept],
        )
