"""Columns of requests by their place in a whole program, and back: the one mapping between the two.

A working column is known by its key, slot << 32 | column: the slot of its request in the matrix, its place in that
request. A program has the columns of its requests one after the other.
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
COLUMN = 0xFFFFFFFF  # the part of a key that is the column


@dataclass(frozen=True)
class Columns:
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
        """For each slot the index of its request in `slots`; -1 for other slots and in the last entry."""
        request = np.full(int(self.slots.max(initial=-1)) + 2, -1, dtype=np.int64)
        request[self.slots] = np.arange(len(self.slots))
        return request

    @classmethod
    def of(cls, matrix: BlockMatrix, slots: Ints) -> Columns:
        """The mapping of the requests in these slots, in this order."""
        return cls(slots, matrix.starts_of(slots))

    @classmethod
    def of_model(cls, ledger: Ledger) -> Columns:
        """The mapping of all requests, in the order of ``Model.to_linear_program``."""
        return cls.of(ledger.matrix, slots_in_order(ledger))

    @property
    def count(self) -> int:
        """Number of columns of all these requests."""
        return int(self.first[-1])

    def requests(self, slot: Ints) -> Keys:
        """For each given slot its index in :attr:`slots`; -1 for a slot that is not in it."""
        return np.asarray(self._request[np.minimum(slot, len(self._request) - 1)])

    def owners(self, column: Keys) -> Keys:
        """For each given program column the index in :attr:`slots` of the request that owns it."""
        return np.searchsorted(self.first, column, side="right") - 1

    def split(self, column: Keys) -> tuple[Ints, Ints]:
        """For each given program column the slot of its request, and its number within the request."""
        request = self.owners(column)
        return self.slots[request], (column - self.first[request]).astype(np.int32)

    def keys(self, column: Keys, owner: Keys | None = None) -> Keys:
        """Keys (slot << 32 | column) of program columns; `owner` is what :meth:`owners` returns, if at hand."""
        request = self.owners(column) if owner is None else owner
        return self.slots[request].astype(np.int64) << 32 | (column - self.first[request])

    def places(self, key: Keys) -> Keys:
        """Program columns of these keys; every key must belong to one of these requests."""
        return np.asarray(self.first[self._request[key >> 32]] + (key & COLUMN))


def slots_in_order(ledger: Ledger) -> Ints:
    """Slots of the requests in the order they were added."""
    return np.fromiter(ledger.slot_of.values(), dtype=np.int32, count=len(ledger.slot_of))
