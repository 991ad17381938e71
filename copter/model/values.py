"""Values, duals and reduced costs of a model's solution, in the order of the whole LP."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from copter.model.assembly import require_current
from copter.model.column_map import ColumnMap, slots_in_order
from copter.model.explaining import facts_of
from copter.problem.explanation import Facts
from copter.problem.values import OwnDuals, SparseValues
from copter.runtime.errors import StaleSolutionError

if TYPE_CHECKING:
    from copter.model.ledger import Ledger

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]


class ModelValues:
    """The model behind a solution; implements :class:`copter.problem.values.Behind`.

    Parameters
    ----------
    ledger : Ledger
    key, x
        Working columns and their values, as in :class:`SparseValues`.
    y : ndarray (rows,)
        Prices by row slot, in the signs of the model's sense.
    own : OwnDuals, optional
        Duals of sums and private rows; without them the limits' duals are found from the reduced costs.
    """

    def __init__(self, ledger: Ledger, key: Keys, x: Floats, y: Floats, own: OwnDuals | None) -> None:
        self.ledger, self.key, self.working, self.y = ledger, key, x, y
        self.version = ledger.version
        self._own = own
        self._pair: tuple[Floats, Floats] | None = None

    def lowers(self, requests: Sequence[Hashable]) -> tuple[Keys, Floats]:
        """Return (offsets, lower bounds) of the columns of requests, none of which may have been removed or replaced
        since the solve.
        """
        ledger = self.ledger
        added = ledger.columns_at.get
        gone = self.version + 1  # the version given to unknown requests: later than the solve
        if ledger.version != self.version and any(added(request, gone) > self.version for request in requests):
            for request in requests:
                ledger.require_unchanged(request, self.version)
        slots = ledger.slots(list(requests))
        start = ledger.matrix.starts_of(slots)
        return start, ledger.matrix.flat_lower(slots, int(start[-1]))

    def x(self) -> Floats:
        """Return the values of all columns, in the order of ``Model.to_linear_program``."""
        require_current(self.ledger, self.version)
        columns = ColumnMap.of_model(self.ledger)
        x = self.ledger.matrix.flat_lower(columns.slots, columns.count)
        x[columns.places(self.key)] = self.working
        return x

    def facts(self, request: Hashable) -> Facts:
        """Return the facts for one request's explanation; the model must not have been edited since the solve."""
        require_current(self.ledger, self.version)
        slot = self.ledger.slot(request)
        offsets, dual = self.own().between(np.array([slot << 32]), np.array([(slot << 32) + 1]))
        limit_dual = float(dual[0]) if offsets[-1] else 0.0
        return facts_of(self.ledger, request, self.key, self.working, self.y, limit_dual)

    def own(self) -> OwnDuals:
        """Return the duals of sums and private rows."""
        if self._own is None:
            self.dense()
        if self._own is None:
            raise StaleSolutionError("the model has been edited since this solution was found; solve again")
        return self._own

    def dense(self) -> tuple[Floats, Floats]:
        """Return (y, reduced costs) in the order of ``Model.to_linear_program``."""
        if self._pair is None:
            require_current(self.ledger, self.version)
            self._pair = self.duals()
        return self._pair

    def duals(self) -> tuple[Floats, Floats]:
        """Return (prices followed by duals of own rows, reduced costs), in the signs of the model's sense (F5)."""
        ledger = self.ledger
        self._own, reduced = duals_of(ledger, slots_in_order(ledger), self.y, self._own)
        own = self._own.in_order(slots_in_order(ledger).astype(np.int64))
        return np.concatenate((self.y[list(ledger.row_of.values())], own)) + 0.0, reduced


