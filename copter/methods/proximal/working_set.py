"""The working set: the columns that the solver uses between two pricing passes, with their values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.accumulate import activities, fit, group_least, raise_new, reduced_costs
from copter.methods.proximal.groups import Groups
from copter.methods.proximal.splice import merged_keys, places_of, places_with, spliced, unknown_keys, without
from copter.model.matrix import BlockMatrix
from copter.problem.values import distinct

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

SLOT_SHIFT = 32  # a column's key is slot << 32 | column, so that keys sort by slot, then column


class WorkingSet:
    """Columns by slot with their gathered data. Every column outside is at its lower bound, zero.

    Attributes
    ----------
    key : ndarray (n,) int64
        slot << 32 | column, ascending.
    x : ndarray (n,)
        Values, which are the primal state between rounds.
    slots, start : ndarray (g,), (g + 1,) int32
        Groups (one a slot): columns of group i are start[i]..start[i+1]-1.
    limit, multiplier : ndarray (g,)
        Largest sum of a group, and its multiplier at the last projection.
    cost, lower, upper, free : ndarray (n,)
    entry_start, row, coefficient : CSC arrays over row slots.
    any_required : bool
        Whether some columns may be resident or fixed ones.
    """

    def __init__(self) -> None:
        self.key: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.x: Floats = np.zeros(0)
        self.generation: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.entry_start: Ints = np.zeros(1, dtype=np.int32)
        self.row: Ints = np.zeros(0, dtype=np.int32)
        self.coefficient: Floats = np.zeros(0)
        self.any_required = True
        self.record: Groups | None = None  # of the present arrays, for kernels; None until it is asked for
        self.allocate()

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.key)

    @property
    def column(self) -> Ints:
        """Column within its slab, (n,) int32."""
        return (self.key & 0xFFFFFFFF).astype(np.int32)

    @property
    def slot_of_column(self) -> Ints:
        """Slot of every column, (n,) int32."""
        return (self.key >> SLOT_SHIFT).astype(np.int32)

    def allocate(self) -> None:
        """Size every array by the keys; the gathered data are not valid until :meth:`gather`."""
        self.find_groups()
        self.cost: Floats = np.empty(self.size)
        self.lower: Floats = np.empty(self.size)
        self.upper: Floats = np.empty(self.size)
        self.free: NDArray[np.uint8] = np.zeros(self.size, dtype=np.uint8)

    def find_groups(self) -> None:
        """Recompute the groups from the keys; their limits are not valid yet."""
        self.record = None
        slot = self.slot_of_column
        begins = np.ones(len(slot), dtype=bool)
        np.not_equal(slot[1:], slot[:-1], out=begins[1:])
        first = np.flatnonzero(begins)
        self.slots: Ints = slot[first]
        self.start: Ints = np.full(len(first) + 1, len(slot), dtype=np.int32)
        self.start[:-1] = first
        self.limit: Floats = np.empty(len(self.slots))
        self.multiplier: Floats = np.zeros(len(self.slots))

    @classmethod
    def of(cls, key: NDArray[np.int64], x: Floats, generation: NDArray[np.int64]) -> WorkingSet:
        """Return a working set of these columns and values; the next :meth:`refresh` or :meth:`gather` adds the
        data.
        """
        result = object.__new__(cls)
        result.__dict__.update(NOTHING.__dict__)
        result.key, result.x, result.generation = key, x, generation
        return result

    def refresh(self, matrix: BlockMatrix, y: Floats | None = None, times: Floats | None = None) -> int:
        """Follow the edits since the last solve: forget removed slabs, take in resident and fixed columns.

        All data are gathered again. `y`: as for :meth:`grow`. `times` (k,): requests without a working column get those
        that are best at each of these multiples of y. Returns the number of these requests.
        """
        alive, unused, required = matrix.followed(self.key, self.generation)
        nothing = np.zeros(0, dtype=np.int32)
        wanted = matrix.required_columns() if required else (nothing, nothing)
        if y is not None and times is not None and len(unused):
            best = matrix.improving(unused, y, times)
            wanted = best if not required else (np.append(wanted[0], best[0]), np.append(wanted[1], best[1]))
        self.any_required = required
        keys = wanted[0].astype(np.int64) << SLOT_SHIFT | wanted[1]
        if required:
            keys = np.sort(keys)
        self.key, self.x, fresh = merged_keys(self.key, self.x, alive, keys)
        self.gather(matrix)
        if y is not None and len(fresh):
            self.start_by_price(fresh, y)
        return len(unused)

    def grow(self, matrix: BlockMatrix, slot: Ints, column: Ints, y: Floats | None = None) -> int:
        """Add columns; return how many were not in yet.

        `y`: prices that select each new column's starting bound; without prices it is the lower bound.
        """
        if len(self.cost) != self.size:  # not gathered since the last solve
            self.gather(matrix)
        fresh, at = self.unknown(slot, column)
        if len(fresh):
            self.merge(matrix, fresh, at)
            if y is not None:
                self.start_by_price(at + np.arange(len(at)), y)
        return len(fresh)

    def unknown(self, slot: Ints, column: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find the given columns that are not in the working set.

        Returns their keys, ascending, and for each the index in :attr:`key` before which it belongs.
        """
        if len(slot) == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        wanted = slot.astype(np.int64) << SLOT_SHIFT | column
        if np.any(wanted[1:] <= wanted[:-1]):
            wanted = distinct(wanted)
        return unknown_keys(self.key, wanted)

    def merge(self, matrix: BlockMatrix, fresh: NDArray[np.int64], at: NDArray[np.int64]) -> None:
        """Insert new columns (keys `fresh`) before the places `at`; only their data are gathered from the matrix."""
        new = WorkingSet.of(fresh, np.zeros(len(fresh)), matrix.generation[fresh >> SLOT_SHIFT])
        new.gather(matrix)
        spliced(self, new, places_with(self.size, at), self)
        if new.x.any():
            self.fit()

    def start_by_price(self, new: NDArray[np.int64], y: Floats) -> None:
        """Raise new columns, at these ascending positions, of negative reduced cost at prices y.

        In a group without a limit all of them go to their upper bounds. In a group whose columns are all at lower
        bounds the best column is raised, as far as the limit allows.
        """
        raise_new(self.groups(), new, y, self.x)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Remove the columns outside the mask; these must be at their lower bounds."""
        spliced(self, NOTHING, places_of(mask.view(np.uint8), True), self)

    def without(self, idle: NDArray[np.uint8]) -> WorkingSet:
        """Return a working set without the idle columns, of which :meth:`refresh` will gather the data again."""
        return WorkingSet.of(*without(self.key, self.x, self.generation, idle))

    def expecting(self, matrix: BlockMatrix, slot: Ints, column: Ints) -> WorkingSet:
        """Return a working set with these columns too, at zero, of which :meth:`refresh` will gather the data."""
        fresh = self.unknown(slot, column)[0]
        if not len(fresh):
            return self
        key, x, _ = merged_keys(self.key, self.x, None, fresh)
        return WorkingSet.of(key, x, matrix.generation[key >> SLOT_SHIFT])

    def take(self, columns: NDArray[np.integer[Any]]) -> WorkingSet:
        """Return a working set of the columns at these ascending positions, with copies of their data."""
        result = object.__new__(WorkingSet)
        spliced(self, NOTHING, np.asarray(columns, dtype=np.int32), result)
        return result

    def gather(self, matrix: BlockMatrix) -> None:
        """Copy costs, bounds and entries from the matrix, and project x onto the bounds."""
        self.slots, self.start, self.generation, flat = matrix.columns_by_key(self.key)
        self.multiplier = np.zeros(len(self.slots))
        self.limit, self.cost, self.lower, self.upper = flat.limit, flat.cost, flat.lower, flat.upper
        self.entry_start, self.row, self.coefficient = flat.entry_start, flat.row, flat.coefficient
        self.free, self.record = np.zeros(self.size, dtype=np.uint8), None
        self.fit()

    def fit(self) -> None:
        """Project x onto bounds and limits."""
        fit(self.groups(), 1e-12, self.x)

    def groups(self) -> Groups:
        """Return the record of the present arrays that kernels read."""
        if self.record is None:
            self.record = self.groups_of(self.cost)
        return self.record

    def groups_of(self, cost: Floats) -> Groups:
        """Return the record with other costs."""
        return Groups(
            self.start, self.limit, cost, self.lower, self.upper, self.entry_start, self.row, self.coefficient
        )

    def activity(self, n_rows: int) -> Floats:
        """Return A x, (n_rows,), recomputed from the columns."""
        return self.activity_of(self.x, n_rows)

    def activity_of(self, x: Floats, n_rows: int) -> Floats:
        """Return A x, (n_rows,), for other values x of the columns."""
        activity = np.empty(n_rows)
        activities(self.entry_start, self.row, self.coefficient, x, activity)
        return activity

    def reduced_costs(self, y: Floats) -> Floats:
        """Return c - A'y of the working columns, (n,)."""
        reduced = np.empty(self.size)
        reduced_costs(self.cost, self.entry_start, self.row, self.coefficient, y, reduced)
        return reduced

    def least_of_groups(self, value: Floats) -> Floats:
        """Return the least `value` of each group's columns, (g,)."""
        least = np.empty(len(self.slots))
        group_least(self.start, value, least)
        return least


NOTHING = WorkingSet()
"""The data of a working set before they are gathered: empty arrays, which all such working sets share."""
