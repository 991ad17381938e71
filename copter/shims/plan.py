"""Integer plans: at most one column for every integer request, and shares for continuous ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from copter.methods.integer.solution import IntegerStatus
from copter.model.matrix.moves import Moves
from copter.model.model import Model
from copter.problem.display import MOST_ROWS, counted, figure, page, percent
from copter.problem.slots_then import table_of
from copter.problem.solution import Solution
from copter.problem.table import Table, frame, table
from copter.problem.values import hashable, ranges, sums_before
from copter.runtime.errors import EditNotAllowedError, NoPlanError, UnknownHandleError

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Keys = NDArray[np.int64]

NAMED = 5  # most resources and requests that an error names
IDLE = -1  # column of a request that gets nothing


def no_keys() -> Keys:
    """Return an empty array of column keys."""
    return np.zeros(0, dtype=np.int64)


def no_shares() -> Floats:
    """Return an empty array of shares."""
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class IntegerPlan:
    """An integer plan of a model, or the statement that there is none, which is false: ``plan or last``.

    Attributes
    ----------
    objective : float
        NaN where there is no plan.
    bound : float
        No plan is better. Known without a plan too, if the LP was solved; NaN if nothing is known.
    gap : float
        |bound - objective| / |objective|; NaN where there is no plan.
    fractional_requests : int
        Integer requests that were split in the LP's solution.
    kept_previous : bool
        Whether the plan extends the previous plan, because that was better than the rounded solution.
    status : IntegerStatus
        OPTIMAL (within 1e-6 of the bound) or FEASIBLE: the plan has passed a check of every row in exact arithmetic.
        PRIMAL_INFEASIBLE: there is no plan. NONE_FOUND: a search found no plan, but there may be one.
        DUAL_INFEASIBLE: the LP is unbounded.
    bound_is_certified : bool
        Whether the bound follows from prices; False if it is HiGHS's word.
    conflict : tuple of ids
        Requests that together need more units of a resource than it has, or that each contradict themselves (two
        columns that must be taken, or one that cannot be whole). Empty if there is a plan, or if the LP is feasible but
        a search found no plan.
    short : tuple of ids
        Ids of the resources that the requests in conflict over-commit.
    proof : str
        "written", or the reason why the proof asked for was not written; empty if no proof was asked for. A plan
        with a proof is OPTIMAL, whatever the LP's bound.
    bound_by : str
        Whose the bound is: "prices" (certified), "LP" (its optimality), "choices" (M15) or "HiGHS"; empty if unknown.
    why : str
        Which road the model took and what ended the search, or why there is no plan (docs/method/plans.md).
    """

    objective: float
    bound: float
    gap: float
    fractional_requests: int
    kept_previous: bool
    column_of_slot: Ints
    generation: NDArray[np.int64]
    slot_of: Mapping[Hashable, int]
    status: IntegerStatus = IntegerStatus.FEASIBLE
    bound_is_certified: bool = False
    conflict: tuple[Hashable, ...] = ()
    short: tuple[Hashable, ...] = ()
    share_key: Keys = field(default_factory=no_keys)
    share: Floats = field(default_factory=no_shares)
    continuous: frozenset[Hashable] = frozenset()
    proof: str = ""
    bound_by: str = ""
    why: str = ""

    def __bool__(self) -> bool:
        """Whether there is a plan."""
        return self.is_feasible

    def __len__(self) -> int:
        """Number of requests that get something; 0 where there is no plan."""
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Hashable]:
        """Iterate over the requests that get something; over none where there is no plan."""
        if self.is_feasible:
            served = set(np.flatnonzero(self.column_of_slot != IDLE).tolist())
            served.update((self.share_key[self.share != 0.0] >> 32).tolist())
            for request, slot in self.slot_of.items():
                if slot in served:
                    yield request

    def __repr__(self) -> str:
        if not self:
            return f"<IntegerPlan {self.status.value}: no plan, bound {figure(self.bound)}>"
        return (
            f"<IntegerPlan {self.status.value}: objective {figure(self.objective)}, gap {percent(self.gap)}, serves "
            f"{len(self):,} of {counted(len(self.slot_of), 'request')}>"
        )

    def _repr_html_(self) -> str:
        facts = [("status", self.status.value), ("objective", figure(self.objective)), ("bound", figure(self.bound))]
        facts += [("gap", percent(self.gap)), ("serves", f"{len(self):,} of {counted(len(self.slot_of), 'request')}")]
        facts.append(("road", self.why) if self else ("why", self.reason()))
        rows = [
            (
                str(each),
                ", ".join(
                    f"{column}" if value == 1.0 else f"{column} x {figure(value)}"
                    for column, value in self.shares(each).items()
                ),
            )
            for each in islice(self, MOST_ROWS)
        ]
        return page("copter plan", facts, ("request", "column"), rows, len(self) - len(rows))

    def _require_plan(self) -> None:
        """Raise NoPlanError if there is no plan."""
        if not self.is_feasible:
            raise NoPlanError(
                f"there is no plan ({self.status.value}): {self.reason()}; what runs should go on, for example by "
                "`plan or last_plan`"
            )

    def reason(self) -> str:
        """Return why there is no plan, with the resources and requests in conflict; how it was made if there is one."""
        parts = [self.why or "no plan was found"]
        for what, names in (("resources", self.short), ("requests", self.conflict)):
            if names:
                more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
                parts.append(f"{what} in conflict: {', '.join(map(repr, names[:NAMED]))}{more}")
        return "; ".join(parts)

    @property
    def is_feasible(self) -> bool:
        """Whether the result contains a plan."""
        return self.status in (IntegerStatus.OPTIMAL, IntegerStatus.FEASIBLE)

    def column(self, request: Hashable) -> int | None:
        """Return the column that an integer request takes, or None.

        Raises
        ------
        UnknownHandleError
            For a request that was not in the model.
        NoPlanError
            If there is no plan.
        EditNotAllowedError
            For a continuous request, and for an integer request with several columns or units (its limit is not 1): use
            :meth:`shares` for these.
        """
        self._require_plan()
        slot = self._slot(request)
        column = int(self.column_of_slot[slot])
        if column == IDLE and request not in self.continuous and self.shares(request):
            raise EditNotAllowedError(f"request {request!r} takes more than one unit of a column: shares() gives them")
        if request in self.continuous:
            raise EditNotAllowedError(
                f"request {request!r} is continuous, it may have parts of several columns: shares() gives them; with "
                "integer=True it takes one column or none"
            )
        return None if column == IDLE else column

    def shares(self, request: Hashable) -> dict[int, float]:
        """Return {column: value} of a request's nonzero columns; the one column of an integer request has value 1.0.

        Raises NoPlanError if there is no plan, UnknownHandleError for a request that was not in the model.
        """
        self._require_plan()
        slot = self._slot(request)
        column = int(self.column_of_slot[slot])
        if column != IDLE:
            return {column: 1.0}
        first, last = np.searchsorted(self.share_key, [slot << 32, (slot + 1) << 32])
        columns, values = (self.share_key[first:last] & 0xFFFFFFFF).tolist(), self.share[first:last].tolist()
        return {int(each): value for each, value in zip(columns, values, strict=True) if value != 0.0}

    def columns_of(self, requests: Sequence[Hashable]) -> Ints:
        """Return :meth:`column` of many integer requests, (k,) int32; -1 for no column and for continuous requests."""
        self._require_plan()
        return np.asarray(self.column_of_slot[self._slots(requests)])

    def shares_of(self, requests: Sequence[Hashable]) -> tuple[Keys, Ints, Floats]:
        """Return :meth:`shares` of many requests as arrays (offsets, columns, values).

        Entries ``offsets[i]`` to ``offsets[i + 1] - 1`` of `columns` and `values` belong to ``requests[i]``.
        """
        self._require_plan()
        slot = self._slots(requests)
        begin, end = np.searchsorted(self.share_key, slot << 32), np.searchsorted(self.share_key, (slot + 1) << 32)
        whole = self.column_of_slot[slot] != IDLE
        count = np.where(whole, 1, end - begin)
        offsets = sums_before(count)
        columns, values = np.zeros(offsets[-1], dtype=np.int32), np.ones(offsets[-1])
        columns[offsets[:-1][whole]] = self.column_of_slot[slot[whole]]
        place, source = ranges(offsets[:-1][~whole], offsets[1:][~whole]), ranges(begin[~whole], end[~whole])
        columns[place], values[place] = self.share_key[source] & 0xFFFFFFFF, self.share[source]
        return offsets, columns, values

    def to_frame(self) -> Any:
        """Return what is taken as a `pandas.DataFrame`: request, column, value; needs pandas.

        Raises NoPlanError if there is no plan.
        """
        return frame(self.nonzeros())

    def nonzeros(self) -> Table:
        """Return the arrays `request`, `column` and `value` of all nonzero columns, in the order of the model.

        Raises NoPlanError if there is no plan.
        """
        self._require_plan()
        served = list(self)
        offsets, columns, values = self.shares_of(served)
        kept = values != 0.0
        place = np.repeat(np.arange(len(served)), np.diff(offsets))[kept]
        return table([served[each] for each in place.tolist()], columns[kept], values[kept])

    def shares_of_slots(self, same: NDArray[np.bool_]) -> tuple[Keys, Floats]:
        """Return (key, value) of the shares in slots that still hold the same requests."""
        slot = self.share_key >> 32
        kept = slot < len(same)
        kept[kept] = same[slot[kept]]
        return self.share_key[kept], self.share[kept]

    def followed(self, now: Keys, moves: Moves) -> IntegerPlan:
        """Return the plan with the columns of requests renumbered that have been given others (generations `now`)."""
        slots = np.flatnonzero(self.column_of_slot != IDLE)
        moved = moves.followed(slots << 32 | self.column_of_slot[slots], self.generation[slots], now)
        if moved is None:
            return self
        column, generation, slots = np.full_like(self.column_of_slot, IDLE), self.generation.copy(), moved[0] >> 32
        column[slots], generation[slots] = moved[0] & 0xFFFFFFFF, now[slots]
        return replace(self, column_of_slot=column, generation=generation)

    def _slots(self, requests: Sequence[Hashable]) -> Keys:
        try:
            return np.fromiter(map(table_of(self.slot_of).__getitem__, requests), dtype=np.int64, count=len(requests))
        except (KeyError, TypeError):
            return np.array([self._slot(request) for request in requests], dtype=np.int64)

    def _slot(self, request: Hashable) -> int:
        try:
            return self.slot_of[request]
        except TypeError:
            hashable("request", request)
            raise
        except KeyError:
            raise UnknownHandleError(f"request {request!r} was not in the model that this plan is of") from None


class Shim(Protocol):
    """Interface: turns an LP's solution into a feasible plan that is no worse than the previous plan, if that still
    fits.
    """

    def __call__(self, model: Model, solution: Solution, previous: IntegerPlan | None) -> IntegerPlan:
        """Return the plan."""
