"""Limit on the cost of warm starts: at most a tenth more than solving every program of a series from scratch."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from statistics import median

SHARE = 0.08  # failed tries may together cost this share of all fresh solves so far
# the first try on a structure may cost this share of one fresh solve, because no allowance has been saved yet
FIRST = 0.8
# A way that takes less than this share of a fresh solve has no rivals: a better one could save little more.
GOOD = 0.25
LONGER = 1.5  # a way that has solved programs may take this many times its usual time, and at most a fresh solve's
LEAST = 0.2  # a try needs an allowance of at least this share of a fresh solve
# after a failure a way skips this many solves, doubled at each further failure up to the second number
SHORTEST_REST, LONGEST_REST = 4, 64


@dataclass(slots=True)
class Way:
    """One way to start from a kept state, with its record of costs.

    Attributes
    ----------
    name : str
    seconds : deque
        Processor times of its last solves; empty until a try has succeeded.
    rests : int
        Number of solves that will skip this way.
    backoff : int
        Number of solves to skip after the next failure; doubled each time.
    parallel : float
        Processor seconds per wall-clock second of its last solve, at least 1: above that with several threads.
    """

    name: str
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=3))
    rests: int = 0
    backoff: int = SHORTEST_REST
    parallel: float = 1.0

    @property
    def usual_s(self) -> float:
        """Median processor time of its last solves, in seconds."""
        return median(self.seconds)

    def except_once(self) -> None:
        """Note a failure after a full record of successes: the way stays, but the next failure ends its turn."""
        while len(self.seconds) > 1:
            self.seconds.popleft()

    def fail(self) -> None:
        """Note a failure: skip this way for a number of solves that doubles each time."""
        self.seconds.clear()
        self.rests, self.backoff = self.backoff, min(2 * self.backoff, LONGEST_REST)


class Allowance:
    """Chooses between a fresh solve and warm starts, by their cost on programs of this structure.

    Parameters
    ----------
    ways : sequence of str
        Names of the ways, in the order in which they are first tried.

    Notes
    -----
    Tries have a common budget: `SHARE` of the time of all fresh solves, less the time that tries have lost, plus the
    time that they have saved. The first try may take most of a fresh solve, so that ten programs together take at most
    a tenth longer than without tries.
    """

    def __init__(self, ways: Sequence[str]) -> None:
        self.ways = [Way(name) for name in ways]
        self._fresh: deque[tuple[float, float]] = deque(maxlen=3)
        self._solves = 0
        self._extra_s = 0.0
        self._tried = False

    def of_basis(self) -> Allowance:
        """Return a copy in which only the basis keeps its record, for a program with other rows and columns."""
        found = deepcopy(self)
        for way in found.ways:
            if way.name != "basis":
                way.seconds.clear()
        return found

    @property
    def fresh_s(self) -> float:
        """Processor time of a fresh solve: the median of the last three."""
        return median(cost for cost, _ in self._fresh)

    @property
    def spare_s(self) -> float:
        """Processor time that a try may take, in seconds."""
        return SHARE * self._solves * self.fresh_s - self._extra_s

    @property
    def clock_ratio(self) -> float:
        """Wall-clock seconds per second of processor time in fresh solves; at least 1."""
        return max(1.0, median(wall / cost if cost > 0.0 else 1.0 for cost, wall in self._fresh))

    def fresh(self, cost_s: float, wall_s: float) -> None:
        """Record the cost of a fresh solve."""
        self._fresh.append((cost_s, wall_s))

    def begin(self, first: str = "") -> list[tuple[Way, float]]:
        """Return the ways to try on the next program, in order, each with the processor seconds that it may take.

        Of ways that have not been tried, that of the name `first` comes first. If none of them solves the program, the
        caller solves it afresh. Call this once for every program, after at least one :meth:`fresh`.
        """
        self._solves += 1
        for way in self.ways:
            way.rests = max(0, way.rests - 1)
        ready = [way for way in self.ways if not way.rests]
        proven = sorted((way for way in ready if way.seconds), key=lambda way: way.usual_s)
        new = sorted((way for way in ready if not way.seconds), key=lambda way: way.name != first)
        fresh_s = self.fresh_s
        if proven:
            best = proven[0]
            known = len(best.seconds) == best.seconds.maxlen and best.usual_s >= GOOD * fresh_s
            rivals = new[:1] if known and self.spare_s >= best.usual_s else []
            for way in rivals:
                way.parallel = max(way.parallel, best.parallel)
            return [*((way, best.usual_s) for way in rivals), (best, min(fresh_s, LONGER * best.usual_s))]
        may_s = min(fresh_s, self.spare_s if self._tried else max(self.spare_s, FIRST * fresh_s))
        if not new or may_s < LEAST * fresh_s:
            return []
        self._tried = True
        return [(new[0], may_s)]

    def end(self, way: Way, solved: bool, cost_s: float, once_s: float = 0.0) -> None:
        """Record a try: its processor time `cost_s`, and the one-time cost `once_s` of building the kept state.

        A way with a full record survives one failure if the time that tries have saved pays for another.
        """
        fresh_s = self.fresh_s
        self._extra_s += cost_s + once_s - (fresh_s if solved else 0.0)
        if not solved or cost_s > fresh_s:
            if len(way.seconds) == way.seconds.maxlen and self.spare_s >= fresh_s:
                way.except_once()
            else:
                way.fail()
            return
        way.seconds.append(cost_s)
        if len(way.seconds) == way.seconds.maxlen:
            way.backoff = SHORTEST_REST
