"""What a shim makes: one column, or none, for every request."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter.errors import UnknownHandleError
from copter.model.model import Model
from copter.problem.solution import Solution

Ints = NDArray[np.int32]

IDLE = -1  # column of a request that gets nothing


@dataclass(frozen=True, slots=True)
class IntegerPlan:
    """A feasible integer point of a model whose requests each take one column or none.

    Attributes
    ----------
    objective : float
    bound : float
        The LP's certified bound.
    gap : float
        |objective - bound| / (1 + |objective| + |bound|).
    fractional_requests : int
        Requests that were split in the LP's solution.
    kept_previous : bool
        Whether the plan was built on the previous one, because that was worth more than the rounded solution.
    """

    objective: float
    bound: float
    gap: float
    fractional_requests: int
    kept_previous: bool
    column_of_slot: Ints
    generation: NDArray[np.int64]
    slot_of: dict[Hashable, int]

    def column(self, request: Hashable) -> int | None:
        """Column that a request takes, or None."""
        try:
            column = int(self.column_of_slot[self.slot_of[request]])
        except KeyError:
            raise UnknownHandleError(f"request {request!r} was not in the model that this plan is of") from None
        return None if column == IDLE else column


class Shim(Protocol):
    """Turns an LP's solution into a feasible plan, never worse than the previous one where that still fits."""

    def __call__(self, model: Model, solution: Solution, previous: IntegerPlan | None) -> IntegerPlan:
        """Make the plan."""
