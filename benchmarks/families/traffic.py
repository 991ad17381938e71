"""Traffic engineering on real networks: commodities share the links of a backbone, each on arc-disjoint paths.

max sum f; a commodity's paths carry at most its demand, an arc's paths at most its capacity. Instances and the
rule for the paths are those of the data folder `te`; tests check the digests of the paths.
"""

from __future__ import annotations

import hashlib
from typing import ClassVar

import numba
import numpy as np
import scipy.sparse as sp
from judge import Judged

from copter import Model
from families.blocks import MOST, Outage, drawn_limits, set_counts, set_limits
from families.networks import NETWORKS, arcs, demands, table
from families.program import Floats, Ints, Program
from families.protocol import Outcome, SolverOptions, amount_of
from families.uniform import SessionSolver
from families.verdicts import judge_outcome

PATHS = 4  # of a commodity, at most


class TrafficRounds:
    """A published instance whose demands or links change.

    Parameters
    ----------
    name : str
        One of :data:`families.networks.NETWORKS`.
    change : {"limits", "some-limits", "link"}
        A link is both arcs between two nodes.
    amount : float, optional
    seed : int
        Of the changes.
    """

    changes: ClassVar[tuple[str, ...]] = ("limits", "some-limits", "link")

    def __init__(self, name: str, change: str, amount: float | None, seed: int) -> None:
        if name not in NETWORKS:
            raise ValueError(f"unknown network {name!r}: one of {', '.join(NETWORKS)}")
        self.network, self.rng = NETWORKS[name], np.random.default_rng(seed)
        self.change, self.amount = change, amount_of(change, amount)
        source, target, capacity = arcs(self.network.topology)
        matrix = demands(self.network)
        self.pairs = np.argwhere(matrix > 0)
        self.usual = matrix[matrix > 0]
        self.limit = self.usual.copy()
        self.capacity = capacity if self.network.capacity is None else np.full(len(source), self.network.capacity)
        self.paths = Paths.between(source, target, self.pairs)
        self.outage = Outage(self.rng, both_ways(source, target))
        self.model = Model(sense="max")
        for row, count in enumerate(self.capacity.tolist()):
            self.model.add_resources(row, count)
        self.limited = self.recounted = np.zeros(0, dtype=np.int64)
        self.waiting = [self.paths.usage(at) for at in range(len(self.pairs))]

    @property
    def counts(self) -> dict[str, int]:
        """Size."""
        columns = len(self.paths.hops)
        sizes = {"jobs": len(self.pairs), "rows": len(self.capacity), "variables": columns}
        return sizes | {"nonzeros": len(self.paths.arc) + columns}

    def prepare(self) -> None:
        """Draw the round's changes."""
        none = np.zeros(0, dtype=np.int64)
        self.limited = self.recounted = none
        if self.change == "link":
            self.recounted = self.outage.next(self.capacity)
        else:
            self.limited = drawn_limits(self.rng, self.change, self.amount, self.usual, self.limit)

    def edit(self) -> None:
        """Apply them to the model."""
        if len(self.limited):
            set_limits(self.model, self.limited.tolist(), self.limit[self.limited])
        if len(self.recounted):
            set_counts(self.model, self.recounted.tolist(), self.capacity[self.recounted])
        for at, (matrix, rows) in enumerate(self.waiting):
            limit = float(self.limit[at])
            cost = np.ones(matrix.shape[1])
            self.model.add_request(at, cost, matrix, resources=rows, limit=limit, upper=MOST * float(self.usual[at]))
        self.waiting = []

    def solver(self, options: SolverOptions) -> SessionSolver:
        """A session."""
        return SessionSolver(self.model, False, options)

    def adopt(self, outcome: Outcome) -> None:
        """Nothing depends on the flows."""

    def program(self) -> Program:
        """Arcs, then commodities; columns are paths, commodity by commodity."""
        paths, m, n = self.paths, len(self.capacity), len(self.paths.hops)
        own = np.repeat(np.arange(len(self.pairs)), np.diff(paths.first))
        start = np.concatenate(([0], np.cumsum(paths.hops + 1)))
        last = np.zeros(start[-1], dtype=bool)
        last[start[1:] - 1] = True
        row = np.empty(start[-1], dtype=np.int64)
        row[last], row[~last] = m + own, paths.arc
        A = sp.csc_array((np.ones(len(row)), row, start), shape=(m + len(self.pairs), n))
        A.sort_indices()
        return Program(
            c=np.ones(n),
            A=A,
            row_lower=np.full(m + len(self.pairs), -np.inf),
            row_upper=np.concatenate((self.capacity, self.limit)),
            col_lower=np.zeros(n),
            col_upper=MOST * self.usual[own],
            column_key=np.arange(n),
            row_key=np.arange(m + len(self.pairs)),
        )

    def point(self, outcome: Outcome) -> tuple[Floats, Floats]:
        """x and y as the solution has them."""
        solution = outcome.answer[0]
        return solution.x, solution.y

    def whole(self, outcome: Outcome) -> tuple[Ints, Floats] | None:
        """None: flows need not be whole."""
        return None

    def judged_in_parts(self, outcome: Outcome) -> Judged | None:
        """Judge the program as it is written out: the judge itself goes through its columns in parts."""
        return judge_outcome(self, self.program(), outcome)


