"""A peer's result for one round, and the interface of peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from copter_frontends.replay.peers.clock import STRETCH
from copter_frontends.replay.program import Floats, Program


@dataclass(frozen=True, slots=True)
class Answer:
    """One solve by one way of a peer.

    Attributes
    ----------
    way : str
        Name of the way, as reported.
    optimal : bool
        Whether the peer reports an optimum.
    status : str
    objective : float
        NaN without a point.
    edit_s, solve_s : float
        Seconds of the peer's own calls for the edits and for the solve.
    iterations : int
    x, y : ndarray or None
        A point and row duals in the program's order, for the judge.
    """

    way: str
    optimal: bool
    status: str
    objective: float
    edit_s: float
    solve_s: float
    iterations: int
    x: Floats | None = None
    y: Floats | None = None

    @property
    def total_s(self) -> float:
        """Seconds of edit and solve."""
        return self.edit_s + self.solve_s


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits of the solves.

    Attributes
    ----------
    solve_s : float
        Seconds of one solve.
    times_best : float
        A way is stopped when it takes this many times as long as the fastest way of the round.
    least_s : float
        No way is stopped before this many seconds.
    """

    solve_s: float
    times_best: float = 5.0
    least_s: float = 0.2

    def after(self, best_s: float) -> float:
        """Return a way's seconds, given the best time so far (infinite if none has finished)."""
        return min(self.solve_s, max(self.times_best * STRETCH * best_s, self.least_s))


class Peer(Protocol):
    """Interface: another solver that follows a family of programs."""

    needs_start: bool  # whether :meth:`start_from` should be called before the next round

    @property
    def ways(self) -> tuple[str, ...]:
        """Names of the ways in use."""

    def round(self, program: Program, limits: Limits) -> list[Answer]:
        """Apply the round's edits and solve, in every way in use."""

    def keep(self, ways: tuple[str, ...]) -> None:
        """Drop all other ways."""

    def start_from(self, x: Floats, y: Floats) -> None:
        """Give a basis at a point of the last program to the ways that need one; other ways ignore it."""
