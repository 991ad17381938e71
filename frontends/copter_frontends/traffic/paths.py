"""Paths of node pairs: arc-disjoint sets by the published rule, or k shortest paths, cached on disk."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from copter_frontends.traffic.disjoint_kernel import paths_from
from copter_frontends.traffic.errors import PathError, UnknownPairError
from copter_frontends.traffic.network import Floats, Ints, Network, summed
from copter_frontends.traffic.shortest_kernel import k_shortest

PATHS = 4  # most paths of a pair by default, as published
RULES = ("disjoint", "shortest")
RULE_VERSION = 1  # version of the rules, part of the names of cached files


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths of ordered pairs, pair after pair.

    Attributes
    ----------
    network : Network
    pairs : ndarray (pairs, 2) of int64
        Source and target of each pair, all different.
    first : ndarray (pairs + 1,)
        First path of each pair.
    start : ndarray (paths + 1,)
        First entry of each path in `arc`.
    arc : ndarray (start[-1],)
    """

    network: Network
    pairs: Ints
    first: Ints
    start: Ints
    arc: Ints

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.pairs)

    @property
    def n_paths(self) -> int:
        """Number of paths."""
        return len(self.start) - 1

    @cached_property
    def hops(self) -> Ints:
        """Return the number of arcs of each path."""
        return np.diff(self.start)

    @cached_property
    def pair_of(self) -> Ints:
        """Return the pair of each path."""
        return np.repeat(np.arange(self.n_pairs), np.diff(self.first))

    @cached_property
    def path_of_entry(self) -> Ints:
        """Return the path of each entry of `arc`."""
        return np.repeat(np.arange(self.n_paths), self.hops)

    @cached_property
    def number_of(self) -> dict[tuple[int, int], int]:
        """Return the index of every pair by its ends."""
        return {pair: at for at, pair in enumerate(zip(*self.pairs.T.tolist(), strict=True))}

    def pair(self, source: int | str, target: int | str) -> int:
        """Return the index of a node pair; raises UnknownPairError if it has none."""
        u, v = self.network.node(source), self.network.node(target)
        if (u, v) not in self.number_of:
            raise UnknownPairError(
                f"the pair {self.network.nodes[u]!r} -> {self.network.nodes[v]!r} is not among the {self.n_pairs:,} "
                "pairs that have paths"
            )
        return self.number_of[u, v]

    def pair_name(self, at: int) -> str:
        """Return a pair as text."""
        u, v = self.pairs[at].tolist()
        return f"{self.network.nodes[u]!r} -> {self.network.nodes[v]!r}"

    def arcs_of(self, path: int) -> Ints:
        """Return the arcs of a path, in order."""
        return self.arc[self.start[path] : self.start[path + 1]]

    def nodes_of(self, path: int) -> list[int]:
        """Return the nodes of a path, in order."""
        arcs = self.arcs_of(path)
        return [int(self.network.source[arcs[0]]), *self.network.target[arcs].tolist()]

    # Sums ---------------------------------------------------------------------------------------------------------

    def loads(self, flows: Floats) -> Floats:
        """Return the flow over every arc, (arcs,)."""
        return summed(self.arc, flows[self.path_of_entry], self.network.n_arcs)

    def served(self, flows: Floats) -> Floats:
        """Return the flow of every pair, (pairs,)."""
        return summed(self.pair_of, flows, self.n_pairs)

    def lengths(self, price: Floats) -> Floats:
        """Return the sum of the arcs' prices along every path, (paths,)."""
        return np.add.reduceat(price[self.arc], self.start[:-1]) if self.n_paths else np.zeros(0)

    def least(self, of_paths: Floats, none: float = np.inf) -> Floats:
        """Return the least value among every pair's paths, (pairs,); `none` for pairs without paths."""
        found = np.full(self.n_pairs, none)
        has = self.first[1:] > self.first[:-1]
        if has.any():
            found[has] = np.minimum.reduceat(of_paths, self.first[:-1][has])
        return found

    # Derived path sets -----------------------------------------------------------------------------------------------

    def demands_of(self, matrix: Floats) -> Floats:
        """Return a matrix's demands of the pairs, (pairs,)."""
        return np.asarray(matrix[self.pairs[:, 0], self.pairs[:, 1]], dtype=np.float64)

    def of_pairs(self, places: Ints) -> Paths:
        """Return the paths of some pairs, in the given order."""
        keep = ranges(self.first[places], self.first[places + 1])
        arc = self.arc[ranges(self.start[keep], self.start[keep + 1])]
        first = np.concatenate(([0], np.cumsum(self.first[places + 1] - self.first[places])))
        return Paths(self.network, self.pairs[places], first, np.concatenate(([0], np.cumsum(self.hops[keep]))), arc)

    def with_paths(self, at: int, node_paths: Sequence[Sequence[int | str]]) -> Paths:
        """Return the paths with one pair's replaced, each given by its nodes; raises PathError or UnknownPairError."""
        new = [self.checked_path(at, nodes) for nodes in node_paths]
        begin, end = int(self.first[at]), int(self.first[at + 1])
        arc = np.concatenate((self.arc[: self.start[begin]], *new, self.arc[self.start[end] :]))
        hops = np.concatenate((self.hops[:begin], [len(own) for own in new], self.hops[end:])).astype(np.int64)
        first = self.first.copy()
        first[at + 1 :] += len(new) - (end - begin)
        return Paths(self.network, self.pairs, first, np.concatenate(([0], np.cumsum(hops))), arc.astype(np.int64))

    def checked_path(self, at: int, nodes: Sequence[int | str]) -> Ints:
        """Return the arcs of a pair's path given by its nodes; raises PathError."""
        numbers = [self.network.node(node) for node in nodes]
        if len(numbers) < 2 or (numbers[0], numbers[-1]) != tuple(self.pairs[at].tolist()):
            raise PathError(f"a path of {self.pair_name(at)} must lead from the one node to the other: {list(nodes)}")
        if len(set(numbers)) < len(numbers):
            raise PathError(f"a path of {self.pair_name(at)} meets a node twice: {list(nodes)}")
        missing = [ends for ends in pairwise(numbers) if ends not in self.network.arc_of]
        if missing:
            u, v = (self.network.nodes[end] for end in missing[0])
            raise UnknownPairError(f"a path of {self.pair_name(at)} needs the link {u!r} -> {v!r}, which is not there")
        return np.array([self.network.arc_of[ends] for ends in pairwise(numbers)])

    def digest(self) -> str:
        """Return the SHA-256 of the lines ``s,t,v0-v1-...-vk``, as published for the path sets of whole topologies."""
        found, head = hashlib.sha256(), self.network.target[self.arc].tolist()
        first, start = self.first.tolist(), self.start.tolist()
        for at, (s, t) in enumerate(self.pairs.tolist()):
            for path in range(first[at], first[at + 1]):
                nodes = "-".join(map(str, [s, *head[start[path] : start[path + 1]]]))
                found.update(f"{s},{t},{nodes}\n".encode())
        return found.hexdigest()


