"""Dense columns, split into pieces that are linked by equations (equation I14).

One column with p entries fills p x p of the normal equations. The splitting is that of Vanderbei, "Splitting dense
columns in sparse linear systems" (1991).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.interior.normal_equations import normal_pattern
from copter.methods.interior.ordering import minimum_degree, postordered
from copter.methods.interior.standard_form import StandardForm

Ints = NDArray[np.int64]

LEAST = 300  # columns with fewer entries are not cut into pieces
ROOTS = 5.0  # columns are cut only if they have more entries than this factor times the root of the number of rows
PIECE = 64  # rows of one piece of a cut column
WORTH = 4.0  # columns are cut only if the normal equations become sparser by this factor


def dense_columns(form: StandardForm) -> Ints:
    """Return the columns worth splitting, (k,)."""
    m = form.matrix.shape[0]
    entries = np.bincount(form.matrix.indices, minlength=form.matrix.shape[1]).astype(np.float64)
    dense = entries > max(LEAST, ROOTS * np.sqrt(m))
    whole = min(float(entries @ entries), float(m) ** 2)
    cut = float((entries[~dense] ** 2).sum()) + float(entries[dense].sum()) * PIECE + m
    return np.flatnonzero(dense) if whole > WORTH * cut else np.zeros(0, dtype=np.int64)


def without_dense_columns(form: StandardForm, must_stop: Callable[[], bool] | None = None) -> StandardForm:
    """Return the program with its dense columns split, or the program itself if there are none.

    A piece has the entries of up to PIECE rows that are neighbours in the fill-reducing order of the other columns. The
    first piece replaces the column; further pieces follow after all columns, and the equations that make the pieces of
    a column equal follow after all rows.
    """
    dense = dense_columns(form)
    if not len(dense):
        return form
    n = form.matrix.shape[1]
    columns = sp.csc_array(form.matrix)
    place = row_order(columns, dense, must_stop)
    parts = [pieces(columns, j, place) for j in dense]
    kept = columns.copy()
    kept.data = np.where(np.isin(np.repeat(np.arange(n), np.diff(kept.indptr)), dense), 0.0, kept.data)
    kept.eliminate_zeros()
    first = sp.csc_array(sp.hstack([part[:, [0]] for part in parts]))
    into = sp.csr_array((np.ones(len(dense)), (np.arange(len(dense)), dense)), shape=(len(dense), n))
    more = sp.hstack([part[:, 1:] for part in parts])
    count = np.array([part.shape[1] for part in parts])
    source = np.repeat(dense, count - 1)
    whole = sp.hstack((kept + first @ into, more))
    share = np.ones(n)
    share[dense] = 1.0 / count
    cost = form.cost * share
    return replace(
        form,
        matrix=sp.csr_array(sp.vstack((whole, links(dense, count, n)))),
        right=np.concatenate((form.right, np.zeros(len(source)))),
        cost=np.concatenate((cost, cost[source])),
        width=np.concatenate((form.width, form.width[source])),
        free=np.concatenate((form.free, form.free[source])),
        sign=np.concatenate((form.sign, form.sign[source])),
        origin=np.concatenate((form.origin, form.origin[source])),
    )


def row_order(columns: sp.csc_array, dense: Ints, must_stop: Callable[[], bool] | None = None) -> Ints:
    """Return every row's position in the fill-reducing order of the matrix without dense columns, (m,)."""
    m, n = columns.shape
    light = columns[:, np.setdiff1d(np.arange(n), dense)]
    pattern = normal_pattern(sp.csr_array(light))
    ordering, _, _ = postordered(pattern, minimum_degree(pattern, must_stop))
    place = np.empty(m, dtype=np.int64)
    place[ordering] = np.arange(m)
    return place


def pieces(columns: sp.csc_array, j: int, place: Ints) -> sp.csc_array:
    """Return column j split into pieces, (m, pieces)."""
    begin, end = columns.indptr[j], columns.indptr[j + 1]
    rows = columns.indices[begin:end]
    _, piece = np.unique(place[rows] // PIECE, return_inverse=True)
    shape = (columns.shape[0], int(piece.max()) + 1)
    return sp.csc_array((columns.data[begin:end], (rows, piece)), shape=shape)


def links(dense: Ints, count: Ints, n: int) -> sp.csr_array:
    """Return the equations that make every piece equal to the previous one."""
    extra = int((count - 1).sum())
    own = n + np.arange(extra)
    before = own - 1
    before[np.cumsum(count - 1) - (count - 1)] = dense
    row = np.arange(extra)
    ones = np.ones(extra)
    return sp.csr_array(
        (np.concatenate((ones, -ones)), (np.concatenate((row, row)), np.concatenate((before, own)))),
        shape=(extra, n + extra),
    )
