"""Detection of blocks in a linear program: few rows that couple many small groups of columns (K16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from copter.methods.blocks.program import BlockProgram, sums_before
from copter.methods.blocks.solve import solve_blocks
from copter.methods.choose import STRUCTURE_ENTRIES, blocks_pay
from copter.problem.linear_program import LinearProgram
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

MOST_PRIVATE = 64  # most private rows of one block
# Numbers of coupling rows that the search for blocks tries, in this order.
COUPLING = (0, *(1 << k for k in range(3, 12)), *(3 << k for k in range(2, 10)))


@dataclass(frozen=True, slots=True)
class Structure:
    """A linear program written as a block program.

    Attributes
    ----------
    program : BlockProgram
    columns, rows : ndarray
        For each column and row of the block program, its number in the linear program; coupling rows first.
    multiplications : float
        Number of multiplications of one elimination.
    """

    program: BlockProgram
    columns: Places
    rows: Places
    multiplications: float


def structure_of(lp: LinearProgram, must_stop: Callable[[], bool] = lambda: False) -> Structure | None:
    """Return the split into coupling rows and blocks with the least elimination work; None if no split pays off.

    The 0, 8, 12, 16, 24, ... rows with the most entries are tried as coupling rows. Columns that the other rows connect
    form a block. None also if `must_stop`, called before every try, returns True.
    """
    A = lp.A.tocsr()
    m, n = A.shape
    if A.nnz < STRUCTURE_ENTRIES or n <= m:
        return None
    order = np.argsort(-np.diff(A.indptr), kind="stable")
    best: tuple[float, Places, Places] | None = None
    for count in COUPLING:
        if count >= m:
            continue
        if must_stop():
            return None
        coupling, private = np.sort(order[:count]), np.sort(order[count:])
        label = labels_of(A[private])
        work = multiplications(A[coupling].tocsc(), label, len(private))
        if work is not None and (best is None or work < best[0]):
            best = work, coupling, private
    if best is None or not blocks_pay(best[0], A.nnz):
        return None
    return split(lp, A, *best)


def labels_of(private: sp.csr_array) -> NDArray[np.int32]:
    """Return the block number of every private row, then of every column."""
    m, n = private.shape
    start = np.concatenate((private.indptr, np.full(n, private.nnz, dtype=private.indptr.dtype)))
    graph = sp.csr_array((np.ones(private.nnz, dtype=np.int8), private.indices + m, start), shape=(m + n, m + n))
    return np.asarray(connected_components(graph, directed=False)[1])


def multiplications(coupling: sp.csc_array, label: NDArray[np.int32], n_private: int) -> float | None:
    """Count the multiplications of one elimination and factorisation (K16); None if a block has too many rows."""
    blocks = int(label.max(initial=-1)) + 1
    rows = np.bincount(label[:n_private], minlength=blocks).astype(float)
    if rows.max(initial=0.0) > MOST_PRIVATE:
        return None
    entries = np.diff(coupling.indptr).astype(float)
    count = float(coupling.shape[0])
    touched = np.minimum(np.bincount(label[n_private:], weights=entries, minlength=blocks), count)
    eliminated = rows**3 / 3.0 + rows**2 * touched + rows * touched**2
    return float(count**3 / 3.0 + eliminated.sum() + (entries**2).sum())


def split(lp: LinearProgram, A: sp.csr_array, work: float, coupling: Places, private: Places) -> Structure:
    """Return the block program for a choice of coupling rows."""
    label = labels_of(A[private])
    blocks = int(label.max(initial=-1)) + 1
    of_row, of_column = label[: len(private)], label[len(private) :]
    columns, own = np.argsort(of_column, kind="stable"), np.argsort(of_row, kind="stable")
    column_start = sums_before(np.bincount(of_column, minlength=blocks))
    private_start = sums_before(np.bincount(of_row, minlength=blocks))
    above, below = A[coupling][:, columns].tocsc(), A[private[own]][:, columns].tocsc()
    above.sort_indices()
    below.sort_indices()
    first = np.repeat(private_start[of_column[columns]], np.diff(below.indptr))
    rows = np.concatenate((coupling, private[own]))
    program = BlockProgram(
        n_rows=len(coupling),
        column_start=column_start,
        private_start=private_start,
        start=above.indptr.astype(np.int32),
        row=above.indices.astype(np.int32),
        value=above.data,
        own_start=below.indptr.astype(np.int32),
        own_row=(below.indices - first).astype(np.int32),
        own_value=below.data,
        cost=-lp.c[columns] if lp.sense == "max" else lp.c[columns],
        lower=np.concatenate((lp.col_lower[columns], lp.row_lower[rows])),
        upper=np.concatenate((lp.col_upper[columns], lp.row_upper[rows])),
    )
    return Structure(program, columns, rows, work)


def solve_structured(lp: LinearProgram, settings: Settings, watch: Watch) -> tuple[Floats, Floats, int] | None:
    """Return (x, y, iterations) from a solve by blocks, not yet checked; None if no block structure pays off."""
    structure = structure_of(lp, watch)
    if structure is None or watch():
        return None
    answer = solve_blocks(structure.program, settings, watch, vertex=False)
    if answer is None:
        return None
    x, y = np.empty(lp.shape[1]), np.empty(lp.shape[0])
    x[structure.columns] = answer.x
    y[structure.rows] = np.concatenate((answer.y, answer.private)) * (-1.0 if lp.sense == "max" else 1.0)
    return x, y, answer.iterations