def ranges(begin: Ints, end: Ints) -> Ints:
    """Return begin[0] .. end[0] - 1, begin[1] .. end[1] - 1, and so on."""
    size = end - begin
    offset = np.repeat(begin - np.concatenate(([0], np.cumsum(size)[:-1])), size)
    return np.asarray(offset + np.arange(int(size.sum())), dtype=np.int64)


# Making them ----------------------------------------------------------------------------------------------------------


def all_pairs(network: Network) -> Ints:
    """Return the ordered pairs of different nodes, row by row."""
    return np.argwhere(~np.eye(network.n_nodes, dtype=np.bool_))


def make_paths(
    network: Network,
    pairs: ArrayLike | None = None,
    rule: str = "disjoint",
    most: int = PATHS,
    folder: str | Path | None = None,
) -> Paths:
    """Find the paths of some pairs.

    Parameters
    ----------
    network : Network
    pairs : array_like (pairs, 2), optional
        Pairs of nodes; all ordered pairs by default.
    rule : {"disjoint", "shortest"}
        Arc-disjoint paths as in the published instances (TE6), or the shortest ones by hops, loopless (TE7).
    most : int
        Most paths of a pair.
    folder : path, optional
        Folder of cached path sets: an existing set is read, a new one is written.

    Raises
    ------
    PathError, UnknownPairError
    """
    if rule not in RULES or most < 1:
        raise PathError(f"no rule {rule!r} for {most} paths: rules are {', '.join(RULES)}, paths at least 1")
    wanted = all_pairs(network) if pairs is None else _checked_pairs(network, pairs)
    kept = None if folder is None else Path(folder) / f"{_key(network, wanted, rule, most)}.npz"
    if kept is not None and kept.is_file():
        with contextlib.suppress(OSError, KeyError, ValueError, zipfile.BadZipFile), np.load(kept) as file:
            return Paths(network, wanted, *(file[name].astype(np.int64) for name in ("first", "start", "arc")))
    count, hops, arc = (_disjoint if rule == "disjoint" else _shortest)(network, wanted, most)
    first, start = (np.concatenate(([0], np.cumsum(sizes))) for sizes in (count, hops))
    if kept is not None:
        _keep(kept, first, start, arc)
    return Paths(network, wanted, first, start, arc)


