"""Baselines by HiGHS: the whole program, its largest demands only, or parts of it."""

from __future__ import annotations

import heapq
import time

import numpy as np
from numpy.typing import ArrayLike

from copter_frontends.traffic.bounds import total_flow_bound
from copter_frontends.traffic.errors import DemandError
from copter_frontends.traffic.highs_flows import HighsFlows
from copter_frontends.traffic.network import Floats, Ints, summed
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.scheme import RoundScheme

TOP = 0.1  # LP-Top's program has this share of the demands, the largest ones
WORKERS = 64  # workers on which POP's parts are assumed to run, as in the thesis

Answer = tuple[Floats, float, Floats, float | None]


class LpAll(RoundScheme):
    """LP-All: the whole program by HiGHS, from the last basis."""

    def __init__(self, paths: Paths, demands: ArrayLike) -> None:
        super().__init__(paths, demands)
        self.highs = HighsFlows(paths)

    def solve(self, deadline_s: float | None) -> Answer:
        """Return HiGHS's flows with the bound that its prices give."""
        flows, prices, _ = self.highs.solve(self.demands, self.capacity, np.inf if deadline_s is None else deadline_s)
        return flows, total_flow_bound(self.paths, prices, self.demands, self.capacity), prices, None


class LpTop(RoundScheme):
    """LP-Top: an LP of the largest demands; the others use their shortest paths in the remaining capacity.

    Parameters
    ----------
    paths, demands
    share : float
        Share of the demands that are in the program.
    pinned_first : bool
        Route the small demands on their shortest paths first; the program gets the remaining capacity (demand pinning).
    """

    def __init__(self, paths: Paths, demands: ArrayLike, share: float = TOP, pinned_first: bool = False) -> None:
        super().__init__(paths, demands)
        if not 0.0 < share <= 1.0:
            raise DemandError(f"the share of the demands in the program is {share}: give one above 0, up to 1")
        self.share, self.pinned_first = share, pinned_first
        self.highs: HighsFlows | None = None
        self.largest: Ints = np.zeros(0, dtype=np.int64)

    def solve(self, deadline_s: float | None) -> Answer:
        """Route the largest demands by HiGHS and the others greedily."""
        wanted = np.flatnonzero(self.demands > 0.0)
        count = int(np.ceil(self.share * len(wanted)))
        top = np.sort(wanted[np.argsort(-self.demands[wanted], kind="stable")[:count]])
        flows, room = np.zeros(self.paths.n_paths), self.capacity.copy()
        others = np.setdiff1d(wanted, top)
        if self.pinned_first:
            self._pin(others, flows, room)
        if len(top):
            part = self.paths.of_pairs(top)
            if self.highs is None or not np.array_equal(top, self.largest):
                self.highs, self.largest = HighsFlows(part), top
            limit = np.inf if deadline_s is None else deadline_s
            found, _, _ = self.highs.solve(self.demands[top], np.maximum(room, 0.0), limit)
            found = np.maximum(found, 0.0)
            flows[np.isin(self.paths.pair_of, top)] = found
            room -= part.loads(found)
        if not self.pinned_first:
            self._pin(others, flows, room)
        return flows, np.nan, np.zeros(0), None

    def _pin(self, pairs: Ints, flows: Floats, room: Floats) -> None:
        """Route some pairs on their shortest paths as far as capacity allows, largest demands first."""
        paths = self.paths
        order = pairs[np.argsort(-self.demands[pairs], kind="stable")]
        for pair in order[np.diff(paths.first)[order] > 0].tolist():
            path = int(paths.first[pair])  # the paths of a pair are sorted by length
            arcs = paths.arcs_of(path)
            amount = min(float(self.demands[pair]), float(room[arcs].min()))
            if amount > 0.0:
                flows[path] += amount
                room[arcs] -= amount


class Pop(RoundScheme):
    """POP-k: demands in k random parts, each solved with 1/k of every capacity (Narayanan et al., SOSP 2021).

    First, large demands are halved repeatedly (client splitting), so that the parts are alike: the pieces of a demand
    go to different parts, which all have a share of the links.

    Parameters
    ----------
    paths, demands
    parts : int
    split : float
        Number of pieces that splitting adds, as a share of the number of demands.
    seed : int
        Seed of the parts, which are drawn anew every round.
    workers : int
        Assumed number of parallel workers: the reported time is that of the busiest worker.

    Attributes
    ----------
    sequential_s : float
        Time of the last round's parts, summed.
    """

    def __init__(
        self, paths: Paths, demands: ArrayLike, parts: int = 16, split: float = 0.0, seed: int = 0,
        workers: int = WORKERS,
    ) -> None:  # fmt: skip
        super().__init__(paths, demands)
        if parts < 1 or split < 0.0:
            raise DemandError(f"POP with {parts} parts and a split of {split}: give at least 1 part, at least 0")
        self.parts, self.split, self.workers = parts, split, workers
        self.rng = np.random.default_rng(seed)
        self.sequential_s = 0.0

    def solve(self, deadline_s: float | None) -> Answer:
        """Return the combined flows of all parts."""
        pair, size = split_demands(self.demands, self.split)
        part = dealt(pair, self.parts, self.rng)
        flows, seconds = np.zeros(self.paths.n_paths), []
        for k in range(self.parts):
            own, place = np.unique(pair[part == k], return_inverse=True)
            if not len(own):
                continue
            wanted = summed(place, size[part == k], len(own))
            here = self.paths.of_pairs(own)
            highs = HighsFlows(here, warm=False)
            started = time.perf_counter()
            found, _, _ = highs.solve(wanted, self.capacity / self.parts)
            seconds.append(time.perf_counter() - started)
            flows[np.isin(self.paths.pair_of, own)] += np.maximum(found, 0.0)
        self.sequential_s = sum(seconds)
        return flows, np.nan, np.zeros(0), parallel_s(seconds, self.workers)


def split_demands(demands: Floats, split: float) -> tuple[Ints, Floats]:
    """Return (pair, size) of pieces: the largest piece is halved until there are enough pieces."""
    pair = np.flatnonzero(demands > 0.0)
    if split <= 0.0 or not len(pair):
        return pair, demands[pair]
    pieces = [(-size, at) for at, size in zip(pair.tolist(), demands[pair].tolist(), strict=True)]
    heapq.heapify(pieces)
    for _ in range(round(split * len(pair))):
        size, at = heapq.heapreplace(pieces, (pieces[0][0] / 2.0, pieces[0][1]))
        heapq.heappush(pieces, (size / 2.0, at))
    return np.array([at for _, at in pieces], dtype=np.int64), np.array([-size for size, _ in pieces])


def dealt(pair: Ints, parts: int, rng: np.random.Generator) -> Ints:
    """Return each piece's part: random, with a pair's pieces in different parts or spread evenly."""
    found = rng.integers(parts, size=len(pair))
    order = np.argsort(pair, kind="stable")
    first = np.flatnonzero(np.diff(pair[order], prepend=-1))
    count = np.diff(first, append=len(pair))
    for at, many in zip(first[count > 1].tolist(), count[count > 1].tolist(), strict=True):
        rounds = [rng.permutation(parts) for _ in range(-(-many // parts))]
        found[order[at : at + many]] = np.concatenate(rounds)[:many]
    return found


def parallel_s(seconds: list[float], workers: int) -> float:
    """Return the time of the busiest worker if parts go to free workers, longest first."""
    busy = [0.0] * workers
    for each in sorted(seconds, reverse=True):
        heapq.heapreplace(busy, busy[0] + each)
    return max(busy)
