"""The mapping between a request's own columns and the columns of a whole program.

A working column has the key slot << 32 | column, where slot is its request's slot in the matrix and column its number
within the request. A program lists the columns of its requests one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from copter.model.ledger import Ledger
from copter.model.matrix import BlockMatrix

Ints = NDArray[np.int32]
Keys = NDArray[np.int64]
COLUMN = 0xFFFFFFFF  # bit mask of the column in a key slot << 32 | column


@dataclass(frozen=True)
class ColumnMap:
    """The mapping between columns of some requests and columns of a program that consists of them.

    Attributes
    ----------
    slots : ndarray (requests,) int32
        Slots of the requests, in the order of their columns in the program.
    first : ndarray (requests + 1,) int
        First program column of each request; the last entry is the number of columns.
    """

    slots: Ints
    first: Ints | Keys

    @cached_property
    def _request(self) -> Keys:
        """Place of each slot in `slots`, or -1 if it is not listed; the last entry, for all slots beyond, is -1."""
        request = np.full(int(self.slots.max(initial=-1)) + 2, -1, dtype=np.int64)
        request[self.slots] = np.arange(len(self.slots))
        return request

    @classmethod
    def of(cls, matrix: BlockMatrix, slots: Ints) -> ColumnMap:
        """Return the mapping for the requests in these slots, in this order."""
        return cls(slots, matrix.starts_of(slots))

    @classmethod
    def of_model(cls, ledger: Ledger) -> ColumnMap:
        """Return the mapping for all requests, in the order of ``Model.to_linear_program``."""
        return cls.of(ledger.matrix, slots_in_order(ledger))

    @property
    def count(self) -> int:
        """Number of columns of all these requests."""
        return int(self.first[-1])

    def requests(self, slot: Ints) -> Keys:
        """Return, for each given slot, its index in :attr:`slots`; -1 if the slot is not listed."""
        return np.asarray(self._request[np.minimum(slot, len(self._request) - 1)])

    def owners(self, column: Keys) -> Keys:
        """Return, for each program column, the index in :attr:`slots` of its request."""
        return np.searchsorted(self.first, column, side="right") - 1

    def split(self, column: Keys) -> tuple[Ints, Ints]:
        """Return, for each program column, the slot of its request and the column's number within the request."""
        request = self.owners(column)
        return self.slots[request], (column - self.first[request]).astype(np.int32)

    def keys(self, column: Keys, owner: Keys | None = None) -> Keys:
        """Return the keys (slot << 32 | column) of program columns; pass the result of :meth:`owners` as `owner` if
        known.
        """
        request = self.owners(column) if owner is None else owner
        return self.slots[request].astype(np.int64) << 32 | (column - self.first[request])

    def places(self, key: Keys) -> Keys:
        """Return the program columns of these keys; every key must belong to one of the mapped requests."""
        return np.asarray(self.first[self._request[key >> 32]] + (key & COLUMN))


def slots_in_order(ledger: Ledger) -> Ints:
    """Return the slots of all requests in the order in which the requests were added."""
    return np.fromiter(ledger.slot_of.values(), dtype=np.int32, count=len(ledger.slot_of))
