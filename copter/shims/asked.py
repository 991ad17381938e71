"""What a caller may ask of a plan: a gap, a start, news while it is searched."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np

from copter.methods.integer.solution import IntegerStatus
from copter.model.model import Model
from copter.runtime.errors import InvalidDataError, SettingsError
from copter.shims.chosen import slot_with
from copter.shims.finished import continuous_requests
from copter.shims.greedy import integer_slots
from copter.shims.plan import IDLE, IntegerPlan

PlanCallback = Callable[[float, float], "bool | None"]
Start = Mapping[Hashable, "int | Mapping[int, float] | None"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a plan is wanted: the gap, the plan to begin with, who hears of news."""

    gap: float | None
    previous: IntegerPlan | None
    callback: PlanCallback | None


@dataclass(frozen=True, slots=True)
class Ask:
    """What a plan is searched with.

    Attributes
    ----------
    until : float
        Time of ``time.perf_counter()`` at which the plan must be there.
    gap : float
        The search ends at this gap.
    tree_only : bool
        Branch and bound alone.
    callback : callable or None
        Called as ``callback(objective, bound)`` at news and while waiting; True ends the search.
    interrupted : callable
        Whether Ctrl-C has ended the search.
    """

    until: float
    gap: float
    tree_only: bool = False
    callback: PlanCallback | None = None
    interrupted: Callable[[], bool] = lambda: False


def checked_gap(gap: object) -> float:
    """Return the gap; raises SettingsError unless it is a number of at least zero."""
    if isinstance(gap, bool) or not isinstance(gap, (int, float, np.number)) or not 0.0 <= gap < float("inf"):
        raise SettingsError(f"gap is {gap!r}, must be a number >= 0, as a share of the objective: 0.01 is a per cent")
    return float(gap)


def started_from(model: Model, start: Start) -> IntegerPlan:
    """Return a start as a plan, which need not be feasible.

    Raises
    ------
    InvalidDataError
        If `start` is not a mapping of requests to columns or shares, or names a column that a request does not have.
    UnknownHandleError
        For a request that is not in the model.
    """
    if not isinstance(start, Mapping):
        raise InvalidDataError(f"start is a {type(start).__name__}, must be a plan, or {{request: column}}")
    matrix = model.ledger.matrix
    column_of_slot, entries = np.full(matrix.n_slots, IDLE, dtype=np.int32), dict[int, float]()
    for request, given in start.items():
        if given is None:
            continue
        if not isinstance(given, Mapping):
            column_of_slot[slot_with(model, request, given)] = given
            continue
        for column, value in given.items():
            slot = slot_with(model, request, column)
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not isfinite(value):
                raise InvalidDataError(f"start: column {column} of request {request!r} has the value {value!r}")
            entries[slot << 32 | int(column)] = float(value)
    keys = sorted(entries)
    return IntegerPlan(
        objective=float("nan"),
        bound=float("nan"),
        gap=float("nan"),
        fractional_requests=0,
        kept_previous=False,
        column_of_slot=column_of_slot,
        generation=matrix.generation[: matrix.n_slots].copy(),
        slot_of=model.ledger.slots_then(),
        status=IntegerStatus.NONE_FOUND,
        share_key=np.array(keys, dtype=np.int64),
        share=np.array([entries[key] for key in keys], dtype=np.float64),
        continuous=continuous_requests(model, integer_slots(matrix)),
    )