def both_ways(source: Ints, target: Ints) -> list[Ints]:
    """Arcs of every link."""
    links: dict[tuple[int, int], list[int]] = {}
    for arc, (u, v) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        links.setdefault((min(u, v), max(u, v)), []).append(arc)
    return [np.array(own) for own in links.values()]


# Paths ----------------------------------------------------------------------------------------------------------------


class Paths:
    """Paths of ordered pairs of nodes.

    Attributes
    ----------
    first : ndarray (pairs + 1,)
        Where a pair's paths begin.
    hops : ndarray (paths,)
    arc : ndarray (sum of hops,)
    """

    def __init__(self, first: Ints, hops: Ints, arc: Ints) -> None:
        self.first, self.hops, self.arc = first, hops, arc
        self.start = np.concatenate(([0], np.cumsum(hops)))

    @classmethod
    def between(cls, source: Ints, target: Ints, pairs: Ints) -> Paths:
        """The paths of some pairs (p, 2) of a graph whose arcs come both ways."""
        graph = adjacency(source, target)
        counts, hops, arc = [], [], []
        for s in np.unique(pairs[:, 0]).tolist():
            found = paths_from(*graph, s, pairs[pairs[:, 0] == s, 1])
            for parts, part in zip((counts, hops, arc), found, strict=True):
                parts.append(part)
        first = np.concatenate(([0], np.cumsum(np.concatenate(counts))))
        return cls(first, np.concatenate(hops), np.concatenate(arc))

    def usage(self, at: int) -> tuple[sp.csc_array, list[int]]:
        """A pair's paths by column over the arcs that they touch, and those arcs."""
        own = slice(self.first[at], self.first[at + 1])
        start = self.start[own.start : own.stop + 1]
        rows, place = np.unique(self.arc[start[0] : start[-1]], return_inverse=True)
        shape = (len(rows), len(start) - 1)
        return sp.csc_array((np.ones(len(place)), place, start - start[0]), shape=shape), rows.tolist()

    def digest(self, source: Ints, target: Ints, pairs: Ints) -> str:
        """SHA-256 of the lines s,t,v0-v1-...-vk."""
        found, first, start, head = (
            hashlib.sha256(),
            self.first.tolist(),
            self.start.tolist(),
            target[self.arc].tolist(),
        )
        for at, (s, t) in enumerate(pairs.tolist()):
            for path in range(first[at], first[at + 1]):
                nodes = "-".join(map(str, [s, *head[start[path] : start[path + 1]]]))
                found.update(f"{s},{t},{nodes}\n".encode())
        return found.hexdigest()


def published(topology: str) -> dict[str, str]:
    """Counts and digest of the paths of all ordered pairs of a topology."""
    return next(row for row in table("paths_check.csv") if row["topology"] == topology)


