"""What a family of round sequences offers to the harness."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from judge import Judged

from copter_frontends.replay.program import Floats, Ints, Program

__all__ = [
    "CHANGES",
    "At",
    "Family",
    "Floats",
    "Ints",
    "Outcome",
    "Plan",
    "Solver",
    "SolverOptions",
    "amount_of",
]

At = slice | Ints

CHANGES: dict[str, float | None] = {
    "churn": 0.01,
    "costs": 0.05,
    "limits": 0.05,
    "some-limits": 0.01,
    "link": None,
}
"""Kinds of change and how much by default: the share of requests replaced (`churn`); how far every cost (`costs`) or
limit (`limits`) moves; the share of limits that are drawn anew (`some-limits`); one coupling row's capacity to zero,
and back in the next round (`link`)."""


def amount_of(change: str, amount: float | None) -> float:
    """How much changes: as given, or the kind's default."""
    return amount if amount is not None else CHANGES[change] or 0.0


@dataclass(frozen=True, slots=True)
class SolverOptions:
    """What every solver of copter's is told; `method` as in :class:`copter.Settings`."""

    tolerance: float = 1e-6
    time_limit_s: float = 120.0
    threads: int = 0
    method: Literal["auto", "price_descent", "coordinate_descent", "proximal"] = "auto"


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole plan.

    Attributes
    ----------
    objective, gap : float
        As the solver says.
    fractional : int
        Requests that were fractional in the LP.
    """

    objective: float
    gap: float
    fractional: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a solve came to.

    Attributes
    ----------
    status : str
    objective, bound : float
        Of the LP.
    solve_s : float
        Seconds of the LP; what else the call took is the shim's.
    passes, iterations : int
    answer
        The solver's own answer, which its family understands.
    plan : Plan or None
    """

    status: str
    objective: float
    bound: float
    solve_s: float
    passes: int
    iterations: int
    answer: Any
    plan: Plan | None = None


class Solver(Protocol):
    """A solver of copter's that goes from round to round."""

    def solve(self) -> Outcome:
        """Solve the round that the last edit made (timed)."""


class Family(Protocol):
    """A seeded sequence of programs.

    Attributes
    ----------
    changes : tuple of str
        Kinds of change that it knows (:data:`CHANGES`), its default first.
    """

    changes: ClassVar[tuple[str, ...]]

    @property
    def counts(self) -> dict[str, int]:
        """`jobs`, `rows` (those that couple jobs), `variables` and `nonzeros`."""

    def prepare(self) -> None:
        """Draw the next round's changes (not timed: they are the cluster's doing, not the solver's)."""

    def edit(self) -> None:
        """Apply the round's changes to the model (timed)."""

    def solver(self, options: SolverOptions) -> Solver:
        """The solver of this family's programs."""

    def adopt(self, outcome: Outcome) -> None:
        """Take the answer of the round in: what runs now."""

    def program(self) -> Program:
        """The round of the last :meth:`edit` as arrays, for peers and judge; made without looking into the model."""

    def point(self, outcome: Outcome) -> tuple[Floats, Floats]:
        """x (n,) and y (m,) of an outcome in the program's order."""

    def whole(self, outcome: Outcome) -> tuple[Ints, Floats] | None:
        """Columns that are not zero in an outcome's plan, and their values; None where there is no plan."""

    def judged_in_parts(self, outcome: Outcome) -> Judged:
        """As the judge finds an outcome, part after part where the program is large; SystemExit for a wrong one."""


def chosen(count: int, rng: np.random.Generator, share: float) -> Ints:
    """Places of a share of `count` things, at least one if the share is positive."""
    most = min(count, max(1, round(share * count))) if share > 0 else 0
    return rng.choice(count, most, replace=False)


def spans(count: int, step: int) -> Iterator[slice]:
    """Slices that cover `count` things, `step` at a time."""
    for first in range(0, count, step):
        yield slice(first, min(first + step, count))