def _checked_pairs(network: Network, pairs: ArrayLike) -> Ints:
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    for u, v in found[(found < 0).any(axis=1) | (found >= network.n_nodes).any(axis=1)][:1].tolist():
        raise UnknownPairError(f"the pair {u} -> {v} is not in {network.name}: nodes are 0 to {network.n_nodes - 1}")
    for u, _ in found[found[:, 0] == found[:, 1]][:1].tolist():
        raise PathError(f"the pair {u} -> {u} needs no path: leave demands of a node to itself out")
    if len(np.unique(found @ (network.n_nodes, 1))) < len(found):
        raise PathError("a pair is given twice")
    return found


def adjacency(network: Network) -> tuple[Ints, Ints, Ints, Ints]:
    """Return (start, neighbour, arc, reverse), with neighbours in the order in which their links appear among the arcs.

    `arc` is the number of the arc to the neighbour, -1 if only the opposite arc exists; `reverse` is the index of the
    node's entry in the neighbour's list.
    """
    neighbours: list[dict[int, None]] = [{} for _ in range(network.n_nodes)]
    for u, v in network.arc_of:
        neighbours[u].setdefault(v)
        neighbours[v].setdefault(u)
    start = np.concatenate(([0], np.cumsum([len(own) for own in neighbours])))
    place = {(u, v): int(start[u]) + i for u, own in enumerate(neighbours) for i, v in enumerate(own)}
    arc = np.array([network.arc_of.get(pair, -1) for pair in place], dtype=np.int64)
    reverse = np.array([place[v, u] for u, v in place], dtype=np.int64)
    return start, np.array([v for _, v in place], dtype=np.int64), arc, reverse


def _disjoint(network: Network, pairs: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """Return (number of paths of each pair, hops of each path, arcs) by the arc-disjoint rule."""
    start, neighbour, arc, reverse = adjacency(network)
    parts = []
    for s, own in _grouped(pairs[:, 0]):
        parts.append((own, *paths_from(start, neighbour, arc, reverse, s, pairs[own, 1], most)))
    return _in_order(parts, len(pairs))


def _shortest(network: Network, pairs: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """Return (number of paths of each pair, hops of each path, arcs), shortest paths first."""
    start, neighbour, arc, reverse = adjacency(network)
    backward = np.where(arc[reverse] >= 0, reverse, -1)
    parts = []
    for t, own in _grouped(pairs[:, 1]):
        parts.append((own, *k_shortest(start, neighbour, arc, backward, t, pairs[own, 0], most)))
    return _in_order(parts, len(pairs))


def _grouped(ends: Ints) -> list[tuple[int, Ints]]:
    """Return the indices of every end."""
    order = np.argsort(ends, kind="stable")
    values, first = np.unique(ends[order], return_index=True)
    return list(zip(values.tolist(), np.split(order, first[1:]), strict=True)) if len(values) else []


def _in_order(parts: list[tuple[Ints, Ints, Ints, Ints]], n: int) -> tuple[Ints, Ints, Ints]:
    """Put results found by source or target into the order of the pairs."""
    if not parts:
        return (np.zeros(0, dtype=np.int64),) * 3
    own, found, hops, arc = (np.concatenate([part[i] for part in parts]) for i in range(4))
    if np.array_equal(own, np.arange(n)):
        return found, hops, arc
    count = np.zeros(n, dtype=np.int64)
    count[own] = found
    first = np.zeros(n, dtype=np.int64)
    first[own] = np.cumsum(found) - found
    path = ranges(first, first + count)
    begin = np.cumsum(hops) - hops
    return count, hops[path], arc[ranges(begin[path], begin[path] + hops[path])]


def _key(network: Network, pairs: Ints, rule: str, most: int) -> str:
    found = hashlib.sha256(f"{RULE_VERSION} {rule} {most} {network.n_nodes}".encode())
    for array in (network.source, network.target, pairs):
        found.update(np.ascontiguousarray(array).tobytes())
    return f"paths-{found.hexdigest()[:32]}"


def _keep(target: Path, first: Ints, start: Ints, arc: Ints) -> None:
    """Write a path set to a file, completely or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, suffix=".npz")
    try:
        with os.fdopen(handle, "wb") as file:
            small: NDArray[np.uint16] | Ints = arc.astype(np.uint16) if arc.max(initial=0) < 1 << 16 else arc
            np.savez(file, first=first, start=start, arc=small)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
