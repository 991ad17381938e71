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
    """Where the columns of some requests stand in a program.

    Attributes
    ----------
    slots : ndarray (requests,) int32
        In the program's order.
    first : ndarray (requests + 1,) int
        First column of every request, and the number of all columns.
    """

    slots: Ints
    first: Ints | Keys

    @cached_property
    def _request(self) -> Keys:
        """Place of the request of every slot; -1 for none, and at the end."""
        request = np.full(int(self.slots.max(initial=-1)) + 2, -1, dtype=np.int64)
        request[self.slots] = np.arange(len(self.slots))
        return request

    @classmethod
    def of(cls, matrix: BlockMatrix, slots: Ints) -> Columns:
        """Of the requests in these slots, in this order."""
        return cls(slots, matrix.starts_of(slots))

    @classmethod
    def of_model(cls, ledger: Ledger) -> Columns:
        """Of all requests, in the order of ``Model.to_linear_program``."""
        return cls.of(ledger.matrix, slots_in_order(ledger))

    @property
    def count(self) -> int:
        """Columns of all these requests."""
        return int(self.first[-1])

    def requests(self, slot: Ints) -> Keys:
        """Place of the request in each slot among these; -1 where a slot holds none of them."""
        return np.asarray(self._request[np.minimum(slot, len(self._request) - 1)])

    def owners(self, column: Keys) -> Keys:
        """Place of the request of each column of the program among these."""
        return np.searchsorted(self.first, column, side="right") - 1

    def split(self, column: Keys) -> tuple[Ints, Ints]:
        """(slot, column of the request) of columns of the program."""
        request = self.owners(column)
        return self.slots[request], (column - self.first[request]).astype(np.int32)

    def keys(self, column: Keys, owner: Keys | None = None) -> Keys:
        """Keys of columns of the program; `owner`: their :meth:`owners`, where they are known."""
        request = self.owners(column) if owner is None else owner
        return self.slots[request].astype(np.int64) << 32 | (column - self.first[request])

    def places(self, key: Keys) -> Keys:
        """Columns of the program that keys stand for; all of them must be of these requests."""
        return np.asarray(self.first[self._request[key >> 32]] + (key & COLUMN))


def slots_in_order(ledger: Ledger) -> Ints:
    """Slots of the requests in the order they were added."""
    return np.fromiter(ledger.slot_of.values(), dtype=np.int32, count=len(ledger.slot_of))