def duals_of(
    ledger: Ledger, slots: NDArray[np.int32], y: Floats, own: OwnDuals | None = None, costs: bool = True
) -> tuple[OwnDuals, Floats]:
    """Return (duals of the own rows, reduced costs) of some requests at given prices, in the signs of the model's
    sense.

    Parameters
    ----------
    slots : ndarray (k,) int32
        Slots of the requests, in the order in which reduced costs are wanted.
    y : ndarray (rows,)
        Prices by row slot.
    own : OwnDuals, optional
        Duals of these requests' rows; without them the limits' duals are found from the reduced costs.
    costs : bool
        Whether to subtract from the costs; False if y is a ray.
    """
    matrix, sign = ledger.matrix, ledger.sign
    start = matrix.starts_of(slots)
    n = int(start[-1])
    reduced = matrix.flat_reduced_costs(slots, n, sign * y, costs)
    if own is None:
        limited, dual = limit_duals(ledger, slots, start, reduced)
        order = np.argsort(slots[limited])
        found = OwnDuals((slots[limited].astype(np.int64) << 32)[order], sign * dual[order] + 0.0)
        return found, sign * reduced + 0.0
    first, own_start, own_row, own_value, _, _ = matrix.own_rows(slots, n)
    dual = own.in_order(slots.astype(np.int64))
    owner = np.repeat(np.arange(n), np.diff(own_start))
    row = np.repeat(np.repeat(first[:-1], np.diff(start)), np.diff(own_start)) + own_row
    reduced -= np.bincount(owner, weights=own_value * (sign * dual)[row], minlength=n)
    return own, sign * reduced + 0.0


def sparse_values(ledger: Ledger, key: Keys, x: Floats, y: Floats, own: OwnDuals | None = None) -> SparseValues:
    """Return the values of a solution of the current model.

    Parameters
    ----------
    key : ndarray (k,) int64
        slot << 32 | column of the columns that may be off their lower bounds, ascending.
    x : ndarray (k,)
    y : ndarray (rows,)
        Prices by row slot, in the signs of the model's sense.
    own : OwnDuals, optional
        Duals of sums and private rows; without them the limits' duals are found from the reduced costs, when asked for.
    """
    return SparseValues(key, x, y, ledger.slots_then(), dict(ledger.row_of), ModelValues(ledger, key, x, y, own))


def limit_duals(
    ledger: Ledger, slots: NDArray[np.int32], start: NDArray[np.int32] | Keys, reduced: Floats
) -> tuple[NDArray[np.intp], Floats]:
    """Return which requests have limits and their duals (<= 0, minimisation); the duals are subtracted from `reduced`.

    The dual of sum x <= limit is the reduced cost of the column that fills the limit, in ascending order of reduced
    costs.
    """
    matrix = ledger.matrix
    limit, _ = matrix.sums_of(slots)
    limited = np.flatnonzero(np.isfinite(limit))
    if not len(limited):
        return limited, np.zeros(0)
    _, lower, upper = matrix.flat_columns(slots, int(start[-1]))
    width = upper - lower
    begin = start[:-1]
    room = limit - np.add.reduceat(lower, begin)
    least, most = np.minimum.reduceat(reduced, begin), np.maximum.reduceat(width, begin)
    dual = np.where(most > 0.0, np.minimum(least, 0.0), 0.0)  # for requests whose first column fills the limit
    narrow = np.minimum.reduceat(width, begin) < room
    for at in limited[narrow[limited] & (most[limited] > 0.0)].tolist():
        block = slice(int(start[at]), int(start[at + 1]))
        dual[at] = limit_dual(reduced[block], width[block], float(room[at]))
    dual[~np.isfinite(limit)] = 0.0
    reduced -= np.repeat(dual, np.diff(start))
    return limited, dual[limited]


def limit_dual(reduced: Floats, width: Floats, room: float) -> float:
    """Return the dual (<= 0, minimisation) of one request's limit, sum x <= limit.

    Columns are filled in ascending order of their reduced costs. The dual is the reduced cost of the column that fills
    the room, or 0 if that is positive or all columns together do not fill it.

    Parameters
    ----------
    reduced, width : float64 array (columns,)
        Reduced costs, and upper less lower bounds.
    room : float
        The limit less the sum of the lower bounds.
    """
    order = np.argsort(reduced, kind="stable")
    over = np.flatnonzero(np.cumsum(width[order]) >= room)
    marginal = reduced[order[over[0]]] if len(over) else 0.0
    return float(min(0.0, marginal))


def dense_ray(ledger: Ledger, key: Keys, improving: bool, ray: Floats, version: int) -> Floats:
    """Return a ray, for a model with limits but no private rows, in the order of to_linear_program.

    `ray` holds row multipliers by row slot or, for an improving ray, a direction in the working columns.
    """
    require_current(ledger, version)
    columns = ColumnMap.of_model(ledger)
    if improving:
        direction = np.zeros(columns.count)
        direction[columns.places(key)] = ray
        return direction
    reduced = ledger.matrix.flat_reduced_costs(columns.slots, columns.count, ray, False)
    own = limit_duals(ledger, columns.slots, columns.first, reduced)[1]
    return np.concatenate((ray[list(ledger.row_of.values())], own))
