"""The columns of a shard that the coordinator holds, with the data last sent to it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.proximal.working_set import WorkingSet
from copter.model.matrix import BlockMatrix
from copter.model.model import Model
from copter.model.private_rows import PrivateRows
from copter.problem.values import distinct
from copter_distributed.messages.messages import Changes, Columns, Floats, Ints, WholeRequest

Keys = NDArray[np.int64]


class Held:
    """The working set of a shard and the coordinator: the shard has the column numbers, the coordinator also the data.

    Parameters
    ----------
    model : Model

    Attributes
    ----------
    ws : WorkingSet
        The held columns; their values are not used.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ws = WorkingSet()
        self._names: dict[int, Hashable] = {}
        self._named_at = -1
        self._told()

    @property
    def matrix(self) -> BlockMatrix:
        """The model's matrix."""
        return self.model.ledger.matrix

    def least_of_slots(self, y: Floats, weight: float) -> Floats:
        """Least reduced cost of each slot's held columns, or zero if that is positive, (n_slots,)."""
        ws, least = self.ws, np.zeros(self.matrix.n_slots)
        if ws.size:
            reduced = ws.reduced_costs(y)
            if weight != 1.0:
                reduced -= (1.0 - weight) * ws.cost
            least[ws.slots] = np.minimum(ws.least_of_groups(reduced), 0.0)
        return least

    def begin(self, requests: list[Hashable], count: Ints, column: Ints) -> Changes:
        """Hold these columns, as far as they exist, and no others; returns the data of all requests with held
        columns.
        """
        self.ws, self._named_at = WorkingSet(), -1
        key = self._keys(requests, count, column)
        self.ws.key, self.ws.x = key, np.zeros(len(key))
        self.ws.generation = self.matrix.generation[(key >> 32).astype(np.int32)]
        self.ws.refresh(self.matrix)
        self._told()
        return self._of_groups(np.ones(len(self.ws.slots), dtype=bool), np.zeros(len(self.ws.slots), dtype=bool))

    def named(self) -> tuple[list[Hashable], Ints, Ints]:
        """Return (ids, number of held columns per request, the columns), in the form that :meth:`begin` takes."""
        return self._requests(self.ws.slots), np.diff(self.ws.start), self.ws.column

    def grow(self, slot: Ints, column: Ints, always: bool = False) -> Columns:
        """Hold more columns; returns all held columns of their requests, or an empty result if none is new."""
        new = self.ws.grow(self.matrix, slot, column)
        self._told()
        if not (new or always):
            return Columns()
        return self._plain(np.isin(self.ws.slots, slot))

    def let_go(self, requests: list[Hashable], count: Ints, column: Ints) -> int:
        """Stop holding these columns, except columns that must be held."""
        dropped = np.isin(self.ws.key, self._keys(requests, count, column))
        if dropped.any():
            self.ws.keep(~dropped)
            self.ws.refresh(self.matrix)
            self._told()
        return self.ws.size

    def changes(self, slots: set[int], templates: set[int]) -> Changes:
        """Return changes of held columns by edits since the last report.

        Parameters
        ----------
        slots : set of int
            Slots of requests of which more than the costs may have changed.
        templates : set of int
            Serial numbers of templates that have changed.
        """
        key, generation, cost = self._last
        ws = self.ws
        ws.refresh(self.matrix)
        place = np.minimum(np.searchsorted(key, ws.key), max(len(key) - 1, 0))
        if len(key):
            known = (key[place] == ws.key) & (generation[place] == ws.generation)
            moved = known & (cost[place] != ws.cost)
        else:
            known = moved = np.zeros(ws.size, dtype=bool)
        fresh, dearer = any_of_groups(~known, ws.start), any_of_groups(moved, ws.start)
        if slots:
            fresh |= np.isin(ws.slots, np.fromiter(slots, dtype=np.int32, count=len(slots)))
        if templates:
            serial = [self.matrix.slabs[slot].template.serial for slot in ws.slots.tolist()]
            fresh |= np.isin(serial, list(templates))
        self._told()
        return self._of_groups(fresh, dearer & ~fresh)

    # Inside ---------------------------------------------------------------------------------------------------------

    def _told(self) -> None:
        self._last: tuple[Keys, Keys, Floats] = (self.ws.key, self.ws.generation, self.ws.cost)

    def _keys(self, requests: list[Hashable], count: Ints, column: Ints) -> Keys:
        """Return ascending keys of columns; columns that no longer exist are left out."""
        slot_of = self.model.ledger.slot_of
        slot = np.repeat(np.array([slot_of.get(each, -1) for each in requests], dtype=np.int32), count)
        there = slot >= 0
        there[there] = column[there] < self.matrix.sizes_of(slot[there])
        return distinct(slot[there].astype(np.int64) << 32 | column[there])

    def _of_groups(self, fresh: NDArray[np.bool_], dearer: NDArray[np.bool_]) -> Changes:
        resident = self.matrix.resident_mask()[self.ws.slots]
        whole = [self._whole(slot) for slot in self.ws.slots[fresh & resident].tolist()]
        costs = np.repeat(dearer, np.diff(self.ws.start))
        return Changes(
            self._plain(fresh & ~resident),
            whole,
            self._requests(self.ws.slots[dearer]),
            np.diff(self.ws.start)[dearer],
            self.model.ledger.sign * self.ws.cost[costs],
            self.model.version,
        )

    def _plain(self, groups: NDArray[np.bool_]) -> Columns:
        """Return all held columns of these groups, with their data."""
        if not groups.any():
            return Columns()
        part = self.ws.take(np.flatnonzero(np.repeat(groups, np.diff(self.ws.start))))
        slots, matrix = part.slots.tolist(), self.matrix
        return Columns(
            self._requests(part.slots),
            np.diff(part.start),
            np.array([matrix.limit_of(slot) for slot in slots]),
            np.array([matrix.slabs[slot].integer for slot in slots], dtype=bool),
            np.array([matrix.fixed_of(slot) for slot in slots], dtype=np.int32),
            part.column,
            self.model.ledger.sign * part.cost,
            part.entry_start,
            place_of_row(self.model)[part.row],
            part.coefficient,
        )

    def _whole(self, slot: int) -> WholeRequest:
        matrix, slab = self.matrix, self.matrix.slabs[slot]
        start, row, value, private = slab.template.contents()
        lower, upper = matrix.free_bounds_of(slot)
        named: dict[str, Any] = {
            "cost": self.model.ledger.sign * np.asarray(matrix.costs_of(slot)),
            "limit": float(matrix.limit_of(slot)),
            "at_least": float(matrix.least_of(slot)),
            "lower": lower,
            "upper": upper,
            "integer": bool(slab.integer) if slab.whole_each is None else slab.whole_each.copy(),
        }
        if private is not None:
            own_start, own_row, own_value, own_lower, _ = private
            low, high = matrix.private_bounds_of(np.array([slot], dtype=np.int32))
            rows = sp.csc_array((own_value, own_row, own_start), shape=(len(own_lower), slab.template.n_columns))
            named["private_rows"] = PrivateRows(rows, low, high)
        request = self._requests(np.array([slot], dtype=np.int32))[0]
        return WholeRequest(request, start.copy(), place_of_row(self.model)[row], value.copy(), named)

    def _requests(self, slots: Ints) -> list[Hashable]:
        """Return the ids of the requests in these slots."""
        if self._named_at != self.model.version:
            self._names = {slot: request for request, slot in self.model.ledger.slot_of.items()}
            self._named_at = self.model.version
        return [self._names[slot] for slot in slots.tolist()]


def place_of_row(model: Model) -> Ints:
    """Return, for every row slot, its resource's position among the model's resources, (rows,)."""
    ledger = model.ledger
    place = np.full(ledger.matrix.n_rows, -1, dtype=np.int32)
    place[list(ledger.row_of.values())] = np.arange(len(ledger.row_of), dtype=np.int32)
    return place


def any_of_groups(mask: NDArray[np.bool_], start: Ints) -> NDArray[np.bool_]:
    """Return, for each group, whether the mask is true anywhere in it, (g,)."""
    return np.logical_or.reduceat(mask, start[:-1]) if len(mask) else np.zeros(len(start) - 1, dtype=bool)