def adjacency(source: Ints, target: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """(start, neighbour, arc, reverse): neighbours in the order in which their link first appears in the list of arcs.

    `arc` is the number of the arc to the neighbour, `reverse` the place of the node in the neighbour's own list.
    """
    n = int(max(source.max(), target.max())) + 1
    number = {pair: arc for arc, pair in enumerate(zip(source.tolist(), target.tolist(), strict=True))}
    neighbours: list[dict[int, None]] = [{} for _ in range(n)]
    for u, v in number:
        neighbours[u].setdefault(v)
        neighbours[v].setdefault(u)
    start = np.concatenate(([0], np.cumsum([len(own) for own in neighbours])))
    place = {(u, v): int(start[u]) + i for u, own in enumerate(neighbours) for i, v in enumerate(own)}
    arc = np.array([number[pair] for pair in place], dtype=np.int64)
    reverse = np.array([place[v, u] for u, v in place], dtype=np.int64)
    return start, np.array([v for _, v in place], dtype=np.int64), arc, reverse


@numba.njit(cache=True)
def paths_from(start, neighbour, arc, reverse, s, targets):  # type: ignore[no-untyped-def]
    """(paths of each target, hops of each path, arcs): the maximum flow of unit arcs from s, decomposed."""
    n = len(start) - 1
    count = np.zeros(len(targets), np.int64)
    hops = np.empty(PATHS * len(targets), np.int64)
    arcs = np.empty(PATHS * len(targets) * n, np.int64)
    flow, paths, entries = np.zeros(len(neighbour), np.int8), 0, 0
    for at in range(len(targets)):
        t = targets[at]
        flow[:] = 0
        for _ in range(min(start[s + 1] - start[s], start[t + 1] - start[t])):
            if not augment(start, neighbour, reverse, flow, s, t):
                break
        own, length = decompose(start, neighbour, flow, s, t)
        order = np.argsort(length, kind="mergesort")[:PATHS]
        for path in order:
            first = entries
            entries = cut_loops(own[path, : length[path]], arc, neighbour, s, arcs, entries)
            hops[paths] = entries - first
            paths += 1
        count[at] = len(order)
    return count, hops[:paths].copy(), arcs[:entries].copy()


@numba.njit(cache=True)
def augment(start, neighbour, reverse, flow, s, t):  # type: ignore[no-untyped-def]
    """Send one more unit along a path found from both ends in layers; whether there is one."""
    n = len(start) - 1
    # Places of the arcs by which each side entered a node, towards the target; -1 if it has not, -2 at its own end.
    before, after = np.full(n, -1), np.full(n, -1)
    before[s], after[t] = -2, -2
    ahead, back = np.empty(n, np.int64), np.empty(n, np.int64)
    ahead[0], back[0] = s, t
    ahead_first, ahead_end, back_first, back_end = 0, 1, 0, 1
    meeting = -1
    while meeting < 0:
        forwards = ahead_end - ahead_first <= back_end - back_first
        queue, first, end = (ahead, ahead_first, ahead_end) if forwards else (back, back_first, back_end)
        entered, other = (before, after) if forwards else (after, before)
        last = end
        for i in range(first, end):
            u = queue[i]
            for place in range(start[u], start[u + 1]):
                v = neighbour[place]
                used = place if forwards else reverse[place]
                if entered[v] == -1 and flow[used] < 1:
                    entered[v] = used
                    if other[v] != -1:
                        meeting = v
                        break
                    queue[last] = v
                    last += 1
            if meeting >= 0:
                break
        if meeting < 0 and last == end:
            return False
        if forwards:
            ahead_first, ahead_end = end, last
        else:
            back_first, back_end = end, last
    v = meeting
    while v != s:
        place = before[v]
        flow[place] += 1
        flow[reverse[place]] -= 1
        v = neighbour[reverse[place]]
    v = meeting
    while v != t:
        place = after[v]
        flow[place] += 1
        flow[reverse[place]] -= 1
        v = neighbour[place]
    return True


@numba.njit(cache=True)
def decompose(start, neighbour, flow, s, t):  # type: ignore[no-untyped-def]
    """(places of arcs of each path, (paths, most), lengths): from a node on by the last arc with flow that is left."""
    degree = start[s + 1] - start[s]
    own, length = np.empty((degree, len(neighbour)), np.int64), np.zeros(degree, np.int64)
    left = start[1:].copy()  # of a node's arcs those before this place are left
    paths = 0
    for first in range(start[s], start[s + 1]):
        if flow[first] < 1:
            continue
        own[paths, 0], length[paths] = first, 1
        u = neighbour[first]
        while u != t:
            place = left[u] - 1
            while flow[place] < 1:
                place -= 1
            left[u] = place
            own[paths, length[paths]] = place
            length[paths] += 1
            u = neighbour[place]
        paths += 1
    return own[:paths], length[:paths]


@numba.njit(cache=True)
def cut_loops(places, arc, neighbour, s, arcs, end):  # type: ignore[no-untyped-def]
    """Write a path's arcs down from `end` on, without its loops; where it ends."""
    first = end
    nodes = np.empty(len(places) + 1, np.int64)
    nodes[0] = s
    for place in places:
        v = neighbour[place]
        arcs[end] = arc[place]
        end += 1
        for visited in range(end - first):
            if nodes[visited] == v:
                end = first + visited
                break
        nodes[end - first] = v
    return end
