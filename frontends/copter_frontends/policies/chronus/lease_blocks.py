"""Leases of the lease program: single ones near, blocks of several far ahead (docs/papers/chronus.md, C13)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter_frontends.policies.chronus.options import Bools, Floats, Ints

EXACT = 32  # the first leases are blocks of their own; from then on a block is this many times as far as it is long


@dataclass(frozen=True, slots=True)
class LeaseBlocks:
    """A partition of the scarce leases into blocks, which have one row and one price for each GPU type.

    The lengths of blocks are powers of two, and a block begins at a multiple of its length. So from one lease to the
    next only the few blocks that have come near are cut in two.

    Attributes
    ----------
    begin : int64 array (blocks,)
        The first lease of each block, counted from the first lease to plan.
    scarce : int
        Number of leases.
    first : int
        Absolute number of the first lease.
    """

    begin: Ints
    scarce: int
    first: int

    @classmethod
    def of(cls, first: int, scarce: int, exact: int = EXACT) -> LeaseBlocks:
        """Return the blocks of the `scarce` leases from the absolute number `first` on."""
        begin, at = [], 0
        while at < scarce:
            begin.append(at)
            length = 1
            while 2 * length * exact <= at and (first + at) % (2 * length) == 0:
                length *= 2
            at += length
        return cls(np.array(begin, dtype=np.int64), scarce, first)

    @property
    def names(self) -> list[tuple[int, int]]:
        """Return each block's first absolute lease and the one after its last."""
        ends = [*(self.begin[1:] + self.first).tolist(), self.first + self.scarce]
        return list(zip((self.begin + self.first).tolist(), ends, strict=True))

    def total(self, capacity: Ints) -> Ints:
        """Return the sums over blocks of GPUs in each lease, (types, blocks)."""
        return np.asarray(np.add.reduceat(capacity, self.begin, axis=1))

    def counts(self, leases: Bools) -> Ints:
        """Return the number of leases in each block, (columns, blocks)."""
        return np.asarray(np.add.reduceat(leases[:, : self.scarce].astype(np.int64), self.begin, axis=1))

    def spread(self, price: Floats) -> Floats:
        """Return the price of each lease from the prices of blocks, (types, leases)."""
        return np.asarray(np.repeat(price, np.diff(self.begin, append=self.scarce), axis=1))
