"""A round's program as arrays, for peers and for the judge. This file imports nothing of copter."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """sense c'x + offset, row_lower <= A x <= row_upper, col_lower <= x <= col_upper.

    Attributes
    ----------
    column_key, row_key : ndarray of int64
        Names of columns and rows, all different, which stay the same from round to round.
    integrality : ndarray of bool (n,)
        Columns that must be whole in a plan; the LP ignores integrality.
    """

    c: Floats
    A: sp.csc_array
    row_lower: Floats
    row_upper: Floats
    col_lower: Floats
    col_upper: Floats
    column_key: Ints
    row_key: Ints
    sense: Literal["min", "max"] = "max"
    offset: float = 0.0
    integrality: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return len(self.row_key), len(self.column_key)

    def taken(self, rows: Ints, columns: Ints) -> Program:
        """Return the program with some rows and columns, in the given order."""
        m, n = self.shape
        A = self.A
        if not (len(columns) == n and np.array_equal(columns, np.arange(n))):
            A = A[:, columns]
        if not (len(rows) == m and np.array_equal(rows, np.arange(m))):
            A = A.tocsr()[rows].tocsc()
        return replace(
            self,
            A=sp.csc_array(A),
            c=self.c[columns],
            col_lower=self.col_lower[columns],
            col_upper=self.col_upper[columns],
            column_key=self.column_key[columns],
            row_lower=self.row_lower[rows],
            row_upper=self.row_upper[rows],
            row_key=self.row_key[rows],
            integrality=self.integrality[columns] if len(self.integrality) else self.integrality,
        )


class Names:
    """Numbering of names: equal names always get the same number."""

    def __init__(self) -> None:
        self.number: dict[Hashable, int] = {}

    def numbers(self, names: Iterable[Hashable]) -> Ints:
        """Return a number for each name."""
        return np.array([self.number.setdefault(name, len(self.number)) for name in names], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Positions of the keys that two lists share, and of the removed and added keys.

    Attributes
    ----------
    before, after : ndarray of int
        Positions of the shared keys in the old and in the new list, in the old order.
    gone, fresh : ndarray of int
        Positions of removed keys in the old list, and of added keys in the new list, in order.
    """

    before: Ints
    after: Ints
    gone: Ints
    fresh: Ints

    @classmethod
    def of(cls, before: Ints, after: Ints) -> Overlap:
        """Compare two lists of keys."""
        if np.array_equal(before, after):
            every, none = np.arange(len(before)), np.zeros(0, dtype=np.int64)
            return cls(every, every, none, none)
        _, here, there = np.intersect1d(before, after, assume_unique=True, return_indices=True)
        order = np.argsort(here, kind="stable")
        stays, is_old = np.zeros(len(before), dtype=np.bool_), np.zeros(len(after), dtype=np.bool_)
        stays[here], is_old[there] = True, True
        return cls(here[order], there[order], np.flatnonzero(~stays), np.flatnonzero(~is_old))

    @property
    def order(self) -> Ints:
        """Return the new positions: shared keys in their old order, then added keys."""
        return np.concatenate((self.after, self.fresh))


def changed_coefficients(
    before: Program, now: Program, rows: Overlap, columns: Overlap
) -> list[tuple[int, int, float]]:
    """Return (row, column, value) of surviving columns' entries that changed or are in new rows."""
    stayed = now.taken(rows.after, columns.after).A.tocsr()
    changed = (before.taken(rows.before, columns.before).A.tocsr() != stayed).tocoo()
    values = np.asarray(stayed[changed.row, changed.col]).ravel() if changed.nnz else np.zeros(0)
    fresh = now.taken(rows.fresh, columns.after).A.tocoo()
    old, new = rows.after[changed.row].tolist(), rows.fresh[fresh.row].tolist()
    return [
        *zip(old, columns.after[changed.col].tolist(), values.tolist(), strict=True),
        *zip(new, columns.after[fresh.col].tolist(), fresh.data.tolist(), strict=True),
    ]
