"""A round's plan: which tasks start where, which cannot and why, and what is proven about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from copter_frontends.placement.servers.board import Ints
from copter_frontends.placement.servers.fleet import Fleet


@dataclass(frozen=True, slots=True, eq=False)
class PlacementPlan:
    """What a scheme did in a round.

    Attributes
    ----------
    started : ndarray (n,) of int64
        Tasks that start; their servers and GPUs are in the fleet's `jobs`.
    waiting : ndarray (m,) of int64
        Tasks for which there is no room now.
    refused : dict of int to str
        Tasks that can never run, with the reason.
    worth, bound : int
        Worth of the started tasks less that of moves, and a proven bound of any plan's of the tasks that are not
        refused; -1 if the scheme has none. The bound is that of plans without migrations, unless the scheme may move
        tasks.
    status : {"all", "feasible", "none"}
        Whether all tasks that can ever run have started.
    seconds : dict of str to float
    moved : int
        Tasks that ran before and run on another server now.
    held_up : dict of int to str
        Waiting tasks that fit on no server that takes tasks now, even if it were empty, with the reason.
    """

    started: Ints
    waiting: Ints
    refused: dict[int, str]
    worth: int
    bound: int
    status: str
    seconds: dict[str, float] = field(default_factory=dict)
    moved: int = 0
    held_up: dict[int, str] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """Distance of the worth from the bound, relative to the bound; NaN without one."""
        if self.bound < 0:
            return float("nan")
        return (self.bound - self.worth) / max(self.bound, 1)


class PlacementScheme(Protocol):
    """What the simulation asks of a scheme, rivals included."""

    fleet: Fleet

    def plan(self, waiting: Ints) -> PlacementPlan:
        """Start waiting tasks on the fleet's servers, and return what was done."""
