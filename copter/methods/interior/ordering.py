"""Fill-reducing ordering of a symmetric pattern."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.interior.cholesky import elimination_tree, postorder
from copter.methods.interior.minimum_degree import QuotientGraph
from copter.runtime.watch import Stopped

Ints = NDArray[np.int32]


def minimum_degree(pattern: sp.csc_array, must_stop: Callable[[], bool] | None = None) -> Ints:
    """Approximate minimum degree ordering of a symmetric pattern, (m,); position k of the factor is row ordering[k].

    Raises
    ------
    Stopped
        If `must_stop` returns True.
    """
    start, index = pattern.indptr.astype(np.int32, copy=False), pattern.indices.astype(np.int32, copy=False)
    ordering = QuotientGraph(start, index).run(must_stop)
    if ordering is None:
        raise Stopped
    return ordering


def postordered(pattern: sp.csc_array, ordering: Ints) -> tuple[Ints, sp.csc_array, Ints]:
    """Return (ordering, permuted pattern, elimination tree), reordered so that children precede parents."""
    permuted = permute(pattern, ordering)
    parent = np.empty(len(ordering), dtype=np.int32)
    elimination_tree(permuted.indptr, permuted.indices, parent)
    order = np.empty(len(ordering), dtype=np.int32)
    postorder(parent, order)
    position = np.empty(len(ordering) + 1, dtype=np.int32)
    position[order] = np.arange(len(ordering), dtype=np.int32)
    position[-1] = -1
    return ordering[order], permute(permuted, order), position[parent[order]]


def permute(pattern: sp.csc_array, ordering: Ints) -> sp.csc_array:
    """Return the pattern with rows and columns in a new order, with sorted 32-bit indices."""
    permuted = sp.csc_array(pattern[ordering][:, ordering])
    permuted.sort_indices()
    permuted.indptr, permuted.indices = (
        permuted.indptr.astype(np.int32, copy=False),
        permuted.indices.astype(np.int32, copy=False),
    )
    return permuted
